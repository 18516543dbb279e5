//! The control group of a process: its limits, what it uses of them, and how long it was throttled
//! (cgroups(7)).

use std::fs;
use std::path::{Path, PathBuf};

use crate::kernel::file::{Buffer, KernelFile};
use crate::prelude::*;

const SRC: &str = "cgroup";

/// Files of a control group, of either version.
#[derive(Debug)]
pub(crate) struct Group {
    /// Directory and `cpu.stat` of the group and of those above it: each may have a quota.
    cpu: Result<Vec<(PathBuf, KernelFile)>, ReadError>,
    /// Fact with the value in use, and that of its limit.
    limited: Vec<(&'static str, Result<[KernelFile; 2], ReadError>)>,
}

impl Group {
    /// The group of a process; every record states what is missing.
    pub(crate) fn of(pid: u32) -> Self {
        let groups = fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let memory = ["memory.current", "memory.max"];
        let pids = ["pids.current", "pids.max"];
        Self {
            cpu: directory(&groups, "cpu").map(|(path, _)| with_statistics(Path::new(&path))),
            limited: vec![
                (
                    "memory",
                    limited(
                        &groups,
                        "memory",
                        memory,
                        ["memory.usage_in_bytes", "memory.limit_in_bytes"],
                    ),
                ),
                ("pids", limited(&groups, "pids", pids, pids)),
            ],
        }
    }

    /// Records what the group uses, its limits, and its counters of throttling.
    pub(crate) fn record(&self, snapshot: &mut Snapshot, buffer: &mut Buffer) {
        if let Err(why) = self.throttling(snapshot, buffer) {
            record_absent(snapshot, "cgroup.throttled_ns", &why, SRC);
        }

        for (name, files) in &self.limited {
            let key = format!("cgroup.{name}.current");
            let parse = |text: &str| {
                text.trim()
                    .parse::<u64>()
                    .map_err(|_| ReadError::missing("no number"))
            };

            let files = files.as_ref().map_err(Clone::clone);
            let current = files
                .clone()
                .and_then(|[current, _]| parse(current.read(buffer)?));
            record(snapshot, &key, current, SRC);

            let limit = files
                .ok()
                .and_then(|[_, limit]| parse_limit(limit.read(buffer).ok()?));
            snapshot.set_known(format!("cgroup.{name}.max"), limit, SRC);
        }
    }

    fn throttling(&self, snapshot: &mut Snapshot, buffer: &mut Buffer) -> Result<(), ReadError> {
        let mut sums: [Option<u64>; 3] = [None; 3];
        for (_, file) in self.cpu.as_ref().map_err(Clone::clone)? {
            let text = file.read(buffer)?;
            let values = [
                field(text, "nr_periods"),
                field(text, "nr_throttled"),
                throttled_ns(text),
            ];
            for (sum, value) in sums.iter_mut().zip(values) {
                // Throttling by a group above counts as well: its quota stops this process too.
                *sum = value
                    .map(|value| sum.unwrap_or(0).saturating_add(value))
                    .or(*sum);
            }
        }

        let [periods, throttled, ns] = sums;
        snapshot.count_known("cgroup.nr_periods", periods);
        snapshot.count_known("cgroup.nr_throttled", throttled);

        let ns = ns.ok_or_else(|| ReadError::missing("the control group has no quota"))?;
        snapshot.count("cgroup.throttled_ns", ns);
        Ok(())
    }

    /// Records the lowest quota of CPU time among the group and those above it.
    pub(crate) fn record_quota(&self, snapshot: &mut Snapshot) {
        let directories = self.cpu.iter().flatten();
        let quotas = directories.filter_map(|(directory, _)| quota(directory));
        let lowest = quotas.min_by(|a, b| cpus(a).total_cmp(&cpus(b)));

        // The root of all groups has no file for a quota, and none.
        let is_unlimited = self
            .cpu
            .as_ref()
            .is_ok_and(|directories| !directories.is_empty());
        let lowest = lowest.or_else(|| is_unlimited.then(|| "max".to_owned()));
        snapshot.set_known("cgroup.cpu.max", lowest, SRC);
    }
}

/// The group in a directory and those above it, as far as they are visible here.
fn with_statistics(directory: &Path) -> Vec<(PathBuf, KernelFile)> {
    let all = directory
        .ancestors()
        .filter(|directory| directory.join("cpu.stat").exists());
    all.map(|directory| {
        (
            directory.to_owned(),
            KernelFile::open(directory.join("cpu.stat")),
        )
    })
    .collect()
}

/// CPU time per period of a group in µs, as version 2 writes it: `20000 100000`, `max 100000`.
fn quota(directory: &Path) -> Option<String> {
    read(directory.join("cpu.max")).or_else(|| {
        let number = |file| read_number(directory.join(file));
        let [quota, period] = ["cpu.cfs_quota_us", "cpu.cfs_period_us"].map(number);
        let quota = quota
            // Version 1 writes -1 for no quota.
            .filter(|us| *us >= 0)
            .map_or_else(|| "max".to_owned(), |us| us.to_string());
        Some(format!("{quota} {}", period?))
    })
}

/// The CPUs a quota is worth.
fn cpus(quota: &str) -> f64 {
    let parsed = quota
        .split_once(' ')
        .and_then(|(us, period)| Some(us.parse::<f64>().ok()? / period.parse::<f64>().ok()?));
    // `max` is no number: nothing limits.
    parsed.unwrap_or(f64::INFINITY)
}

/// The files of a value and its limit, by their names in version 2 and in version 1.
fn limited(
    groups: &str,
    controller: &str,
    v2: [&str; 2],
    v1: [&str; 2],
) -> Result<[KernelFile; 2], ReadError> {
    let (path, is_v2) = directory(groups, controller)?;
    // The root group has no files of limits (cgroups(7)).
    if path.ends_with('/') {
        return Err(ReadError::missing(
            "the process is in the root of all control groups",
        ));
    }

    let names = if is_v2 { v2 } else { v1 };
    Ok(names.map(|name| KernelFile::open(format!("{path}/{name}"))))
}

/// `/proc/*/cgroup`: the directory of the group below `/sys/fs/cgroup` in which a controller counts
/// for the process, and whether it is of version 2.
fn directory(groups: &str, controller: &str) -> Result<(String, bool), ReadError> {
    let lines = || {
        groups
            .lines()
            .filter_map(|line| line.split_once(':')?.1.split_once(':'))
    };
    let v1 = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == controller));
    // With both versions mounted a controller belongs to one of them (cgroups(7)); the line of
    // version 2 has an empty list.
    let found = v1.or_else(|| lines().find(|(controllers, _)| controllers.is_empty()));

    // A path from outside the namespace of control groups leads nowhere here.
    let is_inside = |path: &str| path.starts_with('/') && !path.split('/').any(|part| part == "..");
    let (root, path) = found
        .filter(|(_, path)| is_inside(path))
        .ok_or_else(|| ReadError::missing("no control group that can be read"))?;
    Ok((format!("/sys/fs/cgroup/{root}{path}"), v1.is_none()))
}

/// Number after a name in `cpu.stat`.
fn field(text: &str, name: &str) -> Option<u64> {
    let mut values = text
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next()?.trim().parse().ok()
}

/// `cpu.stat`: time the group was throttled, in the format of either version.
fn throttled_ns(text: &str) -> Option<u64> {
    field(text, "throttled_usec")
        .map_or_else(|| field(text, "throttled_time"), |us| us.checked_mul(1000))
}

/// A limit; absent for none, which version 1 writes as a number beyond all memory.
fn parse_limit(text: &str) -> Option<u64> {
    const NONE: u64 = 1 << 60;
    text.trim().parse().ok().filter(|limit| *limit < NONE)
}

/// Parses the text as every file of a group. Only for fuzzing.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_anything(text: &str) {
    let _ = (
        throttled_ns(text),
        parse_limit(text),
        directory(text, "cpu"),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A group `a` with a group `a/b`, each with these files.
    fn tree(name: &str, outer: &[(&str, &str)], inner: &[(&str, &str)]) -> Snapshot {
        let top =
            std::env::temp_dir().join(format!("linerate-cgroup-{}-{name}", std::process::id()));
        let inner_directory = top.join("a/b");
        fs::create_dir_all(&inner_directory).expect("a directory");

        for (directory, files) in [(top.join("a"), outer), (inner_directory.clone(), inner)] {
            files
                .iter()
                .for_each(|(name, text)| fs::write(directory.join(name), text).expect("a file"));
        }

        let group = Group {
            cpu: Ok(with_statistics(&inner_directory)),
            limited: Vec::new(),
        };
        let mut snapshot = Snapshot::new("a", linerate_model::snapshot::Source::Live);
        group.record_quota(&mut snapshot);
        group.record(&mut snapshot, &mut Buffer::new());
        fs::remove_dir_all(top).expect("removed");

        snapshot
    }

    #[test]
    fn quota_of_a_group_above_counts_in_both_versions() {
        let v1 = tree(
            "v1",
            &[
                ("cpu.cfs_quota_us", "20000\n"),
                ("cpu.cfs_period_us", "100000\n"),
                (
                    "cpu.stat",
                    "nr_periods 53\nnr_throttled 50\nthrottled_time 4000000000\n",
                ),
            ],
            &[
                ("cpu.cfs_quota_us", "-1\n"),
                ("cpu.cfs_period_us", "100000\n"),
                (
                    "cpu.stat",
                    "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n",
                ),
            ],
        );
        let v2 = tree(
            "v2",
            &[
                ("cpu.max", "20000 100000\n"),
                (
                    "cpu.stat",
                    "nr_periods 53\nnr_throttled 50\nthrottled_usec 4000000\n",
                ),
            ],
            &[
                ("cpu.max", "50000 100000\n"),
                (
                    "cpu.stat",
                    "usage_usec 7\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
                ),
            ],
        );
        for snapshot in [v1, v2] {
            assert_eq!(snapshot.text("cgroup.cpu.max"), Some("20000 100000"));
            for (name, expected) in [
                ("nr_periods", 53),
                ("nr_throttled", 50),
                ("throttled_ns", 4_000_000_000),
            ] {
                assert_eq!(
                    snapshot.counters[&format!("cgroup.{name}")].v,
                    expected,
                    "{name}"
                );
            }
        }

        let none = tree(
            "none",
            &[
                ("cpu.cfs_quota_us", "-1\n"),
                ("cpu.cfs_period_us", "100000\n"),
                ("cpu.stat", ""),
            ],
            &[],
        );
        assert_eq!(none.text("cgroup.cpu.max"), Some("max 100000"));
        assert!(!none.counters.contains_key("cgroup.nr_periods"));
        assert!(none.absence("cgroup.throttled_ns").is_some());
    }

    #[test]
    fn both_versions_are_parsed() {
        for (text, ns) in [
            (
                "nr_periods 0\nnr_throttled 2\nthrottled_time 77\n",
                Some(77),
            ),
            (
                "usage_usec 5\nnr_throttled 2\nthrottled_usec 77\n",
                Some(77_000),
            ),
            ("usage_usec 5\nuser_usec 1\n", None),
            ("throttled_usec 18446744073709551615\n", None),
        ] {
            assert_eq!(throttled_ns(text), ns, "{text}");
        }

        let both = "4:memory:/a\n2:cpu,cpuacct:/b\n0::/\n";
        for (groups, controller, path, is_v2) in [
            (
                "0::/system.slice/x.service\n",
                "cpu",
                "/sys/fs/cgroup//system.slice/x.service",
                true,
            ),
            (both, "cpu", "/sys/fs/cgroup/cpu,cpuacct/b", false),
            (both, "memory", "/sys/fs/cgroup/memory/a", false),
            (both, "pids", "/sys/fs/cgroup//", true),
        ] {
            assert_eq!(directory(groups, controller), Ok((path.to_owned(), is_v2)));
        }

        assert!(directory("0::/../../x\n", "cpu").is_err() && directory("", "cpu").is_err());
        for (text, limit) in [
            ("max\n", None),
            ("9223372036854771712\n", None),
            ("1073741824\n", Some(1 << 30)),
        ] {
            assert_eq!(parse_limit(text), limit, "{text}");
        }
    }
}
