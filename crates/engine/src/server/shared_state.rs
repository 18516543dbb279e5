//! What all dialects of a server share: access list, quotas, statistics, log.

use std::time::Instant;

use linerate_model::policy::{Admission, ServerLimits, ServerPolicy};
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerReporter};

use super::access::{AccessList, read_text};
use super::quotas::Quotas;
use super::resource_quota::Capacity;
use super::server_stats::ServerStats;

/// Borrowed by a dialect while it admits and ends tests.
pub(crate) struct ServerContext<'a> {
    pub(crate) access: &'a AccessList,
    pub(crate) quotas: &'a mut Quotas,
    pub(crate) stats: &'a mut ServerStats,
    pub(crate) out: &'a mut dyn ServerReporter,
}

/// The shared state of a server with one dialect.
pub(crate) struct SharedServerState {
    access: AccessList,
    quotas: Quotas,
    stats: ServerStats,
}

impl SharedServerState {
    pub(crate) fn new(spec: &ServerSpec) -> Result<Self, Failure> {
        let policy = &spec.policy;
        let access = AccessList::load(&policy.access, read_text);
        Ok(Self {
            access: access.map_err(|text| Failure::error(1, text))?,
            quotas: quotas(policy, policy.admission),
            stats: ServerStats::new(Instant::now()),
        })
    }

    pub(crate) fn lend<'a>(&'a mut self, out: &'a mut dyn ServerReporter) -> ServerContext<'a> {
        ServerContext {
            access: &self.access,
            quotas: &mut self.quotas,
            stats: &mut self.stats,
            out,
        }
    }
}

/// The quotas of a server on this host.
pub(crate) fn quotas(policy: &ServerPolicy, admission: Admission) -> Quotas {
    let limits = with_admission(&policy.limits, admission);
    let tests_max = limits.server.tests.unwrap_or(u32::MAX);
    let capacity = Capacity::of_host(tests_max);
    Quotas::new(limits)
        .within(capacity)
        .with_anonymous_time_max(policy.anonymous_time_max)
}

/// Tests that one address may always have at once.
const ADDRESS_TESTS_MIN: u32 = 8;

/// Places a server has by its kind of admission count like any other limit.
pub(crate) fn with_admission(limits: &ServerLimits, admission: Admission) -> ServerLimits {
    let places = match admission {
        Admission::Parallel { tests_max } | Admission::Queue { tests_max, .. } => tests_max,
        Admission::Exclusive => 1,
    };
    let mut limits = limits.clone();
    let places = limits.server.tests.map_or(places, |max| max.min(places));
    limits.server.tests = Some(places);
    limits.address.tests.get_or_insert((places / 10).max(ADDRESS_TESTS_MIN));
    limits
}
