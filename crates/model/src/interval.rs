//! One reporting interval: growth of the counters between two samples.

use serde::{Deserialize, Serialize};

use crate::metrics::StreamMetrics;
use crate::stream::{Flow, StreamId, StreamRole};

/// One interval of all streams of a test. All rows share its boundaries but for the moment each was read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct IntervalReport {
    /// The interval belongs to the warm-up.
    pub omitted: bool,
    /// It ended with the test and not at the reporting grid.
    pub last: bool,
    /// One row per stream, in stream order.
    pub streams: Vec<StreamInterval>,
}

/// One interval of one stream.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamInterval {
    /// The stream.
    pub id: StreamId,
    /// What this end does on it.
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
    /// Length in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        crate::units::ns_to_s(self.end_ns.saturating_sub(self.start_ns))
    }

    /// Payload rate in bit/s.
    #[must_use]
    pub fn bits_per_second(&self) -> f64 {
        crate::units::rate_bps(self.bytes, self.seconds())
    }
}

/// TCP_INFO (tcp(7)) of a sender.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpInterval {
    /// Segments retransmitted in this interval.
    pub retransmits: u64,
    /// Congestion window in bytes at the end.
    pub snd_cwnd_bytes: u64,
    /// Peer's advertised window in bytes at the end; `None` on kernels before 5.4.
    pub snd_wnd_bytes: Option<u64>,
    /// Smoothed round-trip time in µs at the end.
    pub rtt_us: u32,
    /// Its variation in µs.
    pub rttvar_us: u32,
    /// Path MTU in bytes.
    pub pmtu_bytes: u32,
    /// Segments that the peer reported as received twice in this interval (DSACK, RFC 2883); `None` on kernels before 4.19.
    pub dsack_segments: Option<u64>,
    /// Reordering events since the stream began; `None` on kernels before 4.19.
    pub reorder_events: Option<u64>,
    /// Payload of a full segment in bytes.
    pub mss_bytes: u32,
    /// Smallest round-trip time since the stream began in µs; `None` on kernels before 4.6.
    pub min_rtt_us: Option<u32>,
    /// What held the stream back; `None` on kernels before 4.10.
    pub limits: Option<TcpLimits>,
}

/// How a sender spent an interval, in µs. The kernel counts in ticks of some ms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpLimits {
    /// With data to send or to be acknowledged.
    pub busy_us: u64,
    /// Part of it spent waiting for the peer's window.
    pub rwnd_limited_us: u64,
    /// Part of it spent waiting for this end's send buffer.
    pub sndbuf_limited_us: u64,
}

/// UDP facts of an interval. A sender knows only `packets`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
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

/// The rows of one direction added up.
#[derive(Debug, Clone, PartialEq)]
pub struct IntervalSum {
    /// What this end does on these streams.
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
    /// Adds up the streams of one direction; `None` when there are none.
    #[must_use]
    pub fn sum(&self, flow: Flow) -> Option<IntervalSum> {
        let rows: Vec<&StreamInterval> = self.streams.iter().filter(|s| s.flow == flow).collect();
        let first = rows.first()?;
        let udp_rows: Vec<UdpInterval> = rows.iter().filter_map(|r| r.udp).collect();
        let udp = (!udp_rows.is_empty()).then(|| UdpInterval {
            packets: udp_rows.iter().map(|u| u.packets).sum(),
            lost: udp_rows.iter().map(|u| u.lost).sum(),
            out_of_order: udp_rows.iter().map(|u| u.out_of_order).sum(),
            jitter_s: udp_rows.iter().map(|u| u.jitter_s).sum::<f64>() / udp_rows.len() as f64,
        });
        Some(IntervalSum {
            role: first.role,
            start_ns: first.start_ns,
            end_ns: first.end_ns,
            bytes: rows.iter().map(|r| r.bytes).sum(),
            retransmits: rows.iter().map(|r| r.tcp.map(|t| t.retransmits)).sum(),
            udp,
        })
    }
}
