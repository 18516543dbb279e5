//! The tables of a study, each made once and written by every form of the report.

mod c10k;
mod environment;
mod limits;
mod matrix;
mod payload;
mod verdicts;

pub(super) use c10k::{busy, idle, passes};
pub(super) use environment::environment;
pub(super) use limits::limits;
pub(super) use matrix::{HEAT_MAP, heat_map, matrices, rows};
pub(super) use payload::{baseline, payload};
pub(super) use verdicts::{by_advice, verdicts};
