//! Times as programs print them.

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// `Sat, 21 Nov 2026 18:53:32 GMT` in ms since 1970.
pub(super) fn rfc2822_ms(text: &str) -> Option<u64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, day, month, year, time, "GMT" | "UTC"] = words.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|known| known == month)? + 1;

    let (year, day) = (
        year.parse()
            .ok()
            .filter(|year| (1970..10_000).contains(year))?,
        day.parse().ok().filter(|day| (1..=31).contains(day))?,
    );

    ms_of(days_since_1970(year, i64::try_from(month).ok()?, day), time)
}

/// `2026-11-21 18:50:13.938 (UTC)` in ms since 1970; other zones are those of this host.
pub(super) fn iso_ms(text: &str, utc_offset_s: &dyn Fn(i64) -> i64) -> Option<u64> {
    let mut words = text.split_whitespace();
    let (date, time, zone) = (words.next()?, words.next()?, words.next());
    let mut parts = date.split('-').map(str::parse::<i64>);
    let mut part = || parts.next()?.ok();
    let (year, month, day) = (part()?, part()?, part()?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }

    let local_ms = ms_of(days_since_1970(year, month, day), time)?;
    if matches!(zone, Some("(UTC)" | "(GMT)")) {
        return Some(local_ms);
    }

    let local_s = i64::try_from(local_ms / 1000).ok()?;
    let utc_s = local_s.checked_sub(utc_offset_s(local_s))?;
    Some(
        u64::try_from(utc_s)
            .ok()?
            .saturating_mul(1000)
            .saturating_add(local_ms % 1000),
    )
}

/// `2026-11-21T18:53:32.5Z` or `2026-11-21T19:53:32+01:00` in ms since 1970.
pub(super) fn rfc3339_ms(text: &str) -> Option<u64> {
    let (date, time) = text.split_once('T')?;
    // The date is split off, so that a dash begins an offset.
    let zone_at = time.find(['Z', '+', '-'])?;
    let (time, zone) = time.split_at_checked(zone_at)?;
    let offset_ms = match zone {
        "Z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let (hours, minutes): (i64, i64) = (hours.parse().ok()?, minutes.parse().ok()?);
            let size_ms = hours
                .checked_mul(60)?
                .checked_add(minutes)?
                .checked_mul(60_000)?;

            if zone.starts_with('-') {
                -size_ms
            } else {
                size_ms
            }
        }
    };

    let local_ms = iso_ms(&format!("{date} {time} (UTC)"), &|_| 0)?;
    local_ms.checked_add_signed(offset_ms.checked_neg()?)
}

/// A day and `18:50:13.938`.
fn ms_of(days: i64, time: &str) -> Option<u64> {
    let mut parts = time.split(':');
    let (hours, minutes) = (
        parts.next()?.parse::<i64>().ok()?,
        parts.next()?.parse::<i64>().ok()?,
    );
    let seconds: f64 = parts.next()?.parse().ok()?;
    // A leap second is second 60 (RFC 3339, section 5.6).
    if !(0..24).contains(&hours) || !(0..60).contains(&minutes) || !(0.0..61.0).contains(&seconds) {
        return None;
    }

    let whole_s = days * 86_400 + hours * 3600 + minutes * 60;
    Some(u64::try_from(whole_s).ok()? * 1000 + (seconds * 1000.0).round() as u64)
}

/// Days of the Gregorian calendar; years are counted from March, so that the leap day is their
/// last.
pub(super) fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    // The year begins in March, so that a leap day is its last day.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let days_before_year =
        year * 365 + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    // Five months from March have 153 days; 719,468 days lie between 1 March 0 and 1970.
    days_before_year + (153 * month + 2) / 5 + day - 1 - 719_468
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

        for text in [
            "",
            "2026-11-21T18:53:32",
            "2026-11-21T18:53:32+0100",
            "2026-11-21 18:53:32Z",
        ] {
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
