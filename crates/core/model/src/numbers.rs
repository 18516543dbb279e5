//! Numbers as words, and intervals of them.

use linerate_macros::stored;

use crate::http::units::grouped;

/// From where to where a figure lies, in its own unit.
#[stored(Copy)]
#[serde(from = "[f64; 2]", into = "[f64; 2]")]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

impl From<Interval> for [f64; 2] {
    fn from(interval: Interval) -> Self {
        [interval.low, interval.high]
    }
}

impl From<[f64; 2]> for Interval {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { low, high }
    }
}

/// Shown for a figure that could not be measured.
pub const MISSING: &str = "n/a";

/// A rate in the largest fitting unit, 1000-based.
pub fn rate(bps: f64) -> String {
    let (value, unit) = scaled(
        bps,
        1000.0,
        ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"],
    );
    format!("{} {unit}", digits(value))
}

/// An amount of bytes in the largest fitting unit, 1024-based.
pub fn bytes(bytes: f64) -> String {
    let (value, unit) = scaled(bytes, 1024.0, ["B", "KiB", "MiB", "GiB", "TiB"]);
    format!("{} {unit}", digits(value))
}

/// A change as a share: `-90 %`.
pub fn change(share: f64) -> String {
    format!("{:+.0} %", share * 100.0)
}

/// Seconds as `1:23:45` or `2:03`.
pub fn clock(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    let hours = whole / 3600;
    let minutes = whole / 60 % 60;
    let seconds = whole % 60;
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes}:{seconds:02}")
    }
}

/// Three digits that matter.
pub fn digits(value: f64) -> String {
    match value.abs() {
        // At these bounds rounding would add a fourth digit.
        small if small < 9.995 => format!("{value:.2}"),
        middle if middle < 99.95 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Events per second: three digits that matter, whole ones in groups, as in `20,700`.
pub fn per_s(value: f64) -> String {
    // From here on rounding gives a fourth digit.
    if !value.is_finite() || value.abs() < 999.5 {
        return digits(value);
    }

    let whole = value.abs().round() as u64;
    let mut unit = 1;
    while whole / unit >= 1000 {
        unit *= 10;
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let rounded = (value.abs() / unit as f64).round() as u64;
    format!("{sign}{}", grouped(rounded.saturating_mul(unit)))
}

/// A value in the largest fitting of a ladder of units.
pub fn scaled<const N: usize>(
    value: f64,
    base: f64,
    units: [&'static str; N],
) -> (f64, &'static str) {
    let mut value = value;
    let mut place = 0;
    // What would be rounded to a full base is written in the next unit.
    while value >= base - 0.5 && place + 1 < N {
        value /= base;
        place += 1;
    }

    (value, units.get(place).copied().unwrap_or_default())
}
