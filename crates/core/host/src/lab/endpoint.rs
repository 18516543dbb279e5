//! Samples of a host as the statistics of a period: what a run of the HTTP lab cost at one of its
//! ends.

use std::collections::BTreeMap;

use linerate_model::http::{Counters, EndpointStats, NicStats, Peak, Reading, Share};
use linerate_model::network::is_software_kind;
use linerate_model::{facts, stored_name};
use linerate_sys::error::strerror;
use linerate_sys::process::page_bytes;

use crate::growth::{Growth, Ticks, cpus, share};
use crate::prelude::*;

/// The samples from the beginning of a period to its end.
#[derive(Debug, Clone)]
pub struct Period {
    first: Snapshot,
    last: Snapshot,
    samples: u32,
    /// Largest value of every fact that is a whole number.
    peaks: BTreeMap<String, u64>,
    /// Why a fact was absent, by its key.
    missing: BTreeMap<String, String>,
}

impl Period {
    /// Begins with a sample; peaks count from here.
    pub fn begin(first: Snapshot) -> Self {
        let mut period = Self {
            last: first.clone(),
            first,
            samples: 0,
            peaks: BTreeMap::new(),
            missing: BTreeMap::new(),
        };
        period.note();
        period
    }

    /// Adds a later sample.
    pub fn add(&mut self, sample: Snapshot) {
        self.last = sample;
        self.note();
    }

    fn note(&mut self) {
        self.samples = self.samples.saturating_add(1);
        for (key, fact) in &self.last.facts {
            if let Some(value) = self.last.whole(key) {
                let peak = self.peaks.entry(key.clone()).or_default();
                *peak = value.max(*peak);
            } else if !self.missing.contains_key(key)
                && let Some(reason) = missing(key, fact)
            {
                self.missing.insert(key.clone(), reason);
            }
        }
    }

    /// The statistics so far.
    pub fn stats(&self) -> EndpointStats {
        let change = Growth::between(&self.first, &self.last);
        let all = change.all_cpus;
        let busiest = change.busiest_cpu();
        // Only the samples at the ends of a period have the values that need a walk over all pages
        // or sockets.
        let at_ends = |key: &str| self.last.whole(key).or_else(|| self.first.whole(key));
        let share_of_busiest =
            |ticks: fn(&Ticks) -> u64| busiest.as_ref().and_then(|(_, cpu)| cpu.share(ticks(cpu)));
        EndpointStats {
            window_ns: change.window_ns,
            samples: self.samples,
            cpus: u32::try_from(cpus(&self.last).len())
                .ok()
                .filter(|cpus| *cpus > 0),
            cpu_busy: all.share(all.busy()),
            cpu_user: all.share(all.user),
            cpu_system: all.share(all.system),
            cpu_softirq: all.share(all.softirq),
            cpu_steal: all.share(all.steal),
            busiest_cpu: busiest.as_ref().map(|(cpu, _)| *cpu),
            // A mean over many CPUs hides one that is saturated by a single thread or by the
            // interrupts of a NIC.
            busiest_cpu_busy: share_of_busiest(Ticks::busy),
            busiest_cpu_softirq: share_of_busiest(|ticks| ticks.softirq),
            busiest_cpu_own: busiest
                .as_ref()
                .and_then(|(cpu, _)| change.own_share_of(*cpu)),
            process_cpu_ns: change.of("process.cpu_ns"),
            busiest_thread_busy: change.busiest_thread(),
            // Over several CPUs a group waits for longer than the period.
            throttled: change
                .share_of_time("cgroup.throttled_ns")
                .map(|share| share.min(1.0)),
            nic: change.nic(),
            counters: change.counters(),
            missing: self.missing.values().cloned().collect(),
            sockets_by_state: self.states(),
            pss_bytes: at_ends("process.pss_bytes"),
            mss_bytes: at_ends("test.mss_bytes").and_then(|bytes| u32::try_from(bytes).ok()),
            ..values(&self.last, |key| self.peaks.get(key).copied())
        }
    }

    /// Largest number of sockets of the test in each state.
    fn states(&self) -> Option<BTreeMap<String, u64>> {
        // States without a socket are left out of a sample; without the total no dump was made at
        // all.
        self.peaks.get("test.sockets.total")?;
        let states = self.peaks.iter().filter_map(|(key, count)| {
            let state = key
                .strip_prefix("test.sockets.")
                .filter(|state| *state != "total")?;
            Some((state.to_owned(), *count))
        });
        Some(states.collect())
    }
}

/// The values that are no growth, each as `value` returns it for its key. `sample` names the end of
/// the test.
fn values(sample: &Snapshot, value: impl Fn(&str) -> Option<u64>) -> EndpointStats {
    let limited = |key: &str, limit: &str| peak(value(key), value(limit));
    let is_client = sample.text("test.role") == Some("client");
    let established =
        value("test.sockets.total").map(|_| value("test.sockets.established").unwrap_or(0));
    let rss = value("process.rss_bytes");
    let high_water = value("process.rss_high_water_bytes");

    EndpointStats {
        processes: value("process.count").and_then(|count| u32::try_from(count).ok()),
        rss_bytes: rss,
        // The kernel keeps it per CPU and lags behind.
        rss_high_water_bytes: high_water.max(rss.filter(|_| high_water.is_some())),
        socket_memory_bytes: value("sock.tcp.mem_pages")
            .map(|pages| pages.saturating_mul(page_bytes())),
        slab_unreclaimable_bytes: value("mem.slab_unreclaimable_bytes"),
        fds: limited("process.fds", "process.fds_max"),
        connections: established.filter(|_| !is_client),
        sockets_in_use: value("sock.tcp.inuse")
            .map(|ipv4| ipv4 + value("sock.tcp6.inuse").unwrap_or(0)),
        sockets_orphaned: value("sock.tcp.orphan"),
        sockets_allocated: value("sock.tcp.alloc"),
        time_wait: limited("sock.tcp.tw", "sysctl.net.ipv4.tcp_max_tw_buckets"),
        accept_queue: limited("test.accept_queue", "test.backlog"),
        conntrack: limited("limits.conntrack.count", "limits.conntrack.max"),
        ports: limited("test.sockets.total", "test.ports_max").filter(|_| is_client),
        group_memory: limited("cgroup.memory.current", "cgroup.memory.max"),
        group_tasks: limited("cgroup.pids.current", "cgroup.pids.max"),
        ..EndpointStats::default()
    }
}

/// The difference of a sample to the one before it.
pub fn reading(sequence: u64, before: &Snapshot, now: &Snapshot) -> Reading {
    let change = Growth::between(before, now);
    let all = change.all_cpus;
    let nic = change.nic();
    let values = values(now, |key| now.whole(key));

    Reading {
        sequence,
        at_ns: now.monotonic_ns,
        window_ns: change.window_ns,
        cpu_busy: all.share(all.busy()),
        busiest_cpu_busy: change.busiest_cpu_busy(),
        busiest_thread_busy: change.busiest_thread(),
        process_cpus: change.share_of_time("process.cpu_ns"),
        rss_bytes: values.rss_bytes,
        fds: values.fds,
        connections: values.connections,
        time_wait: values.time_wait,
        accept_queue: values.accept_queue,
        rx_bytes: nic.as_ref().map(|nic| nic.rx_bytes),
        tx_bytes: nic.as_ref().map(|nic| nic.tx_bytes),
    }
}

/// Name of an absent fact and the reason; `None` where nothing of that kind exists.
pub(crate) fn missing(key: &str, fact: &Fact) -> Option<String> {
    let Fact::Absent { absent, errno, src } = fact else {
        return None;
    };
    // Such a fact exists on no host of this kind, so its absence is no gap.
    if *absent == Absence::NotApplicableToKind {
        return None;
    }

    let what = facts::find(key).map_or(key, |fact| fact.meaning);
    let why = errno.map_or_else(|| stored_name(absent).replace('-', " "), strerror);
    Some(format!("{what}: {why} ({src})"))
}

pub(crate) fn peak(peak: Option<u64>, limit: Option<u64>) -> Option<Peak> {
    peak.map(|peak| Peak { peak, limit })
}

impl Growth<'_> {
    /// Share of a CPU that the threads of the processes took.
    fn own_share_of(&self, cpu: u32) -> Option<Share> {
        self.after.counters_under("process.thread.").next()?;
        let key = format!("process.on_cpu.{cpu}.ns");
        // A CPU without a counter ran none of the threads.
        let at = |sample: &Snapshot| sample.counters.get(&key).map_or(0, |counter| counter.v);
        share(
            at(self.after).saturating_sub(at(self.before)),
            self.window_ns,
        )
        .map(|share| share.min(1.0))
    }

    /// Share of one CPU the busiest thread took; a new one counts from zero.
    fn busiest_thread(&self) -> Option<Share> {
        const THREADS: &str = "process.thread.";

        self.before.counters_under(THREADS).next()?;
        let grown = self.after.counters_under(THREADS).map(|(thread, after)| {
            // A thread that began in the period has run for 0 before.
            let before = self.before.counters.get(&format!("{THREADS}{thread}"));
            after.v.saturating_sub(before.map_or(0, |before| before.v))
        });
        share(grown.max()?, self.window_ns)
    }

    /// The device of the route with the growth of its counters; `None` when the route took another
    /// device meanwhile.
    pub(crate) fn nic(&self) -> Option<NicStats> {
        const DEVICE: &str = "route.peer.dev";

        let device = self
            .after
            .text(DEVICE)
            // A route that changed in between would give the difference of two devices.
            .filter(|device| self.before.text(DEVICE) == Some(*device))?;
        let nic = format!("nic.{device}");
        let growth = |name: &str| self.of(&format!("{nic}.stats64.{name}"));
        let both = |name: &str| {
            Some(growth(&format!("rx_{name}"))?.saturating_add(growth(&format!("tx_{name}"))?))
        };
        Some(NicStats {
            device: device.to_owned(),
            is_loopback: self.after.text(&format!("{nic}.net.kind")) == Some("loopback"),
            link_bps: link_bps(self.after, &nic),
            mtu_bytes: mtu_bytes(self.after, &nic),
            rx_bytes: growth("rx_bytes")?,
            tx_bytes: growth("tx_bytes")?,
            rx_packets: growth("rx_packets")?,
            tx_packets: growth("tx_packets")?,
            drops: both("dropped")?,
            errors: both("errors")?,
        })
    }

    fn counters(&self) -> Counters {
        let ext = |name: &str| self.of(&format!("net.netstat.TcpExt.{name}"));
        let tcp = |name: &str| self.of(&format!("net.snmp.Tcp.{name}"));

        Counters {
            listen_overflows: ext("ListenOverflows"),
            listen_drops: ext("ListenDrops"),
            tcp_req_q_full_drop: ext("TCPReqQFullDrop"),
            syncookies_sent: ext("SyncookiesSent"),
            tcp_time_wait_overflow: ext("TCPTimeWaitOverflow"),
            tcp_memory_pressures: ext("TCPMemoryPressures"),
            tcp_abort_on_memory: ext("TCPAbortOnMemory"),
            retrans_segs: tcp("RetransSegs"),
            out_segs: tcp("OutSegs"),
            attempt_fails: tcp("AttemptFails"),
            estab_resets: tcp("EstabResets"),
            out_rsts: tcp("OutRsts"),
        }
    }
}

/// Speed of a link; absent where the device does not report it, or is software and reports a
/// constant.
pub(crate) fn link_bps(sample: &Snapshot, nic: &str) -> Option<u64> {
    // The speed of software devices is a constant of their driver, 10 Gbit/s for veth.
    let is_wire = !sample
        .text(&format!("{nic}.net.kind"))
        .is_some_and(is_software_kind);
    let mbps = sample
        .whole(&format!("{nic}.link.speed_mbps"))
        .filter(|_| is_wire)?;
    Some(mbps.saturating_mul(1_000_000))
}

pub(crate) fn mtu_bytes(sample: &Snapshot, nic: &str) -> Option<u32> {
    sample
        .whole(&format!("{nic}.net.mtu"))
        .and_then(|bytes| u32::try_from(bytes).ok())
}

#[cfg(test)]
pub(crate) mod tests {
    use linerate_model::snapshot::{Source, Value};

    use super::*;

    const S: u64 = 1_000_000_000;

    pub(crate) fn sample(
        at_ns: u64,
        facts: &[(&str, Value)],
        counters: &[(&str, u64)],
    ) -> Snapshot {
        let mut sample = Snapshot::new("h", Source::Live);
        sample.monotonic_ns = Some(at_ns);

        for (key, value) in facts {
            sample.set(*key, value.clone(), "test");
        }

        for (key, value) in counters {
            sample.count(*key, *value);
        }

        sample
    }

    /// A sample with user, softirq and idle ticks of two CPUs.
    fn with_cpus(at_s: u64, ticks: [[u64; 3]; 2], counters: &[(&str, u64)]) -> Snapshot {
        let mut sample = sample(at_s * S, &[], counters);
        for (cpu, ticks) in ticks.into_iter().enumerate() {
            for (state, ticks) in ["user", "softirq", "idle"].into_iter().zip(ticks) {
                sample.count(format!("cpu.{cpu}.{state}"), ticks);
            }
        }
        sample
    }

    fn stats(samples: impl IntoIterator<Item = Snapshot>) -> EndpointStats {
        let mut samples = samples.into_iter();
        let mut period = Period::begin(samples.next().expect("a first one"));
        samples.for_each(|sample| period.add(sample));
        period.stats()
    }

    fn is(found: Option<Share>, expected: Share) -> bool {
        found.is_some_and(|share| (share - expected).abs() < 1e-9)
    }

    #[test]
    fn cpus_are_counted_separately() {
        let stats = stats([
            with_cpus(10, [[100, 0, 900], [0, 10, 990]], &[]),
            with_cpus(11, [[110, 0, 990], [10, 90, 1000]], &[]),
        ]);
        assert_eq!(
            (stats.window_ns, stats.samples, stats.cpus),
            (S, 2, Some(2))
        );
        assert!(
            is(stats.cpu_busy, 0.5) && is(stats.cpu_user, 0.1),
            "{stats:?}"
        );
        assert!(
            is(stats.cpu_softirq, 0.4) && stats.busiest_cpu == Some(1),
            "{stats:?}"
        );
        assert!(
            is(stats.busiest_cpu_busy, 0.9) && is(stats.busiest_cpu_softirq, 0.8),
            "{stats:?}"
        );
    }

    #[test]
    fn new_thread_can_be_the_busiest() {
        let stats = stats([
            sample(
                S,
                &[],
                &[
                    ("process.cpu_ns", 5 * S),
                    ("process.thread.7.ns", 5 * S),
                    ("process.thread.8.ns", 0),
                ],
            ),
            sample(
                3 * S,
                &[],
                &[
                    ("process.cpu_ns", 6 * S),
                    ("process.thread.7.ns", 5 * S),
                    ("process.thread.9.ns", S),
                ],
            ),
        ]);
        assert!(is(stats.busiest_thread_busy, 0.5), "{stats:?}");
        assert_eq!(
            (stats.process_cpu_ns, stats.cpu_busy),
            (Some(S), None),
            "no tick passed, so no share is known"
        );
    }

    #[test]
    fn own_share_of_the_busiest_cpu_is_the_time_of_its_threads_there() {
        let thread = ("process.thread.7.ns", 0);
        let on = |cpu1_ns| {
            [
                thread,
                ("process.on_cpu.0.ns", S / 5),
                ("process.on_cpu.1.ns", cpu1_ns),
            ]
        };

        let stats_of = |first: &[(&str, u64)], last: &[(&str, u64)]| {
            stats([
                with_cpus(1, [[0; 3]; 2], first),
                with_cpus(3, [[40, 0, 160], [200, 0, 0]], last),
            ])
        };
        // What ran before the period is not of it.
        let found = stats_of(&on(9 * S), &on(9 * S + S / 2));
        assert!(
            found.busiest_cpu == Some(1) && is(found.busiest_cpu_own, 0.25),
            "{found:?}"
        );
        assert_eq!(
            stats_of(&[], &[]).busiest_cpu_own,
            None,
            "no thread could be read"
        );
    }

    #[test]
    fn facts_are_peaks_and_counters_are_growth() {
        let with = |at_s: u64, rss: i64, queue: i64, overflows: u64, bytes: u64, device: &str| {
            let facts = [
                ("process.rss_bytes", rss.into()),
                ("test.accept_queue", queue.into()),
                ("test.backlog", 128_i64.into()),
                ("route.peer.dev", device.into()),
            ];
            let mut sample = sample(
                at_s * S,
                &facts,
                &[("net.netstat.TcpExt.ListenOverflows", overflows)],
            );

            for (name, value) in [
                ("bytes", bytes),
                ("packets", bytes / 100),
                ("dropped", 0),
                ("errors", bytes / 1000),
            ] {
                sample.count(format!("nic.{device}.stats64.rx_{name}"), value);
                sample.count(format!("nic.{device}.stats64.tx_{name}"), 2 * value);
            }

            sample
        };
        let with_states = |mut sample: Snapshot, established: i64, waiting: i64| {
            sample.set("test.sockets.total", established + waiting, "test");
            sample.set("test.sockets.established", established, "test");
            sample.set("test.sockets.time-wait", waiting, "test");
            sample
        };
        let mut second = with_states(with(2, 30, 128, 6, 2000, "e0"), 3, 7);
        second.set("cgroup.memory.current", 77_i64, "test");

        let mut period = Period::begin(with_states(with(1, 10, 1, 5, 1000, "e0"), 9, 1));
        period.add(second);
        period.add(with(3, 20, 0, 9, 4000, "e0"));

        let stats = period.stats();
        let states =
            [("established", 9), ("time-wait", 7)].map(|(state, count)| (state.to_owned(), count));
        assert_eq!((stats.rss_bytes, stats.connections), (Some(30), Some(9)));
        assert_eq!(
            (stats.sockets_by_state, stats.ports),
            (Some(states.into()), None)
        );
        assert_eq!(stats.group_memory.map(|memory| memory.peak), Some(77));
        assert_eq!(stats.accept_queue, peak(Some(128), Some(128)));
        assert_eq!(
            (stats.counters.listen_overflows, stats.counters.out_rsts),
            (Some(4), None)
        );

        let nic = stats.nic.expect("the same device");
        assert_eq!(
            (nic.rx_bytes, nic.tx_bytes, nic.rx_packets, nic.errors),
            (3000, 6000, 30, 9)
        );
        period.add(with(4, 20, 0, 9, 5000, "e1"));
        assert_eq!(period.stats().nic, None, "another device");
    }

    #[test]
    fn missing_value_is_reported_once_and_what_does_not_exist_is_not() {
        let lacking = |at_s: u64| {
            let mut sample = sample(at_s * S, &[], &[]);
            sample.set_absent("process.fds", Absence::Permission, Some(1), "procfs:fd");
            sample.set_absent(
                "limits.conntrack.max",
                Absence::NotApplicableToKind,
                None,
                "procfs:sys",
            );
            sample
        };
        let stats = stats([lacking(1), lacking(2)]);
        assert_eq!(
            stats.missing,
            ["descriptors of the process: Operation not permitted (procfs:fd)"]
        );
        assert_eq!(stats.fds, None);
    }

    #[test]
    fn reading_covers_the_time_since_the_last_sample() {
        let mut now = with_cpus(2, [[50, 0, 50], [0, 0, 100]], &[("process.cpu_ns", S / 2)]);
        now.set("process.rss_bytes", 9_i64, "test");

        let reading = reading(
            3,
            &with_cpus(1, [[0; 3]; 2], &[("process.cpu_ns", 0)]),
            &now,
        );
        assert_eq!(
            (reading.sequence, reading.at_ns, reading.window_ns),
            (3, Some(2 * S), S)
        );
        assert!(
            is(reading.cpu_busy, 0.25) && is(reading.busiest_cpu_busy, 0.5),
            "{reading:?}"
        );
        assert_eq!(
            (reading.process_cpus, reading.rss_bytes),
            (Some(0.5), Some(9))
        );
        assert_eq!(reading.connections, None);
    }
}
