//! Threads of a test: their number, loop, assignments and control.

pub(super) mod assignments;
pub(super) mod control;
pub(super) mod group;
pub(super) mod pool;
pub(super) mod target;
pub(super) mod worker_checks;
pub(super) mod worker_loop;
