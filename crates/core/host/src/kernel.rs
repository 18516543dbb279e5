//! Kernel variables, limits, and the counters of the whole host.

pub(crate) mod cgroup;
pub(crate) mod connections;
pub(crate) mod cpu;
pub(crate) mod file;
pub(crate) mod firewall;
pub(crate) mod iptables;
pub(crate) mod namespaces;
pub(crate) mod process;
pub(crate) mod procfs;
pub(crate) mod programs;
pub(crate) mod sockets;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::kernel::file::{Buffer, KernelFile};
use crate::kernel::process::{descriptor_limits, kib_line_bytes};
use crate::prelude::*;

/// Variables that decide about throughput, by directory.
const VARIABLES: [(&str, &str); 5] = [
    (
        "net.core",
        "rmem_max wmem_max rmem_default wmem_default optmem_max netdev_max_backlog netdev_budget \
         netdev_budget_usecs dev_weight default_qdisc somaxconn busy_poll busy_read \
         rps_sock_flow_entries high_order_alloc_disable",
    ),
    (
        "net.ipv4",
        "tcp_rmem tcp_wmem tcp_mem udp_mem tcp_moderate_rcvbuf tcp_window_scaling tcp_timestamps \
         tcp_sack tcp_dsack tcp_ecn tcp_congestion_control tcp_available_congestion_control \
         tcp_slow_start_after_idle tcp_no_metrics_save tcp_mtu_probing tcp_notsent_lowat \
         tcp_limit_output_bytes tcp_autocorking tcp_adv_win_scale tcp_app_win tcp_min_tso_segs \
         tcp_pacing_ss_ratio tcp_pacing_ca_ratio tcp_tw_reuse tcp_fin_timeout tcp_max_tw_buckets \
         tcp_max_syn_backlog tcp_syncookies tcp_shrink_window ip_local_port_range \
         ip_local_reserved_ports ip_forward ip_no_pmtu_disc",
    ),
    ("net.ipv6.conf.all", "forwarding"),
    ("vm", "min_free_kbytes max_map_count"),
    ("fs", "file-max nr_open"),
];

/// Records variables, limits and services.
pub(crate) fn record(snapshot: &mut Snapshot) {
    variables(snapshot);
    limits(snapshot, std::process::id());
    let uptime =
        read("/proc/uptime").and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    snapshot.set_known_in("uptime_seconds", uptime, "s", "procfs:uptime");
    firewall::record(snapshot);
    services(snapshot);
    disciplines(snapshot);
}

/// Records the queueing disciplines that the running kernel has built in or can load, where its
/// modules are described.
fn disciplines(snapshot: &mut Snapshot) {
    const SRC: &str = "file:modules.builtin";

    let modules = Path::new("/lib/modules").join(snapshot.kernel.as_deref().unwrap_or_default());
    let Ok(built_in) = fs::read_to_string(modules.join("modules.builtin")) else {
        return snapshot.set_absent("kernel.qdiscs", Absence::NotReported, None, SRC);
    };
    let loadable: Vec<String> = names(modules.join("kernel/net/sched")).collect();
    let known: BTreeSet<&str> = built_in
        .lines()
        .chain(loadable.iter().map(String::as_str))
        .filter_map(discipline)
        .collect();
    snapshot.set(
        "kernel.qdiscs",
        Value::List(known.into_iter().map(Value::from).collect()),
        SRC,
    );
}

/// `fq` of `kernel/net/sched/sch_fq.ko.xz`
fn discipline(file: &str) -> Option<&str> {
    // Modules may be compressed: `.ko`, `.ko.xz`, `.ko.zst`.
    file.rsplit('/')
        .next()?
        .strip_prefix("sch_")?
        .split('.')
        .next()
}

/// Records the kernel variables.
pub(crate) fn variables(snapshot: &mut Snapshot) {
    const SRC: &str = "procfs:sys";

    for (tree, names) in VARIABLES {
        let directory = Path::new("/proc/sys").join(tree.replace('.', "/"));
        for name in names.split(' ') {
            let path = directory.join(name);
            match fs::read_to_string(&path) {
                Ok(value) => procfs::sysctl(snapshot, &format!("{tree}.{name}"), &value, SRC),
                Err(error) => {
                    let why = ReadError::file(&path, &error);
                    record_absent(snapshot, &format!("sysctl.{tree}.{name}"), &why, SRC);
                }
            }
        }
    }
}

/// Records the limits of descriptors of a process.
pub(crate) fn limits(snapshot: &mut Snapshot, pid: u32) {
    let text = fs::read_to_string(format!("/proc/{pid}/limits")).unwrap_or_default();
    for (name, limit) in ["soft", "hard"].into_iter().zip(descriptor_limits(&text)) {
        snapshot.set_known(format!("limits.nofile.{name}"), limit, "procfs:limits");
    }
}

fn services(snapshot: &mut Snapshot) {
    // tuned empties the file when it is stopped.
    let profile = read("/etc/tuned/active_profile").filter(|profile| !profile.is_empty());
    snapshot.set_known("svc.tuned_profile", profile, "file:tuned");

    const PROCESSES_MAX: usize = 4096;

    let mut processes = process::numbers().take(PROCESSES_MAX);
    let balances =
        processes.any(|pid| read(format!("/proc/{pid}/comm")).as_deref() == Some("irqbalance"));
    snapshot.set("svc.irqbalance", balances, "procfs:comm");
}

/// Counters of protocols that affect throughput or connections, by the end of their key.
const PROTOCOL_COUNTERS: &str = "\
                                 Ip.ForwDatagrams Ip.InDiscards Ip.OutDiscards Ip.ReasmFails \
                                 Ip.FragFails Ip.FragCreates Tcp.RetransSegs Tcp.OutSegs \
                                 Tcp.InSegs Tcp.InErrs Tcp.InCsumErrors Tcp.EstabResets \
                                 Tcp.AttemptFails Tcp.OutRsts Udp.InDatagrams Udp.OutDatagrams \
                                 Udp.InErrors Udp.RcvbufErrors Udp.SndbufErrors Udp.MemErrors \
                                 Udp.NoPorts Udp.InCsumErrors Ip.InAddrErrors \
                                 Ip.OutNoRoutes InNoRoutes IPReversePathFilter Udp6NoPorts \
                                 Udp6InCsumErrors Udp6InDatagrams Udp6OutDatagrams Udp6InErrors \
                                 Udp6RcvbufErrors Udp6SndbufErrors TCPLostRetransmit TCPTimeouts TCPSpuriousRTOs \
                                 TCPFastRetrans TCPSlowStartRetrans TCPRcvCollapsed PruneCalled \
                                 RcvPruned TCPRcvQDrop TCPBacklogDrop TCPZeroWindowDrop \
                                 TCPToZeroWindowAdv TCPOFOQueue TCPSACKReorder TCPDSACKRecv \
                                 TCPMemoryPressures TCPAbortOnMemory SyncookiesSent \
                                 TCPWqueueTooBig ListenOverflows ListenDrops TCPReqQFullDrop \
                                 TCPTimeWaitOverflow TCPMTUPFail TCPMTUPSuccess";

/// Files with counters and amounts of the whole host, below `/proc`, and the group of facts that is
/// absent without the file. A kernel without IPv6 lacks two of them, one without connection
/// tracking the last.
const FILES: [(&str, Option<&str>); 9] = [
    ("net/snmp", Some("net.snmp")),
    ("net/netstat", Some("net.netstat")),
    ("net/snmp6", None),
    ("net/softnet_stat", Some("softnet")),
    ("stat", Some("cpu.ticks")),
    ("net/sockstat", Some("sock.tcp")),
    ("net/sockstat6", None),
    ("meminfo", Some("mem")),
    ("net/stat/nf_conntrack", Some("conntrack")),
];

/// Records the text of one of [`FILES`].
fn parse(snapshot: &mut Snapshot, path: &str, text: &str) {
    match path {
        "net/snmp" | "net/netstat" => procfs::snmp(snapshot, text, is_wanted),
        "net/snmp6" => procfs::snmp6(snapshot, text, is_wanted),
        "net/softnet_stat" => procfs::softnet(snapshot, text),
        "stat" => procfs::stat(snapshot, text),
        "meminfo" => memory(snapshot, text),
        "net/stat/nf_conntrack" => procfs::connection_tracking(snapshot, text),
        _ => procfs::sockstat(snapshot, text, "procfs:sockstat"),
    }
}

fn memory(snapshot: &mut Snapshot, text: &str) {
    for (name, key) in [
        ("MemAvailable", "mem.available_bytes"),
        ("SUnreclaim", "mem.slab_unreclaimable_bytes"),
    ] {
        snapshot.set_known_in(key, kib_line_bytes(text, name), "bytes", "procfs:meminfo");
    }
}

/// True if a counter, such as `net.snmp.Tcp.OutSegs`, is recorded.
fn is_wanted(key: &str) -> bool {
    PROTOCOL_COUNTERS.split(' ').any(|end| {
        key.strip_suffix(end)
            .is_some_and(|rest| rest.ends_with('.'))
    })
}

/// The files with the counters of the host, opened once.
#[derive(Debug)]
pub(crate) struct HostCounters {
    files: Vec<KernelFile>,
    connection_tracking: [(&'static str, KernelFile); 2],
}

impl HostCounters {
    pub(crate) fn open() -> Self {
        let tracking =
            |name| KernelFile::open(format!("/proc/sys/net/netfilter/nf_conntrack_{name}"));
        Self {
            files: FILES
                .map(|(path, _)| KernelFile::open(format!("/proc/{path}")))
                .into(),
            connection_tracking: ["count", "max"].map(|name| (name, tracking(name))),
        }
    }

    /// Records counters of protocols, backlog and CPUs, sockets, memory, and the connection
    /// tracking table.
    pub(crate) fn record(&self, snapshot: &mut Snapshot, buffer: &mut Buffer) {
        for ((path, group), file) in FILES.iter().zip(&self.files) {
            match (file.read(buffer), group) {
                (Ok(text), _) => parse(snapshot, path, text),
                (Err(why), Some(group)) => {
                    record_absent(snapshot, group, &why, &format!("procfs:{path}"));
                }
                (Err(_), None) => {}
            }
        }

        for (name, file) in &self.connection_tracking {
            let key = format!("limits.conntrack.{name}");
            let value = file
                .read(buffer)
                .ok()
                .and_then(|text| text.trim().parse::<u64>().ok());
            snapshot.set_or_absent(key, value, Absence::NotApplicableToKind, "procfs:sys");
        }
    }
}

/// Parses the text as every file. Only for fuzzing.
#[cfg(any(test, fuzzing))]
pub(crate) fn decode_anything(text: &str) {
    let mut snapshot = Snapshot::new("fuzz", linerate_model::snapshot::Source::Live);
    FILES
        .iter()
        .for_each(|(path, _)| parse(&mut snapshot, path, text));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn discipline_has_the_name_of_its_module() {
        assert_eq!(
            discipline("kernel/net/sched/sch_fq_codel.ko"),
            Some("fq_codel")
        );
        assert_eq!(discipline("sch_fq.ko.xz"), Some("fq"));
        assert_eq!(discipline("kernel/net/sched/act_mirred.ko"), None);
    }
}
