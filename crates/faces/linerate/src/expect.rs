//! Limits that a test of a client must hold.

pub use linerate_history::conclude::expect::Expectations;
pub use linerate_history::conclude::limits::{LimitedTest, missed_by_run};
