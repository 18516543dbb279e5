//! The control group of a process: its limits, what it uses of them, and how long it was throttled (cgroups(7)).

use std::fs;

use linerate_model::snapshot::Snapshot;

use crate::error::{ReadError, record, record_absent};
use crate::kernel::file::{Buffer, KernelFile};
use crate::nic::sysfs::read;

const SRC: &str = "cgroup";

/// Files of a control group, of either version.
#[derive(Debug)]
pub(crate) struct Group {
    cpu: Result<(String, KernelFile), ReadError>,
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
            cpu: directory(&groups, "cpu").map(|(path, _)| {
                let file = KernelFile::open(format!("{path}/cpu.stat"));
                (path, file)
            }),
            limited: vec![
                ("memory", limited(&groups, "memory", memory, ["memory.usage_in_bytes", "memory.limit_in_bytes"])),
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
            let parse = |text: &str| text.trim().parse::<u64>().map_err(|_| ReadError::missing("no number"));
            let files = files.as_ref().map_err(Clone::clone);
            let current = files.clone().and_then(|[current, _]| parse(current.read(buffer)?));
            record(snapshot, &key, current, SRC);
            let limit = files.ok().and_then(|[_, limit]| parse_limit(limit.read(buffer).ok()?));
            snapshot.set_known(format!("cgroup.{name}.max"), limit, SRC);
        }
    }

    fn throttling(&self, snapshot: &mut Snapshot, buffer: &mut Buffer) -> Result<(), ReadError> {
        let (_, file) = self.cpu.as_ref().map_err(Clone::clone)?;
        let text = file.read(buffer)?;
        snapshot.count_known("cgroup.nr_throttled", field(text, "nr_throttled"));
        let ns = throttled_ns(text).ok_or_else(|| ReadError::missing("the control group has no quota"))?;
        snapshot.count("cgroup.throttled_ns", ns, None);
        Ok(())
    }

    /// Records the quota of CPU time, which version 2 alone has in one file.
    pub(crate) fn record_quota(&self, snapshot: &mut Snapshot) {
        let quota = self.cpu.as_ref().ok().and_then(|(path, _)| read(format!("{path}/cpu.max")));
        snapshot.set_known("cgroup.cpu.max", quota, SRC);
    }
}

/// The files of a value and its limit, by their names in version 2 and in version 1.
fn limited(groups: &str, controller: &str, v2: [&str; 2], v1: [&str; 2]) -> Result<[KernelFile; 2], ReadError> {
    let (path, is_v2) = directory(groups, controller)?;
    if path.ends_with('/') {
        return Err(ReadError::missing("the process is in the root of all control groups"));
    }
    let names = if is_v2 { v2 } else { v1 };
    Ok(names.map(|name| KernelFile::open(format!("{path}/{name}"))))
}

/// `/proc/*/cgroup`: the directory of the group below `/sys/fs/cgroup` in which a controller counts for the process, and
/// whether it is of version 2.
fn directory(groups: &str, controller: &str) -> Result<(String, bool), ReadError> {
    let lines = || groups.lines().filter_map(|line| line.split_once(':')?.1.split_once(':'));
    let v1 = lines().find(|(controllers, _)| controllers.split(',').any(|name| name == controller));
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
    let mut values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    values.next()?.trim().parse().ok()
}

/// `cpu.stat`: time the group was throttled, in the format of either version.
fn throttled_ns(text: &str) -> Option<u64> {
    field(text, "throttled_usec").map_or_else(|| field(text, "throttled_time"), |us| us.checked_mul(1000))
}

/// A limit; absent for none, which version 1 writes as a number beyond all memory.
fn parse_limit(text: &str) -> Option<u64> {
    const NONE: u64 = 1 << 60;
    text.trim().parse().ok().filter(|limit| *limit < NONE)
}

/// Parses the text as every file of a group. Only for fuzzing.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_anything(text: &str) {
    let _ = (throttled_ns(text), parse_limit(text), directory(text, "cpu"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_parsed() {
        for (text, ns) in [
            ("nr_periods 0\nnr_throttled 2\nthrottled_time 77\n", Some(77)),
            ("usage_usec 5\nnr_throttled 2\nthrottled_usec 77\n", Some(77_000)),
            ("usage_usec 5\nuser_usec 1\n", None),
            ("throttled_usec 18446744073709551615\n", None),
        ] {
            assert_eq!(throttled_ns(text), ns, "{text}");
        }
        let both = "4:memory:/a\n2:cpu,cpuacct:/b\n0::/\n";
        for (groups, controller, path, is_v2) in [
            ("0::/system.slice/x.service\n", "cpu", "/sys/fs/cgroup//system.slice/x.service", true),
            (both, "cpu", "/sys/fs/cgroup/cpu,cpuacct/b", false),
            (both, "memory", "/sys/fs/cgroup/memory/a", false),
            (both, "pids", "/sys/fs/cgroup//", true),
        ] {
            assert_eq!(directory(groups, controller), Ok((path.to_owned(), is_v2)));
        }
        assert!(directory("0::/../../x\n", "cpu").is_err() && directory("", "cpu").is_err());
        for (text, limit) in [("max\n", None), ("9223372036854771712\n", None), ("1073741824\n", Some(1 << 30))] {
            assert_eq!(parse_limit(text), limit, "{text}");
        }
    }
}
