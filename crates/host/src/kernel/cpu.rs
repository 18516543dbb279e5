//! CPUs: how many, how fast, shared with whom.

use std::fs;
use std::path::Path;

use linerate_model::snapshot::{Absence, Snapshot};

use crate::short_file::{read, read_number};

const SRC: &str = "sysfs";

/// Numbers in a list such as `0-3,8`.
pub(crate) fn count_of(list: &str) -> i64 {
    let ranges = list.split(',').filter_map(|part| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(to.trim().parse::<i64>().ok()?.saturating_sub(from.trim().parse::<i64>().ok()?).saturating_add(1))
    });
    ranges.filter(|count| *count > 0).fold(0, i64::saturating_add)
}

/// Records the facts about the CPUs.
pub(crate) fn record(snapshot: &mut Snapshot) {
    let root = Path::new("/sys/devices/system");
    if let Some(online) = read(root.join("cpu/online")) {
        snapshot.set("cpu.count", count_of(&online), SRC);
        snapshot.set("cpu.online", online, SRC);
    }
    let nodes = read(root.join("node/online")).map_or(1, |online| count_of(&online));
    snapshot.set("numa.nodes", nodes, SRC);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_guest =
        text.lines().any(|line| line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor"));
    snapshot.set("cpu.virt", is_guest, "procfs:cpuinfo");
    capacities(snapshot, root);
    frequency(snapshot, &root.join("cpu/cpu0/cpufreq"));
}

/// Cores of different speed differ in `cpu_capacity`.
fn capacities(snapshot: &mut Snapshot, root: &Path) {
    let cpus = fs::read_dir(root.join("cpu")).into_iter().flatten().flatten();
    let capacities: std::collections::BTreeSet<String> =
        cpus.filter_map(|entry| read(entry.path().join("cpu_capacity"))).collect();
    snapshot.set("cpu.hybrid", capacities.len() > 1, SRC);
}

fn frequency(snapshot: &mut Snapshot, root: &Path) {
    for (fact, file) in [("governor", "scaling_governor"), ("driver", "scaling_driver")] {
        let key = format!("cpu.freq.{fact}");
        snapshot.set_or_absent(key, read(root.join(file)), Absence::NotApplicableToKind, SRC);
    }
    for (fact, file) in [("cur_khz", "scaling_cur_freq"), ("max_khz", "cpuinfo_max_freq")] {
        snapshot.set_known_in(format!("cpu.freq.{fact}"), read_number(root.join(file)), "kHz", SRC);
    }
}

/// Threads of one process that are read.
const THREADS_MAX: usize = 1024;

/// Records the CPU time of this process in ticks.
pub(crate) fn record_own(snapshot: &mut Snapshot) {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(ticks) = thread_ticks(&text) {
        snapshot.count("self.ticks", ticks, None);
    }
}

/// CPU time of every thread of this process in ticks, and the CPUs that the threads of a test may use.
pub(crate) fn record_own_threads(snapshot: &mut Snapshot) {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    for thread in threads.take(THREADS_MAX) {
        let Some(number) = thread.file_name().to_str().map(str::to_owned) else {
            continue;
        };
        let text = fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
        snapshot.count_known(format!("self.thread.{number}.ticks"), thread_ticks(&text));
        let status = fs::read_to_string(thread.path().join("status")).unwrap_or_default();
        let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        snapshot.set_known(format!("self.thread.{number}.cpus"), cpus.map(str::trim), "procfs:status");
    }
}

/// User and system time of `/proc/*/stat` (`proc(5)`). The name in the second column may contain anything.
pub(crate) fn thread_ticks(text: &str) -> Option<u64> {
    let (_, columns) = text.rsplit_once(')')?;
    let mut columns = columns.split_whitespace().skip(11);
    let mut next = || columns.next()?.parse::<u64>().ok();
    next()?.checked_add(next()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_of_a_thread_follow_its_name() {
        let text = "7 (a) b) S 1 7 7 0 -1 4194560 120 0 0 0 31 11 0 0 20 0 1 0 5 0 0";
        assert_eq!(thread_ticks(text), Some(42));
        assert_eq!(thread_ticks("7 (a) S 1"), None);
    }

    #[test]
    fn lists_are_counted() {
        for (list, count) in [("0-3,8", 5), ("0", 1), ("", 0), ("3-1", 0), ("x", 0)] {
            assert_eq!(count_of(list), count, "{list}");
        }
    }
}
