//! Values of a plan file that are words or have units.

use std::fmt;
use std::time::Duration;

use linerate_model::http::units::{
    UnitError, duration, duration_name, payload_bytes, payload_name, shown,
};
use linerate_model::words::joined;
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::{Serialize, Serializer};
use thiserror::Error;

/// Reads a string, or a whole number as its digits.
fn read<'de, D: Deserializer<'de>, T, E: fmt::Display>(
    deserializer: D,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> Result<T, D::Error> {
    struct Word;

    impl Visitor<'_> for Word {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("one value in quotes, for instance \"2s\" or \"10k\"")
        }

        fn visit_str<E>(self, text: &str) -> Result<String, E> {
            Ok(text.to_owned())
        }

        fn visit_i64<E>(self, number: i64) -> Result<String, E> {
            Ok(number.to_string())
        }
    }

    parse(&deserializer.deserialize_any(Word)?).map_err(de::Error::custom)
}

/// A module for `#[serde(with)]` of a value that is a string in the file.
macro_rules! string_form {
    ($name:ident, $type:ty, $parse:expr, $print:expr) => {
        pub(super) mod $name {
            use super::*;

            pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
                deserializer: D,
            ) -> Result<$type, D::Error> {
                read(deserializer, $parse)
            }

            pub(in super::super) fn serialize<S: Serializer>(
                value: &$type,
                serializer: S,
            ) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&$print(value))
            }
        }
    };
}

string_form!(time, Duration, duration, |time: &Duration| duration_name(
    *time
));
string_form!(
    time_or_off,
    Option<Duration>,
    |text| or("off", text),
    |time| name_or("off", time)
);
string_form!(
    time_or_none,
    Option<Duration>,
    |text| or("none", text),
    |time| name_or("none", time)
);
string_form!(payload, u64, payload_bytes, |bytes: &u64| payload_name(
    *bytes
));

string_form!(
    pin,
    Option<[u8; 32]>,
    |text| fingerprint(text).map(Some),
    |pin: &Option<[u8; 32]>| joined(pin.iter().flatten().map(|byte| format!("{byte:02x}")), "")
);
string_form!(
    line_rates,
    Option<f64>,
    |text| line_rate(text).map(Some),
    |bps: &Option<f64>| {
        let bps = bps.unwrap_or(0.0);
        // Units ascend, so the last one that divides the rate is the largest.
        let (unit, scale) = RATE_UNITS
            .into_iter()
            .rfind(|(_, scale)| bps % scale == 0.0)
            .unwrap_or(("", 1.0));
        format!("{}{unit}", bps / scale)
    }
);

const RATE_UNITS: [(&str, f64); 3] = [("k", 1e3), ("M", 1e6), ("G", 1e9)];

/// Bits per second, with an optional 1000-based `k`, `M` or `G`.
///
/// # Errors
/// The expected form.
pub fn line_rate(text: &str) -> Result<f64, &'static str> {
    let scaled = |(unit, scale): (&str, f64)| {
        let (number, last) = text.split_at_checked(text.len().checked_sub(1)?)?;
        last.eq_ignore_ascii_case(unit).then_some((number, scale))
    };
    let (number, scale) = RATE_UNITS
        .into_iter()
        .find_map(scaled)
        .unwrap_or((text, 1.0));
    match number.parse::<f64>().map(|number| number * scale) {
        Ok(bps) if (1e3..=1e13).contains(&bps) => Ok(bps),
        _ => Err("expected bits per second such as 1G, from 1k to 10000G"),
    }
}

/// SHA-256 of a certificate from 64 hexadecimal digits, with or without colons between pairs.
///
/// # Errors
/// Another text.
pub fn fingerprint(text: &str) -> Result<[u8; 32], String> {
    let wrong = || {
        let text = shown(text);
        format!("`{text}` is no SHA-256: 64 hexadecimal digits, with or without colons")
    };
    let digits = text.replace(':', "");
    // The standard parser also takes a sign.
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }

    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate() {
        // 64 ASCII digits are 32 pairs, so every slice is inside the text.
        *byte = u8::from_str_radix(&digits[2 * place..][..2], 16).map_err(|_| wrong())?;
    }

    Ok(bytes)
}

/// Neither a time nor the word for none.
#[derive(Debug, Error)]
#[error("{0}, or {1:?}")]
struct OptionalTimeError(UnitError, &'static str);

fn or(none: &'static str, text: &str) -> Result<Option<Duration>, OptionalTimeError> {
    if text == none {
        return Ok(None);
    }

    duration(text)
        .map(Some)
        .map_err(|error| OptionalTimeError(error, none))
}

fn name_or(none: &str, time: &Option<Duration>) -> String {
    time.map_or_else(|| none.to_owned(), duration_name)
}

/// Lists of payloads.
pub(super) mod payloads {
    use super::*;

    #[derive(Serialize, serde::Deserialize)]
    struct Payload(#[serde(with = "payload")] u64);

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<u64>, D::Error> {
        let payloads = Vec::<Payload>::deserialize(deserializer)?;
        Ok(payloads.into_iter().map(|Payload(bytes)| bytes).collect())
    }

    pub(in super::super) fn serialize<S: Serializer>(
        payloads: &[u64],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(payloads.iter().map(|bytes| Payload(*bytes)))
    }
}

/// Connections per second, or the word for no limit.
pub(super) mod ramp {
    use super::*;

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<u32>, D::Error> {
        read(deserializer, |text| match text {
            "max" => Ok(None),
            rate => rate
                .parse()
                .map(Some)
                .map_err(|_| "expected connections per second or \"max\""),
        })
    }

    pub(in super::super) fn serialize<S: Serializer>(
        rate: &Option<u32>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        match rate {
            Some(rate) => serializer.serialize_u32(*rate),
            None => serializer.serialize_str("max"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_openssl_and_browsers_write_it() {
        let colons = vec!["aB"; 32].join(":");
        assert_eq!(fingerprint(&colons), Ok([0xab; 32]));
        assert_eq!(fingerprint(&"AB".repeat(32)), Ok([0xab; 32]));

        for wrong in [
            "",
            "ab",
            &"ab".repeat(33),
            &"+b".repeat(32),
            &"ä".repeat(32),
        ] {
            assert!(fingerprint(wrong).is_err(), "{wrong:?}");
        }
    }
}
