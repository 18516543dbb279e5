//! Numbers as C's `printf` and cJSON write them.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::numbers::{self, MISSING, digits, scaled};

/// Formats `value` like C's `%.{precision}g`: at most `precision` significant digits, no trailing
/// zeros, exponent form outside 1e-4 … 10^precision.
pub fn general(value: f64, precision: usize) -> String {
    // printf(3): a precision of 0 counts as 1.
    let precision = precision.max(1);
    if !value.is_finite() {
        return if value.is_nan() {
            "nan".into()
        } else {
            format!("{value}")
        };
    }

    // printf(3) takes the exponent after rounding: 9.9996 with four digits has one more.
    let scientific = format!("{value:.*e}", precision - 1);
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= i32::try_from(precision).unwrap_or(i32::MAX) {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!(
            // printf(3): an exponent has at least two digits.
            "{}e{sign}{:02}",
            without_trailing_zeros(mantissa),
            exponent.unsigned_abs()
        );
    }

    // The exponent is below the precision, so that the difference is not negative.
    let decimals = usize::try_from(precision as i64 - 1 - i64::from(exponent)).unwrap_or(0);
    without_trailing_zeros(&format!("{value:.decimals$}")).to_owned()
}

/// Formats a floating-point JSON number like cJSON 1.7: integral values without a point, others
/// with 15 significant digits or with 17 where 15 do not read back as the same value; `null` for
/// what JSON cannot express.
pub fn json(value: f64) -> String {
    if !value.is_finite() {
        return "null".into();
    }
    // cJSON prints a number that equals its `valueint`, an int of 32 bits, as that.
    if value == value.trunc() && value.abs() <= f64::from(i32::MAX) {
        return format!("{}", value as i64);
    }

    let short = general(value, 15);
    if short
        .parse::<f64>()
        .is_ok_and(|read_back| is_same(read_back, value))
    {
        short
    } else {
        general(value, 17)
    }
}

/// A figure as `text` writes it; `n/a` for a missing one.
pub fn known<T>(value: Option<T>, text: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| MISSING.to_owned(), text)
}

/// A number of events per second with three digits that matter.
pub fn per_s(value: f64) -> String {
    if value.is_finite() && value >= 99.95 {
        numbers::per_s(value)
    } else {
        fine(value)
    }
}

/// A figure of a table: one digit after the point, two below ten.
pub fn fine(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        tiny if tiny < 0.995 => general(value, 2),
        // Above this, two digits after the point would round to 10.00.
        small if small < 9.995 => format!("{value:.2}"),
        _ => format!("{value:.1}"),
    }
}

/// Bytes in 10⁶.
pub fn mega(bytes: f64) -> String {
    fine(bytes / 1e6)
}

/// Bytes in 2²⁰.
pub fn mebi(bytes: f64) -> String {
    fine(bytes / f64::from(1 << 20))
}

/// A share in percent without digits after the point.
pub fn whole_percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

/// A part of a whole in percent. What happened once in a million is not 0.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    match percent.abs() {
        0.0 => "0 %".to_owned(),
        tiny if tiny < 0.01 => format!("{} %", general(percent, 2)),
        small if small < 9.995 => format!("{percent:.2} %"),
        _ => format!("{percent:.1} %"),
    }
}

/// A time in the largest fitting unit.
pub fn time(ns: f64) -> String {
    // Whole ns have no digits after the point.
    if (0.0..999.5).contains(&ns) {
        return format!("{ns:.0} ns");
    }
    let (value, unit) = scaled(ns, 1000.0, ["ns", "us", "ms", "s"]);
    format!("{} {unit}", digits(value))
}

/// A moment of RFC 3339 by the clock of this host: `30 November 2026, 20:00`. Another text stays.
pub fn local_time(moment: &str) -> String {
    moment.parse().map_or_else(
        |_| moment.to_owned(),
        |moment: Timestamp| {
            let local = moment.to_zoned(TimeZone::system());
            local.strftime("%-d %B %Y, %H:%M").to_string()
        },
    )
}

/// The first of two values that follow each other, without its unit where the second one has the
/// same: `38.1` of `38.1 Mbit/s` and `38.3 Mbit/s`.
pub fn without_unit_of<'a>(first: &'a str, second: &str) -> &'a str {
    match (first.rsplit_once(' '), second.rsplit_once(' ')) {
        (Some((number, unit)), Some((_, other))) if unit == other => number,
        _ => first,
    }
}

/// A count with its noun: `1 stream`, `7 streams`.
pub fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        n => format!("{n} {noun}s"),
    }
}

/// Comparison of cJSON: closer than one unit in the last place of the larger value.
fn is_same(a: f64, b: f64) -> bool {
    a.is_finite() && (a - b).abs() <= a.abs().max(b.abs()) * f64::EPSILON
}

fn without_trailing_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn general_is_the_g_of_printf() {
        let rows: &[(f64, usize, &str)] = &[
            (0.0, 2, "0"),
            (-0.0, 2, "-0"),
            (0.5, 2, "0.5"),
            (12.5, 2, "12"),
            (13.5, 2, "14"),
            (99.4, 2, "99"),
            (99.5, 2, "1e+02"),
            (100.0, 2, "1e+02"),
            (0.05, 2, "0.05"),
            (0.0012345, 2, "0.0012"),
            (0.00012, 2, "0.00012"),
            (0.000012, 2, "1.2e-05"),
            (-3.947, 2, "-3.9"),
            (6.2e-05, 15, "6.2e-05"),
            (1e15, 15, "1e+15"),
            (999_999_999_999_999.0, 15, "999999999999999"),
            (1.0000660419464111, 17, "1.0000660419464111"),
            (1e300, 15, "1e+300"),
            (f64::NAN, 2, "nan"),
            (f64::INFINITY, 2, "inf"),
        ];
        for (value, precision, expected) in rows {
            assert_eq!(
                general(*value, *precision),
                *expected,
                "%.{precision}g of {value:e}"
            );
        }
    }

    #[test]
    fn moments_are_local_and_other_texts_stay() {
        let local = local_time("2026-11-15T12:00:00.000Z");
        assert!(local.contains(" November 2026, "), "{local}");
        assert_eq!(local_time("yesterday"), "yesterday");
    }

    #[test]
    fn what_happened_once_in_a_million_is_not_zero_percent() {
        let rows = [
            (percent(0.0), "0 %"),
            (percent(0.000_001), "0.0001 %"),
            (percent(0.9942), "99.4 %"),
        ];
        for (text, expected) in rows {
            assert_eq!(text, expected);
        }
    }

    #[test]
    fn json_numbers_look_like_those_of_cjson() {
        let rows: &[(f64, &str)] = &[
            (0.0, "0"),
            (-0.0, "0"),
            (1.0, "1"),
            (-1.0, "-1"),
            (2_147_483_647.0, "2147483647"),
            (2_147_483_648.0, "2147483648"),
            (4e10, "40000000000"),
            (1e15, "1e+15"),
            (1.000066, "1.000066"),
            (1.0000660419464111, "1.0000660419464111"),
            (50_328_324.219_508_93, "50328324.219508931"),
            (20_947_263.089_479_066, "20947263.089479066"),
            (0.1, "0.1"),
            (1.0 / 3.0, "0.33333333333333331"),
            (6.2e-05, "6.2e-05"),
            (5e-324, "4.94065645841247e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NAN, "null"),
            (f64::INFINITY, "null"),
            (f64::NEG_INFINITY, "null"),
        ];
        for (value, expected) in rows {
            assert_eq!(json(*value), *expected, "{value:e}");
        }
    }

    #[test]
    fn every_number_reads_back_as_itself_but_for_its_last_bit() {
        // Bit patterns from a multiplicative sequence: all exponents, both signs.
        let mut bits: u64 = 1;
        for _ in 0..100_000 {
            bits = bits
                .wrapping_mul(0x5851_f42d_4c95_7f2d)
                .wrapping_add(0x1405_7b7e_f767_814f);
            let value = f64::from_bits(bits);
            let text = json(value);

            if value.is_finite() {
                let read_back: f64 = text.parse().expect("a number");
                assert!(is_same(read_back, value), "{value:e} became {text}");
            } else {
                assert_eq!(text, "null");
            }
        }
    }
}
