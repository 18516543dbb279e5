//! CPU time of the processes of this host, summed by program (`/proc/*/stat`, proc_pid_stat(5)).

use std::collections::BTreeMap;
use std::fs;

use linerate_model::printable::printable;
use linerate_model::snapshot::Snapshot;
use linerate_sys::clock;

use crate::kernel::cpu::thread_ticks;
use crate::kernel::process;

/// Programs that are recorded.
const RECORDED: usize = 3;
const SRC: &str = "procfs:stat";

/// CPU time of every process since its start, at one instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessTimes {
    monotonic_ns: u64,
    /// Ticks and name by process id.
    pub(crate) ticks: BTreeMap<u32, (u64, String)>,
}

impl ProcessTimes {
    /// Reads all processes this user can see.
    pub fn read() -> Self {
        let ticks = process::numbers().filter_map(|pid| {
            let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
            let stat = String::from_utf8_lossy(&stat);
            Some((pid, (thread_ticks(&stat)?, name_in(&stat)?)))
        });
        Self {
            monotonic_ns: clock::monotonic_ns(),
            ticks: ticks.collect(),
        }
    }

    /// Records the programs, other than this process, that took most CPU time since `earlier`.
    pub fn record_since(&self, earlier: &Self, snapshot: &mut Snapshot) {
        let seconds = self.monotonic_ns.saturating_sub(earlier.monotonic_ns) as f64 / 1e9;
        if seconds <= 0.0 {
            return;
        }

        let programs = self.programs_since(earlier);
        for (index, (name, ticks)) in programs.into_iter().take(RECORDED).enumerate() {
            let key = format!("cpu.program.{}", index + 1);
            snapshot.set(format!("{key}.name"), name, SRC);
            // A tick is 10 ms, so ticks per second are percent of a CPU.
            let cpus = (ticks as f64 / seconds).round() / 100.0;
            snapshot.set_in(format!("{key}.cpus"), cpus, "CPUs", SRC);
        }
    }

    /// Name and ticks of each program that ran since `earlier`, the busiest first. The time of
    /// ksoftirqd is already in the state softirq of the CPUs.
    fn programs_since(&self, earlier: &Self) -> Vec<(&str, u64)> {
        let mut programs: BTreeMap<&str, u64> = BTreeMap::new();
        let others = self
            .ticks
            .iter()
            .filter(|(pid, _)| **pid != std::process::id());
        for (pid, (ticks, name)) in others.filter(|(_, (_, name))| !name.starts_with("ksoftirqd/"))
        {
            // A process that began in between has used all its time since then.
            let before = earlier.ticks.get(pid).map_or(0, |(ticks, _)| *ticks);
            *programs.entry(name).or_default() += ticks.saturating_sub(before);
        }

        let mut programs: Vec<_> = programs
            .into_iter()
            .filter(|(_, ticks)| *ticks > 0)
            .collect();
        programs.sort_by_key(|(_, ticks)| std::cmp::Reverse(*ticks));
        programs
    }
}

/// The name in `/proc/*/stat`, which may hold anything, parentheses and control characters
/// included.
fn name_in(stat: &str) -> Option<String> {
    Some(printable(stat.split_once('(')?.1.rsplit_once(')')?.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::snapshot::Source;

    fn times(seconds: u64, processes: &[(u32, u64, &str)]) -> ProcessTimes {
        let ticks = processes
            .iter()
            .map(|(pid, ticks, name)| (*pid, (*ticks, (*name).to_owned())));
        ProcessTimes {
            monotonic_ns: seconds * 1_000_000_000,
            ticks: ticks.collect(),
        }
    }

    #[test]
    fn three_busiest_other_programs_are_recorded_by_name() {
        let own = std::process::id();
        let before = times(
            10,
            &[
                (1, 500, "init"),
                (own, 0, "linerate"),
                (20, 100, "go"),
                (21, 7, "cargo"),
            ],
        );

        let after = times(
            15,
            &[
                (1, 500, "init"),
                (own, 900, "linerate"),
                (9, 800, "ksoftirqd/0"),
                (20, 250, "go"),
                (21, 607, "cargo"),
                (22, 365, "cargo"),
                (23, 50, "cc"),
                (24, 49, "ld"),
            ],
        );
        let mut snapshot = Snapshot::new("a", Source::Live);
        after.record_since(&before, &mut snapshot);

        for (place, name, cpus) in [(1, "cargo", 1.93), (2, "go", 0.3), (3, "cc", 0.1)] {
            assert_eq!(
                snapshot.text(&format!("cpu.program.{place}.name")),
                Some(name)
            );
            assert_eq!(
                snapshot.number(&format!("cpu.program.{place}.cpus")),
                Some(cpus)
            );
        }

        assert_eq!(snapshot.facts.len(), 6, "{snapshot:?}");
        let mut idle = Snapshot::new("a", Source::Live);
        after.record_since(&after, &mut idle);
        assert!(idle.facts.is_empty(), "no time passed");
    }

    #[test]
    fn this_process_is_read_with_its_name() {
        let own = std::process::id();
        let comm = fs::read_to_string("/proc/self/comm").expect("a name");
        assert_eq!(
            ProcessTimes::read()
                .ticks
                .get(&own)
                .map(|(_, name)| name.as_str()),
            Some(comm.trim_end())
        );
        assert_eq!(name_in("7 (a) b\n) S 1").as_deref(), Some("a) b\u{fffd}"));
        assert_eq!(name_in("7"), None);
    }
}
