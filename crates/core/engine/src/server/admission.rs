//! Admission of clients: at once, after a wait, or not at all; then each test takes what it needs
//! from the quotas.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_model::network::Network;
use linerate_model::policy::{self, ServerLimits, ServerPolicy};
use linerate_model::service::RefusalReason;

use super::limits::fair_turns::FairTurns;
use super::limits::queue::AdmissionQueue;
use super::limits::quotas::{QuotaRequest, Quotas};

/// The rules of a server, the tests it runs and the clients that wait, of all dialects.
pub(crate) struct Admission {
    kind: policy::Admission,
    quotas: Quotas,
    queue: AdmissionQueue,
    /// Clients of all dialects that negotiate or run a test.
    active: BTreeMap<u64, TestTime>,
    /// State of a server with one place.
    turns: FairTurns,
    /// The last time a client was refused because there was no place.
    refused_at: Option<Instant>,
}

/// Time in which a client that found no place comes again.
const COMES_AGAIN: Duration = Duration::from_secs(60);

/// Time for which a place is taken. `None` where that is unknown.
#[derive(Clone, Copy)]
enum TestTime {
    /// The test has not begun; its length.
    Planned(Option<Duration>),
    /// The test runs; its end.
    Until(Option<Instant>),
}

impl TestTime {
    fn left(self, now: Instant) -> Option<Duration> {
        match self {
            Self::Planned(length) => length,
            Self::Until(end) => end.map(|end| end.saturating_duration_since(now)),
        }
    }
}

/// Place of a client in the queue.
#[cfg(feature = "native")]
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Clients before it.
    pub ahead: usize,
    /// Expected wait.
    pub wait: Duration,
}

/// The decision on a client whose test is not known yet.
#[derive(Debug)]
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
        let kind = if one_off {
            policy::Admission::Exclusive
        } else {
            policy.admission
        };
        let quotas = Quotas::new(with_places(&policy.limits, kind))
            .with_anonymous_time_max(policy.anonymous_time_max);
        Self {
            kind,
            quotas,
            queue: AdmissionQueue::default(),
            active: BTreeMap::new(),
            turns: FairTurns::default(),
            refused_at: None,
        }
    }

    /// Bounds what all tests together take of this host. Before the first client.
    pub(crate) fn within_host(mut self) -> Self {
        self.quotas = self.quotas.within_host();
        self
    }

    /// Replaces the limits for tests that begin later.
    pub(crate) fn replace_limits(&mut self, policy: &ServerPolicy) {
        let limits = with_places(&policy.limits, self.kind);
        self.quotas
            .replace_limits(limits, policy.anonymous_time_max);
    }

    /// Only one client at a time may negotiate or run a test.
    pub(crate) fn is_exclusive(&self) -> bool {
        self.kind == policy::Admission::Exclusive
    }

    /// Decides on a client before its parameters are known.
    pub(crate) fn decide(&mut self, id: u64, address: Network, now: Instant) -> Decision {
        let decision = self.decision(id, address, now);
        tracing::debug!(client = id, %address, ?decision, "admission decided");

        match decision {
            Decision::Admitted => {
                self.negotiate(id);
                self.turns.begin(id, address);
            }
            Decision::Refused(_) => self.refuse(address, now),
            Decision::Queued(_) => {}
        }

        decision
    }

    /// A client is refused, also one of which nothing was read.
    pub(crate) fn refuse(&mut self, address: Network, now: Instant) {
        if self.is_exclusive() {
            self.turns.refuse(address, now);
        }
        self.want_place(now);
    }

    /// A client found no place.
    pub(crate) fn want_place(&mut self, now: Instant) {
        self.refused_at = Some(now);
    }

    /// A client waits for a place, or found none a moment ago.
    pub(crate) fn is_place_wanted(&self, now: Instant) -> bool {
        let comes_again = |refused_at| now.saturating_duration_since(refused_at) < COMES_AGAIN;
        !self.queue.is_empty() || self.refused_at.is_some_and(comes_again)
    }

    fn negotiate(&mut self, id: u64) {
        self.active.insert(
            id,
            TestTime::Planned(Some(AdmissionQueue::DEFAULT_TEST_TIME)),
        );
    }

    fn decision(&mut self, id: u64, address: Network, now: Instant) -> Decision {
        let waits = matches!(self.kind, policy::Admission::Queue { .. });
        if let Err(reason) = self.quotas.has_room(address)
            && (reason != RefusalReason::Busy || !waits)
        {
            return Decision::Refused(reason);
        }

        match self.kind {
            policy::Admission::Parallel { .. } => Decision::Admitted,
            policy::Admission::Queue {
                tests_max,
                wait_max,
            } => {
                let places = tests_max as usize;
                let remaining = self.active.values().map(|time| time.left(now));

                if self.queue.is_empty() && self.active.len() < places {
                    Decision::Admitted
                } else if self.queue.enter(id, address, remaining, places, wait_max) {
                    Decision::Queued(wait_max)
                } else {
                    Decision::Refused(RefusalReason::QueueTooLong)
                }
            }
            // One test at a time.
            _ if self.active.is_empty() && self.turns.admits(address, now) => Decision::Admitted,
            _ => Decision::Refused(RefusalReason::Busy),
        }
    }

    /// The next waiting client, if there is a place for it and `owns` is true of it: a dialect
    /// takes its own clients.
    pub(crate) fn next_turn(&mut self, owns: impl Fn(u64) -> bool) -> Option<u64> {
        let id = self.turn_of().filter(|id| owns(*id))?;
        self.queue.leave(id);
        self.negotiate(id);
        Some(id)
    }

    /// The waiting client for which there is a place.
    pub(crate) fn turn_of(&self) -> Option<u64> {
        match self.kind {
            policy::Admission::Queue { tests_max, .. }
                if self.active.len() < tests_max as usize =>
            {
                self.queue.first()
            }
            _ => None,
        }
    }

    /// Place of a waiting client; `None` when it does not wait. The protocol of iperf3 has no
    /// message for it.
    #[cfg(feature = "native")]
    pub(crate) fn turn(&self, id: u64, now: Instant) -> Option<Turn> {
        let policy::Admission::Queue { tests_max, .. } = self.kind else {
            return None;
        };
        let remaining = self.active.values().map(|time| time.left(now));
        let (ahead, wait) = self.queue.turn(id, remaining, tests_max as usize)?;
        Some(Turn { ahead, wait })
    }

    /// Enters a test, if everything it needs is within the limits.
    pub(crate) fn take(&mut self, id: u64, request: QuotaRequest) -> Result<(), RefusalReason> {
        let duration = request.duration;
        self.quotas.take(id, request)?;
        self.active.insert(id, TestTime::Planned(duration));
        Ok(())
    }

    /// The test of a client begins to run.
    pub(crate) fn begin(&mut self, id: u64, now: Instant) {
        if let Some(time) = self.active.get_mut(&id)
            && let TestTime::Planned(length) = *time
        {
            *time = TestTime::Until(length.and_then(|length| now.checked_add(length)));
        }
    }

    /// A client or a test is gone.
    pub(crate) fn release(&mut self, id: u64, now: Instant) {
        self.turns.end(id, now);
        self.active.remove(&id);
        self.quotas.release(id);
        self.queue.leave(id);
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        self.quotas.limits()
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
        policy::Admission::Parallel { tests_max } | policy::Admission::Queue { tests_max, .. } => {
            tests_max
        }
        _ => 1,
    };
    let mut limits = limits.clone();
    let places = limits.server.tests.map_or(places, |max| max.min(places));
    limits.server.tests = Some(places);
    limits
        .address
        .tests
        .get_or_insert((places / 10).max(ADDRESS_TESTS_MIN));

    limits
}
