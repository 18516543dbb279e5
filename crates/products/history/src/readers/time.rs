//! Times as programs print them.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;

/// `Sat, 21 Nov 2026 18:53:32 GMT` in ms since 1970. A C library may call this zone UTC.
pub(super) fn rfc2822_ms(text: &str) -> Option<u64> {
    let (_, time) = text.split_once(", ")?;
    let time = rfc2822::parse(&time.replace("UTC", "GMT")).ok()?;
    unix_ms(time.timestamp())
}

/// `2026-11-21 18:50:13.938 (UTC)` in ms since 1970; other zones are those of this host.
pub(super) fn iso_ms(text: &str, utc_offset_s: &dyn Fn(i64) -> i64) -> Option<u64> {
    let mut words = text.split_whitespace();
    let date = words.next()?;
    let time = words.next()?;
    let zone = words.next();
    let local: DateTime = format!("{date}T{time}").parse().ok()?;
    let local_ms = unix_ms(local.to_zoned(TimeZone::UTC).ok()?.timestamp())?;
    if matches!(zone, Some("(UTC)" | "(GMT)")) {
        return Some(local_ms);
    }

    let local_s = i64::try_from(local_ms / 1000).ok()?;
    local_ms.checked_add_signed(utc_offset_s(local_s).checked_mul(-1000)?)
}

/// `2026-11-21T18:53:32.5Z` or `2026-11-21T19:53:32+01:00` in ms since 1970.
pub(super) fn rfc3339_ms(text: &str) -> Option<u64> {
    unix_ms(text.parse().ok()?)
}

fn unix_ms(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_millisecond()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_both_programs_are_read() {
        let expected = Some(1_795_287_212_000);
        assert_eq!(rfc2822_ms("Sat, 21 Nov 2026 18:53:32 GMT"), expected);
        assert_eq!(iso_ms("2026-11-21 18:53:32 (UTC)", &|_| 3600), expected);
        assert_eq!(
            iso_ms("2026-11-21 19:53:32.5 (CET)", &|_| 3600),
            expected.map(|ms| ms + 500)
        );
        assert_eq!(rfc3339_ms("2026-11-21T18:53:32Z"), expected);
        assert_eq!(rfc3339_ms("2026-11-21T17:23:32.000000-01:30"), expected);
        assert_eq!(
            rfc3339_ms("2026-11-21T19:53:32.5+01:00"),
            expected.map(|ms| ms + 500)
        );

        for text in ["", "2026-11-21T18:53:32"] {
            assert_eq!(rfc3339_ms(text), None, "{text}");
        }

        for text in [
            "",
            "Sat",
            "Sat, 21 Nov 2026 25:53:32 GMT",
            "Sat, 21 Nov 99999 18:53:32 GMT",
        ] {
            assert_eq!(rfc2822_ms(text), None, "{text}");
        }

        for text in ["", "2026-13-21 18:53:32 (UTC)", "2026-11-21", "a-b-c d:e:f"] {
            assert_eq!(iso_ms(text, &|_| 0), None, "{text}");
        }
    }
}
