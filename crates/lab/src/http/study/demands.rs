//! What is demanded, and whether it is met.

use linerate_model::http::{Idle, Pass, Phase, Row};

use super::StudyInput;
use super::cells::JudgedCells;
use crate::http::c10k;
use crate::http::units::{duration_name, grouped, payload_name, percent, time_name};

pub(super) fn passes(input: &StudyInput<'_>, judged: &JudgedCells, idle: Option<&Idle>) -> Vec<Pass> {
    let mut passes: Vec<Pass> = judged.rows.iter().map(|row| objective(input, judged, row)).collect();
    passes.extend(idle.into_iter().flat_map(|idle| c10k::idle_passes(idle, input.runs)));
    let low_rates = judged.cells.iter().filter(|cell| cell.key.phase == Phase::LowRate);
    passes.extend(low_rates.map(c10k::low_rate_pass));
    passes
}

/// Whether some number of connections reaches a payload's best throughput within what is wanted.
fn objective(input: &StudyInput<'_>, judged: &JudgedCells, row: &Row) -> Pass {
    let wanted = &input.setup.plan.objective;
    let latency = wanted.p99.map_or_else(String::new, |p99| format!(", 99 % within {}", duration_name(p99)));
    Pass {
        what: format!(
            "{}: best throughput, steady, at most {} failed{latency}",
            payload_name(row.payload_bytes),
            percent(wanted.error_share)
        ),
        is_met: row.best_per_s.map(|_| row.best_stable_connections.is_some() && !row.is_limited_by_objective),
        evidence: evidence(judged, row),
    }
}

fn evidence(judged: &JudgedCells, row: &Row) -> String {
    let Some(cell) = judged.best_stable(row) else {
        return match row.best_per_s {
            Some(_) => "no number of connections".to_owned(),
            None => "no valid cell".to_owned(),
        };
    };
    let p99 =
        cell.median.p99_ns.map_or_else(String::new, |p99_ns| format!(", 99 % within {}", time_name(p99_ns as f64)));
    format!(
        "{} connections: {} answers per second{p99}",
        grouped(u64::from(cell.key.connections)),
        grouped(cell.median.ok_per_s.unwrap_or(0.0) as u64)
    )
}
