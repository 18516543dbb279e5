//! Figures as words.

use super::model::{Objective, Spread};

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

/// A rate in the largest fitting unit, 1000-based.
pub(super) fn rate(bps: f64) -> String {
    let (value, unit) = scaled(bps, 1000.0, ["bit/s", "Kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
    format!("{} {unit}", digits(value))
}

/// An amount of bytes in the largest fitting unit, 1024-based.
pub(super) fn bytes(bytes: f64) -> String {
    let (value, unit) = scaled(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"]);
    format!("{} {unit}", digits(value))
}

/// Percent of one core.
pub(super) fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}%"))
}

/// A count.
pub(super) fn count(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.0}"))
}

/// Seconds as `1:23:45` or `2:03`.
#[must_use]
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// Three digits that matter.
fn digits(value: f64) -> String {
    match value.abs() {
        small if small < 9.995 => format!("{value:.2}"),
        middle if middle < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

fn scaled(value: f64, base: f64, units: [&'static str; 5]) -> (f64, &'static str) {
    let mut value = value;
    let mut place = 0;
    // What would be rounded to a full base is written in the next unit.
    while value >= base - 0.5 && place < units.len() - 1 {
        value /= base;
        place += 1;
    }
    (value, units[place])
}
