//! Single values of `/sys` and `/proc/sys`, as `cat FILE` and `grep . FILES` print them: clocks of
//! the CPUs, quotas of control groups, links.

use super::lines::*;
use crate::prelude::*;

const SRC: &str = "import:sysfs";

/// Reads lines with the value of a file.
pub(super) struct Reader<'a> {
    /// The file whose content follows.
    file: Option<&'a str>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(block: &Block<'a>) -> Self {
        let prints = matches!(block.program(), "cat" | "head" | "grep" | "tail" | "more");
        Self {
            file: block.kernel_file().filter(|_| prints),
        }
    }
}

impl LineReader for Reader<'_> {
    fn line(&mut self, snapshot: &mut Snapshot, line: &str) -> bool {
        let named = line
            .split_once(':')
            .filter(|(path, _)| path.starts_with("/sys/") || path.starts_with("/proc/sys/"));
        match (named, self.file) {
            (Some((path, value)), _) => attribute(snapshot, path, value.trim()),
            (None, Some(path)) => attribute(snapshot, path, line.trim()),
            (None, None) => quota_statistic(snapshot, line.trim()),
        }
    }
}

fn attribute(snapshot: &mut Snapshot, path: &str, value: &str) -> bool {
    if value.is_empty() || value.contains("Permission denied") || value.contains("No such file") {
        return false;
    }

    let name = path.rsplit('/').next().unwrap_or(path);
    if path.contains("/cpufreq/") {
        return clock(snapshot, path, name, value);
    }
    if let Some(rest) = path.strip_prefix("/sys/class/net/") {
        return interface(snapshot, rest, value);
    }

    match name {
        "cpu.max" => {
            snapshot.set("cgroup.cpu.max", value, SRC);
            true
        }
        "cpu.stat" => quota_statistic(snapshot, value),
        _ => false,
    }
}

/// Files of cpufreq. The facts are those of the first CPU.
fn clock(snapshot: &mut Snapshot, path: &str, name: &str, value: &str) -> bool {
    let fact = match name {
        "scaling_governor" => "governor",
        "scaling_driver" => "driver",
        "scaling_cur_freq" | "cpuinfo_cur_freq" => "cur_khz",
        "cpuinfo_max_freq" => "max_khz",
        "cpuinfo_min_freq" => "min_khz",
        _ => return name.starts_with("scaling_") || name.starts_with("cpuinfo_"),
    };
    let key = format!("cpu.freq.{fact}");
    let is_first = path.contains("/cpu0/") || snapshot.value(&key).is_none();
    if !is_first {
        return true;
    }

    match fact.strip_suffix("_khz") {
        Some(_) => snapshot.set_known_in(key, value.parse::<i64>().ok(), "kHz", SRC),
        None => snapshot.set(key, value, SRC),
    }

    true
}

/// `eth0/mtu`, `eth0/statistics/rx_missed_errors`
fn interface(snapshot: &mut Snapshot, rest: &str, value: &str) -> bool {
    let Some((name, file)) = rest.split_once('/') else {
        return false;
    };
    let nic = &mut Recorder::new(snapshot, format!("nic.{name}"), SRC);

    if let Some(counter) = file.strip_prefix("statistics/") {
        nic.count(format!("stats64.{counter}"), value.parse().ok());
        return value.parse::<u64>().is_ok();
    }

    let number = value.parse::<i64>().ok();
    match (file, number) {
        ("mtu", Some(mtu)) => nic.set_in("net.mtu", mtu, "bytes"),
        ("tx_queue_len", Some(length)) => {
            nic.set_in("net.txqlen", length, "packets");
        }
        ("speed", Some(mbps)) if mbps > 0 => {
            nic.set_in("link.speed_mbps", mbps, "Mbit/s");
        }
        // The kernel prints -1 without carrier.
        ("speed", _) => {
            nic.absent("link.speed_mbps", Absence::NotReported);
        }
        ("carrier", Some(carrier)) => nic.set("link.up", carrier != 0),
        ("carrier_changes", Some(_)) => {
            nic.count("link.carrier_changes", value.parse().ok());
        }
        ("duplex", _) if matches!(value, "full" | "half") => {
            nic.set("link.duplex", value);
        }
        ("operstate" | "address" | "type", _) => {}
        ("device/numa_node", Some(node)) => nic.set("numa.node", node),
        ("device/local_cpulist", _) => {
            nic.set("numa.local_cpulist", value);
        }
        _ => return false,
    }

    true
}

/// `nr_throttled 2984` and the other lines of `cpu.stat` of a control group.
fn quota_statistic(snapshot: &mut Snapshot, line: &str) -> bool {
    let Some((name, count)) = line.split_once(' ') else {
        return false;
    };
    let Ok(count) = count.parse::<u64>() else {
        return false;
    };

    match name {
        "nr_periods" | "nr_throttled" => snapshot.count(format!("cgroup.{name}"), count),
        // Version 2 counts in microseconds.
        "throttled_usec" => snapshot.count("cgroup.throttled_ns", count.saturating_mul(1000)),
        // Version 1 counts in nanoseconds.
        "throttled_time" => snapshot.count("cgroup.throttled_ns", count),
        _ => {
            return [
                "usage_usec",
                "user_usec",
                "system_usec",
                "nice_usec",
                "nr_bursts",
                "burst_usec",
            ]
            .contains(&name)
                || name.starts_with("core_sched.");
        }
    }

    true
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::super::tests::facts_of;
    use super::*;

    fn facts(command: &str, output: &str) -> Snapshot {
        facts_of(Reader::new, command, output)
    }

    #[test]
    fn values_of_files_that_the_command_or_the_line_names() {
        let snapshot = facts(
            "grep . /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
            "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor:performance\n/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor:powersave\n",
        );
        assert_eq!(snapshot.text("cpu.freq.governor"), Some("powersave"));
        let snapshot = facts(
            "cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq",
            "800028\n",
        );
        assert_eq!(snapshot.number("cpu.freq.cur_khz"), Some(800_028.0));

        let snapshot = facts("cat /sys/class/net/eth0/speed", "-1\n");
        assert_eq!(
            snapshot.absence("nic.eth0.link.speed_mbps"),
            Some(Absence::NotReported)
        );
        let snapshot = facts("cat /sys/class/net/eth0/statistics/rx_missed_errors", "7\n");
        assert_eq!(snapshot.counters["nic.eth0.stats64.rx_missed_errors"].v, 7);
    }

    #[test]
    fn quota_of_both_versions_of_control_groups() {
        let v2 = "usage_usec 152070000\nuser_usec 2070000\nnr_periods 3076\nnr_throttled \
                  2984\nthrottled_usec 141207000\n";
        let v1 = "nr_periods 3076\nnr_throttled 2984\nthrottled_time 141207000000\n";
        for (command, output) in [("cat /sys/fs/cgroup/cpu.stat", v2), ("", v1)] {
            let snapshot = facts(command, output);
            let count = |name: &str| snapshot.counters[&format!("cgroup.{name}")].v;
            assert_eq!(
                [
                    count("nr_periods"),
                    count("nr_throttled"),
                    count("throttled_ns")
                ],
                [3076, 2984, 141_207_000_000]
            );
        }

        let snapshot = facts("cat /sys/fs/cgroup/cpu.max", "50000 100000\n");
        assert_eq!(snapshot.text("cgroup.cpu.max"), Some("50000 100000"));
    }

    #[test]
    fn other_lines_are_no_values() {
        let mut snapshot = Snapshot::new("a", Source::Import);
        for (command, line) in [
            ("cat /proc/net/snmp", "Tcp: 1 2"),
            ("", "total 12"),
            ("cat /sys/class/net/eth0/mtu", ""),
        ] {
            let mut reader = Reader::new(&Block {
                host: None,
                command,
                lines: Vec::new(),
            });
            assert!(!reader.line(&mut snapshot, line), "{line}");
        }
    }
}
