//! CPUs: how many, how fast, shared with whom.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use linerate_model::placement::cpu_list;

use crate::kernel::process::{cpu_of_task, number_at};
use crate::prelude::*;

const SRC: &str = "sysfs";

/// Records the facts about the CPUs.
pub(crate) fn record(snapshot: &mut Snapshot) {
    let root = Path::new("/sys/devices/system");
    if let Some(online) = read(root.join("cpu/online")) {
        let cpus = cpu_list(&online);
        snapshot.set("cpu.count", cpus.len(), SRC);
        shared(snapshot, root, &cpus);
        snapshot.set("cpu.online", online, SRC);
    }

    let nodes = read(root.join("node/online")).map_or(1, |online| cpu_list(&online).len());
    snapshot.set("numa.nodes", nodes, SRC);
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let is_guest = text.lines().any(|line| {
        // CPUID leaf 1, ECX bit 31, which hypervisors set for their guests.
        line.starts_with("flags") && line.split_whitespace().any(|flag| flag == "hypervisor")
    });
    snapshot.set("cpu.virt", is_guest, "procfs:cpuinfo");
    capacities(snapshot, root);
    frequency(snapshot, &root.join("cpu/cpu0/cpufreq"));
}

/// Records the groups of CPUs that share a core or a cache, and those of each node. A CPU that
/// shares with no other is left out.
fn shared(snapshot: &mut Snapshot, root: &Path, cpus: &[u32]) {
    let cpu = |number: &u32| root.join(format!("cpu/cpu{number}"));
    // The index of a level is the same for all CPUs of a host, so one CPU is read for it.
    let Some(caches) = cpus.first().map(|first| cpu(first).join("cache")) else {
        return;
    };
    let cache = |level: i64| {
        let mut names = (0..CACHES_MAX).map(|index| format!("index{index}"));
        let name =
            names.find(|name| read_number(caches.join(name).join("level")) == Some(level))?;
        Some(format!("cache/{name}/shared_cpu_list"))
    };
    let files = [
        ("core", Some("topology/thread_siblings_list".to_owned())),
        ("l2", cache(2)),
        ("l3", cache(3)),
    ];
    for (resource, file) in files {
        let lists = file.and_then(|file| groups(cpus, |number| read(cpu(number).join(&file))));
        snapshot.set_or_absent(
            format!("cpu.shared.{resource}"),
            lists,
            Absence::NotReported,
            SRC,
        );
    }

    let lists: BTreeSet<String> = entries(root.join("node"))
        .filter_map(|node| read(node.join("cpulist")))
        .collect();
    let lists = lists
        .into_iter()
        .filter(|list| !list.is_empty())
        .map(Value::from);
    snapshot.set("cpu.shared.node", Value::List(lists.collect()), SRC);
}

/// Caches of one CPU.
const CACHES_MAX: usize = 8;

/// The lists of more than one CPU; `None` when a list cannot be read.
fn groups(cpus: &[u32], list_of: impl Fn(&u32) -> Option<String>) -> Option<Value> {
    let mut known = BTreeSet::new();
    let mut lists = Vec::new();

    for cpu in cpus {
        if !known.contains(cpu) {
            let list = list_of(cpu)?;
            let members = cpu_list(&list);
            if members.len() > 1 {
                lists.push(list.into());
            }

            known.extend(members);
        }
    }

    Some(Value::List(lists))
}

/// Cores of different speed differ in `cpu_capacity`.
fn capacities(snapshot: &mut Snapshot, root: &Path) {
    let capacities: BTreeSet<String> = entries(root.join("cpu"))
        .filter_map(|cpu| read(cpu.join("cpu_capacity")))
        .collect();
    snapshot.set("cpu.hybrid", capacities.len() > 1, SRC);
}

fn frequency(snapshot: &mut Snapshot, root: &Path) {
    for (fact, file) in [
        ("governor", "scaling_governor"),
        ("driver", "scaling_driver"),
    ] {
        let key = format!("cpu.freq.{fact}");
        snapshot.set_or_absent(
            key,
            read(root.join(file)),
            Absence::NotApplicableToKind,
            SRC,
        );
    }

    for (fact, file) in [
        ("cur_khz", "scaling_cur_freq"),
        ("max_khz", "cpuinfo_max_freq"),
    ] {
        snapshot.set_known_in(
            format!("cpu.freq.{fact}"),
            read_number(root.join(file)),
            "kHz",
            SRC,
        );
    }
}

/// Threads of one process that are read.
const THREADS_MAX: usize = 1024;

/// Records the CPU time of this process in ticks.
pub(crate) fn record_own(snapshot: &mut Snapshot) {
    let text = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    if let Some(ticks) = thread_ticks(&text) {
        snapshot.count("self.ticks", ticks);
    }
}

/// CPU time of every thread of this process in ticks, the time it waited for a CPU, and the CPUs it
/// may use.
pub(crate) fn record_own_threads(snapshot: &mut Snapshot) {
    const THREADS: &str = "/proc/self/task";

    for number in names(THREADS).take(THREADS_MAX) {
        let thread = Path::new(THREADS).join(&number);
        let text = fs::read_to_string(thread.join("stat")).unwrap_or_default();
        snapshot.count_known(format!("self.thread.{number}.ticks"), thread_ticks(&text));
        snapshot.set_known(
            format!("self.thread.{number}.cpu"),
            cpu_of_task(text.as_bytes()),
            "procfs:stat",
        );

        let schedstat = fs::read_to_string(thread.join("schedstat")).unwrap_or_default();
        snapshot.count_known(
            format!("self.thread.{number}.wait_ns"),
            // The second number is the time on a run queue, in ns
            // (Documentation/scheduler/sched-stats.rst).
            number_at(&schedstat, 1),
        );
        let status = fs::read_to_string(thread.join("status")).unwrap_or_default();
        let cpus = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        snapshot.set_known(
            format!("self.thread.{number}.cpus"),
            cpus.map(str::trim),
            "procfs:status",
        );
    }
}

/// User and system time of `/proc/*/stat` (`proc(5)`). The name in the second column may contain
/// anything.
pub(crate) fn thread_ticks(text: &str) -> Option<u64> {
    let (_, columns) = text.rsplit_once(')')?;
    // `utime` and `stime` are columns 14 and 15 of the line (proc_pid_stat(5)).
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
    fn groups_of_several_cpus_are_listed_once() {
        let cores = |cpu: &u32| {
            ["0,4", "1", "2-3", "2-3", "0,4"]
                .get(*cpu as usize)
                .map(|list| (*list).to_owned())
        };
        let expected = ["0,4", "2-3"].map(Value::from);
        assert_eq!(
            groups(&[0, 1, 2, 3, 4], cores),
            Some(Value::List(expected.into()))
        );
        assert_eq!(groups(&[0, 9], cores), None);
    }
}
