//! Tables of a path that few readers need: all percentiles, streams, subflows and steps of
//! searches.

use linerate_document::number::{known, percent};
use linerate_document::table::Table;
use linerate_model::numbers::{bytes, rate};
use linerate_model::path::{
    Delay, LoadPhase, PathDirection, PathReport, PhaseKind, StreamTotals, SubflowRow,
};

use super::wording;

/// Most rows of a table; a server chooses how many streams it reports.
const ROWS_MAX: usize = 128;

pub(super) fn tables(report: &PathReport) -> Vec<Table> {
    let tables = [
        delays(report),
        streams(report),
        subflows(report),
        steps(report),
    ];
    tables.into_iter().flatten().collect()
}

/// The distribution of every delay.
fn delays(report: &PathReport) -> Option<Table> {
    let mut rows: Vec<(String, Delay)> = Vec::new();
    if let Some(idle) = &report.idle {
        let known = [
            ("RTT", idle.rtt),
            ("one-way down", idle.one_way_down),
            ("one-way up", idle.one_way_up),
            ("TCP handshake", idle.tcp),
            ("TLS round trip", idle.tls),
            ("echo", idle.echo),
        ];
        rows.extend(named("idle", known));
    }

    if let Some(stamp) = &report.stamp {
        let known = [
            ("queue down", stamp.queue_down),
            ("queue up", stamp.queue_up),
        ];
        rows.extend(named("stamp", known));
    }

    rows.extend(report.phases.iter().flat_map(under_load));
    for datagrams in &report.datagrams {
        let head = format!("{} {}", datagrams.kind.name(), datagrams.direction.name());
        let known = [("lateness", datagrams.lateness), ("gaps", datagrams.gaps)];
        rows.extend(named(&head, known));
    }

    let latency = report
        .transactions
        .iter()
        .map(|done| (format!("{}: latency", done.kind.name()), done.latency));
    rows.extend(latency);
    rows.truncate(ROWS_MAX);

    let column = |ns: Option<i64>| known(ns, wording::signed_ns);
    let table = Table::of("", "Delays", &rows)
        .text("delay", |(name, _)| name.as_str())
        .number("samples", |(_, delay)| delay.n.to_string())
        .number("lost", |(_, delay)| delay.lost.to_string())
        .number("least", |(_, delay)| column(delay.min_ns))
        .number("mean", |(_, delay)| column(delay.mean_ns))
        .number("p50", |(_, delay)| column(delay.p50_ns))
        .number("p90", |(_, delay)| column(delay.p90_ns))
        .number("p95", |(_, delay)| column(delay.p95_ns))
        .number("p99", |(_, delay)| column(delay.p99_ns))
        .number("p99.9", |(_, delay)| column(delay.p999_ns))
        .number("largest", |(_, delay)| column(delay.max_ns));
    table
        .notes([
            "a percentile with fewer than 3 samples beyond it is n/a; lost probes count as \
             infinite",
        ])
        .non_empty()
}

/// Delays of one load.
fn under_load(phase: &LoadPhase) -> Vec<(String, Delay)> {
    let head = format!("load {}", phase.kind.name());
    let known = [
        ("RTT", phase.rtt),
        ("TCP handshake", phase.tcp),
        ("TLS round trip", phase.tls),
        ("echo, new connection", phase.echo),
        ("echo, load's streams", phase.in_band),
        ("queue down", phase.queue_down),
        ("queue up", phase.queue_up),
    ];
    let marked = phase
        .by_dscp
        .iter()
        .map(|(dscp, delay)| (format!("{head}: RTT with DSCP {dscp}"), *delay));

    named(&head, known).chain(marked).collect()
}

/// Delays that were measured, each with its name below `head`.
fn named<const N: usize>(
    head: &str,
    delays: [(&str, Option<Delay>); N],
) -> impl Iterator<Item = (String, Delay)> {
    delays
        .into_iter()
        .filter_map(move |(name, delay)| Some((format!("{head}: {name}"), delay?)))
}

/// Streams of this end.
fn streams(report: &PathReport) -> Option<Table> {
    let rows: Vec<(PhaseKind, &StreamTotals)> = report
        .phases
        .iter()
        .flat_map(|phase| phase.stream_info.iter().map(|stream| (phase.kind, stream)))
        .take(ROWS_MAX)
        .collect();
    let us = |us: u32| wording::ns(u64::from(us).saturating_mul(1000));

    // The TCP of an end that only receives sends nothing again and has no congestion window in use.
    let sender = |stream: &StreamTotals| {
        stream
            .tcp
            .filter(|_| stream.direction != Some(PathDirection::Down))
    };
    let table = Table::of("", "Streams at this end", &rows)
        .text("load", |(kind, _)| kind.name())
        .number("stream", |(_, stream)| stream.stream.to_string())
        .text("direction", |(_, stream)| {
            stream.direction.map_or("", PathDirection::name)
        })
        .number("payload", |(_, stream)| bytes(stream.bytes as f64))
        .number("retr", |(_, stream)| {
            known(sender(stream), |tcp| tcp.retransmits.to_string())
        })
        .number("RTT", |(_, stream)| known(stream.tcp, |tcp| us(tcp.rtt_us)))
        .number("least", |(_, stream)| {
            known(stream.tcp.and_then(|tcp| tcp.min_rtt_us), us)
        })
        .number("cwnd", |(_, stream)| {
            known(sender(stream), |tcp| bytes(tcp.snd_cwnd_bytes as f64))
        })
        .text("congestion", |(_, stream)| {
            stream.congestion.clone().unwrap_or_default()
        })
        .text("local", |(_, stream)| {
            known(stream.local, |address| address.to_string())
        });
    table.non_empty()
}

/// Subflows of Multipath TCP.
fn subflows(report: &PathReport) -> Option<Table> {
    let rows: Vec<(PhaseKind, &SubflowRow)> = report
        .phases
        .iter()
        .flat_map(|phase| phase.subflows.iter().map(|row| (phase.kind, row)))
        .take(ROWS_MAX)
        .collect();
    let table = Table::of("", "Subflows of Multipath TCP", &rows)
        .text("load", |(kind, _)| kind.name())
        .number("stream", |(_, row)| row.stream.to_string())
        .number("payload", |(_, row)| bytes(row.bytes as f64))
        .number("share", |(_, row)| percent(row.share))
        .number("RTT", |(_, row)| {
            wording::ns(u64::from(row.rtt_us).saturating_mul(1000))
        })
        .number("retr", |(_, row)| row.retransmits.to_string())
        .text("backup", |(_, row)| {
            known(row.is_backup, |is| if is { "yes" } else { "no" }.to_owned())
        })
        .text("local", |(_, row)| row.local.clone())
        .text("remote", |(_, row)| row.remote.clone());

    table.non_empty()
}

/// Rates that searches tried.
fn steps(report: &PathReport) -> Option<Table> {
    let rows: Vec<(PhaseKind, f64, f64)> = report
        .ladders
        .iter()
        .flat_map(|ladder| {
            ladder
                .steps
                .iter()
                .map(|(tried, failed)| (ladder.kind, *tried, *failed))
        })
        .take(ROWS_MAX)
        .collect();

    let tried = |kind: PhaseKind, value: f64| {
        if kind == PhaseKind::Capacity {
            rate(value)
        } else {
            wording::per_s(value)
        }
    };
    let table = Table::of("", "Rates tried", &rows)
        .text("search", |(kind, ..)| kind.name())
        .number("rate", |(kind, value, _)| tried(*kind, *value))
        .number("failed", |(.., failed)| percent(*failed));
    table.non_empty()
}
