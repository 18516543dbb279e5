//! Names and metrics of the lab in plain words. An unknown metric is `n/a`, never 0.

pub(super) use linerate_document::number::{
    counted, fine, known, mebi, mega, per_s, percent, time,
};
pub(super) use linerate_model::http::units::{grouped, payload_name as payload};
pub(super) use linerate_model::numbers::MISSING;

use linerate_model::http::{
    CellKey, CellRun, CellVerdict, ErrorClass, Flag, Peak, Phase, Quantile, RunState, VerdictClass,
};
use linerate_model::stored_name;

/// The letter of a kind of bottleneck in a matrix, and its meaning.
pub(super) fn letter(class: VerdictClass) -> (char, &'static str) {
    match class {
        VerdictClass::Invalid => ('x', "invalid"),
        VerdictClass::ClientLimit => ('L', "limit of the client's host"),
        VerdictClass::ServerLimit => ('S', "limit of the server's queues or descriptors"),
        VerdictClass::NetworkBound => ('N', "network-bound"),
        VerdictClass::NetworkLoss => ('n', "network loses segments"),
        VerdictClass::OtherPrograms => ('P', "other programs fill the CPUs"),
        VerdictClass::CpuBoundTotal => ('C', "all CPUs of the server busy"),
        VerdictClass::CpuBoundCore => ('c', "one CPU of the server busy"),
        VerdictClass::QueueingBound => ('Q', "queueing, only latency grows"),
        VerdictClass::ConcurrencyLimited => ('f', "too few requests in flight"),
        VerdictClass::ServerInternal => ('i', "server waits for itself"),
        VerdictClass::NotSaturated => ('o', "offered rate met"),
        _ => ('u', "unknown"),
    }
}

/// The letters of a verdict: the first class, and those that fit as well after a `+`.
pub(super) fn letters(verdict: &CellVerdict) -> String {
    let judgements = verdict.judgements();
    let mut letters: String = judgements.map(|one| letter(one.class).0).collect();
    if !verdict.contributing.is_empty() {
        letters.insert(1, '+');
    }
    letters
}

/// `aborted: interrupted`; `None` for a finished run.
pub(super) fn ending(run: &CellRun) -> Option<String> {
    let reason = run.reason.as_deref().unwrap_or("no reason given");
    (run.state != RunState::Done).then(|| format!("{}: {reason}", stored_name(run.state)))
}

/// The words for a part of the experiment.
pub(super) fn phase(phase: Phase) -> String {
    stored_name(phase).replace('_', " ")
}

/// A limit as a phrase.
pub(super) fn limit(class: VerdictClass) -> &'static str {
    match class {
        VerdictClass::Invalid => "not valid",
        VerdictClass::ClientLimit => "this host",
        VerdictClass::ServerLimit => "the server's queues or descriptors",
        VerdictClass::NetworkBound => "the link is full",
        VerdictClass::NetworkLoss => "the path loses segments",
        VerdictClass::OtherPrograms => "other programs fill the CPUs",
        VerdictClass::CpuBoundTotal => "all CPUs of the server are busy",
        VerdictClass::CpuBoundCore => "one CPU of the server is busy",
        VerdictClass::QueueingBound => "a queue: more connections only wait longer",
        VerdictClass::ConcurrencyLimited => "too few requests at the same time",
        VerdictClass::ServerInternal => "the server waits for itself",
        VerdictClass::NotSaturated => "none, the offered rate was met",
        _ => "not known",
    }
}

/// A class of failures in plain words, and whose they are.
pub(super) fn error(class: ErrorClass) -> (&'static str, &'static str) {
    const CRASH: &str = "server: a limit or a crash";
    match class {
        ErrorClass::ConnectRefused => (
            "connection refused",
            "server: connection refused (down, or no listener on this port)",
        ),
        ErrorClass::ConnectTimeout => (
            "connect timeout",
            "server or path: accept or SYN queue full, firewall, conntrack full",
        ),
        ErrorClass::Unreachable => ("unreachable", "path: no way there, or a local firewall"),
        ErrorClass::AddrNotAvail => ("no local port", "client limit: local ports"),
        ErrorClass::FdLimit => ("no descriptor", "client limit: descriptors"),
        ErrorClass::NoBuffers => ("no socket memory", "client limit: socket memory"),
        ErrorClass::ResetBeforeAnswer => ("reset before the response", CRASH),
        ErrorClass::ResetMidAnswer => ("reset in the response", CRASH),
        ErrorClass::ResetIdle => (
            "reset while idle",
            "server: a limit, a crash or its idle timeout",
        ),
        ErrorClass::Eof => ("closed early", "server: its keep-alive limit"),
        ErrorClass::Timeout => ("timeout", "server or path: queueing or a stall"),
        ErrorClass::Unsent => (
            "not sent in time",
            "offered rate: more than can be sustained",
        ),
        ErrorClass::Status3xx => ("status 3xx", "application: redirections are not followed"),
        ErrorClass::Status4xx => ("status 4xx", "application"),
        ErrorClass::Status5xx => ("status 5xx", "application"),
        ErrorClass::Protocol => ("malformed response", "broken server or generator"),
        ErrorClass::Tls => ("TLS", "TLS"),
    }
}

/// A flag as a word, and as a sentence.
pub(super) fn flag(flag: Flag) -> (&'static str, &'static str) {
    match flag {
        Flag::GeneratorLate => (
            "generator late",
            "the generator sent late: latencies are in part its own",
        ),
        Flag::Unsteady => (
            "rate changed",
            "the rate changed: both halves differ by more than 5 %",
        ),
        Flag::Overload => (
            "overload",
            "ended early: the offered rate cannot be sustained",
        ),
        Flag::Little => (
            "not by Little's law",
            "rate times mean latency is not the number of connections (Little's law): some idled",
        ),
        Flag::DirtyStart => ("hosts not idle", "the hosts were not idle when it began"),
        Flag::BreakerTripped => (
            "too many failures",
            "ended early: too many failures, or the server asked for a pause (Retry-After)",
        ),
        Flag::ControlLost => (
            "control connection lost",
            "the control connection broke: values of the server are incomplete",
        ),
        Flag::Interrupted => ("interrupted", "interrupted by the user"),
        Flag::ServerGone => ("server gone", "the server stopped answering"),
    }
}

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

/// `2026-09-21 14:13:20 UTC`
pub(super) fn utc_time(unix_ms: u64) -> String {
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
            (utc_time(1_790_000_000_000), "2026-09-21 14:13:20 UTC"),
            (utc_time(u64::MAX), "at an unknown time"),
        ];
        for (text, expected) in rows {
            assert_eq!(text, expected);
        }
    }
}
