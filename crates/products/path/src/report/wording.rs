//! Values of a path as a network engineer writes them.

use linerate_document::number::time;
use linerate_model::measure::Unit;
use linerate_model::path::{Delay, Dialect, Identity, PathReport, ProbeKind};

/// A time with its unit; a difference of clocks may be below 0.
pub(super) fn signed_ns(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}", time(ns.unsigned_abs() as f64))
}

/// A change of a time: `+99.6 ms`.
pub(super) fn change_ns(ns: i64) -> String {
    let sign = if ns < 0 { "" } else { "+" };
    format!("{sign}{}", signed_ns(ns))
}

/// Delay that a load adds. Two medians differ by chance: one below that without load shows by how
/// much, and no delay that the load takes away.
pub(super) fn added_ns(ns: i64) -> String {
    if ns < 0 {
        format!("0 ± {}", time(ns.unsigned_abs() as f64))
    } else {
        change_ns(ns)
    }
}

/// A time with its unit.
pub(super) fn ns(ns: u64) -> String {
    time(ns as f64)
}

/// Round trips per minute: `517 RPM`.
pub(super) fn rpm(rpm: f64) -> String {
    Unit::RoundTripsPerMinute.text(rpm)
}

/// A rate per second without a unit of its own: `24,300/s`.
pub(super) fn per_s(value: f64) -> String {
    Unit::PerSecond.text(value)
}

/// `RTT 12.4 ms`: the median of a delay.
pub(super) fn median(delay: Option<Delay>, name: &str) -> Option<String> {
    Some(format!("{name} {}", signed_ns(delay?.p50_ns?)))
}

/// `RTT p50 12.4 ms`, `p95 13.1 ms`, `p99 14.0 ms`
pub(super) fn percentiles(name: &str, delay: &Delay) -> Vec<String> {
    let known = [
        ("p50", delay.p50_ns),
        ("p95", delay.p95_ns),
        ("p99", delay.p99_ns),
    ];
    let words = known
        .into_iter()
        .filter_map(|(name, ns)| Some(format!("{name} {}", signed_ns(ns?))));
    let mut words: Vec<String> = words.collect();
    match words.first_mut() {
        Some(first) => *first = format!("{name} {first}"),
        None => words.extend(
            delay
                .min_ns
                .map(|ns| format!("{name} at least {}", signed_ns(ns))),
        ),
    }

    words
}

/// Texts that there are, separated by commas; `None` without one.
pub(super) fn joined(texts: impl IntoIterator<Item = Option<String>>) -> Option<String> {
    let texts: Vec<String> = texts.into_iter().flatten().collect();
    (!texts.is_empty()).then(|| texts.join(", "))
}

/// Probes that measured the round-trip times of the report.
pub(super) fn probes_of(report: &PathReport) -> &'static str {
    match (
        report.grade.as_ref().map(|grade| grade.probe),
        report.target.dialect,
    ) {
        (Some(ProbeKind::Udp), _) | (None, Dialect::Native) => "UDP probes",
        (Some(ProbeKind::Icmp), _) => "ICMP echo",
        (Some(ProbeKind::Tcp | ProbeKind::Busy), _) => "TCP handshakes",
        (None, Dialect::Iperf3 | Dialect::Ndt7 | Dialect::Stamp | Dialect::SpeedTest) => "probes",
    }
}

/// Upper bound of the rate, by its name in the report.
pub(super) fn ceiling(by: &str) -> &str {
    match by {
        "link" => "link of this host",
        "far-link" => "link of the server",
        "shaper" => "shaper of a host",
        "receive-window" => "receive window",
        "send-buffer" => "send buffer",
        "rate" => "--rate",
        other => other,
    }
}

/// Known state of the server's identity; `None` where its protocol has none.
pub(super) const fn identity(report: &PathReport) -> Option<&'static str> {
    match (report.target.dialect, report.target.identity) {
        (Dialect::Iperf3 | Dialect::Ndt7 | Dialect::Stamp | Dialect::SpeedTest, _) => None,
        (Dialect::Native, Identity::Known) => Some("known"),
        (Dialect::Native, Identity::Pinned) => Some("as pinned"),
        (Dialect::Native, Identity::Token) => Some("proved by the token"),
        (Dialect::Native, Identity::New) => Some("first contact, remembered"),
        (Dialect::Native, _) => Some("not proved"),
    }
}

/// An address with its port, where it is known: `[2001:db8::7]:5201`.
pub(super) fn endpoint(address: &str, port: u16) -> String {
    if port == 0 {
        return address.to_owned();
    }

    if address.contains(':') {
        format!("[{address}]:{port}")
    } else {
        format!("{address}:{port}")
    }
}
