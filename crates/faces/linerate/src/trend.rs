//! `linerate history trend`: one measure over the runs of the path and the specification of a run.

pub use linerate_history::run::trend::trend;
