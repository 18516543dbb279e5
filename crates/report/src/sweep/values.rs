//! Figures as words.

use super::model::{Objective, Spread};
use crate::figures::{digits, rate};

impl Objective {
    /// Its name on the command line and in JSON.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::CpuPerByte => "cpu-per-byte",
            Self::Latency => "latency",
        }
    }

    /// Name of a value with its unit, for keys and columns.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Throughput => "received_bps",
            Self::CpuPerByte => "cpu_s_per_gib",
            Self::Latency => "rtt_us",
        }
    }

    /// What a value is, for people.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Throughput => "received",
            Self::CpuPerByte => "CPU time",
            Self::Latency => "round trip",
        }
    }

    /// A value with its unit.
    pub(super) fn value(self, value: f64) -> String {
        match self {
            Self::Throughput => rate(value),
            Self::CpuPerByte => format!("{} s/GiB", digits(value)),
            Self::Latency => format!("{} us", digits(value)),
        }
    }

    /// Two values with their unit.
    pub(super) fn spread(self, spread: Spread) -> String {
        format!("{} to {}", self.value(spread.low), self.value(spread.high))
    }
}

/// Percent of one core.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}%"))
}

/// A count.
pub(super) fn count(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}
