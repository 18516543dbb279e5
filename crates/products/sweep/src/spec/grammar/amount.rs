//! Amounts and times as they are typed and printed.

use std::ops::RangeInclusive;
use std::time::Duration;

use thiserror::Error;

/// Bytes per write.
pub(super) const TCP_LENGTH: RangeInclusive<u64> = 1..=1_048_576;
/// Bytes per datagram: the numbering of iperf3 at least, what IPv4 carries at most.
pub const UDP_LENGTH: RangeInclusive<u64> = 16..=65_507;
pub(super) const WINDOW: RangeInclusive<u64> = 1024..=512 << 20;
pub(super) const RATE: RangeInclusive<u64> = 1000..=1_000_000_000_000;

/// Base of the suffixes K, M, G and T.
pub(super) const DECIMAL: u64 = 1000;
pub(super) const BINARY: u64 = 1024;

const WEEK_S: u64 = 168 * 3600;

/// Why an amount or a time budget is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum AmountError {
    /// No whole number with a known unit.
    #[error("{0:?} is no amount, for example 4 or 64K")]
    Malformed(String),
    /// Outside its range.
    #[error("{0}: expected {low} to {high}", low = .1.start(), high = .1.end())]
    OutOfRange(String, RangeInclusive<u64>),
    /// No time, or one outside its range.
    #[error("expected 1s to 168h, for example 90s, 15m or 2h")]
    Budget,
}

/// Bytes per write or datagram.
///
/// # Errors
/// [`AmountError`].
pub fn length(text: &str) -> Result<u64, AmountError> {
    amount(text, BINARY, &TCP_LENGTH)
}

/// Bytes of a socket buffer.
///
/// # Errors
/// [`AmountError`].
pub fn window(text: &str) -> Result<u64, AmountError> {
    amount(text, BINARY, &WINDOW)
}

/// Bytes of a whole run.
///
/// # Errors
/// [`AmountError`].
pub fn volume(text: &str) -> Result<u64, AmountError> {
    amount(text, DECIMAL, &(1..=u64::MAX))
}

/// Bits per second; 0 for no limit.
///
/// # Errors
/// [`AmountError`].
pub fn rate(text: &str) -> Result<u64, AmountError> {
    if text == "0" {
        return Ok(0);
    }
    amount(text, DECIMAL, &RATE)
}

/// A time budget: seconds, or a number with s, m or h.
///
/// # Errors
/// [`AmountError`].
pub fn budget(text: &str) -> Result<Duration, AmountError> {
    // The last byte is ASCII where it is cut off, so the slice ends between characters.
    let (digits, factor) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        _ => (text, 1),
    };
    let seconds = whole(digits).and_then(|number| number.checked_mul(factor));
    match seconds {
        Some(seconds @ 1..=WEEK_S) => Ok(Duration::from_secs(seconds)),
        _ => Err(AmountError::Budget),
    }
}

/// A whole number with K, M, G or T of this base, within limits.
pub(super) fn amount(
    text: &str,
    base: u64,
    limits: &RangeInclusive<u64>,
) -> Result<u64, AmountError> {
    // The suffix is one byte of ASCII, so the slice ends between characters.
    let (digits, power) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 2),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 3),
        Some(b't' | b'T') => (&text[..text.len() - 1], 4),
        _ => (text, 0),
    };
    let value = whole(digits)
        .and_then(|number| number.checked_mul(base.checked_pow(power)?))
        .ok_or_else(|| AmountError::Malformed(text.to_owned()))?;
    if !limits.contains(&value) {
        return Err(AmountError::OutOfRange(text.to_owned(), limits.clone()));
    }

    Ok(value)
}

/// Digits and nothing else; the standard parser also takes a sign.
fn whole(digits: &str) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    digits.parse().ok().filter(|_| is_number)
}

/// An amount of this factor with the largest unit that leaves it whole, as command lines take it.
pub fn with_unit(name: &str, amount: u64) -> String {
    let base = match name {
        "streams" => return amount.to_string(),
        "rate" => DECIMAL,
        _ => BINARY,
    };
    let units = [(base.pow(3), "G"), (base.pow(2), "M"), (base, "K")];
    let fitting = units
        .into_iter()
        .find(|(size, _)| amount >= *size && amount.is_multiple_of(*size));

    fitting.map_or_else(
        || amount.to_string(),
        |(size, unit)| format!("{}{unit}", amount / size),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units_and_limits() {
        assert_eq!(budget("90"), Ok(Duration::from_secs(90)));
        assert_eq!(budget("15m"), Ok(Duration::from_secs(900)));
        assert_eq!(budget("2h"), Ok(Duration::from_secs(7200)));

        for bad in [
            "",
            "s",
            "0",
            "-1",
            "+1",
            "1.5h",
            "99999999999999999999s",
            "169h",
            "é",
        ] {
            assert!(budget(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn units_are_whole() {
        let rows = [
            ("window", 94_208, "92K"),
            ("window", 1 << 20, "1M"),
            ("window", 1500, "1500"),
            ("rate", 1_250_000, "1250K"),
            ("rate", 10_000_000_000, "10G"),
            ("streams", 1000, "1000"),
        ];
        for (name, amount, text) in rows {
            assert_eq!(with_unit(name, amount), text);
        }
    }
}
