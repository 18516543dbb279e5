//! Metrics of the HTTP lab as text. An unknown metric is `n/a`, never 0.

pub(super) use linerate_model::http::units::{grouped, payload_name as payload};
use linerate_model::http::{CellKey, Peak, Quantile};

pub(super) use linerate_document::number::{fine, known, mebi, mega, per_s, percent, time};
pub(super) use linerate_model::numbers::MISSING;

/// `10k c64`, `1k c10000 at 1,000/s`
pub(super) fn cell(key: &CellKey) -> String {
    let rate = key.rate_per_s.map_or_else(String::new, |rate| {
        format!(" at {}/s", grouped(u64::from(rate)))
    });
    format!("{} c{}{rate}", payload(key.payload_bytes), key.connections)
}

/// CPUs as percent of one.
pub(super) fn cpus(cpus: f64) -> String {
    let percent = cpus * 100.0;
    // From 9.95 on one decimal would round to 10.0.
    if percent.abs() < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

/// A time in whole nanoseconds.
pub(super) fn time_ns(ns: u64) -> String {
    time(ns as f64)
}

/// A quantile of `n` values, which may be known from below only, or not at all with so few.
pub(super) fn quantile(quantile: Option<Quantile>, n: u64) -> String {
    match quantile {
        None => format!("{MISSING} (n={n})"),
        Some(Quantile {
            ns,
            is_lower_bound: true,
            ..
        }) => format!("≥ {}", time_ns(ns)),
        Some(Quantile { ns, .. }) => time_ns(ns),
    }
}

/// A largest value with its limit: `28,232 of 28,232`.
pub(super) fn peak(peak: Peak) -> String {
    match peak.limit {
        Some(limit) => format!("{} of {}", grouped(peak.peak), grouped(limit)),
        None => grouped(peak.peak),
    }
}

/// The moment in UTC.
pub(super) fn moment(unix_ms: u64) -> String {
    i64::try_from(unix_ms)
        .ok()
        .and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok())
        .map_or_else(
            || "at an unknown time".to_owned(),
            |at| at.strftime("%Y-%m-%d %H:%M:%S UTC").to_string(),
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_keep_the_digits_that_matter() {
        let rows = [
            (per_s(101_430.6), "101,000"),
            (per_s(12.34), "12.3"),
            (per_s(f64::INFINITY), "inf"),
            (mega(117_500_000.0), "117.5"),
            (mebi(1_048_576.0), "1.00"),
            (cpus(3.82), "382 %"),
            (cpus(0.004), "0.4 %"),
            (time_ns(0), "0 ns"),
            (time_ns(330_000), "330 us"),
            (time_ns(999_600), "1.00 ms"),
            (time_ns(5_000_000_000), "5.00 s"),
            (time_ns(120_000_000_000), "120 s"),
            (moment(1_790_000_000_000), "2026-09-21 14:13:20 UTC"),
            (moment(u64::MAX), "at an unknown time"),
        ];
        for (text, expected) in rows {
            assert_eq!(text, expected);
        }
    }
}
