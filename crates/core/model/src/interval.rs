//! One reporting interval: growth of the counters between two samples.

use linerate_macros::stored;

pub use crate::tcp_interval::{TcpInterval, TcpLimits};

use crate::metrics::StreamMetrics;
use crate::stream::{Flow, Stream, StreamId, StreamRole};

/// One interval of all streams of a test. All rows share its boundaries but for the moment each was
/// read.
#[stored(Default)]
pub struct IntervalReport {
    /// The interval belongs to the warm-up.
    pub omitted: bool,
    /// It ended with the test and not at the reporting grid.
    pub last: bool,
    /// One row per stream, in stream order.
    pub streams: Vec<StreamInterval>,
}

/// One interval of one stream.
#[stored(Default)]
pub struct StreamInterval {
    /// The stream.
    pub id: StreamId,
    /// Role of this end on it.
    pub role: StreamRole,
    /// Its direction.
    pub flow: Flow,
    /// Start in ns since the start of the measured part (or of the warm-up, while `omitted`).
    pub start_ns: u64,
    /// End, same origin.
    pub end_ns: u64,
    /// Payload bytes moved.
    pub bytes: u64,
    /// TCP facts; senders only.
    pub tcp: Option<TcpInterval>,
    /// UDP facts.
    pub udp: Option<UdpInterval>,
    /// Further measurements, of dialects and options that have them.
    pub metrics: Option<Box<StreamMetrics>>,
}

impl StreamInterval {
    /// Payload of `stream` from `start_ns` to `end_ns`, without further facts.
    pub fn new(stream: &Stream, start_ns: u64, end_ns: u64, bytes: u64) -> Self {
        let Stream { id, role, flow, .. } = *stream;
        Self {
            id,
            role,
            flow,
            start_ns,
            end_ns,
            bytes,
            ..Self::default()
        }
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        crate::units::ns_to_s(self.end_ns.saturating_sub(self.start_ns))
    }

    /// Payload rate in bit/s.
    pub fn bits_per_second(&self) -> f64 {
        crate::units::rate_bps(self.bytes, self.seconds())
    }
}

/// UDP facts of an interval. A sender knows only `packets`.
#[stored(Copy, Default)]
#[serde(default)]
pub struct UdpInterval {
    /// Sender: datagrams sent. Receiver: growth of the highest sequence number seen.
    pub packets: u64,
    /// Lost datagrams; negative when late arrivals took back earlier losses.
    pub lost: i64,
    /// Datagrams that arrived late or twice.
    pub out_of_order: u64,
    /// Smoothed interarrival jitter in s (RFC 3550 section 6.4.1) at the end.
    pub jitter_s: f64,
}

impl UdpInterval {
    /// Growth of the counters, and the jitter in s at the end.
    pub const fn new(packets: u64, lost: i64, out_of_order: u64, jitter_s: f64) -> Self {
        Self {
            packets,
            lost,
            out_of_order,
            jitter_s,
        }
    }
}

/// The rows of one direction added up.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalSum {
    /// Role of this end on these streams.
    pub role: StreamRole,
    /// Boundaries of the first stream.
    pub start_ns: u64,
    /// Boundaries of the first stream.
    pub end_ns: u64,
    /// Payload bytes moved.
    pub bytes: u64,
    /// Retransmitted segments, when every row knows them.
    pub retransmits: Option<u64>,
    /// UDP facts; jitter is the mean of the rows.
    pub udp: Option<UdpInterval>,
}

impl IntervalReport {
    /// An interval of the measured part that ended at the reporting grid.
    pub const fn new(streams: Vec<StreamInterval>) -> Self {
        Self {
            omitted: false,
            last: false,
            streams,
        }
    }

    /// Adds up the streams of one direction; `None` when there are none.
    pub fn sum(&self, flow: Flow) -> Option<IntervalSum> {
        let rows: Vec<&StreamInterval> = self.streams.iter().filter(|s| s.flow == flow).collect();
        let first = rows.first()?;
        let udp_rows: Vec<UdpInterval> = rows.iter().filter_map(|r| r.udp).collect();
        let udp = (!udp_rows.is_empty()).then(|| UdpInterval {
            packets: udp_rows.iter().map(|u| u.packets).sum(),
            lost: udp_rows.iter().map(|u| u.lost).sum(),
            out_of_order: udp_rows.iter().map(|u| u.out_of_order).sum(),
            // iperf3 prints the mean jitter of the streams in a sum.
            jitter_s: udp_rows.iter().map(|u| u.jitter_s).sum::<f64>() / udp_rows.len() as f64,
        });

        Some(IntervalSum {
            // Streams of one flow have one role, and report at the same time.
            role: first.role,
            start_ns: first.start_ns,
            end_ns: first.end_ns,
            bytes: rows.iter().map(|r| r.bytes).sum(),
            // One stream without a count leaves the sum unknown.
            retransmits: rows.iter().map(|r| r.tcp.map(|t| t.retransmits)).sum(),
            udp,
        })
    }
}
