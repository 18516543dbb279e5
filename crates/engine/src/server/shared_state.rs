//! What all dialects of a server share: access list, quotas, statistics, log.

use std::time::Instant;

use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerReporter};

use super::access::{AccessList, read_text};
use super::admission::Admission;
use super::server_stats::ServerStats;

/// Borrowed by a dialect while it admits and ends tests.
pub(crate) struct ServerContext<'a> {
    pub(crate) access: &'a AccessList,
    pub(crate) admission: &'a mut Admission,
    pub(crate) stats: &'a mut ServerStats,
    pub(crate) out: &'a mut dyn ServerReporter,
}

/// The shared state of a server with one dialect.
pub(crate) struct SharedServerState {
    access: AccessList,
    admission: Admission,
    stats: ServerStats,
}

impl SharedServerState {
    pub(crate) fn new(spec: &ServerSpec) -> Result<Self, Failure> {
        let policy = &spec.policy;
        let access = AccessList::load(&policy.access, read_text);
        Ok(Self {
            access: access.map_err(|text| Failure::error(1, text))?,
            admission: Admission::new(policy, spec.one_off).within_host(),
            stats: ServerStats::new(Instant::now()),
        })
    }

    pub(crate) fn lend<'a>(&'a mut self, out: &'a mut dyn ServerReporter) -> ServerContext<'a> {
        ServerContext {
            access: &self.access,
            admission: &mut self.admission,
            stats: &mut self.stats,
            out,
        }
    }
}
