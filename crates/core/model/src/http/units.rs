//! Sizes and times as users write and read them.

use std::time::Duration;

use thiserror::Error;

use crate::printable::printable_start;

/// Largest body of an answer.
pub const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;

/// A text that is no size or time.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum UnitError {
    /// No size of a body, or one above [`PAYLOAD_BYTES_MAX`].
    #[error("`{0}` is no payload: expected 0 to 64m, for instance 512, 10k or 1m")]
    Payload(String),
    /// No time.
    #[error("`{0}` is no time: expected for instance 500ms, 2s or 1m")]
    Time(String),
}

/// Bytes of a body from its name: digits with `k` (1024) or `m` (1024²) behind them or nothing.
///
/// # Errors
/// [`UnitError::Payload`].
pub fn payload_bytes(name: &str) -> Result<u64, UnitError> {
    let (digits, unit) = match name.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, KIB),
        None => name
            .strip_suffix(['m', 'M'])
            .map_or((name, 1), |digits| (digits, MIB)),
    };
    number(digits)
        // The product may exceed 64 bits before it is compared with the bound.
        .and_then(|number| number.checked_mul(unit))
        .filter(|bytes| *bytes <= PAYLOAD_BYTES_MAX)
        .ok_or_else(|| UnitError::Payload(shown(name)))
}

/// The shortest name of a number of bytes of a body.
pub fn payload_name(bytes: u64) -> String {
    match bytes {
        0 => "0".to_owned(),
        // The largest unit without a rest names the size, so that it reads back the same.
        bytes if bytes.is_multiple_of(MIB) => format!("{}m", bytes / MIB),
        bytes if bytes.is_multiple_of(KIB) => format!("{}k", bytes / KIB),
        bytes => bytes.to_string(),
    }
}

/// Units of time in milliseconds, from the largest on.
const TIMES_MS: [(&str, u64); 4] = [("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A time from its name: digits with `ms`, `s`, `m` or `h` behind them.
///
/// # Errors
/// [`UnitError::Time`].
pub fn duration(name: &str) -> Result<Duration, UnitError> {
    let unit_at = name
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(name.len());
    let (digits, unit) = name.split_at(unit_at);
    let unit_ms = TIMES_MS.iter().find(|(name, _)| *name == unit);

    unit_ms
        .and_then(|(_, unit_ms)| number(digits)?.checked_mul(*unit_ms))
        .map(Duration::from_millis)
        .ok_or_else(|| UnitError::Time(shown(name)))
}

/// The shortest name of a time, to the millisecond.
pub fn duration_name(time: Duration) -> String {
    let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    let fitting = TIMES_MS
        .iter()
        .find(|(_, unit_ms)| ms > 0 && ms.is_multiple_of(*unit_ms));
    fitting.map_or_else(
        || "0s".to_owned(),
        |(unit, unit_ms)| format!("{}{unit}", ms / unit_ms),
    )
}

/// A time in nanoseconds.
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// A count with its digits in groups: `101,461`.
pub fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);

    for (index, digit) in digits.chars().enumerate() {
        // Groups of three digits count from the end.
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }

    text
}

/// A rate in bit/s with a decimal unit: `1 Gbit/s`, `941.5 Mbit/s`.
pub fn rate_name(bps: f64) -> String {
    in_unit(bps, &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s")])
}

/// A time in nanoseconds with a fitting unit: `290 µs`, `12.5 ms`.
pub fn time_name(ns: f64) -> String {
    in_unit(ns, &[(1e9, "s"), (1e6, "ms"), (1e3, "µs")])
}

/// Bytes with a binary unit: `20.5 KiB`, `407 MiB`.
pub fn bytes_name(bytes: f64) -> String {
    in_unit(
        bytes,
        &[
            (1_073_741_824.0, "GiB"),
            (1_048_576.0, "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ],
    )
}

/// A value in the first unit that is not larger, or else in the last one.
fn in_unit(value: f64, units: &[(f64, &str)]) -> String {
    let fitting = units
        .iter()
        .find(|(size, _)| value >= *size)
        // A value below the smallest unit is written in that one.
        .or(units.last());
    fitting.map_or_else(String::new, |(size, unit)| {
        format!("{} {unit}", rounded(value / size))
    })
}

/// A part of a whole in percent: `0.12 %`, `12.5 %`.
pub fn percent(share: f64) -> String {
    format!("{} %", rounded(share * 100.0))
}

/// A figure with as many digits as matter: four, and no zeros behind the point.
pub fn rounded(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        m if m >= 100.0 => 1,
        m if m >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    match text.trim_end_matches('0').trim_end_matches('.') {
        // A small negative value is rounded to zero, which has no sign.
        "-0" => "0".to_owned(),
        text => text.to_owned(),
    }
}

/// Text of a user for a line of a message: short and without control characters.
pub fn shown(text: &str) -> String {
    const CHARS_MAX: usize = 40;
    printable_start(text, CHARS_MAX)
}

/// Digits and nothing else; `None` for a sign, a point, nothing at all or too many.
fn number(digits: &str) -> Option<u64> {
    // `parse` would accept a plus sign.
    let is_plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| digits.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads_have_binary_units_and_their_names_are_read_back() {
        for (name, bytes) in [
            ("0", 0),
            ("1k", 1024),
            ("10k", 10_240),
            ("100k", 102_400),
            ("1m", MIB),
            ("1000", 1000),
        ] {
            assert_eq!(payload_bytes(name), Ok(bytes), "{name}");
            assert_eq!(payload_name(bytes), name);
        }

        assert_eq!(payload_bytes("64m"), Ok(PAYLOAD_BYTES_MAX));
        for wrong in [
            "",
            "k",
            "65m",
            "-1",
            "1.5k",
            "+1",
            "1kb",
            "99999999999999999999",
            "9999999999999999m",
            " 1",
        ] {
            let text = payload_bytes(wrong).expect_err(wrong).to_string();
            assert!(text.contains("64m"), "{text}");
        }
    }

    #[test]
    fn times_have_units_and_their_names_are_read_back() {
        for (name, ms) in [
            ("2s", 2000),
            ("500ms", 500),
            ("1m", 60_000),
            ("2h", 7_200_000),
            ("1500ms", 1500),
        ] {
            assert_eq!(duration(name), Ok(Duration::from_millis(ms)), "{name}");
            assert_eq!(duration_name(Duration::from_millis(ms)), name);
        }

        for wrong in ["", "2", "s", "1.5s", "-1s", "1 s", "18446744073709551615h"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn numbers_have_as_many_digits_as_matter() {
        assert_eq!(grouped(101_461), "101,461");
        assert_eq!(grouped(100), "100");
        assert_eq!(rate_name(1e9), "1 Gbit/s");
        assert_eq!(rate_name(941.48e6), "941.5 Mbit/s");
        assert_eq!(time_name(290_400.0), "290.4 µs");
        assert_eq!(time_name(12.5e6), "12.5 ms");
        assert_eq!(bytes_name(20_992.0), "20.5 KiB");
        assert_eq!(percent(0.0012), "0.12 %");
        assert_eq!(rounded(-0.0004), "0");
        assert_eq!(rounded(50.0), "50");
    }

    #[test]
    fn what_a_user_wrote_cannot_drive_a_terminal() {
        assert_eq!(shown("\u{1b}[2J"), "�[2J");
        assert_eq!(shown(&"x".repeat(100)).chars().count(), 41);
    }
}
