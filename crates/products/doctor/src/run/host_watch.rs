//! Samples this host in a thread until the watch ends.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_host::{
    Connections, CpuProfile, CpuWatch, DropWatch, Permit, Permits, ProcessTimes, Reader, Request,
    Watch, collect, has_other_namespaces, is_peer_in_other_namespace,
};
use linerate_model::snapshot::Snapshot;

use crate::drops::{self, TestTraffic};
use crate::observation::PEER_IS_HERE;
use crate::{Observed, Period, work};

/// Most watches at once: a server must not spend its CPUs on reading itself because many clients
/// ask.
const WATCHES_MAX: usize = 8;
static WATCHES: Permits = Permits::new(WATCHES_MAX);

/// Prefix of keys about the threads of this process.
pub(super) const OWN_THREADS: &str = "self.thread.";

/// Time between two readings, unless the watch is shorter.
pub(super) const STEP: Duration = Duration::from_secs(1);

/// Drops that a watch reports.
#[derive(Debug, Clone)]
pub(super) enum DropScope {
    /// All of this host, in all of its network namespaces.
    Host,
    /// Those of a test, and the number of all others.
    Test(TestTraffic),
    /// Those of a test alone, for its client.
    Client(TestTraffic),
}

/// Reads this host at steady intervals until the watch ends.
pub(super) struct HostReader {
    request: Request,
    scope: DropScope,
    step: Duration,
    /// Time of the next reading.
    due: Instant,
    readings: Option<Readings>,
    _permit: Permit,
}

/// Starts to read this host, at once and every `step`. `None` when there are too many watches
/// already, or the system cannot create a thread.
pub(super) fn start(
    request: Request,
    scope: DropScope,
    step: Duration,
) -> Option<Watch<HostReader>> {
    let reader = HostReader {
        request,
        scope,
        step,
        due: Instant::now(),
        readings: None,
        _permit: WATCHES.take()?,
    };
    Watch::start("linerate-watch", reader).ok()
}

impl Reader for HostReader {
    fn due(&self) -> Option<Instant> {
        Some(self.due)
    }

    fn read(&mut self) {
        if let Some(readings) = &mut self.readings {
            readings.add(collect(&self.request));
            // Steps count from the start, so that a slow reading does not delay all later ones.
            self.due += self.step;
        } else {
            self.readings = Some(Readings::begin(&self.request));
            self.due = Instant::now() + self.step;
        }
    }
}

impl HostReader {
    /// Takes the last reading.
    ///
    /// Returns the stacks of the CPUs as well, where they were sampled.
    pub(super) fn finish(mut self) -> (Observed, Option<CpuProfile>) {
        // A watch can end before its first reading.
        let mut readings = self
            .readings
            .take()
            .unwrap_or_else(|| Readings::begin(&self.request));
        readings.add(collect(&self.request));
        readings.finish(&self.request, &self.scope)
    }
}

/// Readings of a host so far.
struct Readings {
    /// The drops since before the first reading, or why they are not watched.
    drops: Result<DropWatch, String>,
    /// The same of the work of the CPUs.
    cpus: Result<CpuWatch, String>,
    /// CPU times and connections at the first reading.
    times: ProcessTimes,
    connections: Option<Connections>,
    is_peer_here: bool,
    last: Snapshot,
    period: Period,
    workers: WorkerCpus,
    address_changes: u32,
    former_address: Option<String>,
}

impl Readings {
    fn begin(request: &Request) -> Self {
        Self {
            drops: DropWatch::start().map_err(|error| error.to_string()),
            cpus: CpuWatch::start().map_err(|error| error.to_string()),
            times: ProcessTimes::read(),
            // A test of this process reports its own connections.
            connections: (!request.own_threads)
                .then(|| Connections::read().ok())
                .flatten(),
            last: collect(request),
            is_peer_here: request
                .connected_from
                .is_some_and(is_peer_in_other_namespace),
            period: Period::default(),
            workers: WorkerCpus::default(),
            address_changes: 0,
            former_address: None,
        }
    }

    fn add(&mut self, mut next: Snapshot) {
        // Readings of one host by one process can only fail to subtract when the clock stands
        // still.
        let _ = self.period.extend(&self.last, &next);
        if has_other_address(&self.last, &next) {
            self.address_changes += 1;
            self.former_address = self.last.text(NEXT_HOP).map(str::to_owned);
        }

        self.workers.add(&self.last, &next);
        // After the workers: it takes the facts out of `last`.
        keep_threads(&mut next, &mut self.last);
        self.last = next;
    }

    fn finish(self, request: &Request, scope: &DropScope) -> (Observed, Option<CpuProfile>) {
        let mut last = self.last;
        let profile = record_work(self.cpus, &mut last);
        ProcessTimes::read().record_since(&self.times, &mut last);
        if let Some((before, after)) = self.connections.zip(Connections::read().ok()) {
            after.record_since(&before, &mut last, request.peer);
        }

        let mut period = (self.period.intervals > 0).then_some(self.period);
        if let Some(period) = &mut period {
            record_drops(self.drops, scope, &mut last, period);
        }
        let is_resolved = last.text(NEXT_HOP).is_some();
        last.set_known(
            NEXT_HOP_CHANGES,
            is_resolved.then_some(self.address_changes),
            "rtnetlink:GETNEIGH",
        );

        if self.former_address.is_some() {
            last.set_known(
                "route.peer.lladdr_former",
                self.former_address,
                "rtnetlink:GETNEIGH",
            );
        }

        if self.is_peer_here {
            last.set(PEER_IS_HERE, true, "procfs:net");
        }

        name_dropping_rule(&mut last, period.as_ref());
        self.workers.record(&mut last);

        let observed = Observed {
            snapshot: last,
            period,
        };
        (observed, profile)
    }
}

/// Records the work of the CPUs, or why it was not sampled.
fn record_work(watch: Result<CpuWatch, String>, last: &mut Snapshot) -> Option<CpuProfile> {
    let profile = watch.and_then(|watch| watch.stop().ok_or_else(|| "the watch failed".to_owned()));
    match profile {
        Ok(profile) => {
            work::record(&profile, last);
            Some(profile)
        }
        Err(reason) => {
            last.set(work::UNWATCHED, reason, "perf_event_open");
            None
        }
    }
}

/// Records the drops of the scope, or why there are none.
fn record_drops(
    watch: Result<DropWatch, String>,
    scope: &DropScope,
    last: &mut Snapshot,
    period: &mut Period,
) {
    let counts = watch.and_then(|watch| watch.stop().ok_or_else(|| "the watch failed".to_owned()));
    let counts = match counts {
        Ok(counts) => counts,
        Err(reason) => return last.set(drops::UNWATCHED, reason, "perf_event_open"),
    };

    let (DropScope::Test(traffic) | DropScope::Client(traffic)) = scope else {
        return drops::record(&counts, None, last, period);
    };
    let (own, other) = drops::of_test(counts, traffic, period, has_other_namespaces());
    // Drops of others are no concern of a client.
    let other = matches!(scope, DropScope::Test(_)).then_some(other);
    drops::record(&own, other, last, period);
}

const NEXT_HOP: &str = "route.peer.lladdr";
const NEXT_HOP_CHANGES: &str = "route.peer.lladdr_changes";

/// True if the next hop has another link-layer address than before.
fn has_other_address(before: &Snapshot, after: &Snapshot) -> bool {
    before
        .text(NEXT_HOP)
        .zip(after.text(NEXT_HOP))
        .is_some_and(|(before, after)| before != after)
}

/// Names the firewall rule that dropped most during the period, instead of the one that did since
/// it was made.
fn name_dropping_rule(last: &mut Snapshot, period: Option<&Period>) {
    let drops = period
        .into_iter()
        .flat_map(Period::deltas)
        .filter_map(|(key, delta)| {
            let rule = key.strip_prefix("firewall.rule.")?.strip_suffix(".drops")?;
            Some((delta.value, rule)).filter(|(packets, _)| *packets > 0)
        });
    let rule = drops
        .max_by_key(|(packets, _)| *packets)
        .map(|(_, rule)| rule.to_owned());
    last.set_known("firewall.rule.drops", rule, "netfilter:GETRULE");
}

/// CPU time of the worker threads of this process by CPU, in ticks. The time of a step is that of
/// the CPU on which the thread was at its end.
#[derive(Default)]
struct WorkerCpus(BTreeMap<u64, u64>);

impl WorkerCpus {
    /// Threads with less than this part of the busiest thread's time, such as the one that reads
    /// the host, are no workers.
    const MIN_PART: u64 = 10;

    fn add(&mut self, before: &Snapshot, after: &Snapshot) {
        let threads = after
            .counters_under(OWN_THREADS)
            .filter_map(|(key, counter)| {
                let before = before.counters.get(&format!("{OWN_THREADS}{key}"))?;
                let cpu =
                    after.whole(&format!("{OWN_THREADS}{}.cpu", key.strip_suffix(".ticks")?))?;
                Some((cpu, counter.v.saturating_sub(before.v)))
            });
        let threads: Vec<(u64, u64)> = threads.collect();
        let most = threads.iter().map(|(_, ticks)| *ticks).max().unwrap_or(0);

        for (cpu, ticks) in threads
            .into_iter()
            .filter(|(_, ticks)| *ticks > most / Self::MIN_PART)
        {
            *self.0.entry(cpu).or_default() += ticks;
        }
    }

    fn record(&self, snapshot: &mut Snapshot) {
        // Only threads with ticks have an entry, so that `all` is above 0 in the loop.
        let all: u64 = self.0.values().sum();
        for (cpu, ticks) in &self.0 {
            snapshot.set_in(
                format!("self.on_cpu.{cpu}.percent"),
                (ticks * 100 + all / 2) / all,
                "%",
                "procfs:stat",
            );
        }
    }
}

/// Threads that are gone leave their facts behind.
fn keep_threads(next: &mut Snapshot, last: &mut Snapshot) {
    let threads = std::mem::take(&mut last.facts)
        .into_iter()
        .filter(|(key, _)| key.starts_with(OWN_THREADS));
    for (key, fact) in threads {
        next.facts.entry(key).or_insert(fact);
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::{Snapshot, Source};

    use crate::Period;

    use super::{
        NEXT_HOP, OWN_THREADS, WATCHES, WATCHES_MAX, WorkerCpus, has_other_address,
        name_dropping_rule,
    };

    #[test]
    fn time_of_the_workers_is_that_of_the_cpu_each_was_on() {
        let at = |threads: [(u64, i64); 3]| {
            let mut snapshot = Snapshot::new("a", Source::Live);
            for (thread, (ticks, cpu)) in threads.into_iter().enumerate() {
                snapshot.count(format!("{OWN_THREADS}{thread}.ticks"), ticks);
                snapshot.set(format!("{OWN_THREADS}{thread}.cpu"), cpu, "test");
            }
            snapshot
        };
        let mut workers = WorkerCpus::default();

        let steps = [
            at([(0, 0), (50, 1), (7, 2)]),
            at([(60, 0), (90, 1), (9, 2)]),
            at([(120, 1), (130, 1), (11, 2)]),
        ];
        steps
            .windows(2)
            .for_each(|pair| workers.add(&pair[0], &pair[1]));
        let mut last = Snapshot::new("a", Source::Live);
        workers.record(&mut last);

        let percent = |cpu: u32| last.whole(&format!("self.on_cpu.{cpu}.percent"));
        assert_eq!(
            [percent(0), percent(1), percent(2)],
            [Some(30), Some(70), None]
        );
    }

    #[test]
    fn address_of_the_next_hop_changes_only_between_two_that_are_known() {
        let at = |address: Option<&str>| {
            let mut snapshot = Snapshot::new("a", Source::Live);
            snapshot.set_known(NEXT_HOP, address, "test");
            snapshot
        };
        let (none, first, second) = (
            at(None),
            at(Some("02:00:00:00:00:01")),
            at(Some("02:00:00:00:00:02")),
        );
        assert!(has_other_address(&first, &second) && !has_other_address(&first, &first));
        assert!(!has_other_address(&none, &first) && !has_other_address(&first, &none));
    }

    #[test]
    fn rule_that_drops_during_the_period_is_named() {
        let at = |seconds: u64, drops: [u64; 2]| {
            let mut snapshot = Snapshot::new("a", Source::Live);
            snapshot.monotonic_ns = Some(seconds * 1_000_000_000);

            for (handle, drops) in drops.into_iter().enumerate() {
                snapshot.count(
                    format!("firewall.rule.ip t.c input handle {handle}.drops"),
                    drops,
                );
            }

            snapshot.set("firewall.rule.drops", "ip t.c input handle 0", "test");
            snapshot
        };
        let [first, mut quiet, mut last] = [at(1, [900, 0]), at(2, [900, 0]), at(2, [901, 50])];
        let period = Period::over(&[first.clone(), last.clone()]);
        name_dropping_rule(&mut last, period.as_ref());
        assert_eq!(
            last.text("firewall.rule.drops"),
            Some("ip t.c input handle 1")
        );

        let period = Period::over(&[first, quiet.clone()]);
        name_dropping_rule(&mut quiet, period.as_ref());
        assert_eq!(
            quiet.text("firewall.rule.drops"),
            Some("ip t.c input handle 0")
        );
    }

    #[test]
    fn watches_are_limited_and_make_room_again() {
        let permits: Vec<_> = std::iter::from_fn(|| WATCHES.take())
            .take(WATCHES_MAX + 1)
            .collect();
        assert_eq!(permits.len(), WATCHES_MAX);
        assert!(WATCHES.take().is_none());
        drop(permits);
        assert!(WATCHES.take().is_some());
    }
}
