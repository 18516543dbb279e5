//! One sentence for each chapter of the report.

use linerate_model::http::{Cell, Idle, Phase};
use linerate_model::stored_name;

use super::cells::JudgedCells;
use crate::http::c10k;
use crate::http::plan::Plan;
use crate::http::units::{bytes_name, grouped, payload_name, percent};

/// What bare HTTP reaches; `None` where phase 1 was not run.
pub(super) fn isolation(plan: &Plan, judged: &JudgedCells) -> Option<String> {
    let cells = judged.cells.iter().filter(|cell| cell.key.phase == Phase::Payload);
    let reached: Vec<String> = cells.filter_map(reached).collect();
    (!reached.is_empty()).then(|| {
        format!("Bare HTTP with {} connections: {}.", grouped(u64::from(plan.payloads.connections)), reached.join(", "))
    })
}

fn reached(cell: &Cell) -> Option<String> {
    let ok_per_s = cell.median.ok_per_s?;
    let share = cell
        .median
        .of_ceiling
        .map_or_else(String::new, |share| format!(" ({} of what the link allows)", percent(share)));
    Some(format!("{} answers of {} per second{share}", grouped(ok_per_s as u64), payload_name(cell.key.payload_bytes)))
}

/// Summary of phases 2 and 3; `None` where neither was run.
pub(super) fn whole(judged: &JudgedCells, idle: Option<&Idle>) -> Option<String> {
    let mut parts = Vec::new();
    let stable: Vec<String> = judged.rows.iter().filter_map(|row| Some(best(judged.best_stable(row)?))).collect();
    if !stable.is_empty() {
        parts.push(format!("Best stable: {}.", stable.join(", ")));
    }
    parts.extend(idle.and_then(held));
    let active = judged.cells.iter().filter(|cell| cell.key.phase == Phase::Active);
    parts.extend(active.filter_map(|active| {
        let row = judged.rows.iter().find(|row| row.payload_bytes == active.key.payload_bytes)?;
        Some(c10k::retained(active, row, &judged.best_stable(row)?.median)? + ".")
    }));
    (!parts.is_empty()).then(|| parts.join(" "))
}

fn best(cell: &Cell) -> String {
    format!(
        "{} with {} connections ({})",
        payload_name(cell.key.payload_bytes),
        grouped(u64::from(cell.key.connections)),
        stored_name(cell.verdict.primary.class)
    )
}

fn held(idle: &Idle) -> Option<String> {
    let most = idle.steps.iter().map(|step| step.open).max()?;
    let each = idle.server_user.map_or_else(String::new, |line| {
        format!(" at {} of the server's memory each", bytes_name(line.bytes_per_connection))
    });
    Some(format!("{} idle connections held{each}.", grouped(most)))
}
