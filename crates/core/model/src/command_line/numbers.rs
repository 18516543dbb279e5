//! Numbers the way C programs read them: leading white space, then as much as makes sense, the rest
//! ignored.

/// Factor between two unit letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Base {
    /// K is 1000: rates.
    Decimal,
    /// K is 1024: amounts and lengths.
    Binary,
}

/// A text that is no number, or has a letter behind it that is no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadNumber;

/// `atoi(3)`: decimal digits with an optional sign, 0 if there are none. Larger numbers wrap as on
/// Linux, where the function is `strtol` cut to 32 bits.
pub fn atoi(text: &[u8]) -> i32 {
    // The C library computes a `long` of 64 bits and keeps the lower 32.
    let (negative, digits) = sign(skip_space(text));
    long(negative, digits, 10) as i32
}

/// `strtol(3)` with base 0: hexadecimal after `0x`, octal after `0`, else decimal. Returns the
/// number and what follows it, `None` if there is no digit.
pub fn integer_any_base(text: &[u8]) -> Option<(i64, &[u8])> {
    let (negative, digits) = sign(skip_space(text));
    let (base, digits) = match digits {
        // Without a digit behind it, `0x` is the number 0 and a letter.
        [b'0', b'x' | b'X', rest @ ..] if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
            (16, rest)
        }
        [b'0', ..] => (8, digits),
        _ => (10, digits),
    };
    let len = digit_count(digits, base);

    (len > 0).then(|| (long(negative, &digits[..len], base), &digits[len..]))
}

/// `atof(3)`: 0 if there is no number. May be infinite or not a number if that is what was typed.
pub fn atof(text: &[u8]) -> f64 {
    scan_float(text).map_or(0.0, |(number, _)| number)
}

/// A number with an optional unit letter K, M, G or T of either case directly behind it; what
/// follows the letter is ignored.
pub fn with_unit(text: &[u8], base: Base) -> Result<f64, BadNumber> {
    let (number, rest) = scan_float(text).ok_or(BadNumber)?;
    let power = match rest.first().map(u8::to_ascii_lowercase) {
        None => 0,
        Some(b'k') => 1,
        Some(b'm') => 2,
        Some(b'g') => 3,
        Some(b't') => 4,
        Some(_) => return Err(BadNumber),
    };

    let factor: f64 = match base {
        Base::Decimal => 1000.0,
        Base::Binary => 1024.0,
    };
    // Infinity and NaN are numbers to strtod(3), but neither a rate nor a size.
    let value = number * factor.powi(power);
    if value.is_finite() {
        Ok(value)
    } else {
        Err(BadNumber)
    }
}

/// The same, as a whole number from 0 to `max`.
pub fn whole_with_unit(text: &[u8], base: Base, max: u64) -> Result<u64, BadNumber> {
    let value = with_unit(text, base)?;
    if value < 0.0 || value > max as f64 {
        return Err(BadNumber);
    }

    // The conversion saturates, so rounding of `max` itself cannot overflow.
    Ok((value as u64).min(max))
}

fn skip_space(text: &[u8]) -> &[u8] {
    // These are the blanks of isspace(3) in the C locale.
    let space = |byte: &u8| matches!(byte, b' ' | b'\t'..=b'\r');
    &text[text.iter().take_while(|byte| space(byte)).count()..]
}

fn sign(text: &[u8]) -> (bool, &[u8]) {
    match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    }
}

fn digit_count(text: &[u8], base: u32) -> usize {
    text.iter()
        .take_while(|byte| char::from(**byte).is_digit(base))
        .count()
}

/// `strtol`: stops at the first byte that is no digit, saturates.
fn long(negative: bool, digits: &[u8], base: u32) -> i64 {
    digits
        .iter()
        .map_while(|byte| char::from(*byte).to_digit(base))
        .fold(0_i64, |number, digit| {
            let digit = i64::from(digit);
            let shifted = number.saturating_mul(i64::from(base));

            if negative {
                shifted.saturating_sub(digit)
            } else {
                shifted.saturating_add(digit)
            }
        })
}

/// `strtod(3)` without hexadecimal fractions: the number and what follows it.
pub fn scan_float(text: &[u8]) -> Option<(f64, &[u8])> {
    let text = skip_space(text);
    let (negative, unsigned) = sign(text);
    let (magnitude, rest) = match unsigned {
        [b'0', b'x' | b'X', rest @ ..] if digit_count(rest, 16) > 0 => {
            let len = digit_count(rest, 16);
            (long(false, &rest[..len], 16) as f64, &rest[len..])
        }
        _ => {
            let len = float_len(unsigned);
            let number = std::str::from_utf8(&unsigned[..len]).ok()?.parse().ok()?;
            (number, &unsigned[len..])
        }
    };

    Some((if negative { -magnitude } else { magnitude }, rest))
}

/// Length of the longest prefix that is a decimal number, an infinity or a "not a number".
fn float_len(text: &[u8]) -> usize {
    // strtod(3) reads the longest word that fits.
    for word in ["infinity", "inf", "nan"] {
        if text
            .get(..word.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(word.as_bytes()))
        {
            return word.len();
        }
    }

    let whole = digit_count(text, 10);
    let mut len = whole;
    if text.get(len) == Some(&b'.') {
        let fraction = digit_count(&text[len + 1..], 10);
        if whole + fraction == 0 {
            return 0;
        }
        len += 1 + fraction;
    }

    if len > 0 && matches!(text.get(len), Some(b'e' | b'E')) {
        let (_, exponent) = sign(&text[len + 1..]);
        let digits = digit_count(exponent, 10);
        // An exponent without digits is no part of the number.
        if digits > 0 {
            len = text.len() - exponent.len() + digits;
        }
    }

    len
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Results of the C functions on 64-bit Linux for the same text.
    #[test]
    fn integers_follow_atoi() {
        let rows: &[(&str, i32)] = &[
            ("10", 10),
            (" \t+7x", 7),
            ("-5", -5),
            ("abc", 0),
            ("", 0),
            ("-", 0),
            ("5.9", 5),
            ("0x10", 0),
            ("4294967297", 1),
            ("99999999999999999999", -1),
            ("-99999999999999999999", 0),
        ];
        for (text, expected) in rows {
            assert_eq!(atoi(text.as_bytes()), *expected, "{text:?}");
        }
    }

    #[test]
    fn some_options_read_hexadecimal_and_octal() {
        let rows: &[(&str, Option<(i64, &str)>)] = &[
            ("0x34", Some((52, ""))),
            ("064", Some((52, ""))),
            ("52x", Some((52, "x"))),
            ("0", Some((0, ""))),
            ("0x", Some((0, "x"))),
            ("-1", Some((-1, ""))),
            ("09", Some((0, "9"))),
            ("x", None),
            ("", None),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|(number, rest)| (number, rest.as_bytes()));
            assert_eq!(integer_any_base(text.as_bytes()), expected, "{text:?}");
        }
    }

    #[test]
    fn floats_take_the_longest_prefix() {
        let rows: &[(&str, f64)] = &[
            ("0.5", 0.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("1e3", 1000.0),
            ("1e", 1.0),
            ("-2.5x", -2.5),
            (".", 0.0),
            ("abc", 0.0),
            ("inf", f64::INFINITY),
        ];
        for (text, expected) in rows {
            assert_eq!(atof(text.as_bytes()), *expected, "{text:?}");
        }

        assert!(atof(b"nan").is_nan());
    }

    #[test]
    fn units_multiply_and_other_letters_are_refused() {
        let rows: &[(&str, Base, Result<u64, BadNumber>)] = &[
            ("1.5G", Base::Decimal, Ok(1_500_000_000)),
            ("1.5g", Base::Binary, Ok(1_610_612_736)),
            ("128Kbyte", Base::Binary, Ok(131_072)),
            ("0x10", Base::Binary, Ok(16)),
            ("7", Base::Decimal, Ok(7)),
            ("1Q", Base::Decimal, Err(BadNumber)),
            ("10 M", Base::Decimal, Err(BadNumber)),
            ("abc", Base::Binary, Err(BadNumber)),
            ("", Base::Binary, Err(BadNumber)),
            ("-1", Base::Binary, Err(BadNumber)),
            ("nan", Base::Decimal, Err(BadNumber)),
            ("1e300T", Base::Decimal, Err(BadNumber)),
            ("99999999T", Base::Decimal, Err(BadNumber)),
        ];
        for (text, base, expected) in rows {
            let max = i64::MAX as u64;
            assert_eq!(
                whole_with_unit(text.as_bytes(), *base, max),
                *expected,
                "{text:?}"
            );
        }
    }
}
