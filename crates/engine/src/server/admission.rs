//! Admission of clients: at once, after a wait, or not at all; then each test takes what it needs from the quotas.

use std::time::Duration;

use linerate_model::network::Network;
use linerate_model::policy::{self, ServerLimits, ServerPolicy};
use linerate_model::service::RefusalReason;

use super::limits::queue::AdmissionQueue;
use super::limits::quotas::{QuotaRequest, Quotas};

/// The rules of a server, the tests it runs and the clients that wait.
#[derive(Debug)]
pub(crate) struct Admission {
    kind: policy::Admission,
    quotas: Quotas,
    queue: AdmissionQueue,
}

/// The decision on a client whose test is not known yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Decision {
    Admitted,
    /// It waits for its turn, at most this long.
    Queued(Duration),
    Refused(RefusalReason),
}

impl Admission {
    /// Without bounds on the resources of this host.
    pub(crate) fn new(policy: &ServerPolicy, one_off: bool) -> Self {
        // A server for one test has no place for a second one.
        let kind = if one_off { policy::Admission::Exclusive } else { policy.admission };
        let quotas = Quotas::new(with_places(&policy.limits, kind)).with_anonymous_time_max(policy.anonymous_time_max);
        Self { kind, quotas, queue: AdmissionQueue::default() }
    }

    /// Bounds what all tests together take of this host. Before the first client.
    pub(crate) fn within_host(mut self) -> Self {
        self.quotas = self.quotas.within_host();
        self
    }

    /// Only one client at a time may negotiate or run a test.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.kind == policy::Admission::Exclusive
    }

    /// Decides on a client before its parameters are known. `remaining` has an item for each client that negotiates or
    /// runs a test: the time left, `None` where it is unknown.
    pub(crate) fn decide(
        &mut self,
        id: u64,
        address: Network,
        remaining: impl Iterator<Item = Option<Duration>>,
    ) -> Decision {
        let decision = self.decision(id, address, remaining);
        tracing::debug!(client = id, %address, ?decision, "admission decided");
        decision
    }

    fn decision(
        &mut self,
        id: u64,
        address: Network,
        mut remaining: impl Iterator<Item = Option<Duration>>,
    ) -> Decision {
        let waits = matches!(self.kind, policy::Admission::Queue { .. });
        if let Err(reason) = self.quotas.has_room(address)
            && (reason != RefusalReason::Busy || !waits)
        {
            return Decision::Refused(reason);
        }
        match self.kind {
            policy::Admission::Parallel { .. } => Decision::Admitted,
            policy::Admission::Exclusive if remaining.next().is_none() => Decision::Admitted,
            policy::Admission::Exclusive => Decision::Refused(RefusalReason::Busy),
            policy::Admission::Queue { tests_max, wait_max } => {
                let remaining: Vec<_> = remaining.collect();
                let places = tests_max as usize;
                if self.queue.is_empty() && remaining.len() < places {
                    Decision::Admitted
                } else if self.queue.enter(id, address, remaining.into_iter(), places, wait_max) {
                    Decision::Queued(wait_max)
                } else {
                    Decision::Refused(RefusalReason::QueueTooLong)
                }
            }
        }
    }

    /// The next waiting client whose turn has come while `active` clients negotiate or run a test.
    pub(crate) fn next_turn(&mut self, active: usize) -> Option<u64> {
        let policy::Admission::Queue { tests_max, .. } = self.kind else {
            return None;
        };
        (active < tests_max as usize).then(|| self.queue.next())?
    }

    /// Enters a test, if everything it needs is within the limits.
    pub(crate) fn take(&mut self, id: u64, request: QuotaRequest) -> Result<(), RefusalReason> {
        self.quotas.take(id, request)
    }

    /// A client or a test is gone.
    pub(crate) fn release(&mut self, id: u64) {
        self.quotas.release(id);
        self.queue.leave(id);
    }

    pub(crate) fn quotas(&mut self) -> &mut Quotas {
        &mut self.quotas
    }
}

/// Tests that one address may always have at once.
const ADDRESS_TESTS_MIN: u32 = 8;

/// Places a server has by its kind of admission count like any other limit.
fn with_places(limits: &ServerLimits, kind: policy::Admission) -> ServerLimits {
    let places = match kind {
        policy::Admission::Parallel { tests_max } | policy::Admission::Queue { tests_max, .. } => tests_max,
        policy::Admission::Exclusive => 1,
    };
    let mut limits = limits.clone();
    let places = limits.server.tests.map_or(places, |max| max.min(places));
    limits.server.tests = Some(places);
    limits.address.tests.get_or_insert((places / 10).max(ADDRESS_TESTS_MIN));
    limits
}
