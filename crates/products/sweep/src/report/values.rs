//! Numbers as words.

use linerate_document::number::without_unit_of;
use linerate_model::numbers::{digits, rate};
use linerate_model::stats::Interval;
use linerate_model::sweep::{Objective, Recommendation, RunMetrics, Sweep};
use linerate_model::words::joined;

/// Where no level does what is looked for, none is marked.
pub(super) fn has_advice(sweep: &Sweep) -> bool {
    !matches!(sweep.answer, Recommendation::Unmet { .. })
}

/// Name of a value in a sentence.
pub(super) fn title(objective: Objective) -> &'static str {
    match objective {
        Objective::Throughput => "received",
        Objective::LowLoss => "received with less than 0.1 % lost",
        Objective::CpuPerByte => "CPU time",
        Objective::Latency => "round trip",
    }
}

/// Head of a column of values.
pub(super) fn head(objective: Objective) -> &'static str {
    match objective {
        Objective::LowLoss => title(Objective::Throughput),
        other => title(other),
    }
}

/// A value with its unit.
pub fn value(objective: Objective, value: f64) -> String {
    match objective {
        Objective::LowLoss if value <= 0.0 => "too much lost".to_owned(),
        Objective::Throughput | Objective::LowLoss => rate(value),
        Objective::CpuPerByte => format!("{} s/GiB", digits(value)),
        Objective::Latency => delay(value),
    }
}

/// Cost of a setting on a path beside its value: round trip and retransmissions, or loss. Empty
/// where neither is known.
pub(super) fn cost(objective: Objective, metrics: &RunMetrics) -> String {
    let delay = metrics.rtt_us.filter(|_| objective != Objective::Latency);
    let delay = delay.map(|us| format!("round trip {}", self::delay(us)));
    let retransmits = metrics.retransmits.map(|count| match count.round() {
        1.0 => "1 retransmit".to_owned(),
        count => format!("{count:.0} retransmits"),
    });
    let lost = metrics
        .lost_percent
        .map(|percent| format!("{percent:.2} % lost"));

    joined([delay, retransmits, lost].into_iter().flatten(), ", ")
}

/// A time in µs as `210 us` or `9.5 ms`.
pub(super) fn delay(us: f64) -> String {
    if us < 1000.0 {
        format!("{} us", digits(us))
    } else {
        format!("{} ms", digits(us / 1000.0))
    }
}

/// Two values with their unit.
pub(super) fn interval(objective: Objective, interval: Interval) -> String {
    let low = value(objective, interval.low);
    let high = value(objective, interval.high);
    // Runs that lose too much have no figure to show.
    if objective == Objective::LowLoss && low == high {
        low
    } else {
        format!("{} to {high}", without_unit_of(&low, &high))
    }
}
