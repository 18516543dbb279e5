//! The `Date` field (RFC 9110, section 5.6.7), which changes once per second.

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
pub(crate) const DATE_BYTES: usize = 29;

/// The text of a moment, `seconds` after the start of 1970, leap seconds not counted. The year has four digits until the
/// end of 9999; later moments are shown as that.
#[must_use]
pub(crate) fn imf_fixdate(seconds: u64) -> [u8; DATE_BYTES] {
    let seconds = seconds.min(END_OF_9999);
    let (days, second) = (seconds / SECONDS_PER_DAY, seconds % SECONDS_PER_DAY);
    let (year, month, day) = civil(days);
    let mut text = *b"Thu, 00 Jan 1970 00:00:00 GMT";
    // 1 January 1970 was a Thursday.
    put(&mut text, 0, name(WEEKDAYS, days % 7));
    put(&mut text, 5, &two_digits(day));
    put(&mut text, 8, name(MONTHS, month - 1));
    put(&mut text, 12, &two_digits(year / 100));
    put(&mut text, 14, &two_digits(year % 100));
    put(&mut text, 17, &two_digits(second / 3600));
    put(&mut text, 20, &two_digits(second / 60 % 60));
    put(&mut text, 23, &two_digits(second % 60));
    text
}

/// Year, month and day of the Gregorian calendar (Hinnant, "chrono-compatible low-level date algorithms", 2013). Years
/// begin in March there, so that the leap day is a year's last.
fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + DAYS_FROM_MARCH_0_TO_1970;
    let (era, day_of_era) = (days / DAYS_PER_ERA, days % DAYS_PER_ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

fn put(text: &mut [u8; DATE_BYTES], at: usize, part: &[u8]) {
    if let Some(place) = text.get_mut(at..at + part.len()) {
        place.copy_from_slice(part);
    }
}

fn name(names: &'static [u8], index: u64) -> &'static [u8] {
    let start = usize::try_from(index * 3).unwrap_or_default();
    names.get(start..start + 3).unwrap_or(b"???")
}

fn two_digits(number: u64) -> [u8; 2] {
    [number / 10 % 10, number % 10].map(|digit| b'0' + u8::try_from(digit).unwrap_or_default())
}

const WEEKDAYS: &[u8] = b"ThuFriSatSunMonTueWed";
const MONTHS: &[u8] = b"JanFebMarAprMayJunJulAugSepOctNovDec";
const SECONDS_PER_DAY: u64 = 86_400;
const DAYS_PER_ERA: u64 = 146_097;
const DAYS_FROM_MARCH_0_TO_1970: u64 = 719_468;
const END_OF_9999: u64 = 253_402_300_799;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (951_868_799, "Tue, 29 Feb 2000 23:59:59 GMT"),
            (1_709_164_800, "Thu, 29 Feb 2024 00:00:00 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
            (u64::MAX, "Fri, 31 Dec 9999 23:59:59 GMT"),
        ] {
            let text = imf_fixdate(seconds);
            assert_eq!(str::from_utf8(&text), Ok(expected));
        }
    }
}
