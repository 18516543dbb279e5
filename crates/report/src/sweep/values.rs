//! Numbers as words.

use linerate_lab::stats::Interval;
use linerate_lab::sweep::Objective;

use crate::numbers::{MISSING, digits, rate};

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
pub(super) fn interval(objective: Objective, interval: Interval) -> String {
    format!("{} to {}", value(objective, interval.low), value(objective, interval.high))
}

/// Percent of one core.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| format!("{value:.0}%"))
}

/// A count.
pub(super) fn count(value: Option<f64>) -> String {
    value.map_or_else(|| MISSING.to_owned(), |value| format!("{value:.0}"))
}

/// Percent of the datagrams.
pub(super) fn lost(percent: Option<f64>) -> String {
    percent.map_or_else(|| MISSING.to_owned(), |percent| format!("{percent:.2}%"))
}

/// A round-trip time.
pub(super) fn round_trip(us: Option<f64>) -> String {
    us.map_or_else(|| MISSING.to_owned(), |us| format!("{us:.0} us"))
}
