//! The report that fits a small terminal: the rates and the grade, a line for each phase, what
//! limits the path and what to do about it. `-v` has everything else.

use linerate_doctor::report as doctor;
use linerate_document::blocks::Block;
use linerate_document::number::counted;
use linerate_document::short::{Need, SHORT_COLUMN};
use linerate_document::table::Table;
use linerate_document::{Glyphs, sparkline};
use linerate_model::finding::Diagnosis;
use linerate_model::path::absent::UDP_BLOCKED;
use linerate_model::path::{
    Datagrams, Delay, Dialect, LoadPhase, LoadSample, PathReport, PathState, PhaseKind,
};

use super::{goodput, phases, route, rows, wording};

/// Lines of a report that fits a small terminal.
pub(super) const LINES_MAX: usize = 15;
/// Points of the rate over time.
const CURVE_CHARS: usize = 8;
/// Share of datagrams or probes lost from which the loss is shown.
const LOSS_SHARE_MIN: f64 = 0.01;

/// The report without its title.
pub(super) fn blocks(
    report: &PathReport,
    diagnosis: Option<&Diagnosis>,
    glyphs: Glyphs,
) -> Vec<(Need, Block)> {
    let mut parts = Vec::new();
    let rows = rows_of(report, glyphs);
    let has_loads = !report.phases.is_empty();
    if has_loads {
        parts.push((Need::Answer, Block::Table(table(&rows))));
    } else if report.idle.is_none() {
        // A trace alone is what was asked for.
        let tables = route::tables(&report.path).into_iter().map(Block::Table);
        parts.extend(tables.map(|table| (Need::Answer, table)));
    }
    parts.push((Need::Answer, Block::Space));

    // What a test without a load measured is its answer.
    let results = if has_loads {
        Need::Finding
    } else {
        Need::Answer
    };
    let datagrams = |is_shown: bool| report.datagrams.iter().filter(move |_| is_shown);
    let lossy = datagrams(has_loads).filter(|datagrams| is_lossy(datagrams));
    let lost = rows::lost_probes(report, LOSS_SHARE_MIN);
    let lost = lost.into_iter().chain(lossy.map(phases::lost_datagrams));
    lines(&mut parts, results, "Loss", lost);
    if report.stamp.is_some() {
        lines(&mut parts, results, "Delay", rows::idle(report));
    }
    lines(&mut parts, results, "Queues", rows::stamp_queues(report));
    lines(&mut parts, results, "Loss", rows::stamp_losses(report));
    let udp = datagrams(!has_loads).flat_map(phases::datagrams);
    lines(&mut parts, results, "UDP", udp);
    let requests = report.transactions.iter().map(phases::transactions);
    lines(&mut parts, results, "Requests", requests);
    let highest = report.ladders.iter().map(phases::ladder);
    lines(&mut parts, results, "Highest", highest);
    lines(&mut parts, Need::Finding, "Path", rows::unusual(report));

    let limit = diagnosis.map(|diagnosis| doctor::limit_and_steps(diagnosis, true));
    parts.extend(limit.unwrap_or_default());
    // Of a test that is not complete the reason is needed before everything else that was found.
    let reasons = match report.state {
        PathState::Complete => Need::Detail,
        PathState::Partial => Need::Step,
    };
    lines(&mut parts, reasons, "Absent", absent(report));

    let checked = diagnosis.and_then(doctor::checked);
    let checked = checked.filter(|_| report.state == PathState::Complete);
    lines(&mut parts, Need::Detail, "Checked", checked);
    let more = "-v shows all, --html FILE draws it".to_owned();
    lines(&mut parts, Need::Answer, "Details", [more]);
    parts
}

fn lines(
    parts: &mut Vec<(Need, Block)>,
    need: Need,
    label: &str,
    texts: impl IntoIterator<Item = String>,
) {
    let entries = Block::entries(label, SHORT_COLUMN, texts);
    parts.extend(entries.map(|entry| (need, entry)));
}

/// A phase as a line of the table.
#[derive(Default)]
struct Row {
    name: &'static str,
    goodput: String,
    rtt: Option<Delay>,
    added_ns: Option<i64>,
    retransmits: Option<u64>,
    curve: String,
}

fn rows_of(report: &PathReport, glyphs: Glyphs) -> Vec<Row> {
    let load = |phase: &LoadPhase| Row {
        name: phase.kind.name(),
        goodput: goodput::goodput(phase),
        rtt: phase.rtt,
        added_ns: phase.added_p50_ns,
        retransmits: [phase.down_retransmits, phase.up_retransmits]
            .into_iter()
            .flatten()
            .reduce(u64::saturating_add),
        curve: curve(&phase.series, glyphs),
    };
    let idle = report.idle.iter().filter_map(|idle| idle.rtt);
    let idle = idle.filter(|rtt| rtt.p50_ns.is_some()).map(|rtt| Row {
        name: PhaseKind::Idle.name(),
        rtt: Some(rtt),
        ..Row::default()
    });
    report.phases.iter().map(load).chain(idle).collect()
}

/// A column with its head and the cell of a phase.
type Column = (&'static str, fn(&Row) -> Option<String>);

/// Columns without a value are left out.
fn table(rows: &[Row]) -> Table {
    let columns: [Column; 4] = [
        ("latency", |row| Some(wording::signed_ns(row.rtt?.p50_ns?))),
        ("added", |row| row.added_ns.map(wording::added_ns)),
        ("p99", |row| Some(wording::signed_ns(row.rtt?.p99_ns?))),
        ("retrans", |row| {
            row.retransmits.map(|count| count.to_string())
        }),
    ];
    let mut table = Table::of("", "", rows)
        .text("", |row| row.name)
        .number("goodput", |row| row.goodput.as_str());

    for (head, cell) in columns {
        if rows.iter().any(|row| cell(row).is_some()) {
            table = table.number(head, |row| cell(row).unwrap_or_default());
        }
    }
    if rows.iter().any(|row| !row.curve.is_empty()) {
        table = table.text("over time", |row| row.curve.as_str());
    }

    table.table()
}

/// `▁▃▇▇▇▇▇▇`: the rate of a load in eight equal parts of its time; empty where no byte arrived.
fn curve(samples: &[LoadSample], glyphs: Glyphs) -> String {
    let Some(end_ns) = samples.last().map(|last| last.at_ns).filter(|ns| *ns > 0) else {
        return String::new();
    };
    let bytes_until = |at_ns: u64| {
        let known = samples.iter().take_while(|sample| sample.at_ns <= at_ns);
        known.last().map_or(0, |sample| {
            sample.down_bytes.saturating_add(sample.up_bytes)
        })
    };

    if bytes_until(end_ns) == 0 {
        return String::new();
    }

    let parts = CURVE_CHARS as u64;
    let moved = (1..=parts).map(|part| {
        let [from, to] = [part - 1, part].map(|part| bytes_until(end_ns / parts * part));
        to.saturating_sub(from) as f64
    });
    sparkline::row(moved, CURVE_CHARS, glyphs)
}

fn is_lossy(datagrams: &Datagrams) -> bool {
    let loss = &datagrams.loss;
    let lost = loss.sent.saturating_sub(loss.received);
    lost as f64 >= LOSS_SHARE_MIN * loss.sent.max(1) as f64
}

/// `9 results: the server speaks iperf3 only`, for each reason.
fn absent(report: &PathReport) -> Vec<String> {
    let protocol = match report.target.dialect {
        Dialect::Iperf3 => Some("iperf3"),
        Dialect::Ndt7 => Some("ndt7"),
        _ => None,
    };
    if let Some(protocol) = protocol {
        let program = report.target.program.as_deref().unwrap_or(protocol);
        let results = counted(report.absent.len(), "result");
        return vec![format!(
            "{results} that {program} as the server cannot give (-v)"
        )];
    }

    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (result, reason) in &report.absent {
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, results)) => results.push(result),
            None => reasons.push((reason, vec![result])),
        }
    }

    // The cause of others comes first: the last ones may not fit.
    reasons.sort_by_key(|(reason, _)| *reason != UDP_BLOCKED);
    let line = |(reason, results): (&str, Vec<&str>)| match results.as_slice() {
        [first, second, third, more @ ..] if !more.is_empty() => {
            let more = more.len();
            format!("{first}, {second}, {third} and {more} more: {reason}")
        }
        results => format!("{}: {reason}", results.join(", ")),
    };
    reasons.into_iter().map(line).collect()
}
