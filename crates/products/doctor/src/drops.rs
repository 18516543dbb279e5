//! Packets that the kernel dropped, by reason and function: their place, their meaning, and which of
//! them are of a test.
//!
//! A watch of the host counts all of them, in all network namespaces; the event knows none. Drops
//! are those of a test where the port of their socket is, where no other namespace exists, or as
//! far as a counter of this namespace grew by them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::LazyLock;

use linerate_host::{DropCounts, DropRow};
use linerate_model::facts;
use linerate_model::finding::KernelDrop;
use linerate_model::snapshot::Snapshot;

use crate::arithmetic::to_f64;
use crate::observed::Observed;
use crate::period::{Delta, Period};
use crate::table::{Columns, rows};

/// Prefix of the counters: `drops.SOCKET_RCVBUFF.udp_queue_rcv_one_skb`.
const PREFIX: &str = "drops.";
/// Drops for each record of the watch, at least 1. A fact of every host that was watched.
pub(crate) const SAMPLE_PERIOD: &str = "drops.sample_period";
/// Why a host was not watched.
pub(crate) const UNWATCHED: &str = "drops.unwatched";
const LOST_RECORDS: &str = "drops.lost_records";
const OTHER: &str = "drops.other";
const SRC: &str = "tracepoint:skb:kfree_skb";
/// Name of a reason or a function that the kernel does not report.
const UNKNOWN: &str = "unknown";
/// The reason of drops that have none.
const NOT_SPECIFIED: &str = "NOT_SPECIFIED";

/// Places whose drops have counters of their own, and rules with their limits and commands.
pub(crate) const COUNTED: [&str; 4] = ["firewall", "socket buffer", "backlog", "qdisc"];

/// Kind of a drop: a line of `drops.txt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DropKind {
    reason: &'static str,
    function: &'static str,
    /// Part of the host that drops; `None` for what is no loss.
    pub place: Option<&'static str>,
    meaning: &'static str,
    /// What to do or to compare.
    pub next: Option<&'static str>,
    /// Patterns of counters that grow with it.
    counters: &'static str,
}

static KINDS: LazyLock<Vec<DropKind>> =
    LazyLock::new(|| rows(include_str!("drops.txt"), DropKind::new));

/// A reason that the table lacks: a newer kernel, or a subsystem of its own.
const UNLISTED: DropKind = DropKind {
    reason: "*",
    function: "*",
    place: Some("kernel"),
    meaning: "a reason that is not in the table of this program",
    next: Some("read its description in include/net/dropreason-core.h of the kernel"),
    counters: "",
};
/// A drop without a reason in a function that is not known to lose packets.
const UNSTATED: DropKind = DropKind {
    place: None,
    meaning: "the kernel states no reason: mostly copies and packets that were read",
    next: None,
    ..UNLISTED
};

/// A drop by a hook of netfilter in connection tracking: the event has no name of the hook.
const UNTRACKED: DropKind = DropKind {
    place: Some("connection tracking"),
    meaning: "connection tracking has no room for the connection of the packet",
    next: Some("raise net.netfilter.nf_conntrack_max, or exempt the port from tracking (notrack)"),
    counters: "conntrack.drop conntrack.insert_failed",
    ..UNLISTED
};
const HOOK: &str = "nf_hook_slow";

impl DropKind {
    fn new(mut columns: Columns) -> Option<Self> {
        let mut next = || columns.next();
        Some(Self {
            reason: next()?,
            function: next()?,
            place: Some(next()?).filter(|place| *place != "-"),
            meaning: next()?,
            next: Some(next()?).filter(|next| *next != "-"),
            counters: next()?,
        })
    }

    /// The kind of a drop by the names of its reason and its function.
    pub(crate) fn of(reason: &str, function: &str) -> Self {
        let is_stated = ![UNKNOWN, NOT_SPECIFIED].contains(&reason);
        let fits = |kind: &&Self| {
            // Lines of a function alone explain what no reason does.
            (kind.reason != "*" || !is_stated)
                && facts::matches(kind.reason, reason)
                && facts::matches(kind.function, function)
        };
        let otherwise = if is_stated { UNLISTED } else { UNSTATED };
        KINDS.iter().find(fits).copied().unwrap_or(otherwise)
    }
}

/// Traffic of a test at one end.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestTraffic {
    /// Ports of its sockets here.
    pub ports: BTreeSet<u16>,
    /// Its `EtherType`s.
    protocols: BTreeSet<u16>,
}

impl TestTraffic {
    /// Adds a socket of the test by its address.
    pub(crate) fn add(&mut self, local: SocketAddr) {
        const IPV4: u16 = 0x0800;
        const IPV6: u16 = 0x86dd;

        // Packets between mapped addresses are of IPv4.
        let is_ipv4 = local.ip().to_canonical().is_ipv4();
        self.protocols.insert(if is_ipv4 { IPV4 } else { IPV6 });
        self.ports.insert(local.port());
    }
}

/// Drops of a test, and the number of all others.
pub(crate) fn of_test(
    counts: DropCounts,
    traffic: &TestTraffic,
    period: &Period,
    has_other_namespaces: bool,
) -> (DropCounts, u64) {
    // What each set of counters grew by, less what was attributed to the test.
    let mut growths: BTreeMap<&str, u64> = BTreeMap::new();
    let mut other = 0_u64;

    let own = |row: DropRow| {
        let kind = DropKind::of(name(row.reason.as_ref()), name(row.function.as_ref()));
        let is_other = !traffic.protocols.contains(&row.protocol)
            // A test has its sockets: these are packets of strangers to closed ports.
            || kind.place == Some("no socket");
        let packets = match row.port {
            _ if is_other => 0,
            Some(port) if !traffic.ports.contains(&port) => 0,
            Some(_) => row.packets,
            None if !has_other_namespaces => row.packets,
            None => {
                let left = growths
                    .entry(kind.counters)
                    .or_insert_with(|| growth(period, kind.counters));
                let packets = row.packets.min(*left);
                *left -= packets;
                packets
            }
        };
        other = other.saturating_add(row.packets - packets);
        (packets > 0).then_some(DropRow { packets, ..row })
    };
    let rows = counts.rows.into_iter().filter_map(own).collect();

    // What the rings lost is of no known traffic.
    let own = DropCounts {
        rows,
        lost: 0,
        ..counts
    };
    (own, other.saturating_add(counts.lost))
}

/// Growth of all counters of these patterns.
fn growth(period: &Period, patterns: &str) -> u64 {
    let is_one = |key: &str| patterns.split(' ').any(|one| facts::matches(one, key));
    let grown = period.deltas().filter(|(key, _)| is_one(key));
    grown
        .map(|(_, delta)| delta.value)
        .fold(0, u64::saturating_add)
}

fn name(part: Option<&String>) -> &str {
    part.map_or(UNKNOWN, String::as_str)
}

/// Records drops with a host and its period. `other` are those that are not of its test.
pub(crate) fn record(
    counts: &DropCounts,
    other: Option<u64>,
    snapshot: &mut Snapshot,
    period: &mut Period,
) {
    snapshot.set(SAMPLE_PERIOD, counts.period, SRC);
    snapshot.set_known(OTHER, other, SRC);
    snapshot.set_known(LOST_RECORDS, (counts.lost > 0).then_some(counts.lost), SRC);

    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for row in &counts.rows {
        let names = [&row.reason, &row.function].map(|part| name(part.as_ref()));
        let sum = sums.entry(format!("{PREFIX}{}.{}", names[0], names[1]));
        let sum = sum.or_default();
        *sum = sum.saturating_add(row.packets);
    }
    for (key, value) in sums {
        let delta = Delta {
            value,
            at_least: counts.lost > 0,
            reset: false,
        };
        period.set(key, delta);
    }
}

/// Drops of a host: losses first, and most packets first.
pub(crate) fn of_host(host: &str, snapshot: &Snapshot, period: &Period) -> Vec<KernelDrop> {
    let sampled = snapshot
        .number(SAMPLE_PERIOD)
        .filter(|period| *period > 1.0);
    let drops = period.deltas().filter_map(|(key, delta)| {
        let (reason, function) = key.strip_prefix(PREFIX)?.split_once('.')?;
        if delta.value == 0 {
            return None;
        }
        // Rules that drop beside it have less than half of the drops.
        let untracked = || growth(period, UNTRACKED.counters);
        let kind = match function {
            HOOK if untracked() > delta.value / 2 => UNTRACKED,
            _ => DropKind::of(reason, function),
        };
        let known = |name: &str| (name != UNKNOWN).then(|| name.to_owned());

        Some(KernelDrop {
            host: host.to_owned(),
            reason: known(reason),
            function: known(function),
            packets: delta.value,
            error: sampled.map(|period| error(delta.value, period)),
            place: kind.place.map(str::to_owned),
            meaning: kind.meaning.to_owned(),
            next: kind.next.map(str::to_owned),
        })
    });

    let mut drops: Vec<KernelDrop> = drops.collect();
    drops.sort_by_key(|drop| (drop.place.is_none(), std::cmp::Reverse(drop.packets)));
    drops
}

/// Half of the interval that has the number with 95 % probability: samples are independent of the
/// kind of the packet.
fn error(packets: u64, period: f64) -> u64 {
    // A float cast saturates.
    (1.96 * (to_f64(packets) * period).sqrt()).ceil() as u64
}

/// Drops of all hosts.
pub(crate) fn of_hosts(observed: &[Observed]) -> Vec<KernelDrop> {
    let drops = observed.iter().filter_map(|one| {
        let period = one.period.as_ref()?;
        Some(of_host(&one.snapshot.host, &one.snapshot, period))
    });
    drops.flatten().collect()
}

#[cfg(test)]
mod tests {
    use linerate_model::snapshot::Source;

    use super::*;

    const IPV4: u16 = 0x0800;

    fn row(reason: &str, function: &str, port: Option<u16>, packets: u64) -> DropRow {
        DropRow {
            reason: Some(reason.to_owned()),
            function: Some(function.to_owned()),
            protocol: IPV4,
            port,
            packets,
        }
    }

    fn counts(rows: Vec<DropRow>) -> DropCounts {
        DropCounts {
            rows,
            lost: 0,
            period: 1,
        }
    }

    fn period(grown: &[(&str, u64)]) -> Period {
        let mut period = Period::default();
        for (key, value) in grown {
            let value = *value;
            period.set(
                *key,
                Delta {
                    value,
                    ..Delta::default()
                },
            );
        }
        period
    }

    #[test]
    fn every_line_has_its_columns() {
        let lines = include_str!("drops.txt").lines();
        let rows: Vec<&str> = lines.filter(|line| !line.starts_with('#')).collect();
        assert_eq!(KINDS.len(), rows.len());
        for (kind, line) in KINDS.iter().zip(rows) {
            assert_eq!(line.split(" | ").count(), 6, "{line}");
            assert_eq!(kind.place.is_some(), kind.next.is_some(), "{line}");
            let first = KINDS.iter().find(|other| {
                facts::matches(other.reason, kind.reason)
                    && facts::matches(other.function, kind.function)
            });
            assert!(
                kind.reason == "*" || first == Some(kind),
                "an earlier line hides {line}"
            );
        }
    }

    #[test]
    fn drops_have_a_place_and_a_next_step() {
        for (reason, function, place) in [
            ("NETFILTER_DROP", "nft_do_chain", Some("firewall")),
            ("NETFILTER_DROP", "nf_hook_slow", Some("firewall")),
            (
                "SOCKET_RCVBUFF",
                "udp_queue_rcv_one_skb",
                Some("socket buffer"),
            ),
            ("NO_SOCKET", "__udp4_lib_rcv", Some("no socket")),
            ("CPU_BACKLOG", "enqueue_to_backlog", Some("backlog")),
            ("QDISC_DROP", "__dev_queue_xmit", Some("qdisc")),
            ("QDISC_OVERLIMIT", "__dev_queue_xmit", Some("qdisc")),
            ("NOT_SPECIFIED", "drop_func", Some("qdisc")),
            ("NOT_SPECIFIED", "fq_codel_dequeue", Some("qdisc")),
            ("IP_RPFILTER", "ip_rcv_finish_core", Some("routing")),
            ("IP_INNOROUTES", "ip_error", Some("routing")),
            ("NEIGH_FAILED", "neigh_event_send", Some("neighbour")),
            ("UDP_CSUM", "__udp4_lib_rcv", Some("checksum")),
            ("PKT_TOO_BIG", "ip_forward", Some("MTU")),
            ("FULL_RING", "tun_net_xmit", Some("tap")),
            ("A_REASON_OF_NEXT_YEAR", "some_function", Some("kernel")),
            ("unknown", "nf_hook_slow", Some("firewall")),
            ("unknown", "udp_queue_rcv_one_skb", Some("socket buffer")),
            ("TCP_OLD_DATA", "tcp_data_queue", None),
            ("TCP_FLAGS", "tcp_v4_rcv", None),
            ("SOCKET_FILTER", "packet_rcv", None),
            ("NOT_SPECIFIED", "ip6_mc_input", None),
            ("unknown", "some_function", None),
            ("unknown", "unknown", None),
        ] {
            let kind = DropKind::of(reason, function);
            assert_eq!(kind.place, place, "{reason} {function}");
            assert_eq!(kind.next.is_some(), place.is_some(), "{reason} {function}");
        }
        assert!(
            DropKind::of("SOCKET_FILTER", "sk_filter_trim_cap")
                .place
                .is_some()
        );
    }

    #[test]
    fn drops_are_of_the_test_by_port_or_by_the_counters_of_its_namespace() {
        let rows = || {
            counts(vec![
                row("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", Some(5201), 100),
                row("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", Some(53), 7),
                row("NETFILTER_DROP", "nft_do_chain", None, 60),
                row("NETFILTER_DROP", "nft_do_chain", None, 50),
                row("FULL_RING", "tun_net_xmit", None, 5),
                row("NO_SOCKET", "__udp4_lib_rcv", None, 1),
                DropRow {
                    protocol: 0x86dd,
                    ..row("UDP_CSUM", "__udp6_lib_rcv", None, 2)
                },
            ])
        };
        let traffic = TestTraffic {
            ports: [5201].into(),
            protocols: [IPV4].into(),
        };
        let grown = period(&[("firewall.drops", 80), ("net.snmp.Udp.NoPorts", 3)]);

        let packets =
            |found: &DropCounts| found.rows.iter().map(|row| row.packets).collect::<Vec<_>>();
        let (own, other) = of_test(rows(), &traffic, &grown, true);
        assert_eq!((packets(&own), other), (vec![100, 60, 20], 45));

        let (own, other) = of_test(rows(), &traffic, &grown, false);
        assert_eq!((packets(&own), other), (vec![100, 60, 50, 5], 10));

        let (own, other) = of_test(rows(), &TestTraffic::default(), &grown, false);
        assert_eq!((packets(&own), other), (vec![], 225));
    }

    #[test]
    fn recorded_drops_are_read_back_with_place_and_error() {
        let mut snapshot = Snapshot::new("h", Source::Live);
        let mut period = period(&[]);
        let rows = vec![
            row("NOT_SPECIFIED", "ip6_mc_input", None, 900),
            row("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", Some(1), 50),
            row("SOCKET_RCVBUFF", "udp_queue_rcv_one_skb", Some(2), 50),
            DropRow {
                reason: None,
                function: None,
                ..row("", "", None, 4)
            },
        ];
        record(&counts(rows), Some(3), &mut snapshot, &mut period);

        let found = of_host("h", &snapshot, &period);
        let parts: Vec<_> = found
            .iter()
            .map(|one| {
                (
                    one.reason.as_deref(),
                    one.place.as_deref(),
                    one.packets,
                    one.error,
                )
            })
            .collect();
        assert_eq!(
            parts,
            [
                (Some("SOCKET_RCVBUFF"), Some("socket buffer"), 100, None),
                (Some("NOT_SPECIFIED"), None, 900, None),
                (None, None, 4, None),
            ]
        );
        assert_eq!(snapshot.whole("drops.other"), Some(3));

        snapshot.set(SAMPLE_PERIOD, 100_u64, SRC);
        assert_eq!(of_host("h", &snapshot, &period)[0].error, Some(196));
    }

    #[test]
    fn hooks_that_drop_with_the_counter_of_connection_tracking_are_its() {
        let place = |tracked| {
            let grown = [("drops.NETFILTER_DROP.nf_hook_slow", 400), tracked];
            let drops = of_host("h", &Snapshot::new("h", Source::Live), &period(&grown));
            drops[0].place.clone().unwrap_or_default()
        };
        assert_eq!(place(("conntrack.drop", 398)), "connection tracking");
        assert_eq!(place(("conntrack.drop", 20)), "firewall");
        assert_eq!(place(("conntrack.early_drop", 400)), "firewall");
    }
}
