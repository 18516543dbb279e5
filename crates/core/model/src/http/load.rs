//! Result of one run of the load generator.

use linerate_macros::stored;

use super::{ErrorCounts, NegotiatedProtocol};

/// When a request is sent.
#[stored(Copy)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Mode {
    /// Each connection sends its next request when the response before is complete. Its response
    /// times do not hold the time a user would have waited to be sent.
    Closed {
        /// Requests each connection keeps outstanding.
        pipeline: u32,
        /// Pause between a response and the next request.
        think_ns: u64,
    },
    /// Requests are due by a schedule that does not care for responses.
    Open {
        /// Requests per second over all connections.
        rate_per_s: f64,
        /// Distribution of due times.
        arrivals: Arrivals,
    },
    /// Connections are held; at most heartbeats are sent.
    Idle {
        /// Pause between two heartbeats of a connection; absent without heartbeats.
        heartbeat_ns: Option<u64>,
    },
}

impl Mode {
    /// Requests that each connection keeps outstanding, at least 1: pipelined ones, or streams of
    /// HTTP/2.
    pub fn streams(self) -> u32 {
        match self {
            // A pipeline of 0 is that of one request at a time.
            Self::Closed { pipeline, .. } => pipeline.max(1),
            Self::Open { .. } | Self::Idle { .. } => 1,
        }
    }
}

/// Spread of the due times of an open loop.
#[stored(Copy, Eq)]
pub enum Arrivals {
    /// One every `1 / rate`.
    Uniform,
    /// Exponential gaps with mean `1 / rate`: independent users.
    Poisson,
}

/// Outcome of the connections of a run.
#[stored(Copy, Eq, Default)]
pub struct Connections {
    /// Asked for.
    pub wanted: u64,
    /// Open when the ramp was through.
    pub opened: u64,
    /// Open at the end of the window.
    pub open_at_end: u64,
    /// Connections among these on which the server has responded since they were opened. One
    /// without a response may wait in the server's listen queue. Absent in runs of earlier
    /// versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_at_end: Option<u64>,
    /// Opened once more after they were lost.
    pub reconnects: u64,
    /// Lost while idle or between requests.
    pub dropped: u64,
}

/// A quantile, which may be known from below only.
#[stored(Copy, Eq)]
pub struct Quantile {
    /// Nanoseconds.
    pub ns: u64,
    /// It falls on a request that never ended, so the truth is this or more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_lower_bound: bool,
}

impl Quantile {
    /// A quantile that is known from both sides.
    pub const fn new(ns: u64) -> Self {
        Self {
            ns,
            is_lower_bound: false,
        }
    }
}

/// A distribution of times in nanoseconds. A quantile `q` stands only where at least ten values lie
/// above it.
#[stored(Default)]
pub struct Latency {
    /// Values.
    pub n: u64,
    /// Median.
    pub p50: Option<Quantile>,
    /// Nine of ten are at most this.
    pub p90: Option<Quantile>,
    /// 99 of 100 are at most this.
    pub p99: Option<Quantile>,
    /// 999 of 1,000 are at most this.
    pub p999: Option<Quantile>,
    /// Largest value.
    pub max: Option<Quantile>,
    /// Arithmetic mean in nanoseconds.
    pub mean_ns: f64,
    /// The whole histogram: HdrHistogram V2 compressed, base64.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub hdr: String,
}

/// One second of a run, warm-up included.
#[stored(Copy, Eq, Default)]
pub struct Second {
    /// Complete 2xx responses.
    pub ok: u64,
    /// 99th percentile of their times; absent below 1,000 responses.
    pub p99_ns: Option<u64>,
    /// Failures.
    pub errors: u64,
}

/// Something about a run that changes how far it can be trusted.
#[stored(Copy, Eq, PartialOrd, Ord)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// The generator itself sent late although a connection was free: at the 99th percentile by
    /// more than 1 ms, a tenth of the latency, and the interval between two requests.
    GeneratorLate,
    /// The two halves of the window differ by more than 5 %.
    Unsteady,
    /// The offered rate cannot be sustained; the run ended early.
    Overload,
    /// Throughput times mean latency is not the number of connections (Little's law, within 10 %).
    Little,
    /// The hosts had not come to rest before it.
    DirtyStart,
    /// The circuit breaker or a `Retry-After` ended it.
    BreakerTripped,
    /// The control channel was lost, so the server's statistics are incomplete.
    ControlLost,
    /// The user ended it.
    Interrupted,
    /// The server was gone before its end.
    ServerGone,
}

/// Result of the load generator in one run, all threads and processes together.
#[stored]
pub struct LoadResult {
    /// Negotiated protocol; absent where no connection was established.
    #[serde(default = "plain_http1")]
    pub protocol: Option<NegotiatedProtocol>,
    /// When requests were sent.
    pub mode: Mode,
    /// Outcome of the connections.
    pub connections: Connections,
    /// Length of the measured window.
    pub window_ns: u64,
    /// Requests due (open loop) or sent (closed loop) in the window.
    pub requests: u64,
    /// Complete 2xx responses among these.
    pub ok: u64,
    /// Bytes of the bodies of these responses.
    pub payload_bytes: u64,
    /// Bytes of heads and bodies of these responses; absent inside TLS and in HTTP/2, where the
    /// bytes of heads are not seen.
    pub http_bytes: Option<u64>,
    /// Bytes of all these requests, heads and bodies; absent as those of the responses are.
    pub request_bytes: Option<u64>,
    /// Bytes of the head of the first response; absent where they are not seen.
    pub response_head_bytes: Option<u64>,
    /// Failures of requests and connections in the window and the ramp before it.
    pub errors: ErrorCounts,
    /// Closed loop: from sending to the complete response. Open loop: from the due time, so it
    /// holds the waiting of those that could not be sent in time.
    pub latency: Latency,
    /// Open loop: from sending to the complete response.
    pub service: Option<Latency>,
    /// Open loop: from the due time to sending.
    pub send_lag: Option<Latency>,
    /// From the first segment to the open connection, the handshake of TLS included.
    pub connect: Option<Latency>,
    /// From sending to the complete response of the only request before the load; absent where none
    /// was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alone_ns: Option<u64>,
    /// Every second since the start of the warm-up.
    pub seconds: Vec<Second>,
    /// Seconds of these that belong to the warm-up.
    pub warmup_seconds: u32,
    /// Reservations about it.
    pub flags: Vec<Flag>,
    /// Failures since the second when the server disappeared; absent where it answered until
    /// the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outage: Option<String>,
}

/// Protocol of runs without the member.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the default of a field that is optional"
)]
fn plain_http1() -> Option<NegotiatedProtocol> {
    Some(NegotiatedProtocol::default())
}

impl LoadResult {
    /// Complete 2xx responses per second of the window; absent for an empty window.
    pub fn ok_per_s(&self) -> Option<f64> {
        self.per_s(self.ok)
    }

    /// Bytes of bodies per second.
    pub fn payload_bytes_per_s(&self) -> Option<f64> {
        self.per_s(self.payload_bytes)
    }

    /// Bytes of heads and bodies per second.
    pub fn http_bytes_per_s(&self) -> Option<f64> {
        self.per_s(self.http_bytes?)
    }

    /// Failures as a share of all that ended, 0 to 1; absent where nothing ended.
    pub fn error_share(&self) -> Option<f64> {
        let errors = self.errors.total();
        let ended = self.ok.saturating_add(errors);
        (ended > 0).then(|| errors as f64 / ended as f64)
    }

    fn per_s(&self, amount: u64) -> Option<f64> {
        (self.window_ns > 0).then(|| amount as f64 * 1e9 / self.window_ns as f64)
    }
}
