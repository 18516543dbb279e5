//! The answer of the report: rates, delays under load, and how far both can be trusted.

use linerate_document::number::{counted, known, percent};
use linerate_document::table::Table;
use linerate_model::numbers::rate;
use linerate_model::path::{LoadPhase, PathReport, PathState, PhaseKind, RateCeiling};
use linerate_model::stored_name;

use super::wording;

/// Port of iperf3 and of `linerate serve`, which needs no mention.
const DEFAULT_PORT: u16 = 5201;

/// `lab.example  95.5 Mbit/s down  19.1 Mbit/s up  latency grade C (+192 ms, both)`
pub(super) fn answer(report: &PathReport) -> String {
    let mut parts = rates(report);
    parts.extend(report.grade.as_ref().map(|grade| {
        // By how much the medians differ stands in the table.
        let added = match grade.added_ns {
            ..0 => "+0".to_owned(),
            ns => wording::added_ns(ns),
        };
        let load = grade
            .load
            .map_or_else(String::new, |kind| format!(", {}", kind.name()));
        format!("latency grade {} ({added}{load})", grade.letter)
    }));

    if parts.is_empty() {
        let idle = report.idle.as_ref().and_then(|idle| idle.rtt?.p50_ns);
        parts.extend(idle.map(|ns| format!("RTT {} without load", wording::signed_ns(ns))));
    }

    if parts.is_empty()
        && let Some(last) = report.path.from_client.last()
    {
        let rtt = last.idle.as_ref().map(|rtt| wording::ns(rtt.p50_ns));
        parts.push(counted(usize::from(last.hop), "hop"));
        parts.extend(rtt.filter(|_| last.is_end).map(|rtt| format!("RTT {rtt}")));
    }

    if parts.is_empty() {
        parts.extend(other_results(report));
    }

    if parts.is_empty() {
        parts.push("no result".to_owned());
    }

    if report.state == PathState::Partial {
        parts.insert(0, "incomplete".to_owned());
    }
    let port = if report.target.port == DEFAULT_PORT {
        0
    } else {
        report.target.port
    };
    parts.insert(0, wording::endpoint(&report.target.host, port));
    parts.join("  ")
}

/// The results of a test without load: `rr 34,900/s`, `capacity 49.4 Mbit/s down`,
/// `pace up: 131 us late (p99)`.
fn other_results(report: &PathReport) -> Vec<String> {
    let transactions = report
        .transactions
        .iter()
        .map(|done| format!("{} {}", done.kind.name(), wording::per_s(done.per_s)));
    let highest = report.ladders.iter().filter_map(|ladder| {
        let highest = ladder.highest?;
        let direction = ladder
            .direction
            .map_or_else(String::new, |way| format!(" {}", way.name()));

        let highest = if ladder.kind == PhaseKind::Capacity {
            rate(highest)
        } else {
            wording::per_s(highest)
        };
        Some(format!("{} {highest}{direction}", ladder.kind.name()))
    });

    let datagrams = report.datagrams.iter().filter_map(|datagrams| {
        let direction = datagrams.direction.name();
        match datagrams.kind {
            PhaseKind::Pace => {
                let late = wording::signed_ns(datagrams.lateness?.p99_ns?);
                Some(format!("pace {direction}: {late} late (p99)"))
            }
            PhaseKind::Datagrams => Some(format!(
                "datagrams {} {direction}",
                rate(datagrams.received_bps)
            )),
            _ => None,
        }
    });
    let mut parts: Vec<String> = transactions.chain(highest).chain(datagrams).collect();
    if parts.is_empty() {
        parts.extend(super::rows::mtus(&report.size));
    }

    parts
}

/// `95.5 Mbit/s down`, `19.1 Mbit/s up`; of load in both directions only where there is no other.
pub(super) fn rates(report: &PathReport) -> Vec<String> {
    let of = |kind: PhaseKind| report.phases.iter().find(|phase| phase.kind == kind);
    let down = of(PhaseKind::Down).and_then(|phase| phase.down_bps);
    let up = of(PhaseKind::Up).and_then(|phase| phase.up_bps);
    let (down, up, at_once) = match (down, up, of(PhaseKind::Both)) {
        (None, None, Some(both)) => (both.down_bps, both.up_bps, " at the same time"),
        _ => (down, up, ""),
    };
    let words = [(down, "down"), (up, "up")];

    words
        .into_iter()
        .filter_map(|(bps, word)| Some(format!("{} {word}{at_once}", rate(bps?))))
        .collect()
}

/// Smaller RPM of the loads in one direction; that of both directions where there is no other.
pub(super) fn worst_rpm(report: &PathReport) -> Option<f64> {
    let of = |is_both: bool| {
        let phases = report
            .phases
            .iter()
            .filter(move |phase| (phase.kind == PhaseKind::Both) == is_both);
        phases.filter_map(|phase| phase.rpm).reduce(f64::min)
    };
    of(false).or_else(|| of(true))
}

/// One row for each load.
pub(super) fn table(report: &PathReport) -> Option<Table> {
    let phases = &report.phases;
    let columns: [Column; 8] = [
        ("of ceiling", of_ceiling),
        ("one stream", |phase| phase.single_stream_bps.map(rate)),
        ("RTT p50", |phase| phase.rtt?.p50_ns.map(wording::signed_ns)),
        ("p95", |phase| phase.rtt?.p95_ns.map(wording::signed_ns)),
        ("p99", |phase| phase.rtt?.p99_ns.map(wording::signed_ns)),
        ("added", |phase| phase.added_p50_ns.map(wording::added_ns)),
        ("retr", retransmits),
        ("RPM", |phase| phase.rpm.map(|rpm| format!("{rpm:.0}"))),
    ];
    let mut table = Table::of("", "", phases)
        .text("load", |phase| phase.kind.name())
        .number("goodput", goodput);
    for (head, cell) in columns {
        // A column without a value is left out.
        if phases.iter().any(|phase| cell(phase).is_some()) {
            table = table.number(head, |phase| cell(phase).unwrap_or_default());
        }
    }

    table
        .text("confidence", |phase| stored_name(phase.confidence))
        .notes(notes(report))
        .non_empty()
}

/// A column with its head and the cell of a load.
type Column = (&'static str, fn(&LoadPhase) -> Option<String>);

/// `95.5 Mbit/s`, or of both directions `94.1 + 18.7 Mbit/s`.
pub(super) fn goodput(phase: &LoadPhase) -> String {
    match phase.kind {
        PhaseKind::Down => known(phase.down_bps, rate),
        PhaseKind::Up => known(phase.up_bps, rate),
        _ => {
            let down = known(phase.down_bps, rate);
            let up = known(phase.up_bps, rate);
            match (down.split_once(' '), up.split_once(' ')) {
                (Some((number, unit)), Some((_, other))) if unit == other => {
                    format!("{number} + {up}")
                }
                _ => format!("{down} + {up}"),
            }
        }
    }
}

/// A rate below this share of its ceiling is not limited by it, so the ceiling is no information.
const CEILING_SHARE_MIN: f64 = 0.01;

/// Upper bound of the rate of a single direction, and the rate's share of it.
pub(super) fn near_ceiling(phase: &LoadPhase) -> Option<(&RateCeiling, f64)> {
    let bps = match phase.kind {
        PhaseKind::Down => phase.down_bps?,
        PhaseKind::Up => phase.up_bps?,
        _ => return None,
    };
    let ceiling = phase
        .ceiling
        .as_ref()
        .filter(|ceiling| ceiling.rate_bps > 0.0)?;
    Some((ceiling, bps / ceiling.rate_bps)).filter(|(_, share)| *share >= CEILING_SHARE_MIN)
}

fn of_ceiling(phase: &LoadPhase) -> Option<String> {
    near_ceiling(phase).map(|(_, share)| percent(share))
}

/// Retransmitted segments of the senders.
fn retransmits(phase: &LoadPhase) -> Option<String> {
    let count = |count: Option<u64>| known(count, |count| count.to_string());
    match phase.kind {
        PhaseKind::Down => phase.down_retransmits.map(|count| count.to_string()),
        PhaseKind::Up => phase.up_retransmits.map(|count| count.to_string()),
        _ => {
            let down = phase.down_retransmits;
            let up = phase.up_retransmits;
            down.or(up)
                .map(|_| format!("{} + {}", count(down), count(up)))
        }
    }
}

/// Definitions of the columns.
fn notes(report: &PathReport) -> Vec<String> {
    let mut parts = vec!["goodput: payload at its receiver".to_owned()];
    if report
        .phases
        .iter()
        .any(|phase| phase.kind == PhaseKind::Both)
    {
        parts.push("both: down + up".to_owned());
    }

    parts.extend(ceilings(report));
    if report
        .phases
        .iter()
        .any(|phase| phase.rtt.is_some_and(|rtt| rtt.p50_ns.is_some()))
    {
        let probes = wording::probes_of(report);
        parts.push(format!(
            "RTT of {probes} under load; added to the median without load"
        ));
    }

    vec![parts.join("; ")]
}

/// `ceiling: down 942 Mbit/s (link of this host), up ...`, once where all are equal.
fn ceilings(report: &PathReport) -> Option<String> {
    let words = report.phases.iter().filter_map(|phase| {
        let (ceiling, _) = near_ceiling(phase)?;
        Some((
            phase.kind.name(),
            format!(
                "{} ({})",
                rate(ceiling.rate_bps),
                wording::ceiling(&ceiling.by)
            ),
        ))
    });
    let words: Vec<(&str, String)> = words.collect();
    let (_, first) = words.first()?;
    if words.iter().all(|(_, text)| text == first) {
        return Some(format!("ceiling {first}"));
    }

    let each: Vec<String> = words
        .iter()
        .map(|(phase, text)| format!("{phase} {text}"))
        .collect();
    Some(format!("ceiling {}", each.join(", ")))
}
