//! One second of a load over HTTP in words, for terminals and views.

use linerate_model::http::Reading;
use linerate_model::http::units::grouped;
use linerate_model::live::LiveHttp;
use linerate_model::numbers::rate;

use crate::number::{known, mega, per_s, time, whole_percent};

/// `12,345 responses/s, payload 126.4 MB/s, p99 1.23 ms`: the last second.
pub fn second_words(now: &LiveHttp) -> String {
    let ok_per_s = now.ok_per_s.last();
    format!(
        "{} responses/s, payload {} MB/s, p99 {}",
        known(ok_per_s, per_s),
        known(ok_per_s.map(|_| now.payload_bytes as f64), mega),
        known(now.p99_ns.map(|ns| ns as f64), time)
    )
}

/// `client: CPU 45 % (busiest 99 %), 64 connections, 941 Mbit/s sent, 12 Mbit/s received`: the last
/// sample of a host.
pub fn end_words(name: &str, end: Option<&Reading>) -> String {
    let Some(end) = end else {
        return format!("{name}: no values");
    };

    let per_s = |bytes: Option<u64>| {
        // A sample over no time has no rate.
        known(bytes.filter(|_| end.window_ns > 0), |bytes| {
            rate(8e9 * bytes as f64 / end.window_ns as f64)
        })
    };
    format!(
        "{name}: CPU {} (busiest {}), {} connections, {} sent, {} received",
        known(end.cpu_busy, whole_percent),
        known(end.busiest_cpu_busy, whole_percent),
        known(end.connections, grouped),
        per_s(end.tx_bytes),
        per_s(end.rx_bytes)
    )
}
