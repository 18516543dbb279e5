//! Recorder of runs, and what reads, imports and changes the runs of a store.

pub mod compare;
pub mod grid;
pub mod history;
pub mod import;
pub mod named;
pub mod record;
pub mod trend;
pub mod watch;
