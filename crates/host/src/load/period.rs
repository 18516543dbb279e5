//! Samples of a host aggregated to the statistics of a period.

use std::collections::BTreeMap;

use linerate_model::http::{Counters, EndpointStats, NicStats, Peak, Reading, Share};

use super::sample::Sample;
use super::text::CpuTicks;

/// The samples from the beginning of a period to its end.
#[derive(Debug, Clone)]
pub struct Period {
    first: Sample,
    last: Sample,
    samples: u32,
    /// Time the program's threads ran since the first sample, by CPU.
    ran_on_ns: BTreeMap<u32, u64>,
    /// Largest values seen, in the fields where largest values stand.
    peaks: EndpointStats,
    missing: BTreeMap<&'static str, String>,
}

impl Period {
    /// Begins with a sample; peaks count from here.
    #[must_use]
    pub fn begin(first: Sample) -> Self {
        let mut period = Self {
            last: first.clone(),
            first,
            samples: 0,
            ran_on_ns: BTreeMap::new(),
            peaks: EndpointStats::default(),
            missing: BTreeMap::new(),
        };
        period.note();
        period
    }

    /// Adds a later sample.
    pub fn add(&mut self, sample: Sample) {
        for (cpu, ns) in &sample.ran_on_ns {
            *self.ran_on_ns.entry(*cpu).or_default() += ns;
        }
        self.last = sample;
        self.note();
    }

    fn note(&mut self) {
        let (sample, peaks) = (&self.last, &mut self.peaks);
        self.samples = self.samples.saturating_add(1);
        raise(&mut peaks.rss_bytes, sample.rss_bytes);
        raise(&mut peaks.socket_memory_bytes, sample.socket_memory_bytes);
        raise(&mut peaks.slab_unreclaimable_bytes, sample.slab_unreclaimable_bytes);
        raise(&mut peaks.sockets_in_use, sample.sockets_in_use);
        raise(&mut peaks.connections, sample.connections);
        raise(&mut peaks.rss_high_water_bytes, sample.rss_high_water_bytes);
        if peaks.rss_high_water_bytes.is_some() {
            // The kernel keeps it per CPU and lags behind.
            raise(&mut peaks.rss_high_water_bytes, peaks.rss_bytes);
        }
        raise(&mut peaks.sockets_orphaned, sample.sockets_orphaned);
        raise(&mut peaks.sockets_allocated, sample.sockets_allocated);
        raise_states(&mut peaks.sockets_by_state, sample.sockets_by_state.as_ref());
        raise_peak(&mut peaks.group_memory, sample.group_memory);
        raise_peak(&mut peaks.group_tasks, sample.group_tasks);
        raise_peak(&mut peaks.fds, sample.fds);
        raise_peak(&mut peaks.time_wait, sample.time_wait);
        raise_peak(&mut peaks.accept_queue, sample.accept_queue);
        raise_peak(&mut peaks.conntrack, sample.conntrack);
        raise_peak(&mut peaks.ports, sample.ports);
        peaks.pss_bytes = sample.pss_bytes.or(peaks.pss_bytes);
        peaks.mss_bytes = sample.mss_bytes.or(peaks.mss_bytes);
        for (what, why) in &sample.missing {
            self.missing.entry(what).or_insert_with(|| why.clone());
        }
    }

    /// The statistics so far.
    #[must_use]
    pub fn stats(&self) -> EndpointStats {
        let (first, last) = (&self.first, &self.last);
        let window_ns = last.at_ns.saturating_sub(first.at_ns);
        let cpus = cpu_deltas(first, last);
        let all = cpus.values().fold(CpuTicks::default(), |sum, ticks| sum.plus(ticks));
        let busiest = busiest_cpu_of(&cpus);
        let throttled = growth(first.throttled_ns, last.throttled_ns);
        EndpointStats {
            window_ns,
            samples: self.samples,
            cpus: last.cpus.as_ref().and_then(|cpus| u32::try_from(cpus.len()).ok()),
            cpu_busy: busy(&all),
            cpu_user: part(all.user, &all),
            cpu_system: part(all.system, &all),
            cpu_softirq: part(all.softirq, &all),
            cpu_steal: part(all.steal, &all),
            busiest_cpu: busiest.map(|(cpu, _)| cpu),
            busiest_cpu_busy: busiest.and_then(|(_, ticks)| busy(ticks)),
            busiest_cpu_softirq: busiest.and_then(|(_, ticks)| part(ticks.softirq, ticks)),
            busiest_cpu_own: busiest.and_then(|(cpu, _)| self.ran_on(cpu, window_ns)),
            processes: Some(last.processes).filter(|processes| *processes > 0),
            process_cpu_ns: growth(first.process_cpu_ns, last.process_cpu_ns),
            busiest_thread_busy: busiest_thread(first, last, window_ns),
            // Over several CPUs a group waits for longer than the period.
            throttled: throttled.and_then(|ns| of(ns, window_ns)).map(|share| share.min(1.0)),
            nic: nic_delta(first, last),
            counters: counters(&first.counters, &last.counters),
            missing: self
                .missing
                .iter()
                .map(|(what, why)| format!("{what}: {why}"))
                .collect(),
            ..self.peaks.clone()
        }
    }
}

impl Period {
    /// Share of a CPU the program's threads took.
    fn ran_on(&self, cpu: u32, window_ns: u64) -> Option<Share> {
        self.last.threads_ns.as_ref()?;
        let ns = self.ran_on_ns.get(&cpu).copied().unwrap_or(0);
        of(ns, window_ns).map(|share| share.min(1.0))
    }
}

/// The difference of a sample to the one before it.
#[must_use]
pub fn reading(sequence: u64, before: &Sample, now: &Sample) -> Reading {
    let window_ns = now.at_ns.saturating_sub(before.at_ns);
    let cpus = cpu_deltas(before, now);
    let all = cpus.values().fold(CpuTicks::default(), |sum, ticks| sum.plus(ticks));
    let nic = nic_delta(before, now);
    Reading {
        sequence,
        at_ns: now.at_ns,
        window_ns,
        cpu_busy: busy(&all),
        busiest_cpu_busy: busiest_cpu_of(&cpus).and_then(|(_, ticks)| busy(ticks)),
        busiest_thread_busy: busiest_thread(before, now, window_ns),
        process_cpus: growth(before.process_cpu_ns, now.process_cpu_ns).and_then(|ns| of(ns, window_ns)),
        rss_bytes: now.rss_bytes,
        fds: now.fds,
        connections: now.connections,
        time_wait: now.time_wait,
        accept_queue: now.accept_queue,
        rx_bytes: nic.as_ref().map(|nic| nic.rx_bytes),
        tx_bytes: nic.as_ref().map(|nic| nic.tx_bytes),
    }
}

fn raise(peak: &mut Option<u64>, seen: Option<u64>) {
    *peak = (*peak).max(seen);
}

fn raise_states(peaks: &mut Option<BTreeMap<String, u64>>, seen: Option<&BTreeMap<String, u64>>) {
    let Some(seen) = seen else { return };
    let peaks = peaks.get_or_insert_default();
    for (state, count) in seen {
        let peak = peaks.entry(state.clone()).or_default();
        *peak = (*peak).max(*count);
    }
}

fn raise_peak(peak: &mut Option<Peak>, seen: Option<Peak>) {
    if let Some(seen) = seen {
        let before = peak.map_or(0, |before| before.peak);
        *peak = Some(Peak {
            peak: before.max(seen.peak),
            ..seen
        });
    }
}

fn growth(first: Option<u64>, last: Option<u64>) -> Option<u64> {
    Some(last?.saturating_sub(first?))
}

fn of(part: u64, all: u64) -> Option<Share> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Ticks of every CPU that was online at both ends.
fn cpu_deltas(first: &Sample, last: &Sample) -> BTreeMap<u32, CpuTicks> {
    let (Some(before), Some(after)) = (&first.cpus, &last.cpus) else {
        return BTreeMap::new();
    };
    let both = after
        .iter()
        .filter_map(|(cpu, ticks)| Some((*cpu, ticks.since(before.get(cpu)?))));
    both.collect()
}

fn busy(ticks: &CpuTicks) -> Option<Share> {
    part(ticks.total().saturating_sub(ticks.idle), ticks)
}

fn part(ticks: u64, all: &CpuTicks) -> Option<Share> {
    of(ticks, all.total())
}

fn busiest_cpu_of(cpus: &BTreeMap<u32, CpuTicks>) -> Option<(u32, &CpuTicks)> {
    let known = cpus.iter().filter_map(|(cpu, ticks)| Some((*cpu, ticks, busy(ticks)?)));
    known
        .max_by(|(_, _, a), (_, _, b)| a.total_cmp(b))
        .map(|(cpu, ticks, _)| (cpu, ticks))
}

/// Share of one CPU the busiest thread had; a new one counts from zero.
fn busiest_thread(first: &Sample, last: &Sample, window_ns: u64) -> Option<Share> {
    let before = first.threads_ns.as_ref()?;
    let grown = last
        .threads_ns
        .as_ref()?
        .iter()
        .map(|(thread, ns)| ns.saturating_sub(before.get(thread).copied().unwrap_or(0)));
    of(grown.max()?, window_ns)
}

/// Share of the busiest CPU that was busy between two samples.
pub(super) fn busiest(first: &Sample, last: &Sample) -> Option<Share> {
    busiest_cpu_of(&cpu_deltas(first, last)).and_then(|(_, ticks)| busy(ticks))
}

/// Growth of the NIC's counters between two samples.
pub(super) fn nic_delta(first: &Sample, last: &Sample) -> Option<NicStats> {
    let (before, after) = (first.nic.as_ref()?, last.nic.as_ref()?);
    // Counters of two devices have nothing to do with each other.
    (before.device == after.device).then(|| NicStats {
        rx_bytes: after.rx_bytes.saturating_sub(before.rx_bytes),
        tx_bytes: after.tx_bytes.saturating_sub(before.tx_bytes),
        rx_packets: after.rx_packets.saturating_sub(before.rx_packets),
        tx_packets: after.tx_packets.saturating_sub(before.tx_packets),
        drops: after.drops.saturating_sub(before.drops),
        errors: after.errors.saturating_sub(before.errors),
        ..after.clone()
    })
}

fn counters(first: &Counters, last: &Counters) -> Counters {
    Counters {
        listen_overflows: growth(first.listen_overflows, last.listen_overflows),
        listen_drops: growth(first.listen_drops, last.listen_drops),
        tcp_req_q_full_drop: growth(first.tcp_req_q_full_drop, last.tcp_req_q_full_drop),
        syncookies_sent: growth(first.syncookies_sent, last.syncookies_sent),
        tcp_time_wait_overflow: growth(first.tcp_time_wait_overflow, last.tcp_time_wait_overflow),
        tcp_memory_pressures: growth(first.tcp_memory_pressures, last.tcp_memory_pressures),
        tcp_abort_on_memory: growth(first.tcp_abort_on_memory, last.tcp_abort_on_memory),
        retrans_segs: growth(first.retrans_segs, last.retrans_segs),
        out_segs: growth(first.out_segs, last.out_segs),
        attempt_fails: growth(first.attempt_fails, last.attempt_fails),
        estab_resets: growth(first.estab_resets, last.estab_resets),
        out_rsts: growth(first.out_rsts, last.out_rsts),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn ticks(user: u64, softirq: u64, idle: u64) -> CpuTicks {
        CpuTicks {
            user,
            softirq,
            idle,
            ..CpuTicks::default()
        }
    }

    fn sample(at_s: u64, cpus: [CpuTicks; 2]) -> Sample {
        Sample {
            at_ns: at_s * S,
            cpus: Some((0..).zip(cpus).collect()),
            ..Sample::default()
        }
    }

    fn share(found: Option<Share>, expected: Share) -> bool {
        found.is_some_and(|share| (share - expected).abs() < 1e-9)
    }

    #[test]
    fn cpus_are_counted_separately() {
        let mut period = Period::begin(sample(10, [ticks(100, 0, 900), ticks(0, 10, 990)]));
        period.add(sample(11, [ticks(110, 0, 990), ticks(10, 90, 1000)]));
        let stats = period.stats();
        assert_eq!((stats.window_ns, stats.samples, stats.cpus), (S, 2, Some(2)));
        assert!(share(stats.cpu_busy, 0.5), "{stats:?}");
        assert!(share(stats.cpu_user, 0.1) && share(stats.cpu_softirq, 0.4), "{stats:?}");
        assert_eq!(stats.busiest_cpu, Some(1));
        assert!(
            share(stats.busiest_cpu_busy, 0.9) && share(stats.busiest_cpu_softirq, 0.8),
            "{stats:?}"
        );
    }

    #[test]
    fn new_thread_can_be_the_busiest() {
        let with = |at_s, threads: &[(u32, u64)], process| Sample {
            threads_ns: Some(threads.iter().copied().collect()),
            process_cpu_ns: Some(process),
            ..sample(at_s, [CpuTicks::default(); 2])
        };
        let mut period = Period::begin(with(1, &[(7, 5 * S), (8, 0)], 5 * S));
        period.add(with(3, &[(7, 5 * S), (9, S)], 6 * S));
        let stats = period.stats();
        assert!(share(stats.busiest_thread_busy, 0.5), "{stats:?}");
        assert_eq!(stats.process_cpu_ns, Some(S));
        assert_eq!(stats.cpu_busy, None, "no tick passed, so no share is known");
    }

    #[test]
    fn programs_share_of_the_busiest_cpu_is_the_time_of_its_threads_there() {
        let with = |at_s, cpus, ran: &[(u32, u64)]| Sample {
            threads_ns: Some(BTreeMap::new()),
            ran_on_ns: ran.iter().copied().collect(),
            ..sample(at_s, cpus)
        };
        // What ran before the period is not of it.
        let mut period = Period::begin(with(1, [ticks(0, 0, 0); 2], &[(1, 9 * S)]));
        period.add(with(2, [ticks(20, 0, 80), ticks(100, 0, 0)], &[(0, S / 5), (1, S / 4)]));
        period.add(with(3, [ticks(40, 0, 160), ticks(200, 0, 0)], &[(1, S / 4)]));
        let stats = period.stats();
        assert_eq!(stats.busiest_cpu, Some(1));
        assert!(share(stats.busiest_cpu_own, 0.25), "{stats:?}");
        let mut unseen = Period::begin(sample(1, [ticks(0, 0, 0); 2]));
        unseen.add(sample(2, [ticks(20, 0, 80), ticks(100, 0, 0)]));
        assert_eq!(unseen.stats().busiest_cpu_own, None, "no thread could be read");
    }

    #[test]
    fn gauges_are_peaks_and_counters_are_growth() {
        let with = |at_s, rss: u64, queue: u64, overflows: u64, bytes: u64, device: &str| Sample {
            rss_bytes: Some(rss),
            accept_queue: Some(Peak {
                peak: queue,
                limit: Some(128),
            }),
            counters: Counters {
                listen_overflows: Some(overflows),
                ..Counters::default()
            },
            nic: Some(NicStats {
                device: device.to_owned(),
                is_loopback: false,
                link_bps: Some(1_000_000_000),
                mtu_bytes: Some(1500),
                rx_bytes: bytes,
                tx_bytes: 2 * bytes,
                rx_packets: bytes / 100,
                tx_packets: 0,
                drops: 0,
                errors: 0,
            }),
            ..sample(at_s, [CpuTicks::default(); 2])
        };
        let states = |established, waiting| {
            let states = [("established", established), ("time-wait", waiting)];
            Some(states.map(|(name, count)| (name.to_owned(), count)).into())
        };
        let mut period = Period::begin(with(1, 10, 1, 5, 1000, "e0"));
        period.add(Sample {
            sockets_by_state: states(9, 1),
            ..with(1, 10, 1, 5, 1000, "e0")
        });
        period.add(Sample {
            sockets_by_state: states(3, 7),
            group_memory: Some(Peak { peak: 77, limit: None }),
            ..with(2, 30, 128, 6, 2000, "e0")
        });
        period.add(with(3, 20, 0, 9, 4000, "e0"));
        let stats = period.stats();
        assert_eq!(stats.rss_bytes, Some(30));
        assert_eq!(stats.sockets_by_state, states(9, 7));
        assert_eq!(stats.group_memory.map(|memory| memory.peak), Some(77));
        assert_eq!(
            stats.accept_queue,
            Some(Peak {
                peak: 128,
                limit: Some(128)
            })
        );
        assert_eq!(
            (stats.counters.listen_overflows, stats.counters.out_rsts),
            (Some(4), None)
        );
        let nic = stats.nic.expect("the same device");
        assert_eq!((nic.rx_bytes, nic.tx_bytes, nic.rx_packets), (3000, 6000, 30));
        period.add(with(4, 20, 0, 9, 5000, "e1"));
        assert_eq!(period.stats().nic, None, "another device");
    }

    #[test]
    fn missing_value_is_reported_once() {
        let lacking = |at_s| Sample {
            missing: vec![("descriptors", "not permitted".to_owned())],
            ..sample(at_s, [CpuTicks::default(); 2])
        };
        let mut period = Period::begin(lacking(1));
        period.add(lacking(2));
        assert_eq!(period.stats().missing, ["descriptors: not permitted"]);
        assert_eq!(period.stats().fds, None);
    }

    #[test]
    fn live_sample_covers_the_time_since_the_last_one() {
        let before = Sample {
            process_cpu_ns: Some(0),
            ..sample(1, [ticks(0, 0, 0); 2])
        };
        let now = Sample {
            process_cpu_ns: Some(S / 2),
            rss_bytes: Some(9),
            ..sample(2, [ticks(50, 0, 50), ticks(0, 0, 100)])
        };
        let reading = reading(3, &before, &now);
        assert_eq!((reading.sequence, reading.at_ns, reading.window_ns), (3, 2 * S, S));
        assert!(
            share(reading.cpu_busy, 0.25) && share(reading.busiest_cpu_busy, 0.5),
            "{reading:?}"
        );
        assert_eq!(
            (reading.process_cpus, reading.rss_bytes, reading.connections),
            (Some(0.5), Some(9), None)
        );
    }
}
