//! Rules of the HTTP lab: verdicts of cells, flags of runs, checks of both hosts before an experiment.

pub use crate::rules::cell::cell_verdict;
pub use crate::rules::flags::run_flags;
pub use crate::rules::preflight::{Preflight, descriptors_for, too_many_connections, worker_processes};
