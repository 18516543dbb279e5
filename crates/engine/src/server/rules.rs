//! What all tests of a server share, whatever their dialect: who may come, what they may use, and who is told.

use linerate_model::sharing::{Admission, Sharing};
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerReporter};

use super::access::AccessList;
use super::context::read_text;
use super::desk::with_admission;
use super::limits::Ledger;
use super::resource_quota::Capacity;
use super::tally::Tally;
use std::time::Instant;

/// On loan to whoever admits and ends tests.
pub(crate) struct Rules<'a> {
    pub(crate) access: &'a AccessList,
    pub(crate) ledger: &'a mut Ledger,
    pub(crate) tally: &'a mut Tally,
    pub(crate) out: &'a mut dyn ServerReporter,
}

/// The rules of a server that speaks one dialect only.
pub(crate) struct Rulebook {
    access: AccessList,
    ledger: Ledger,
    tally: Tally,
}

impl Rulebook {
    pub(crate) fn new(spec: &ServerSpec) -> Result<Self, Failure> {
        let sharing = &spec.sharing;
        let access = AccessList::load(&sharing.access, read_text);
        Ok(Self {
            access: access.map_err(|text| Failure::error(1, text))?,
            ledger: ledger(sharing, sharing.admission),
            tally: Tally::new(Instant::now()),
        })
    }

    pub(crate) fn lend<'a>(&'a mut self, out: &'a mut dyn ServerReporter) -> Rules<'a> {
        Rules {
            access: &self.access,
            ledger: &mut self.ledger,
            tally: &mut self.tally,
            out,
        }
    }
}

/// The ledger of a server on this host.
pub(super) fn ledger(sharing: &Sharing, admission: Admission) -> Ledger {
    let limits = with_admission(&sharing.limits, admission);
    let tests_max = limits.server.tests.unwrap_or(u32::MAX);
    let capacity = Capacity::of_host(tests_max);
    Ledger::new(limits)
        .within(capacity)
        .ending_strangers_after(sharing.stranger_time_max)
}
