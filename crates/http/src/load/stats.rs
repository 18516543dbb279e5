//! Statistics of a load, merged from its workers into the result.

use linerate_model::http::{Connections, ErrorCounts, Flag, LoadResult, Mode, NegotiatedProtocol};
use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::second::SecondPart;
use super::spec::LoadSpec;

/// Statistics of one worker, or of all.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct LoadStats {
    pub(crate) connections: Connections,
    pub(crate) requests: u64,
    pub(crate) ok: u64,
    pub(crate) payload_bytes: u64,
    /// Meaningless where headers are not counted.
    pub(crate) http_bytes: u64,
    pub(crate) response_head_bytes: Option<u64>,
    pub(crate) errors: ErrorCounts,
    /// From due (open loop) or sent (closed loop) to complete.
    pub(crate) latency: Distribution,
    pub(crate) service: Distribution,
    pub(crate) send_lag: Distribution,
    /// Part of the send lag caused by the generator: a connection was free when the request was due.
    pub(crate) lateness: Distribution,
    pub(crate) connect: Distribution,
    pub(crate) is_overloaded: bool,
    /// Protocol negotiated by the first connection; `None` where none was.
    pub(crate) protocol: Option<NegotiatedProtocol>,
}

impl LoadStats {
    /// Adds the statistics of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        let (ours, theirs) = (&mut self.connections, other.connections);
        ours.wanted += theirs.wanted;
        ours.opened += theirs.opened;
        ours.open_at_end += theirs.open_at_end;
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
        self.protocol = self.protocol.take().or(other.protocol);
    }

    /// Result of a run of `window_ns` with the seconds since the start of the warm-up.
    pub(crate) fn result(&self, spec: &LoadSpec, window_ns: u64, seconds: &[SecondPart], flags: &[Flag]) -> LoadResult {
        let is_open = !matches!(spec.mode, Mode::Closed { .. });
        let has_heads = spec.protocol.is_plain_http1();
        let optional = |times: &Distribution| (!times.is_empty()).then(|| times.summary());
        // After the window comes the drain, in which nothing is sent.
        let whole_seconds = usize::try_from((spec.warmup_ns + spec.duration_ns) / 1_000_000_000).unwrap_or(usize::MAX);
        let mut flags = flags.to_vec();
        if self.is_overloaded {
            flags.push(Flag::Overload);
        }
        if is_open && self.is_generator_late() {
            flags.push(Flag::GeneratorLate);
        }
        LoadResult {
            protocol: self.protocol.clone().or_else(|| has_heads.then(NegotiatedProtocol::default)),
            mode: spec.mode,
            connections: self.connections,
            window_ns,
            requests: self.requests,
            ok: self.ok,
            payload_bytes: self.payload_bytes,
            http_bytes: has_heads.then_some(self.http_bytes),
            request_bytes: has_heads.then(|| self.requests.saturating_mul(spec.request.len() as u64)),
            response_head_bytes: self.response_head_bytes,
            errors: self.errors.clone(),
            latency: self.latency.summary(),
            service: optional(&self.service).filter(|_| is_open),
            send_lag: optional(&self.send_lag).filter(|_| is_open),
            connect: optional(&self.connect),
            seconds: seconds.iter().take(whole_seconds).map(SecondPart::summary).collect(),
            warmup_seconds: u32::try_from(spec.warmup_ns / 1_000_000_000).unwrap_or(u32::MAX),
            flags,
        }
    }

    /// Whether the 99th percentile of the generator's lateness is above 1 ms, or above a tenth of the median latency and
    /// more than a wake-up takes.
    fn is_generator_late(&self) -> bool {
        let late = self.lateness.quantile(0.99).map(|late| late.ns);
        let median = self.latency.quantile(0.5).map_or(u64::MAX, |median| median.ns);
        late.is_some_and(|late| late > LATE_MAX_NS.min((median / 10).max(WAKE_NS)))
    }
}

/// Lateness above this is always reported.
const LATE_MAX_NS: u64 = 1_000_000;
/// A wake-up may take this long on a virtual host.
const WAKE_NS: u64 = 100_000;
