//! Dates.

use std::sync::OnceLock;
use std::{env, fs};

use jiff::Zoned;
use jiff::fmt::strtime;
use jiff::tz::TimeZone;

/// A moment in the user's time zone, or in UTC.
pub(super) fn zoned(unix_us: u64, utc: bool) -> Option<Zoned> {
    let time = jiff::Timestamp::from_microsecond(i64::try_from(unix_us).ok()?).ok()?;
    Some(time.to_zoned(if utc { TimeZone::UTC } else { user_zone() }))
}

/// Where `TZ` names no zone, from the file that tzset(3) reads: `TimeZone::system` reads the
/// directories of the time zone database too, hundreds of names for one zone.
fn user_zone() -> TimeZone {
    static ZONE: OnceLock<TimeZone> = OnceLock::new();

    let of_file = || TimeZone::tzif("localtime", &fs::read("/etc/localtime").ok()?).ok();
    let zone = || {
        env::var_os("TZ")
            .is_none()
            .then(of_file)
            .flatten()
            .unwrap_or_else(TimeZone::system)
    };
    ZONE.get_or_init(zone).clone()
}

/// `2026-11-21 18:45:24`, with milliseconds if they are wanted.
pub(super) fn date(time: &Zoned, with_ms: bool) -> String {
    format(
        time,
        if with_ms {
            "%Y-%m-%d %H:%M:%S.%3f"
        } else {
            "%Y-%m-%d %H:%M:%S"
        },
    )
}

/// Name of the time zone.
pub(super) fn zone(time: &Zoned) -> String {
    format(time, "%Z")
}

/// In the notation of strftime(3).
pub(super) fn format(time: &Zoned, notation: &str) -> String {
    strtime::format(notation, time).unwrap_or_default()
}
