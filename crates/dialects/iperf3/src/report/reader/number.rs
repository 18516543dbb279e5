//! Numbers of a report.

use serde_json::Value;

/// A count. Some writers of JSON write large ones as floating-point numbers; sums of what is
/// accepted cannot overflow.
pub fn u64_of(value: &Value) -> Option<u64> {
    // Larger whole numbers are not exact in JSON everywhere (RFC 8259, section 6).
    const MAX: u64 = 1 << 53;

    let float = || {
        value
            .as_f64()
            .filter(|number| (0.0..=MAX as f64).contains(number))
            .map(|number| number as u64)
    };
    value.as_u64().or_else(float).filter(|count| *count <= MAX)
}

/// As [`u64_of`], of 32 bits.
pub fn u32_of(value: &Value) -> Option<u32> {
    u64_of(value).and_then(|number| u32::try_from(number).ok())
}

/// Seconds as nanoseconds.
pub fn ns_of(seconds: &Value) -> Option<u64> {
    let seconds = seconds.as_f64()?;
    (0.0..1e9)
        .contains(&seconds)
        .then(|| (seconds * 1e9).round() as u64)
}
