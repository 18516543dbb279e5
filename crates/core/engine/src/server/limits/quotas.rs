//! Quotas of one test, one client address, one user and all clients together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use linerate_model::network::Network;
#[cfg(feature = "native")]
use linerate_model::numbers;
use linerate_model::policy::{Limits, ServerLimits};
use linerate_model::service::RefusalReason;
use linerate_sys::clock::as_ns;

use super::requirements::Requirements;
use super::resource_quota::{Capacity, ResourceQuota};
use crate::data::quota::{Quota, SharedRate};

/// Who requests a test and what it needs.
#[derive(Debug, Clone)]
pub(crate) struct QuotaRequest {
    pub address: Network,
    pub user: Option<String>,
    /// Streams of both directions together.
    pub streams: u32,
    /// Length with the warm-up; `None` without a time limit.
    pub duration: Option<Duration>,
    /// Bytes that end the test, 0 for none.
    pub bytes: u64,
    /// Bytes of one more block on each stream, added to `bytes`: senders notice the end between
    /// blocks.
    pub last_blocks_bytes: u64,
    /// Rate of all streams together, bit/s; 0 when it is not announced, `u64::MAX` for all there
    /// is.
    pub rate_bps: u64,
    /// Resources of this host that it takes.
    pub requirements: Requirements,
}

/// The tests that run, and what is left for others.
pub(crate) struct Quotas {
    limits: ServerLimits,
    /// Longest time of a test without a user.
    anonymous_time_max: Option<Duration>,
    resources: ResourceQuota,
    entries: BTreeMap<u64, Entry>,
}

struct Entry {
    request: QuotaRequest,
    /// The rates that it shares with the others of its scopes, in the order of [`Scope::ALL`].
    rates: [Option<Arc<SharedRate>>; 3],
    /// Most bytes the test may move.
    bytes_max: Option<u64>,
    /// Time of the first check.
    began_ns: Option<u64>,
}

/// The tests that a limit is about.
#[derive(Clone, Copy)]
enum Scope {
    Server,
    Address,
    User,
}

impl Scope {
    const ALL: [Self; 3] = [Self::Server, Self::Address, Self::User];

    /// Those of a test; that of a user is none of a test without one.
    fn of(request: &QuotaRequest) -> impl Iterator<Item = Self> {
        let applies = |scope: &Self| scope.covers(request, request);
        Self::ALL.into_iter().filter(applies)
    }

    fn limits(self, limits: &ServerLimits) -> &Limits {
        match self {
            Self::Server => &limits.server,
            Self::Address => &limits.address,
            Self::User => &limits.user,
        }
    }

    /// True if a limit of `request` is about `other` too.
    fn covers(self, request: &QuotaRequest, other: &QuotaRequest) -> bool {
        match self {
            Self::Server => true,
            Self::Address => other.address == request.address,
            Self::User => other.user.is_some() && other.user == request.user,
        }
    }
}

/// Period of quota checks.
pub(crate) const CHECK_NS: u64 = 500_000_000;
/// Time from the agreed end of a test to its results.
const GRACE: Duration = Duration::from_secs(10);

impl Quotas {
    pub(crate) fn new(limits: ServerLimits) -> Self {
        Self {
            limits,
            anonymous_time_max: None,
            resources: ResourceQuota::new(Capacity::UNBOUNDED),
            entries: BTreeMap::new(),
        }
    }

    /// Bounds what all tests together take of this host. Before the first test.
    pub(crate) fn within_host(mut self) -> Self {
        let tests_max = self.limits.server.tests.unwrap_or(u32::MAX);
        self.resources = ResourceQuota::new(Capacity::of_host(tests_max));
        self
    }

    /// Ends tests of clients that have not logged in after this time, whatever was agreed.
    pub(crate) fn with_anonymous_time_max(mut self, time: Option<Duration>) -> Self {
        self.anonymous_time_max = time;
        self
    }

    /// Replaces the limits for tests that begin later.
    pub(crate) fn replace_limits(
        &mut self,
        limits: ServerLimits,
        anonymous_time_max: Option<Duration>,
    ) {
        self.resources.capacity = Capacity::of_host(limits.server.tests.unwrap_or(u32::MAX));
        self.limits = limits;
        self.anonymous_time_max = anonymous_time_max;
    }

    pub(crate) fn limits(&self) -> &ServerLimits {
        &self.limits
    }

    /// True if the address may start one more test, before its parameters are known.
    pub(crate) fn has_room(&self, address: Network) -> Result<(), RefusalReason> {
        check_count(
            self.limits.server.tests,
            self.entries.len(),
            RefusalReason::Busy,
        )?;
        let own = self
            .entries
            .values()
            .filter(|e| e.request.address == address)
            .count();
        check_count(self.limits.address.tests, own, RefusalReason::AddressTests)
    }

    /// Enters a test, if everything it needs is within the limits.
    pub(crate) fn take(&mut self, id: u64, request: QuotaRequest) -> Result<(), RefusalReason> {
        self.has_room(request.address)?;
        if request.user.is_some() {
            let own = self
                .entries
                .values()
                .filter(|e| e.request.user == request.user)
                .count();
            check_count(self.limits.user.tests, own, RefusalReason::UserTests)?;
        }

        self.check_size(&request)?;
        self.check_rate(&request)?;
        self.resources
            .take(id, request.address, request.requirements)?;

        let rates = self.shared_rates(&request);
        let bytes_max = self
            .smallest(&request, |l| l.bytes)
            .map(|max| match request.bytes {
                // The allowance for last blocks is for senders that count whole blocks; a test
                // without an amount has no last block.
                0 => max,
                _ => max.saturating_add(request.last_blocks_bytes.min(max)),
            });
        let entry = Entry {
            request,
            rates,
            bytes_max,
            began_ns: None,
        };
        self.entries.insert(id, entry);

        Ok(())
    }

    /// Connections of requests and responses that one session may have at most: a quarter of what
    /// its address has.
    #[cfg(feature = "native")]
    pub(crate) fn connections_max(&self) -> u32 {
        u32::try_from(self.resources.capacity.address_descriptors / 4).unwrap_or(u32::MAX)
    }

    /// The reason of a refusal with what the test requests and what it may have, where these are
    /// numbers.
    #[cfg(feature = "native")]
    pub(crate) fn explained(&self, request: &QuotaRequest, reason: RefusalReason) -> String {
        let seconds = |time: Duration| format!("{:.0} s", time.as_secs_f64());
        let bytes_text = |count: u64| numbers::bytes(count as f64);
        let anonymous_time_max = self.anonymous_time_max.filter(|_| request.user.is_none());
        let duration_max = self
            .smallest(request, |l| l.duration)
            .into_iter()
            .chain(anonymous_time_max)
            .min();

        let numbers = match reason {
            RefusalReason::Duration => request.duration.map(seconds).zip(duration_max.map(seconds)),
            RefusalReason::Streams => {
                let max = self.smallest(request, |l| l.streams);
                max.map(|max| {
                    (
                        format!("{} in both directions", request.streams),
                        max.to_string(),
                    )
                })
            }
            RefusalReason::Bytes => self
                .smallest(request, |l| l.bytes)
                .map(|max| (bytes_text(request.bytes), bytes_text(max))),
            RefusalReason::Rate => {
                let max = self.smallest(request, |l| l.rate_bps);
                max.map(|max| {
                    (
                        numbers::rate(request.rate_bps as f64),
                        numbers::rate(max as f64),
                    )
                })
            }
            _ => None,
        };
        match numbers {
            Some((requested, allowed)) => {
                format!("{reason}: {requested} requested, at most {allowed} allowed")
            }
            None => reason.to_string(),
        }
    }

    /// Limits that the workers of a test keep to.
    pub(crate) fn quota(&self, id: u64) -> Quota {
        let Some(entry) = self.entries.get(&id) else {
            return Quota::default();
        };
        let rates = entry.rates.iter().flatten().cloned().collect();
        Quota::new(rates, entry.bytes_max)
    }

    /// Those of the running tests with the same scope, or new ones.
    fn shared_rates(&self, request: &QuotaRequest) -> [Option<Arc<SharedRate>>; 3] {
        Scope::ALL.map(|scope| {
            let limit = scope.limits(&self.limits).rate_bps;
            let rate_bps = limit.filter(|_| scope.covers(request, request))?;
            // One shared counter for all tests of the scope: counters per test would allow the rate
            // to each.
            let mut running = self.entries.values();
            let running = running.find(|e| scope.covers(request, &e.request));
            let running = running.and_then(|e| e.rates[scope as usize].clone());
            // A test of before a reload may have another rate.
            let running = running.filter(|shared| shared.rate_bps() == rate_bps);
            Some(running.unwrap_or_else(|| Arc::new(SharedRate::new(rate_bps))))
        })
    }

    /// Resources of this host that the tests have taken.
    pub(crate) fn reserved(&self) -> Requirements {
        self.resources.reserved()
    }

    pub(crate) fn release(&mut self, id: u64) {
        self.resources.release(id);
        self.entries.remove(&id);
    }

    /// True if [`Quotas::check`] is needed.
    pub(crate) fn needs_checks(&self) -> bool {
        let has_bytes = Scope::ALL
            .into_iter()
            .any(|scope| scope.limits(&self.limits).bytes.is_some());
        !self.entries.is_empty() && (has_bytes || self.anonymous_time_max.is_some())
    }

    /// Tests that have taken their share.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        self.entries.keys().copied()
    }

    /// Compares what the tests have moved with their limits; returns those that have to end, with
    /// the reason.
    pub(crate) fn check(
        &mut self,
        now_ns: u64,
        totals: impl Iterator<Item = (u64, u64)>,
    ) -> Vec<(u64, RefusalReason)> {
        let mut over = Vec::new();
        for (id, bytes) in totals {
            let Some(entry) = self.entries.get_mut(&id) else {
                continue;
            };
            let began_ns = *entry.began_ns.get_or_insert(now_ns);

            let time_max = self
                .anonymous_time_max
                .filter(|_| entry.request.user.is_none());
            if time_max.is_some_and(|max| {
                now_ns.saturating_sub(began_ns) > as_ns(max.saturating_add(GRACE))
            }) {
                over.push((id, RefusalReason::Duration));
            } else if entry.bytes_max.is_some_and(|max| bytes > max) {
                over.push((id, RefusalReason::Bytes));
            }
        }

        over
    }

    fn check_size(&self, request: &QuotaRequest) -> Result<(), RefusalReason> {
        let exceeds = |max: Option<u64>, wanted: u64| max.is_some_and(|max| wanted > max);
        if exceeds(
            self.smallest(request, |l| l.streams.map(u64::from)),
            request.streams.into(),
        ) {
            return Err(RefusalReason::Streams);
        }

        let longest = self.smallest(request, |l| l.duration);
        if longest.is_some_and(|max| request.duration.is_none_or(|d| d > max)) {
            return Err(RefusalReason::Duration);
        }

        let anonymous_time_max = self.anonymous_time_max.filter(|_| request.user.is_none());
        if request
            .duration
            .is_some_and(|time| anonymous_time_max.is_some_and(|max| time > max))
        {
            return Err(RefusalReason::Duration);
        }
        if exceeds(self.smallest(request, |l| l.bytes), request.bytes) {
            return Err(RefusalReason::Bytes);
        }

        Ok(())
    }

    /// An announced amount must fit; a client that announces none is slowed down.
    fn check_rate(&self, request: &QuotaRequest) -> Result<(), RefusalReason> {
        let fits = |scope: Scope| {
            // The sum of announcements, not the measured rate: admission does not depend on what
            // the path lets through now.
            let announced = self
                .entries
                .values()
                .filter(|e| scope.covers(request, &e.request))
                .map(|e| e.request.rate_bps);
            let sum = announced.fold(request.rate_bps, u64::saturating_add);
            let limit = scope.limits(&self.limits).rate_bps;
            limit.is_none_or(|max| sum <= max)
        };

        if Scope::of(request).all(fits) {
            Ok(())
        } else {
            Err(RefusalReason::Rate)
        }
    }

    /// The strictest limit of those that apply.
    fn smallest<T: Ord>(
        &self,
        request: &QuotaRequest,
        field: impl Fn(&Limits) -> Option<T>,
    ) -> Option<T> {
        Scope::of(request)
            .filter_map(|scope| field(scope.limits(&self.limits)))
            .min()
    }
}

fn check_count(
    max: Option<u32>,
    running: usize,
    reason: RefusalReason,
) -> Result<(), RefusalReason> {
    if max.is_some_and(|max| running >= max as usize) {
        return Err(reason);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::quota::{Grant, Traffic};

    fn request(last: u8, user: Option<&str>) -> QuotaRequest {
        QuotaRequest {
            address: Network::of_client([192, 0, 2, last].into()),
            user: user.map(str::to_owned),
            streams: 1,
            duration: Some(Duration::from_secs(10)),
            bytes: 0,
            last_blocks_bytes: 0,
            rate_bps: 0,
            requirements: Requirements::default(),
        }
    }

    fn limited_rates(server_bps: u64, address_bps: u64) -> Quotas {
        let mut limits = ServerLimits::default();
        limits.server.rate_bps = Some(server_bps);
        limits.address.rate_bps = Some(address_bps);
        Quotas::new(limits)
    }

    #[test]
    fn replaced_limits_hold_for_tests_that_begin_later() {
        let mut quotas = limited_rates(1_000, 1_000);
        quotas.take(1, request(1, None)).expect("there is room");
        let mut limits = ServerLimits::default();
        limits.server.rate_bps = Some(2_000);
        limits.address.tests = Some(1);
        quotas.replace_limits(limits, None);

        let refused = quotas.take(2, request(1, None));
        assert_eq!(refused, Err(RefusalReason::AddressTests));
        quotas.take(3, request(2, None)).expect("another address");
        let rates = [1, 3].map(|id| quotas.quota(id).rate_bps());
        assert_eq!(rates, [Some(1_000), Some(2_000)]);
    }

    fn limited_bytes(bytes: u64) -> Quotas {
        let mut limits = ServerLimits::default();
        limits.server.bytes = Some(bytes);
        Quotas::new(limits)
    }

    #[test]
    fn tests_are_counted_per_scope() {
        let mut limits = ServerLimits::default();
        let [server, address, user] =
            [&mut limits.server, &mut limits.address, &mut limits.user].map(|l| &mut l.tests);
        (*server, *address, *user) = (Some(4), Some(2), Some(1));

        let mut quotas = Quotas::new(limits);
        assert_eq!(quotas.take(1, request(1, Some("mario"))), Ok(()));
        assert_eq!(
            quotas.take(2, request(2, Some("mario"))),
            Err(RefusalReason::UserTests)
        );
        assert_eq!(quotas.take(2, request(1, None)), Ok(()));
        assert_eq!(
            quotas.take(3, request(1, None)),
            Err(RefusalReason::AddressTests)
        );
        assert_eq!(quotas.take(3, request(2, None)), Ok(()));
        assert_eq!(quotas.take(4, request(3, None)), Ok(()));
        assert_eq!(quotas.take(5, request(4, None)), Err(RefusalReason::Busy));
        quotas.release(1);
        assert_eq!(quotas.take(5, request(4, Some("mario"))), Ok(()));
    }

    #[test]
    fn the_strictest_size_decides() {
        let seconds = |s| Some(Duration::from_secs(s));
        let mut limits = ServerLimits::default();
        (
            limits.server.streams,
            limits.server.duration,
            limits.server.bytes,
        ) = (Some(8), seconds(60), Some(1000));
        limits.address.streams = Some(4);
        limits.user.duration = seconds(20);

        let mut quotas = Quotas::new(limits);
        let rows = [
            (None, 4, seconds(10), 0, Ok(())),
            (None, 5, seconds(10), 0, Err(RefusalReason::Streams)),
            (None, 1, seconds(30), 0, Ok(())),
            (
                Some("mario"),
                1,
                seconds(30),
                0,
                Err(RefusalReason::Duration),
            ),
            (None, 1, None, 0, Err(RefusalReason::Duration)),
            (None, 1, seconds(10), 1000, Ok(())),
            (None, 1, seconds(10), 1001, Err(RefusalReason::Bytes)),
        ];
        for (user, streams, duration, bytes, expected) in rows {
            let request = QuotaRequest {
                streams,
                duration,
                bytes,
                ..request(1, user)
            };
            assert_eq!(quotas.take(1, request.clone()), expected, "{request:?}");
        }
    }

    #[test]
    fn announced_rates_add_up_in_their_scope() {
        let mut quotas = limited_rates(100, 60);
        let at = |last, rate_bps| QuotaRequest {
            rate_bps,
            ..request(last, None)
        };
        assert_eq!(quotas.take(1, at(1, 50)), Ok(()));
        assert_eq!(quotas.take(2, at(1, 11)), Err(RefusalReason::Rate));
        assert_eq!(quotas.take(2, at(2, 50)), Ok(()));
        assert_eq!(quotas.take(3, at(3, 1)), Err(RefusalReason::Rate));
        assert_eq!(
            quotas.take(3, at(3, 0)),
            Ok(()),
            "who announces nothing is slowed down"
        );
    }

    #[test]
    fn tests_share_the_rates_of_their_scopes() {
        let mut quotas = limited_rates(8_000_000, 4_000_000);
        for (id, last) in [(1, 1), (2, 1), (3, 2)] {
            quotas
                .take(id, request(last, None))
                .expect("no announced rate");
        }

        let is_blocked = |quotas: &Quotas, id| {
            matches!(
                quotas.quota(id).grant(NOW_NS, Traffic::Load),
                Grant::NotBefore(_)
            )
        };

        // 10 kB are 20 ms of the address's rate and 10 ms of the server's.
        const NOW_NS: u64 = 1_000_000_000;

        quotas.quota(1).charge(NOW_NS, Traffic::Load, 10_000);
        assert_eq!(
            [1, 2, 3].map(|id| is_blocked(&quotas, id)),
            [true, true, false]
        );
        quotas.quota(3).charge(NOW_NS, Traffic::Load, 1_000);
        assert!(
            is_blocked(&quotas, 3),
            "the server's rate is that of all addresses"
        );
        quotas.release(1);
        assert!(is_blocked(&quotas, 2), "what others moved is not forgotten");
    }

    #[test]
    fn an_announced_amount_may_end_with_a_block_of_each_stream() {
        let mut quotas = limited_bytes(1000);
        let announced = QuotaRequest {
            bytes: 900,
            last_blocks_bytes: 300,
            ..request(1, None)
        };
        quotas
            .take(1, announced.clone())
            .expect("within the limits");

        let generous = QuotaRequest {
            last_blocks_bytes: u64::MAX,
            ..announced
        };
        quotas.take(2, generous).expect("within the limits");
        let mut over = |id, bytes| !quotas.check(0, [(id, bytes)].into_iter()).is_empty();
        assert_eq!(
            [over(1, 1300), over(1, 1301), over(2, 2000), over(2, 2001)],
            [false, true, false, true]
        );
    }

    #[test]
    fn anonymous_tests_end_after_their_time_limit() {
        let hour = Duration::from_secs(3600);
        let mut quotas = Quotas::new(ServerLimits::default()).with_anonymous_time_max(Some(hour));
        let lasting = |time, user| QuotaRequest {
            duration: time,
            ..request(1, user)
        };
        assert_eq!(
            quotas.take(1, lasting(Some(2 * hour), None)),
            Err(RefusalReason::Duration)
        );
        assert_eq!(quotas.take(1, lasting(None, None)), Ok(()));
        assert_eq!(
            quotas.take(2, lasting(Some(2 * hour), Some("mario"))),
            Ok(())
        );

        let mut look = |now_ns| quotas.check(now_ns, [(1, 1), (2, 1)].into_iter());
        assert_eq!(look(5), []);
        assert_eq!(look(5 + as_ns(hour)), []);
        assert_eq!(
            look(6 + as_ns(hour + GRACE)),
            [(1, RefusalReason::Duration)]
        );
    }

    #[test]
    fn a_test_that_moved_too_much_has_to_go() {
        let mut quotas = limited_bytes(1000);
        assert!(!quotas.needs_checks());
        quotas.take(1, request(1, None)).expect("within the limits");
        assert!(quotas.needs_checks());
        assert_eq!(quotas.check(0, [(1, 1000)].into_iter()), []);
        assert_eq!(
            quotas.check(0, [(1, 1001)].into_iter()),
            [(1, RefusalReason::Bytes)]
        );
        assert_eq!(quotas.quota(1).grant(0, Traffic::Load), Grant::Bytes(1001));
    }
}
