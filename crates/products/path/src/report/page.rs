//! The page of a test of a path: the answer, the path as a line, its pictures; everything else is
//! folded.

use linerate_doctor::report as doctor;
use linerate_document::blocks::Block;
use linerate_document::frame::{Badge, Card, Head};
use linerate_document::number::percent;
use linerate_document::record::RunPage;
use linerate_model::finding::Diagnosis;
use linerate_model::numbers::rate;
use linerate_model::path::{LoadPhase, PathReport, PhaseKind};
use linerate_model::record::RunRecord;

use super::route::route;
use super::{charts, details, goodput, remarks, reports, route, rows, scores, wording};

/// The page of the first test of a path in a record; `None` of a record without one.
pub(super) fn page(record: &RunRecord) -> Option<RunPage> {
    let (report, others) = reports(record)?;
    let diagnosis = record.diagnosis.as_deref();
    let mut blocks: Vec<Block> = remarks(report).into_iter().map(Block::Remark).collect();
    blocks.extend(others.map(Block::Remark));
    blocks.push(Block::Route(route(record, report, diagnosis)));
    blocks.extend(charts::timeline(report).map(Block::Plot));
    blocks.extend(charts::distributions(report).map(Block::Boxes));

    Some(RunPage {
        head: head(report, diagnosis),
        blocks,
        details: folded(report),
    })
}

fn head(report: &PathReport, diagnosis: Option<&Diagnosis>) -> Head {
    let load = |kind: PhaseKind| report.phases.iter().find(move |phase| phase.kind == kind);
    let both = load(PhaseKind::Both);
    let mut cards = Vec::new();

    let ways = [
        ("down", load(PhaseKind::Down).or(both), of_down as Rate),
        ("up", load(PhaseKind::Up).or(both), of_up),
    ];
    for (name, phase, bps) in ways {
        let Some((phase, value)) = phase.and_then(|phase| Some((phase, bps(phase)?))) else {
            continue;
        };
        let at_once = both.filter(|both| both.kind != phase.kind).and_then(bps);
        let ceiling = goodput::near_ceiling(phase).map(|(ceiling, share)| {
            let by = wording::ceiling(&ceiling.by);
            format!("{} of {} ({by})", percent(share), rate(ceiling.rate_bps))
        });
        let at_once = at_once.map(|bps| format!("{} while both are busy", rate(bps)));
        let note = wording::joined([at_once, ceiling]).unwrap_or_default();
        cards.push(Card::new(name, rate(value), note));
    }

    let idle = report.idle.as_ref().and_then(|idle| idle.rtt?.p50_ns);
    let idle = idle.map(|ns| format!("{} idle", wording::signed_ns(ns)));
    cards.extend(match slowest(report) {
        Some(phase) => phase.rtt.and_then(|rtt| rtt.p50_ns).map(|ns| {
            let load = format!("load {}", phase.kind.name());
            let note = wording::joined([Some(load), idle]).unwrap_or_default();
            Card::new("latency under load", wording::signed_ns(ns), note)
        }),
        None => idle.map(|idle| Card::new("latency", idle, "")),
    });

    let badge = report.grade.as_ref().map(|grade| {
        let load = grade
            .load
            .map_or_else(String::new, |kind| format!(", {}", kind.name()));
        let added = wording::added_ns(grade.added_ns);
        Badge::grade(&grade.letter, format!("latency grade ({added}{load})"))
    });
    Head {
        verdict: verdict(report, diagnosis),
        is_name_first: diagnosis.is_none(),
        step: diagnosis.and_then(doctor::first_step).unwrap_or_default(),
        badge,
        cards,
        ..Head::default()
    }
}

type Rate = fn(&LoadPhase) -> Option<f64>;

const fn of_down(phase: &LoadPhase) -> Option<f64> {
    phase.down_bps
}

const fn of_up(phase: &LoadPhase) -> Option<f64> {
    phase.up_bps
}

/// The load with the longest median round trip.
fn slowest(report: &PathReport) -> Option<&LoadPhase> {
    let phases = report.phases.iter();
    phases.max_by_key(|phase| phase.rtt.and_then(|rtt| rtt.p50_ns))
}

/// `The narrowest hop of the path sets the rate, and its queues hold 99.6 ms down`
fn verdict(report: &PathReport, diagnosis: Option<&Diagnosis>) -> String {
    diagnosis.map_or_else(|| goodput::answer(report), doctor::sentence)
}

/// Rows of a table; a page of a test has at most 150 kB.
const ROWS_SHOWN: usize = 16;

/// Everything else, by subject.
fn folded(report: &PathReport) -> Vec<Block> {
    let mut parts: Vec<(String, Vec<Block>)> = Vec::new();
    let loads = goodput::table(report)
        .map(Block::Table)
        .into_iter()
        .collect();
    parts.push(("Loads".to_owned(), loads));
    parts.push(("Responsiveness".to_owned(), scores::scores(report)));
    parts.push(("Results".to_owned(), rows::results(report)));
    let tables = route::tables(&report.path).into_iter();
    for mut table in tables.chain(details::tables(report)) {
        let title = std::mem::take(&mut table.title);
        let more = table.rows.len().saturating_sub(ROWS_SHOWN);
        table.rows.truncate(ROWS_SHOWN);
        if more > 0 {
            table.notes.push(format!("{more} more are in the record"));
        }
        parts.push((title, vec![Block::Table(table)]));
    }
    if !report.absent.is_empty() {
        parts.push(("Not measured".to_owned(), rows::absent(report)));
    }

    let parts = parts.into_iter().filter(|(_, blocks)| !blocks.is_empty());
    parts
        .map(|(title, blocks)| Block::Details(title, blocks))
        .collect()
}
