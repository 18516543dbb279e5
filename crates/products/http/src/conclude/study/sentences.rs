//! Sentences of the report: one for each chapter, defects of the path, demands and whether they are
//! met.

use linerate_model::http::units::{
    bytes_name, duration_name, grouped, payload_name, percent, rate_name, time_name,
};
use linerate_model::http::{Baseline, Cell, Idle, LossWithoutLoad, MemoryLine, Pass, Phase, Row};
use linerate_model::numbers::per_s;
use linerate_model::words::joined;

use super::cells::JudgedCells;
use super::input::StudyInput;
use crate::conclude::c10k;
use crate::plan::Plan;

/// Least share of what the link carries.
const GOODPUT_MIN: f64 = 0.9;

/// Defects of a path without load; empty for a clean one. With a defect, results of HTTP describe
/// the path more than the server. TCP alone fills the queues of any path, so segments that it sends
/// again are no defect.
pub(crate) fn path_defects(baseline: &[Baseline]) -> Vec<String> {
    let lossy = baseline
        .iter()
        .filter_map(|test| test.without_load)
        .filter(LossWithoutLoad::is_lossy);
    let lossy = lossy.map(|loss| {
        format!(
            "without load {} of {} segments sent again ({}), more than {}",
            grouped(loss.retransmits),
            grouped(loss.segments),
            percent(loss.share()),
            percent(LossWithoutLoad::SHARE_MAX)
        )
    });
    lossy.collect()
}

/// TCP tests that reach less than the link carries: the path is slower than its first link, or
/// something limits TCP.
pub(crate) fn slow_tests(baseline: &[Baseline]) -> Vec<String> {
    let slow = |test: &Baseline| {
        let share = test.of_theory.filter(|share| *share < GOODPUT_MIN)?;
        let name = test_name(test);
        let rate = rate_name(test.goodput_bps);
        Some(format!(
            "{name}: {rate}, {} of what the link carries; the path has a slower link, or a shaper, \
             or a host limits TCP (`linerate doctor`)",
            percent(share)
        ))
    };
    baseline.iter().filter_map(slow).collect()
}

/// True if the path loses segments without load; `None` where that was not measured.
pub(super) fn is_lossy_without_load(baseline: &[Baseline]) -> Option<bool> {
    baseline
        .iter()
        .filter_map(|test| test.without_load)
        .map(|loss| loss.is_lossy())
        .reduce(|one, other| one || other)
}

fn test_name(test: &Baseline) -> String {
    let sender = if test.is_reverse {
        "server to client"
    } else {
        "client to server"
    };
    let streams = if test.streams == 1 {
        "stream"
    } else {
        "streams"
    };
    format!("{sender}, {} {streams}", test.streams)
}

/// The verdict on the path in one sentence; `None` where TCP was not tested.
pub(super) fn path(baseline: &[Baseline]) -> Option<String> {
    let best = baseline.iter().max_by(|a, b| {
        // Responses flow from the server to the client, so a test in that direction is the
        // baseline.
        let key = |test: &Baseline| (test.is_reverse, test.goodput_bps);
        let ((a_reverse, a_bps), (b_reverse, b_bps)) = (key(a), key(b));
        a_reverse.cmp(&b_reverse).then(a_bps.total_cmp(&b_bps))
    })?;
    let share = best.of_theory.map_or_else(String::new, |share| {
        format!(", {} of what the link carries", percent(share))
    });
    let reached = format!(
        "TCP alone reaches {} ({}){share}",
        rate_name(best.goodput_bps),
        test_name(best)
    );

    let defects = path_defects(baseline);
    let is_judged = is_lossy_without_load(baseline).is_some();
    let is_slow = !slow_tests(std::slice::from_ref(best)).is_empty();
    Some(match defects.first() {
        None if !is_judged => format!("{reached}."),
        None if is_slow => format!("The path loses nothing without load: {reached}."),
        None => format!("The path is clean: {reached}."),
        Some(first) => format!(
            "The path is not clean: {reached}; {first}. Find out why with `linerate doctor`."
        ),
    })
}

/// Result of bare HTTP; `None` where phase 1 was not run.
pub(super) fn isolation(plan: &Plan, judged: &JudgedCells) -> Option<String> {
    let cells = judged
        .cells
        .iter()
        .filter(|cell| cell.key.phase == Phase::Payload);
    let reached = joined(cells.filter_map(reached), ", ");
    (!reached.is_empty()).then(|| {
        format!(
            "Bare HTTP with {} connections: {}.",
            grouped(u64::from(plan.payloads.connections)),
            reached
        )
    })
}

fn reached(cell: &Cell) -> Option<String> {
    let ok_per_s = cell.median.ok_per_s?;
    let share = cell.median.of_ceiling.map_or_else(String::new, |share| {
        format!(" ({} of what the link allows)", percent(share))
    });
    Some(format!(
        "{} responses/s of {}{share}",
        per_s(ok_per_s),
        payload_name(cell.key.payload_bytes)
    ))
}

/// Summary of phases 2 and 3; `None` where neither was run.
pub(super) fn whole(judged: &JudgedCells, idle: Option<&Idle>) -> Option<String> {
    let mut parts = Vec::new();
    let stable = judged
        .rows
        .iter()
        .filter_map(|row| Some(best(judged.best_stable(row)?)));
    let stable = joined(stable, ", ");
    if !stable.is_empty() {
        parts.push(format!("Best stable: {stable}."));
    }

    parts.extend(idle.and_then(held));
    let active = judged
        .cells
        .iter()
        .filter(|cell| cell.key.phase == Phase::Active);
    parts.extend(active.filter_map(|active| {
        let row = judged
            .rows
            .iter()
            .find(|row| row.payload_bytes == active.key.payload_bytes)?;
        Some(c10k::retained(active, row, &judged.best_stable(row)?.median)? + ".")
    }));

    (!parts.is_empty()).then(|| parts.join(" "))
}

fn best(cell: &Cell) -> String {
    format!(
        "{} with {}",
        payload_name(cell.key.payload_bytes),
        connections(cell)
    )
}

/// `1 connection`, `1,024 connections`
fn connections(cell: &Cell) -> String {
    match cell.key.connections {
        1 => "1 connection".to_owned(),
        many => format!("{} connections", grouped(u64::from(many))),
    }
}

fn held(idle: &Idle) -> Option<String> {
    let most = idle.steps.iter().map(|step| step.open).max()?;
    let line = idle.server_user.filter(MemoryLine::grows);
    let each = line.map_or_else(String::new, |line| {
        format!(
            " at {} of the server's memory each",
            bytes_name(line.bytes_per_connection)
        )
    });

    Some(format!("{} idle connections held{each}.", grouped(most)))
}

/// Demands, and whether they are met.
pub(super) fn passes(
    input: &StudyInput<'_>,
    judged: &JudgedCells,
    idle: Option<&Idle>,
) -> Vec<Pass> {
    let mut passes: Vec<Pass> = judged
        .rows
        .iter()
        .map(|row| objective(input, judged, row))
        .collect();
    passes.extend(
        idle.into_iter()
            .flat_map(|idle| c10k::idle_passes(idle, &input.kept.runs)),
    );
    let low_rates = judged
        .cells
        .iter()
        .filter(|cell| cell.key.phase == Phase::LowRate);
    passes.extend(low_rates.map(c10k::low_rate_pass));

    passes
}

/// Demand that some number of connections reaches a payload's best throughput within the objective.
fn objective(input: &StudyInput<'_>, judged: &JudgedCells, row: &Row) -> Pass {
    let wanted = &input.setup.plan.objective;
    let latency = wanted.p99.map_or_else(String::new, |p99| {
        format!(", 99 % within {}", duration_name(p99))
    });
    let what = format!(
        "{}: best throughput, steady, at most {} failed{latency}",
        payload_name(row.payload_bytes),
        percent(wanted.error_share)
    );

    let is_met = row
        .best_per_s
        .map(|_| row.best_stable_connections.is_some() && !row.is_limited_by_objective);
    Pass::new(what, is_met, evidence(judged, row))
}

fn evidence(judged: &JudgedCells, row: &Row) -> String {
    let Some(cell) = judged.best_stable(row) else {
        return match row.best_per_s {
            Some(_) => "no number of connections".to_owned(),
            None => "no valid cell".to_owned(),
        };
    };
    let p99 = cell.median.p99_ns.map_or_else(String::new, |p99_ns| {
        format!(", 99 % within {}", time_name(p99_ns as f64))
    });
    format!(
        "{}: {} responses/s{p99}",
        connections(cell),
        per_s(cell.median.ok_per_s.unwrap_or(0.0))
    )
}
