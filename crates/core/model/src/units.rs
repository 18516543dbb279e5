//! Units: nanoseconds to seconds, bytes to rates, and the unit formatter of the iperf family.

/// Nanoseconds as seconds.
pub fn ns_to_s(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// Payload bytes over seconds as bit/s; 0 for an empty period.
pub fn rate_bps(bytes: u64, seconds: f64) -> f64 {
    if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    }
}

/// Unit in which a figure is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UnitFormat {
    /// Bytes, 1024-based; otherwise bits, 1000-based.
    pub is_bytes: bool,
    /// Power of the base; `None` for the largest that fits.
    pub power: Option<usize>,
}

impl UnitFormat {
    /// Bits with the largest fitting prefix.
    pub const BITS: Self = Self {
        is_bytes: false,
        power: None,
    };
    /// Bytes with the largest fitting prefix.
    pub const BYTES: Self = Self {
        is_bytes: true,
        power: None,
    };

    /// Reads a letter of `-f`: lower case for bits, upper case for bytes, `a` for the largest
    /// fitting prefix.
    pub fn from_letter(letter: char) -> Option<Self> {
        let power = match letter.to_ascii_lowercase() {
            'a' => None,
            // The place of a letter is the power of its prefix.
            prefix => Some("bkmgtp".find(prefix)?),
        };
        Some(Self {
            is_bytes: letter.is_ascii_uppercase(),
            power,
        })
    }

    /// A value in this unit and its label without the final `s`. `largest` is the largest power
    /// that may be chosen.
    pub fn scaled(self, mut value: f64, largest: usize) -> (f64, &'static str) {
        const BITS: [&str; 6] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit", "Pbit"];
        const BYTES: [&str; 6] = ["Byte", "KByte", "MByte", "GByte", "TByte", "PByte"];

        let (labels, base) = if self.is_bytes {
            (BYTES, 1024.0)
        } else {
            (BITS, 1000.0)
        };
        let mut power = self.power.unwrap_or(0);
        value /= f64::powi(base, power as i32);

        while self.power.is_none() && value >= base && power < largest {
            value /= base;
            power += 1;
        }

        (value, labels.get(power).copied().unwrap_or_default())
    }
}

/// Formats `bytes` (an amount, or a rate in bytes per second) the way iperf3 does: three
/// significant digits and a label without its final `s`, for example `1.10 GByte` or `94.9 Mbit`.
pub fn format_amount(bytes: f64, format: UnitFormat) -> String {
    const TERA: usize = 4;

    let (value, label) = format.scaled(if format.is_bytes { bytes } else { bytes * 8.0 }, TERA);
    match value {
        // At these bounds rounding would add a fourth digit.
        small if small < 9.995 => format!("{value:4.2} {label}"),
        middle if middle < 99.95 => format!("{value:4.1} {label}"),
        _ => format!("{value:4.0} {label}"),
    }
}

/// Durations as whole nanoseconds, for `#[serde(with)]`: the field's name ends in `_ns`. What is
/// longer than 584 years is cut.
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
        let fixed = |letter| UnitFormat::from_letter(letter).expect("a letter of -f");
        let rows: &[(f64, UnitFormat, &str)] = &[
            (0.0, UnitFormat::BYTES, "0.00 Byte"),
            (0.0, UnitFormat::BITS, "0.00 bit"),
            (477.0 * 1048576.0, UnitFormat::BYTES, " 477 MByte"),
            (2e9 / 8.0, UnitFormat::BITS, "2.00 Gbit"),
            (999.96e6 / 8.0, UnitFormat::BITS, "1000 Mbit"),
            (100_387e3 / 8.0, fixed('k'), "100387 Kbit"),
            (12277.0 * 1024.0, fixed('K'), "12277 KByte"),
            (0.1e9 / 8.0, fixed('g'), "0.10 Gbit"),
            (1e8 / 8.0, fixed('t'), "0.00 Tbit"),
            (767.0 * 1024.0, UnitFormat::BYTES, " 767 KByte"),
            (5e18, UnitFormat::BYTES, "4547474 TByte"),
        ];
        for (bytes, format, expected) in rows {
            assert_eq!(
                format_amount(*bytes, *format),
                *expected,
                "{bytes} {format:?}"
            );
        }
    }
}
