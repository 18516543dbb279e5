//! Repeated runs of one command: when each one starts, and when their results are worth an alert.
//! No clock is read here.

mod alarm;
mod quiet;
mod schedule;

pub use alarm::{Alarm, FAILURES_BEFORE_ALERT, RunResult, Transition};
pub use quiet::Quiet;
pub use schedule::{PeriodTooShort, Schedule, Slot};
