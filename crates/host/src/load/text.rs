//! Parsers for files of `/proc` and of control groups. They do not fail: what is missing is absent.

use std::collections::BTreeMap;

use linerate_model::http::Counters;

/// CPUs a file may have lines for; no kernel is built for more.
const CPUS_MAX: usize = 8192;

/// Ticks of 10 ms one CPU spent since boot (`/proc/stat`, proc_stat(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTicks {
    /// In programs, niced ones included.
    pub user: u64,
    /// In the kernel on behalf of programs.
    pub system: u64,
    /// Without anything to do, waiting for disks included.
    pub idle: u64,
    /// In hard interrupts.
    pub irq: u64,
    /// In soft interrupts.
    pub softirq: u64,
    /// Taken by the hypervisor for others.
    pub steal: u64,
}

impl CpuTicks {
    /// All of it.
    #[must_use]
    pub fn total(&self) -> u64 {
        let parts = [self.user, self.system, self.idle, self.irq, self.softirq, self.steal];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Growth since an earlier reading. The kernel lets idle time run backwards a little (proc_stat(5)).
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            user: self.user.saturating_sub(before.user),
            system: self.system.saturating_sub(before.system),
            idle: self.idle.saturating_sub(before.idle),
            irq: self.irq.saturating_sub(before.irq),
            softirq: self.softirq.saturating_sub(before.softirq),
            steal: self.steal.saturating_sub(before.steal),
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        Self {
            user: self.user.saturating_add(other.user),
            system: self.system.saturating_add(other.system),
            idle: self.idle.saturating_add(other.idle),
            irq: self.irq.saturating_add(other.irq),
            softirq: self.softirq.saturating_add(other.softirq),
            steal: self.steal.saturating_add(other.steal),
        }
    }
}

/// The kernel's text up to the first byte that is none.
fn text(bytes: &[u8]) -> &str {
    match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(bytes.get(..error.valid_up_to()).unwrap_or_default()).unwrap_or_default(),
    }
}

/// `/proc/stat`: every CPU that is online, by number.
#[must_use]
pub(crate) fn cpu_ticks(bytes: &[u8]) -> BTreeMap<u32, CpuTicks> {
    // Lines of CPUs come first; those of interrupts behind them are long.
    let lines = text(bytes).lines().take_while(|line| line.starts_with("cpu"));
    lines.take(CPUS_MAX + 1).filter_map(cpu_line).collect()
}

fn cpu_line(line: &str) -> Option<(u32, CpuTicks)> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let mut next = || words.next()?.parse::<u64>().ok();
    let (user, nice, system, idle) = (next()?, next()?, next()?, next()?);
    // Kernels of old have fewer columns.
    let (iowait, irq, softirq, steal) = (next(), next(), next(), next());
    let ticks = CpuTicks {
        user: user.saturating_add(nice),
        system,
        idle: idle.saturating_add(iowait.unwrap_or(0)),
        irq: irq.unwrap_or(0),
        softirq: softirq.unwrap_or(0),
        steal: steal.unwrap_or(0),
    };
    Some((cpu, ticks))
}

/// `/proc/*/task/*/schedstat`: nanoseconds a thread ran.
#[must_use]
pub(crate) fn schedstat_ns(bytes: &[u8]) -> Option<u64> {
    text(bytes).split_ascii_whitespace().next()?.parse().ok()
}

/// `/proc/*/task/*/stat`: the CPU a thread runs on, or ran on last. The name in the second column may be anything.
#[must_use]
pub(crate) fn cpu_of_task(bytes: &[u8]) -> Option<u32> {
    /// Columns between the name and the one of the CPU (proc_pid_stat(5)).
    const BETWEEN: usize = 36;
    let bytes = bytes.rsplit(|byte| *byte == b')').next()?;
    text(bytes).split_ascii_whitespace().nth(BETWEEN)?.parse().ok()
}

/// `/proc/*/statm`: resident pages.
#[must_use]
pub(crate) fn resident_pages(bytes: &[u8]) -> Option<u64> {
    text(bytes).split_ascii_whitespace().nth(1)?.parse().ok()
}

/// A line `Name: 12 kB` of `/proc/meminfo` or `smaps_rollup`, in bytes.
#[must_use]
pub(crate) fn kib_line_bytes(bytes: &[u8], name: &str) -> Option<u64> {
    let mut found = text(bytes)
        .lines()
        .filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kib: u64 = found.next()?.split_ascii_whitespace().next()?.parse().ok()?;
    kib.checked_mul(1024)
}

/// The line of TCP in `/proc/net/sockstat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sockstat {
    /// Sockets in use; IPv4 alone.
    pub(crate) in_use: Option<u64>,
    /// Sockets no program holds any more.
    pub(crate) orphaned: Option<u64>,
    /// Sockets that wait for the last segments of the other end; of both families.
    pub(crate) time_wait: Option<u64>,
    /// Sockets that have memory, of both families.
    pub(crate) allocated: Option<u64>,
    /// Pages all TCP sockets have.
    pub(crate) memory_pages: Option<u64>,
}

/// `/proc/net/sockstat`.
#[must_use]
pub(crate) fn sockstat(bytes: &[u8]) -> Option<Sockstat> {
    let line = text(bytes).lines().find_map(|line| line.strip_prefix("TCP:"))?;
    let word = |name| value_after(line, name);
    Some(Sockstat {
        in_use: word("inuse"),
        orphaned: word("orphan"),
        time_wait: word("tw"),
        allocated: word("alloc"),
        memory_pages: word("mem"),
    })
}

/// `/proc/net/sockstat6`: TCP sockets of IPv6 in use.
#[must_use]
pub(crate) fn sockstat6_in_use(bytes: &[u8]) -> Option<u64> {
    let line = text(bytes).lines().find_map(|line| line.strip_prefix("TCP6:"))?;
    value_after(line, "inuse")
}

/// The number behind a name in a line of names and numbers.
fn value_after(line: &str, name: &str) -> Option<u64> {
    let mut words = line.split_ascii_whitespace();
    words.find(|word| *word == name)?;
    words.next()?.parse().ok()
}

/// Adds the counters of `/proc/net/netstat` or `/proc/net/snmp`: a line of names, then a line of values.
pub(crate) fn protocol_counters(bytes: &[u8], counters: &mut Counters) {
    let mut lines = text(bytes).lines();
    while let (Some(names), Some(values)) = (lines.next(), lines.next()) {
        let (Some((of, names)), Some((same, values))) = (names.split_once(':'), values.split_once(':')) else {
            return;
        };
        if of != same || (of != "TcpExt" && of != "Tcp") {
            continue;
        }
        let columns = names.split_ascii_whitespace().zip(values.split_ascii_whitespace());
        for (name, value) in columns {
            // Settings among the counters may be negative; none of those is wanted.
            if let (Some(counter), Ok(value)) = (counter_mut(counters, name), value.parse()) {
                *counter = Some(value);
            }
        }
    }
}

fn counter_mut<'a>(counters: &'a mut Counters, name: &str) -> Option<&'a mut Option<u64>> {
    Some(match name {
        "ListenOverflows" => &mut counters.listen_overflows,
        "ListenDrops" => &mut counters.listen_drops,
        "TCPReqQFullDrop" => &mut counters.tcp_req_q_full_drop,
        "SyncookiesSent" => &mut counters.syncookies_sent,
        "TCPTimeWaitOverflow" => &mut counters.tcp_time_wait_overflow,
        "TCPMemoryPressures" => &mut counters.tcp_memory_pressures,
        "TCPAbortOnMemory" => &mut counters.tcp_abort_on_memory,
        "RetransSegs" => &mut counters.retrans_segs,
        "OutSegs" => &mut counters.out_segs,
        "AttemptFails" => &mut counters.attempt_fails,
        "EstabResets" => &mut counters.estab_resets,
        "OutRsts" => &mut counters.out_rsts,
        _ => return None,
    })
}

/// `cpu.stat` of a control group: nanoseconds it was throttled, in the format of either version.
#[must_use]
pub(crate) fn throttled_ns(bytes: &[u8]) -> Option<u64> {
    let value = |name: &str| {
        let mut found = text(bytes).lines().filter_map(|line| line.strip_prefix(name));
        found.next()?.trim().parse::<u64>().ok()
    };
    value("throttled_usec ").map_or_else(|| value("throttled_time "), |us| us.checked_mul(1000))
}

/// A file with one number.
#[must_use]
pub(crate) fn number(bytes: &[u8]) -> Option<u64> {
    text(bytes).trim().parse().ok()
}

/// `/proc/*/limits`: soft and hard limit of descriptors; absent where there is none.
#[must_use]
pub(crate) fn descriptor_limits(bytes: &[u8]) -> (Option<u64>, Option<u64>) {
    let line = text(bytes).lines().find_map(|line| line.strip_prefix("Max open files"));
    let mut words = line.unwrap_or_default().split_ascii_whitespace();
    let mut next = || words.next()?.parse().ok();
    (next(), next())
}

/// A limit of a control group; absent for none, which version 1 writes as a number beyond all memory.
#[must_use]
pub(crate) fn group_limit(bytes: &[u8]) -> Option<u64> {
    const NONE: u64 = 1 << 60;
    number(bytes).filter(|limit| *limit < NONE)
}

/// `/proc/*/cgroup`: the directory of the group below `/sys/fs/cgroup` in which a controller counts for the process, and
/// whether it is of version 2.
#[must_use]
pub(crate) fn group_directory(bytes: &[u8], controller: &str) -> Option<(String, bool)> {
    let groups = || {
        text(bytes)
            .lines()
            .filter_map(|line| line.split_once(':')?.1.split_once(':'))
    };
    let first = groups().find(|(controllers, _)| controllers.split(',').any(|name| name == controller));
    let (root, path) = match first {
        Some((controllers, path)) => (controllers, path),
        None => ("", groups().find(|(controllers, _)| controllers.is_empty())?.1),
    };
    // A path from outside the namespace of control groups leads nowhere here.
    let is_inside = path.starts_with('/') && !path.split('/').any(|part| part == "..");
    is_inside.then(|| (format!("/sys/fs/cgroup/{root}{path}"), first.is_none()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &[u8] = b"cpu  33464 12119 10407 193569 1783 0 141 43 0 0\n\
        cpu0 15981 4357 4145 100921 373 0 25 16 0 0\n\
        cpu1 17483 7761 6262 92648 1410 2 115 26 0 0\n\
        intr 519169 0 0 0\nctxt 12\n";

    #[test]
    fn each_cpu_has_its_own_ticks() {
        let cpus = cpu_ticks(STAT);
        assert_eq!(cpus.len(), 2, "the sum is no processor");
        let second = CpuTicks {
            user: 17_483 + 7_761,
            system: 6_262,
            idle: 92_648 + 1_410,
            irq: 2,
            softirq: 115,
            steal: 26,
        };
        assert_eq!(cpus[&1], second);
        let grown = second.plus(&CpuTicks {
            user: 5,
            ..CpuTicks::default()
        });
        assert_eq!((grown.since(&second).user, grown.since(&second).total()), (5, 5));
        assert_eq!(second.since(&grown), CpuTicks::default(), "never below nothing");
    }

    #[test]
    fn files_of_a_process() {
        assert_eq!(schedstat_ns(b"1234567 89 3\n"), Some(1_234_567));
        let stat = b"7 (\xffa) b) S 1 7 7 0 -1 4194560 120 0 0 0 31 11 0 0 20 0 1 0 5 0 0 1 2 3 4 5 6 7 8 9 10 11 12 13 17 3 0 0";
        assert_eq!(cpu_of_task(stat), Some(3));
        assert_eq!(cpu_of_task(b"7 (a) S 1"), None);
        assert_eq!(resident_pages(b"765 423 395 5 0 123 0\n"), Some(423));
        let rollup =
            b"5571a5c8b000-7ffd2da1f000 ---p 00000000 00:00 0    [rollup]\nRss:      1648 kB\nPss:       298 kB\n";
        assert_eq!(kib_line_bytes(rollup, "Pss"), Some(298 * 1024));
        let limits = b"Limit                     Soft Limit           Hard Limit           Units     \n\
            Max open files            1024                 524288               files     \n";
        assert_eq!(descriptor_limits(limits), (Some(1024), Some(524_288)));
        let none = b"Max open files            unlimited            unlimited            files\n";
        assert_eq!(descriptor_limits(none), (None, None));
    }

    #[test]
    fn sockets_and_memory_of_the_kernel() {
        let text = b"sockets: used 16\nTCP: inuse 5 orphan 1 tw 3 alloc 7 mem 268\nUDP: inuse 0 mem 0\n";
        let expected = Sockstat {
            in_use: Some(5),
            orphaned: Some(1),
            time_wait: Some(3),
            allocated: Some(7),
            memory_pages: Some(268),
        };
        assert_eq!(sockstat(text), Some(expected));
        assert_eq!(sockstat6_in_use(b"TCP6: inuse 4\nUDP6: inuse 1\n"), Some(4));
        let meminfo = b"Slab:             317280 kB\nSUnreclaim:        29868 kB\n";
        assert_eq!(kib_line_bytes(meminfo, "SUnreclaim"), Some(29_868 * 1024));
    }

    #[test]
    fn counters_of_both_files_come_together() {
        let mut counters = Counters::default();
        let netstat =
            b"TcpExt: SyncookiesSent ListenOverflows TCPReqQFullDrop\nTcpExt: 1 22 3\nIpExt: InNoRoutes\nIpExt: 9\n";
        protocol_counters(netstat, &mut counters);
        let snmp = b"Ip: Forwarding\nIp: 1\nTcp: RtoMin MaxConn AttemptFails OutSegs RetransSegs OutRsts\nTcp: 200 -1 4 3473 5 42\n";
        protocol_counters(snmp, &mut counters);
        let expected = Counters {
            syncookies_sent: Some(1),
            listen_overflows: Some(22),
            tcp_req_q_full_drop: Some(3),
            attempt_fails: Some(4),
            out_segs: Some(3473),
            retrans_segs: Some(5),
            out_rsts: Some(42),
            ..Counters::default()
        };
        assert_eq!(counters, expected);
    }

    #[test]
    fn control_groups_of_both_versions() {
        assert_eq!(
            throttled_ns(b"nr_periods 0\nnr_throttled 2\nthrottled_time 77\n"),
            Some(77)
        );
        assert_eq!(
            throttled_ns(b"usage_usec 5\nnr_throttled 2\nthrottled_usec 77\n"),
            Some(77_000)
        );
        assert_eq!(
            throttled_ns(b"usage_usec 5\nuser_usec 1\n"),
            None,
            "the root has no quota"
        );
        let directory = |bytes, controller| group_directory(bytes, controller);
        let second = Some(("/sys/fs/cgroup//system.slice/x.service".to_owned(), true));
        assert_eq!(directory(b"0::/system.slice/x.service\n", "cpu"), second);
        let first = b"4:memory:/a\n2:cpu,cpuacct:/b\n0::/\n";
        assert_eq!(
            directory(first, "cpu"),
            Some(("/sys/fs/cgroup/cpu,cpuacct/b".to_owned(), false))
        );
        assert_eq!(
            directory(first, "memory"),
            Some(("/sys/fs/cgroup/memory/a".to_owned(), false))
        );
        assert_eq!(directory(first, "pids"), Some(("/sys/fs/cgroup//".to_owned(), true)));
        assert_eq!(directory(b"0::/../../x\n", "cpu"), None);
        assert_eq!(
            (group_limit(b"max\n"), group_limit(b"9223372036854771712\n")),
            (None, None)
        );
        assert_eq!(group_limit(b"1073741824\n"), Some(1 << 30));
    }

    #[test]
    fn garbage_yields_nothing() {
        for bytes in [b"".as_slice(), b"12", b"12 x", b"12 -3", b"12 99999999999999999999"] {
            assert_eq!(resident_pages(bytes), None, "{bytes:?}");
        }
        let hostile: [&[u8]; 9] = [
            b"",
            b"\xff\xfe\n",
            b"cpu",
            b"cpu0 1 2\ncpu99999999999 1 2 3 4\ncpu1 1 2 3 99999999999999999999999\n",
            b"TCP: inuse\nTCP6: inuse x",
            b"TcpExt: ListenOverflows\nTcp: 4",
            b"TcpExt: ListenOverflows\nTcpExt:",
            b"Max open files",
            b"SUnreclaim: 99999999999999999 kB\nthrottled_usec 18446744073709551615\n",
        ];
        for bytes in hostile {
            let mut counters = Counters::default();
            protocol_counters(bytes, &mut counters);
            assert_eq!(counters, Counters::default(), "{bytes:?}");
            assert!(cpu_ticks(bytes).is_empty(), "{bytes:?}");
            assert_eq!(schedstat_ns(bytes).or(number(bytes)), None);
            assert_eq!(kib_line_bytes(bytes, "SUnreclaim"), None);
            assert_eq!(sockstat(bytes).and_then(|found| found.in_use), None);
            assert_eq!(sockstat6_in_use(bytes), None);
            assert_eq!(throttled_ns(bytes), None);
            assert_eq!(cpu_of_task(bytes), None);
            assert_eq!(descriptor_limits(bytes), (None, None));
            assert_eq!(group_directory(bytes, "cpu"), None);
            assert_eq!(group_limit(bytes), None);
        }
    }
}
