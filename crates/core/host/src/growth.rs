//! Growth of the counters of a host between two samples, and how busy its CPUs were meanwhile.

use std::collections::BTreeMap;

use linerate_model::snapshot::Snapshot;

/// Ticks of 10 ms one CPU, or several, spent (`/proc/stat`, proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// User code, of low priority included.
    pub user: u64,
    /// The kernel, interrupts aside.
    pub system: u64,
    /// Soft interrupts.
    pub softirq: u64,
    /// Time the hypervisor gave to others.
    pub steal: u64,
    /// Waiting for disks included.
    pub idle: u64,
    /// All states.
    pub total: u64,
}

impl Ticks {
    fn add(&mut self, state: &str, ticks: u64) {
        let part = match state {
            "user" | "nice" => Some(&mut self.user),
            "system" => Some(&mut self.system),
            "softirq" => Some(&mut self.softirq),
            "steal" => Some(&mut self.steal),
            "idle" | "iowait" => Some(&mut self.idle),
            _ => None,
        };
        part.into_iter()
            .chain([&mut self.total])
            .for_each(|sum| *sum = sum.saturating_add(ticks));
    }

    /// Ticks that were not idle.
    pub fn busy(&self) -> u64 {
        self.total.saturating_sub(self.idle)
    }

    /// Some of the ticks as a share of all; `None` if none passed.
    pub fn share(&self, ticks: u64) -> Option<f64> {
        share(ticks, self.total)
    }
}

/// Part of a whole, 0 to 1; `None` of nothing.
pub(crate) fn share(part: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| part as f64 / all as f64)
}

/// Keys of the counters of CPUs, with the number and the state in them.
fn cpu_counters(sample: &Snapshot) -> impl Iterator<Item = (&str, u32, &str, u64)> {
    sample.counters_under("cpu.").filter_map(|(key, counter)| {
        let (cpu, state) = key.split_once('.')?;
        Some((key, cpu.parse().ok()?, state, counter.v))
    })
}

/// Numbers of the CPUs that were online.
pub(crate) fn cpus(sample: &Snapshot) -> Vec<u32> {
    let mut cpus: Vec<u32> = cpu_counters(sample).map(|(_, cpu, ..)| cpu).collect();
    cpus.sort_unstable();
    cpus.dedup();
    cpus
}

/// Growth of counters between two samples of one host.
#[derive(Debug)]
pub struct Growth<'a> {
    pub(crate) before: &'a Snapshot,
    pub(crate) after: &'a Snapshot,
    /// Time between the samples; 0 where one has none.
    pub window_ns: u64,
    /// Every CPU that was online at both ends.
    pub cpus: BTreeMap<u32, Ticks>,
    /// All of them together.
    pub all_cpus: Ticks,
}

impl<'a> Growth<'a> {
    /// Growth from the first to the second of two samples.
    pub fn between(before: &'a Snapshot, after: &'a Snapshot) -> Self {
        let (mut cpus, mut all_cpus): (BTreeMap<u32, Ticks>, Ticks) = Default::default();
        for (key, cpu, state, ticks) in cpu_counters(after) {
            if let Some(earlier) = before.counters.get(&format!("cpu.{key}")) {
                // The kernel lets idle time run backwards a little (proc_stat(5)).
                let grown = ticks.saturating_sub(earlier.v);
                [cpus.entry(cpu).or_default(), &mut all_cpus]
                    .into_iter()
                    .for_each(|sum| sum.add(state, grown));
            }
        }

        let times_ns = before.monotonic_ns.zip(after.monotonic_ns);
        Self {
            window_ns: times_ns.map_or(0, |(from, to)| to.saturating_sub(from)),
            before,
            after,
            cpus,
            all_cpus,
        }
    }

    /// Growth of a counter that was read at both ends.
    pub(crate) fn of(&self, key: &str) -> Option<u64> {
        let before = self.before.counters.get(key)?;
        let after = self.after.counters.get(key)?;
        // A counter that was reset counts as one that did not grow.
        Some(after.v.saturating_sub(before.v))
    }

    /// Growth of a counter of nanoseconds as a share of the time between the samples.
    pub(crate) fn share_of_time(&self, key: &str) -> Option<f64> {
        share(self.of(key)?, self.window_ns)
    }

    /// The CPU with the largest busy share, and its ticks.
    pub(crate) fn busiest_cpu(&self) -> Option<(u32, Ticks)> {
        let known = self
            .cpus
            .iter()
            .filter_map(|(cpu, ticks)| Some((*cpu, *ticks, ticks.share(ticks.busy())?)));
        let busiest = known.max_by(|(.., a), (.., b)| a.total_cmp(b));
        busiest.map(|(cpu, ticks, _)| (cpu, ticks))
    }

    /// Share of the busiest CPU that was busy.
    pub(crate) fn busiest_cpu_busy(&self) -> Option<f64> {
        self.busiest_cpu()
            .and_then(|(_, ticks)| ticks.share(ticks.busy()))
    }
}
