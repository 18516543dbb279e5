//! Kernel variables, limits, and the counters of the whole host.

use std::fs;
use std::path::Path;

use linerate_model::procfs;
use linerate_model::snapshot::{Absence, Snapshot};

use crate::firewall;
use crate::sysfs::read;

/// Variables that decide about throughput, by directory.
const VARIABLES: [(&str, &[&str]); 5] = [
    (
        "net.core",
        &[
            "rmem_max",
            "wmem_max",
            "rmem_default",
            "wmem_default",
            "optmem_max",
            "netdev_max_backlog",
            "netdev_budget",
            "netdev_budget_usecs",
            "dev_weight",
            "default_qdisc",
            "somaxconn",
            "busy_poll",
            "busy_read",
            "rps_sock_flow_entries",
            "high_order_alloc_disable",
        ],
    ),
    (
        "net.ipv4",
        &[
            "tcp_rmem",
            "tcp_wmem",
            "tcp_mem",
            "udp_mem",
            "tcp_moderate_rcvbuf",
            "tcp_window_scaling",
            "tcp_timestamps",
            "tcp_sack",
            "tcp_dsack",
            "tcp_ecn",
            "tcp_congestion_control",
            "tcp_available_congestion_control",
            "tcp_slow_start_after_idle",
            "tcp_no_metrics_save",
            "tcp_mtu_probing",
            "tcp_notsent_lowat",
            "tcp_limit_output_bytes",
            "tcp_autocorking",
            "tcp_adv_win_scale",
            "tcp_app_win",
            "tcp_min_tso_segs",
            "tcp_pacing_ss_ratio",
            "tcp_pacing_ca_ratio",
            "tcp_tw_reuse",
            "tcp_fin_timeout",
            "tcp_max_tw_buckets",
            "tcp_max_syn_backlog",
            "tcp_syncookies",
            "tcp_shrink_window",
            "ip_local_port_range",
            "ip_local_reserved_ports",
            "ip_forward",
            "ip_no_pmtu_disc",
        ],
    ),
    ("net.ipv6.conf.all", &["forwarding"]),
    ("vm", &["min_free_kbytes", "max_map_count"]),
    ("fs", &["file-max", "nr_open"]),
];

/// Records variables and limits.
pub(crate) fn record(snapshot: &mut Snapshot) {
    for (tree, names) in VARIABLES {
        let directory = Path::new("/proc/sys").join(tree.replace('.', "/"));
        for name in names {
            let key = format!("{tree}.{name}");
            match fs::read_to_string(directory.join(name)) {
                Ok(value) => procfs::sysctl(snapshot, &key, &value, "procfs:sys"),
                Err(error) => {
                    let reason = match error.kind() {
                        std::io::ErrorKind::PermissionDenied => Absence::Permission,
                        _ => Absence::KernelTooOld,
                    };
                    snapshot.set_absent(format!("sysctl.{key}"), reason, error.raw_os_error(), "procfs:sys");
                }
            }
        }
    }
    limits(snapshot);
    firewall::record(snapshot);
    services(snapshot);
}

fn limits(snapshot: &mut Snapshot) {
    let text = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    if let Some(line) = text.lines().find_map(|line| line.strip_prefix("Max open files")) {
        for (name, value) in ["soft", "hard"].into_iter().zip(line.split_whitespace()) {
            if let Ok(value) = value.parse::<i64>() {
                snapshot.set(format!("limits.nofile.{name}"), value, "procfs:limits");
            }
        }
    }
    for name in ["max", "count"] {
        let key = format!("limits.conntrack.{name}");
        match read(format!("/proc/sys/net/netfilter/nf_conntrack_{name}")).and_then(|text| text.parse::<i64>().ok()) {
            Some(value) => snapshot.set(key, value, "procfs:sys"),
            None => snapshot.set_absent(key, Absence::NotApplicableToKind, None, "procfs:sys"),
        }
    }
    if let Some(uptime) = read("/proc/uptime").and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok()) {
        snapshot.set_in("uptime_seconds", uptime, "s", "procfs:uptime");
    }
}

fn services(snapshot: &mut Snapshot) {
    if let Some(profile) = read("/etc/tuned/active_profile").filter(|profile| !profile.is_empty()) {
        snapshot.set("svc.tuned_profile", profile, "file:tuned");
    }
    const PROCESSES_MAX: usize = 4096;
    let processes = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .take(PROCESSES_MAX);
    let balances = processes
        .filter(|entry| {
            entry
                .file_name()
                .to_str()
                .is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()))
        })
        .any(|entry| read(entry.path().join("comm")).as_deref() == Some("irqbalance"));
    snapshot.set("svc.irqbalance", balances, "procfs:comm");
}

/// Counters of protocols that affect throughput, by the end of their key.
const PROTOCOL_COUNTERS: [&str; 47] = [
    "Ip.ForwDatagrams",
    "Ip.InDiscards",
    "Ip.OutDiscards",
    "Ip.ReasmFails",
    "Ip.FragFails",
    "Ip.FragCreates",
    "Tcp.RetransSegs",
    "Tcp.OutSegs",
    "Tcp.InSegs",
    "Tcp.InErrs",
    "Tcp.InCsumErrors",
    "Tcp.EstabResets",
    "Tcp.AttemptFails",
    "Udp.InDatagrams",
    "Udp.OutDatagrams",
    "Udp.InErrors",
    "Udp.RcvbufErrors",
    "Udp.SndbufErrors",
    "Udp.MemErrors",
    "Udp.NoPorts",
    "Udp6InDatagrams",
    "Udp6OutDatagrams",
    "Udp6InErrors",
    "Udp6RcvbufErrors",
    "TCPLostRetransmit",
    "TCPTimeouts",
    "TCPSpuriousRTOs",
    "TCPFastRetrans",
    "TCPSlowStartRetrans",
    "TCPRcvCollapsed",
    "PruneCalled",
    "RcvPruned",
    "TCPRcvQDrop",
    "TCPBacklogDrop",
    "TCPZeroWindowDrop",
    "TCPToZeroWindowAdv",
    "TCPOFOQueue",
    "TCPSACKReorder",
    "TCPDSACKRecv",
    "TCPMemoryPressures",
    "TCPWqueueTooBig",
    "ListenOverflows",
    "ListenDrops",
    "TCPReqQFullDrop",
    "TCPTimeWaitOverflow",
    "TCPMTUPFail",
    "TCPMTUPSuccess",
];

/// Records the counters of the host: protocols, backlog, CPUs.
pub(crate) fn record_counters(snapshot: &mut Snapshot) {
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    procfs::snmp(snapshot, &text("/proc/net/snmp"));
    procfs::snmp(snapshot, &text("/proc/net/netstat"));
    procfs::snmp6(snapshot, &text("/proc/net/snmp6"));
    let wanted = |key: &str| {
        PROTOCOL_COUNTERS
            .iter()
            .any(|end| key.strip_suffix(end).is_some_and(|rest| rest.ends_with('.')))
    };
    snapshot
        .counters
        .retain(|key, _| !key.starts_with("net.") || wanted(key));
    procfs::softnet(snapshot, &text("/proc/net/softnet_stat"));
    procfs::stat(snapshot, &text("/proc/stat"));
    procfs::sockstat(snapshot, &text("/proc/net/sockstat"), "procfs:sockstat");
}
