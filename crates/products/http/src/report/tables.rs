//! The tables of a study, each made once and written by every form of the report.

mod cells;
mod hosts;
mod matrix;

pub(super) use cells::{baseline, busy, by_advice, idle, passes, payload, verdicts};
pub(super) use hosts::{environment, limits};
pub(super) use matrix::{HEAT_MAP, heat_map, matrices, rows};
