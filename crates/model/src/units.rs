//! Units: nanoseconds to seconds, bytes to rates, and the unit formatter of the iperf family.

/// Nanoseconds as seconds.
#[must_use]
pub fn ns_to_s(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Payload bytes over seconds as bit/s; 0 for an empty period.
#[must_use]
pub fn rate_bps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { bytes as f64 * 8.0 / seconds } else { 0.0 }
}

/// Unit a figure is printed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnitFormat {
    /// Bits, 1000-based, largest fitting prefix.
    #[default]
    AdaptiveBits,
    /// Bytes, 1024-based, largest fitting prefix.
    AdaptiveBytes,
    /// Bits with a fixed prefix.
    Bits(Prefix),
    /// Bytes with a fixed prefix.
    Bytes(Prefix),
}

/// Order of magnitude.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// 1000 bits or 1024 bytes.
    Kilo,
    /// The second power.
    Mega,
    /// The third power.
    Giga,
    /// The fourth power.
    Tera,
}

impl UnitFormat {
    /// Reads the letter of `-f`: lower case for bits, upper case for bytes.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Self> {
        let prefix = match letter.to_ascii_lowercase() {
            'k' => Prefix::Kilo,
            'm' => Prefix::Mega,
            'g' => Prefix::Giga,
            't' => Prefix::Tera,
            _ => return None,
        };
        Some(if letter.is_ascii_lowercase() { Self::Bits(prefix) } else { Self::Bytes(prefix) })
    }
}

/// Formats `bytes` (an amount, or a rate in bytes per second) the way iperf does: three significant digits and a
/// label without its final `s`, for example `1.10 GByte` or `94.9 Mbit`.
#[must_use]
pub fn format_amount(bytes: f64, format: UnitFormat) -> String {
    const BIT_LABELS: [&str; 5] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit"];
    const BYTE_LABELS: [&str; 5] = ["Byte", "KByte", "MByte", "GByte", "TByte"];
    let (mut value, base, labels, fixed) = match format {
        UnitFormat::AdaptiveBits => (bytes * 8.0, 1000.0, &BIT_LABELS, None),
        UnitFormat::Bits(p) => (bytes * 8.0, 1000.0, &BIT_LABELS, Some(p)),
        UnitFormat::AdaptiveBytes => (bytes, 1024.0, &BYTE_LABELS, None),
        UnitFormat::Bytes(p) => (bytes, 1024.0, &BYTE_LABELS, Some(p)),
    };
    let index = match fixed {
        Some(prefix) => {
            let power = prefix as usize + 1;
            value /= f64::powi(base, power as i32);
            power
        }
        None => {
            let mut power = 0;
            while value >= base && power < labels.len() - 1 {
                value /= base;
                power += 1;
            }
            power
        }
    };
    let label = labels[index];
    if value < 9.995 {
        format!("{value:4.2} {label}")
    } else if value < 99.95 {
        format!("{value:4.1} {label}")
    } else {
        format!("{value:4.0} {label}")
    }
}

/// Durations as whole nanoseconds, for `#[serde(with)]`: the field's name ends in `_ns`. What is longer than 584 years is cut.
pub mod whole_ns {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes one.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(duration: &Duration, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }

    /// Reads one.
    ///
    /// # Errors
    /// Those of the deserialiser.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_nanos)
    }
}

/// The same where there may be none.
pub mod optional_ns {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes one, or none.
    ///
    /// # Errors
    /// Those of the serialiser.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::whole_ns::serialize(duration, to),
            None => to.serialize_none(),
        }
    }

    /// Reads one, or none.
    ///
    /// # Errors
    /// Those of the deserialiser.
    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_nanos))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_look_like_the_original() {
        let rows: &[(f64, UnitFormat, &str)] = &[
            (0.0, UnitFormat::AdaptiveBytes, "0.00 Byte"),
            (0.0, UnitFormat::AdaptiveBits, "0.00 bit"),
            (477.0 * 1048576.0, UnitFormat::AdaptiveBytes, " 477 MByte"),
            (2e9 / 8.0, UnitFormat::AdaptiveBits, "2.00 Gbit"),
            (999.96e6 / 8.0, UnitFormat::AdaptiveBits, "1000 Mbit"),
            (100_387e3 / 8.0, UnitFormat::Bits(Prefix::Kilo), "100387 Kbit"),
            (12277.0 * 1024.0, UnitFormat::Bytes(Prefix::Kilo), "12277 KByte"),
            (0.1e9 / 8.0, UnitFormat::Bits(Prefix::Giga), "0.10 Gbit"),
            (1e8 / 8.0, UnitFormat::Bits(Prefix::Tera), "0.00 Tbit"),
            (767.0 * 1024.0, UnitFormat::AdaptiveBytes, " 767 KByte"),
            (5e18, UnitFormat::AdaptiveBytes, "4547474 TByte"),
        ];
        for (bytes, format, expected) in rows {
            assert_eq!(format_amount(*bytes, *format), *expected, "{bytes} {format:?}");
        }
    }

    #[test]
    fn letters_select_bits_or_bytes() {
        assert_eq!(UnitFormat::from_letter('m'), Some(UnitFormat::Bits(Prefix::Mega)));
        assert_eq!(UnitFormat::from_letter('T'), Some(UnitFormat::Bytes(Prefix::Tera)));
        assert_eq!(UnitFormat::from_letter('x'), None);
    }
}
