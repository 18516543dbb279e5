//! Amounts, rates and times as iperf 2 writes them.

/// Unit of amounts and rates (`-f`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Units {
    /// Rates are in bytes.
    bytes: bool,
    /// Power of 1000 or 1024, `None` for whatever fits.
    power: Option<i32>,
}

impl Units {
    /// Reads the letter of `-f`: lower case for bits, upper case for bytes, `a` for whatever fits.
    #[must_use]
    pub fn from_letter(letter: char) -> Option<Self> {
        let power = match letter.to_ascii_lowercase() {
            'b' => Some(0),
            'k' => Some(1),
            'm' => Some(2),
            'g' => Some(3),
            't' => Some(4),
            'p' => Some(5),
            'a' => None,
            _ => return None,
        };
        Some(Self { bytes: letter.is_ascii_uppercase(), power })
    }

    /// Transferred bytes. They are shown in bytes even where rates are shown in bits.
    pub(super) fn transfer(self, bytes: u64) -> String {
        scaled(bytes as f64, true, self.power)
    }

    /// A rate in bit/s, without `s/sec`.
    pub(super) fn rate(self, bits_per_s: f64) -> String {
        if self.bytes { scaled(bits_per_s / 8.0, true, self.power) } else { scaled(bits_per_s, false, self.power) }
    }

    /// Size of a socket buffer: plain bytes if that is what the user wants, else whatever fits.
    pub(super) fn window(self, bytes: u64) -> String {
        scaled(bytes as f64, true, self.power.filter(|power| *power == 0))
    }
}

/// Bytes in the unit that fits: `16.0 KByte`.
pub(super) fn bytes(bytes: f64) -> String {
    scaled(bytes, true, None)
}

/// Bits in the unit that fits: `20.0 Mbit`.
pub(super) fn bits(bits: f64) -> String {
    scaled(bits, false, None)
}

fn scaled(mut value: f64, is_bytes: bool, fixed: Option<i32>) -> String {
    const BITS: [&str; 6] = ["bit", "Kbit", "Mbit", "Gbit", "Tbit", "Pbit"];
    const BYTES: [&str; 6] = ["Byte", "KByte", "MByte", "GByte", "TByte", "PByte"];
    let (labels, base) = if is_bytes { (BYTES, 1024.0) } else { (BITS, 1000.0) };
    let mut index = 0;
    match fixed {
        Some(power) => {
            value /= f64::powi(base, power);
            index = usize::try_from(power).unwrap_or_default();
        }
        None => {
            while value >= base && index + 1 < labels.len() {
                value /= base;
                index += 1;
            }
        }
    }
    let label = labels.get(index).copied().unwrap_or_default();
    if value < 0.9995 {
        format!("{value:4.3} {label}")
    } else if value < 9.995 {
        format!("{value:4.2} {label}")
    } else if value < 99.95 {
        format!("{value:4.1} {label}")
    } else {
        format!("{value:4.0} {label}")
    }
}

/// Power of a network: rate over delay, in 10⁶ byte/s². `NAN` without a delay.
pub(super) fn power(bytes_per_s: f64, delay_s: f64) -> String {
    if delay_s == 0.0 || !delay_s.is_finite() {
        return "NAN".to_owned();
    }
    let power = bytes_per_s / delay_s / 1e6;
    if power < POWER_MIN {
        "OBL".to_owned()
    } else if power > 100.0 {
        format!("{power:.0}")
    } else if power > 10.0 {
        format!("{power:.2}")
    } else {
        format!("{power:.6}")
    }
}

/// Lost datagrams in percent, with two significant digits.
pub(super) fn percent(lost: i64, total: u64) -> String {
    if total == 0 {
        return "0".to_owned();
    }
    crate::number::general(100.0 * lost as f64 / total as f64, 2)
}

/// A negative delay beyond this shows only that the clocks disagree.
const POWER_MIN: f64 = -1e15;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_look_like_the_original() {
        let rows = [
            (bytes(16_384.0), "16.0 KByte"),
            (bytes(131_072.0), " 128 KByte"),
            (bytes(1000.0), "1000 Byte"),
            (bytes(0.0), "0.000 Byte"),
            (bits(0.0), "0.000 bit"),
            (bits(20e6), "20.0 Mbit"),
            (bits(999.7e6), "1000 Mbit"),
            (Units::default().transfer(2_621_500), "2.50 MByte"),
            (Units::default().rate(20_972_000.0), "21.0 Mbit"),
        ];
        for (found, expected) in rows {
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn letters_choose_the_unit_of_rates_and_the_power_of_both() {
        let rows = [
            ('b', "2752572 Byte", "20856688 bit"),
            ('B', "2752572 Byte", "2607086 Byte"),
            ('k', "2688 KByte", "20857 Kbit"),
            ('K', "2688 KByte", "2546 KByte"),
            ('g', "0.003 GByte", "0.021 Gbit"),
            ('A', "2.63 MByte", "2.49 MByte"),
            ('a', "2.63 MByte", "20.9 Mbit"),
        ];
        for (letter, transfer, rate) in rows {
            let units = Units::from_letter(letter).expect("a letter of -f");
            assert_eq!(units.transfer(2_752_572), transfer, "{letter}");
            assert_eq!(units.rate(20_856_688.0), rate, "{letter}");
        }
        assert_eq!(Units::from_letter('q'), None);
        let window = |letter| Units::from_letter(letter).expect("a letter of -f").window(16_384);
        assert_eq!((window('b'), window('g')), ("16384 Byte".to_owned(), "16.0 KByte".to_owned()));
    }

    #[test]
    fn power_has_as_many_decimals_as_it_needs() {
        assert_eq!(power(12_582_912.0, 94e-6), "133861");
        assert_eq!(power(1_262_000.0, 16.655e-3), "75.77");
        assert_eq!(power(1000.0, 1.0), "0.001000");
        assert_eq!(power(1000.0, 0.0), "NAN");
    }
}
