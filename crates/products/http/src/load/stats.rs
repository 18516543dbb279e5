//! Statistics of a load, merged from its workers into the result.

use linerate_model::http::{
    Connections, ErrorClass, ErrorCounts, Flag, LoadResult, Mode, NegotiatedProtocol, Second,
};
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::spec::LoadSpec;

/// Statistics of one worker, or of all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LoadStats {
    pub connections: Connections,
    pub requests: u64,
    pub ok: u64,
    pub payload_bytes: u64,
    /// Meaningless where headers are not counted.
    pub http_bytes: u64,
    pub response_head_bytes: Option<u64>,
    pub errors: ErrorCounts,
    /// From due (open loop) or sent (closed loop) to complete.
    pub latency: Distribution,
    pub service: Distribution,
    pub send_lag: Distribution,
    /// Part of the send lag caused by the generator: a connection was free when the request was
    /// due.
    pub lateness: Distribution,
    pub connect: Distribution,
    pub is_overloaded: bool,
    /// Time of the last complete response; 0 without one.
    pub last_response_ns: u64,
    /// First of the classes of failures since the last complete response.
    pub failing: Option<ErrorClass>,
    /// Protocol negotiated by the first connection; `None` where none was.
    pub protocol: Option<NegotiatedProtocol>,
}

impl LoadStats {
    /// Adds the statistics of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        let ours = &mut self.connections;
        let theirs = other.connections;
        ours.wanted += theirs.wanted;
        ours.opened += theirs.opened;
        ours.open_at_end += theirs.open_at_end;
        ours.answered_at_end = match (ours.answered_at_end, theirs.answered_at_end) {
            (Some(ours), Some(theirs)) => Some(ours + theirs),
            (ours, theirs) => ours.or(theirs),
        };
        ours.reconnects += theirs.reconnects;
        ours.dropped += theirs.dropped;
        self.requests += other.requests;
        self.ok += other.ok;
        self.payload_bytes += other.payload_bytes;
        self.http_bytes += other.http_bytes;
        self.response_head_bytes = self.response_head_bytes.or(other.response_head_bytes);
        self.errors.merge(other.errors);
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.send_lag.merge(&other.send_lag);
        self.lateness.merge(&other.lateness);
        self.connect.merge(&other.connect);
        self.is_overloaded |= other.is_overloaded;
        self.last_response_ns = self.last_response_ns.max(other.last_response_ns);
        self.failing = self.failing.into_iter().chain(other.failing).min();
        self.protocol = self.protocol.take().or(other.protocol);
    }

    /// A request or a connection failed.
    pub(crate) fn note_failure(&mut self, class: ErrorClass) {
        self.failing = Some(self.failing.map_or(class, |known| known.min(class)));
    }

    /// The failure and its start, where the server was gone: it accepted no connection, or answered
    /// nothing more. `load_ns`: beginning and end of the load, absent where no connection was
    /// opened.
    pub(crate) fn outage(&self, mode: Mode, load_ns: Option<(u64, u64)>) -> Option<String> {
        let failing = self.failing?;
        let what = match failing {
            ErrorClass::ConnectRefused => "connection refused",
            ErrorClass::ConnectTimeout => "no answer to connection attempts",
            ErrorClass::Unreachable => "host unreachable",
            ErrorClass::Timeout => "no response",
            _ => return None,
        };
        let Some((begin_ns, end_ns)) = load_ns else {
            return Some(format!("{what}: the server is gone"));
        };

        // Connections of a host that is off stay open until the kernel gives up.
        let is_silent = self.last_response_ns > begin_ns && failing != ErrorClass::ConnectRefused;
        // After response timeouts the generator has closed the connections itself.
        let is_gone = self.connections.open_at_end == 0 && failing != ErrorClass::Timeout
            || is_silent && !matches!(mode, Mode::Idle { .. });
        let since_ns = self.last_response_ns.max(begin_ns);
        let is_long = end_ns.saturating_sub(since_ns) >= SILENCE_MIN_NS;
        let since_s = (since_ns - begin_ns) as f64 / 1e9;

        (is_gone && is_long).then(|| format!("{what} since {since_s:.1} s: the server is gone"))
    }

    /// Result of a run of `window_ns` with the seconds since the start of the warm-up.
    pub(crate) fn result(
        &self,
        spec: &LoadSpec,
        window_ns: u64,
        seconds: &[SecondPart],
        flags: &[Flag],
    ) -> LoadResult {
        let is_open = !matches!(spec.mode, Mode::Closed { .. });
        let has_heads = spec.protocol.is_plain_http1();
        let optional = |times: &Distribution| (!times.is_empty()).then(|| times.summary());

        // After the window comes the drain, in which nothing is sent.
        let whole_seconds = usize::try_from((spec.warmup_ns + spec.duration_ns) / 1_000_000_000)
            .unwrap_or(usize::MAX);
        let mut flags = flags.to_vec();

        if self.is_overloaded {
            flags.push(Flag::Overload);
        }

        if self.is_generator_late(spec.mode) {
            flags.push(Flag::GeneratorLate);
        }

        LoadResult {
            protocol: self
                .protocol
                .clone()
                .or_else(|| has_heads.then(NegotiatedProtocol::default)),
            connections: self.connections,
            window_ns,
            requests: self.requests,
            ok: self.ok,
            payload_bytes: self.payload_bytes,
            http_bytes: has_heads.then_some(self.http_bytes),
            request_bytes: has_heads
                .then(|| self.requests.saturating_mul(spec.request.len() as u64)),
            response_head_bytes: self.response_head_bytes,
            errors: self.errors.clone(),
            latency: self.latency.summary(),
            service: optional(&self.service).filter(|_| is_open),
            send_lag: optional(&self.send_lag).filter(|_| is_open),
            connect: optional(&self.connect),
            seconds: seconds
                .iter()
                .take(whole_seconds)
                .map(SecondPart::summary)
                .collect(),
            warmup_seconds: u32::try_from(spec.warmup_ns / 1_000_000_000).unwrap_or(u32::MAX),
            flags,
            outage: None,
            mode: spec.mode,
            alone_ns: None,
        }
    }

    /// True if the generator's lateness is a part of the measured latency: at the 99th percentile
    /// more than 1 ms, more than a tenth of the latency, and longer than the interval between two
    /// requests.
    fn is_generator_late(&self, mode: Mode) -> bool {
        let Mode::Open { rate_per_s, .. } = mode else {
            return false;
        };
        let p99_ns = |times: &Distribution| times.quantile(0.99).map(|p99| p99.ns);
        let interval_ns = (1e9 / rate_per_s) as u64;
        // With a tenth of the latency alone, 5,000 requests/s of 7 µs were a limit of the client
        // although all were answered.
        let least_ns = LATE_MIN_NS
            .max(interval_ns)
            .max(p99_ns(&self.latency).unwrap_or(u64::MAX) / 10);

        p99_ns(&self.lateness).is_some_and(|late_ns| late_ns > least_ns)
    }
}

/// A wake-up on a virtual or busy host may take this long.
const LATE_MIN_NS: u64 = 1_000_000;
/// A server that answers is not silent for so long after a failure.
const SILENCE_MIN_NS: u64 = 1_000_000_000;

/// Responses, failures and approximate times of one second, small enough to be kept for every
/// second and sent while the load runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct SecondPart {
    /// Seconds since the start of the warm-up.
    pub index: u32,
    /// Complete 2xx responses.
    pub ok: u64,
    /// Bytes of their bodies.
    pub payload_bytes: u64,
    /// All failures.
    pub errors: u64,
    /// Errors with status 5xx and `429 Too Many Requests`.
    pub refusals: u64,
    /// Errors by response timeout.
    pub timeouts: u64,
    /// Errors of connections that could not be opened.
    pub connects: u64,
    /// Connection attempts.
    pub attempts: u64,
    /// 429 and 503 with `Retry-After`.
    pub retry_after: u64,
    /// Connections that are open at its end.
    pub open: u64,
    /// Age of the backlog at the end of the second.
    pub backlog_ns: u64,
    /// Times with an error of a sixteenth.
    times: Distribution<1>,
}

impl SecondPart {
    /// An empty one.
    pub fn new(index: u32) -> Self {
        Self {
            index,
            ..Self::default()
        }
    }

    /// Counts a complete 2xx response.
    pub fn response(&mut self, ns: u64, payload_bytes: u64) {
        self.ok += 1;
        self.payload_bytes += payload_bytes;
        self.times.record(ns);
    }

    /// Counts a failure.
    pub fn failure(&mut self, class: ErrorClass, is_refusal: bool) {
        self.errors += 1;
        self.refusals += u64::from(is_refusal || class == ErrorClass::Status5xx);
        self.timeouts += u64::from(class == ErrorClass::Timeout);
        self.connects += u64::from(matches!(
            class,
            ErrorClass::ConnectRefused
                | ErrorClass::ConnectTimeout
                | ErrorClass::Unreachable
                | ErrorClass::Tls
        ));
    }

    /// Adds the same second of another thread.
    pub fn merge(&mut self, other: &Self) {
        self.ok += other.ok;
        self.payload_bytes += other.payload_bytes;
        self.errors += other.errors;
        self.refusals += other.refusals;
        self.timeouts += other.timeouts;
        self.connects += other.connects;
        self.attempts += other.attempts;
        self.retry_after += other.retry_after;
        self.open += other.open;
        self.backlog_ns = self.backlog_ns.max(other.backlog_ns);
        self.times.merge(&other.times);
    }

    /// A quantile of the times with an error of a sixteenth; `None` with fewer than ten values
    /// above it.
    pub fn quantile_ns(&self, q: f64) -> Option<u64> {
        Some(self.times.quantile(q)?.ns)
    }

    /// Part kept in the record.
    pub fn summary(&self) -> Second {
        Second {
            ok: self.ok,
            p99_ns: self.quantile_ns(0.99),
            errors: self.errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_model::http::Arrivals;

    use super::*;

    #[test]
    fn server_is_gone_when_nothing_answers_after_a_failure() {
        const S: u64 = 1_000_000_000;

        let closed = Mode::Closed {
            pipeline: 1,
            think_ns: 0,
        };
        for (class, last_s, open_at_end, expected) in [
            (
                ErrorClass::ConnectRefused,
                4,
                0,
                Some("connection refused since 3.0 s: the server is gone"),
            ),
            (ErrorClass::ConnectRefused, 4, 1, None),
            (
                ErrorClass::Timeout,
                4,
                8,
                Some("no response since 3.0 s: the server is gone"),
            ),
            (ErrorClass::Timeout, 0, 8, None),
            (ErrorClass::Eof, 4, 0, None),
            (ErrorClass::ConnectRefused, 11, 0, None),
        ] {
            let mut stats = LoadStats {
                last_response_ns: last_s * S,
                ..LoadStats::default()
            };
            stats.connections.open_at_end = open_at_end;
            stats.note_failure(class);

            // The connections that break follow or precede those that cannot be opened.
            stats.note_failure(if class == ErrorClass::ConnectRefused {
                ErrorClass::Eof
            } else {
                class
            });
            let found = stats.outage(closed, Some((S, 11 * S)));
            assert_eq!(found.as_deref(), expected, "{class:?}");
        }
    }

    #[test]
    fn lateness_counts_against_the_latency_and_the_interval_it_delays() {
        for (rate_per_s, late_us, latency_us, expected) in [
            (5_000.0, 100, 7, false),
            (5_000.0, 900, 1_000, false),
            (5_000.0, 2_000, 2_100, true),
            // A tenth of what the server takes, and less than the next request is due.
            (5_000.0, 2_000, 30_000, false),
            (100.0, 2_000, 2_100, false),
        ] {
            let mut stats = LoadStats::default();
            for _ in 0..2_000 {
                stats.lateness.record(late_us * 1_000);
                stats.latency.record(latency_us * 1_000);
            }

            let mode = Mode::Open {
                rate_per_s,
                arrivals: Arrivals::Uniform,
            };
            assert_eq!(
                stats.is_generator_late(mode),
                expected,
                "{late_us} us late at {rate_per_s} per second"
            );
        }

        assert!(!LoadStats::default().is_generator_late(Mode::Idle { heartbeat_ns: None }));
    }

    #[test]
    fn seconds_of_threads_are_merged() {
        let (mut a, mut b) = (SecondPart::new(3), SecondPart::new(3));
        for _ in 0..990 {
            a.response(100_000, 1024);
        }

        for _ in 0..20 {
            b.response(50_000_000, 1024);
        }

        b.failure(ErrorClass::Timeout, false);
        a.merge(&b);
        let second = a.summary();
        assert_eq!((second.ok, second.errors), (1_010, 1));

        let p99 = second.p99_ns.expect("ten lie above");
        assert!((47_000_000..54_000_000).contains(&p99), "{p99}");
    }
}
