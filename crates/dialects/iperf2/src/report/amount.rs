//! Amounts, rates and times as iperf 2 writes them.

use linerate_model::units::UnitFormat;

/// Transferred bytes. They are shown in bytes even where rates are shown in bits.
pub(super) fn transfer(units: UnitFormat, bytes: u64) -> String {
    scaled(
        bytes as f64,
        UnitFormat {
            is_bytes: true,
            ..units
        },
    )
}

/// A rate in bit/s, without `s/sec`.
pub(super) fn rate(units: UnitFormat, bits_per_s: f64) -> String {
    scaled(
        if units.is_bytes {
            bits_per_s / 8.0
        } else {
            bits_per_s
        },
        units,
    )
}

/// Size of a socket buffer: plain bytes if that is what the user wants, else whatever fits.
pub(super) fn buffer_size(units: UnitFormat, bytes: u64) -> String {
    scaled(
        bytes as f64,
        UnitFormat {
            is_bytes: true,
            power: units.power.filter(|power| *power == 0),
        },
    )
}

/// Bytes in the unit that fits: `16.0 KByte`.
pub(super) fn bytes(bytes: f64) -> String {
    scaled(bytes, UnitFormat::BYTES)
}

/// Bits in the unit that fits: `20.0 Mbit`.
pub(super) fn bits(bits: f64) -> String {
    scaled(bits, UnitFormat::BITS)
}

fn scaled(value: f64, units: UnitFormat) -> String {
    const PETA: usize = 5;

    let (value, label) = units.scaled(value, PETA);
    match value {
        tiny if tiny < 0.9995 => format!("{value:4.3} {label}"),
        small if small < 9.995 => format!("{value:4.2} {label}"),
        middle if middle < 99.95 => format!("{value:4.1} {label}"),
        _ => format!("{value:4.0} {label}"),
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
    linerate_document::number::general(100.0 * lost as f64 / total as f64, 2)
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
            (transfer(UnitFormat::BITS, 2_621_500), "2.50 MByte"),
            (rate(UnitFormat::BITS, 20_972_000.0), "21.0 Mbit"),
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
        for (letter, bytes, bits) in rows {
            let units = UnitFormat::from_letter(letter).expect("a letter of -f");
            assert_eq!(transfer(units, 2_752_572), bytes, "{letter}");
            assert_eq!(rate(units, 20_856_688.0), bits, "{letter}");
        }

        assert_eq!(UnitFormat::from_letter('q'), None);
        let size = |letter| {
            buffer_size(
                UnitFormat::from_letter(letter).expect("a letter of -f"),
                16_384,
            )
        };
        assert_eq!(
            (size('b'), size('g')),
            ("16384 Byte".to_owned(), "16.0 KByte".to_owned())
        );
    }

    #[test]
    fn power_has_as_many_decimals_as_it_needs() {
        assert_eq!(power(12_582_912.0, 94e-6), "133861");
        assert_eq!(power(1_262_000.0, 16.655e-3), "75.77");
        assert_eq!(power(1000.0, 1.0), "0.001000");
        assert_eq!(power(1000.0, 0.0), "NAN");
    }
}
