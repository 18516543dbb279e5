//! Numbers as words.

use linerate_lab::stats::Interval;
use linerate_lab::sweep::Objective;

use crate::numbers::{digits, rate};

/// Name of a value in a sentence.
pub(super) fn title(objective: Objective) -> &'static str {
    match objective {
        Objective::Throughput => "received",
        Objective::LowLoss => "received with less than 0.1 % lost",
        Objective::CpuPerByte => "CPU time",
        Objective::Latency => "round trip",
        _ => objective.key(),
    }
}

/// A value with its unit.
#[must_use]
pub fn value(objective: Objective, value: f64) -> String {
    match objective {
        Objective::LowLoss if value <= 0.0 => "too much lost".to_owned(),
        Objective::Throughput | Objective::LowLoss => rate(value),
        Objective::CpuPerByte => format!("{} s/GiB", digits(value)),
        Objective::Latency => format!("{} us", digits(value)),
        _ => digits(value),
    }
}

/// Two values with their unit.
pub(super) fn interval(objective: Objective, interval: Interval) -> String {
    format!("{} to {}", value(objective, interval.low), value(objective, interval.high))
}
