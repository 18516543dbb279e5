//! Figures as words.

use linerate_lab::sweep::{Objective, Spread};

use crate::figures::{digits, rate};

/// Name of a value in a sentence.
pub(super) fn title(objective: Objective) -> &'static str {
    match objective {
        Objective::Throughput => "received",
        Objective::CpuPerByte => "CPU time",
        Objective::Latency => "round trip",
    }
}

/// A value with its unit.
pub(super) fn value(objective: Objective, value: f64) -> String {
    match objective {
        Objective::Throughput => rate(value),
        Objective::CpuPerByte => format!("{} s/GiB", digits(value)),
        Objective::Latency => format!("{} us", digits(value)),
    }
}

/// Two values with their unit.
pub(super) fn spread(objective: Objective, spread: Spread) -> String {
    format!("{} to {}", value(objective, spread.low), value(objective, spread.high))
}

/// Percent of one core.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}%"))
}

/// A count.
pub(super) fn count(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}
