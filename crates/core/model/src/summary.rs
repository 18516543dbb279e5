//! The whole test: what each end saw of each stream.

use linerate_macros::stored;

use crate::metrics::StreamMetrics;
use crate::stream::{Flow, StreamId, StreamRole};
use crate::tcp_interval::TcpLimits;
use crate::units::{ns_to_s, rate_bps};

/// Result of a test, or of the part of it that happened.
#[stored(Default)]
pub struct Summary {
    /// Per stream, in stream order.
    pub streams: Vec<StreamSummary>,
    /// CPU time of this end in percent of one core.
    pub cpu_local: Option<CpuUsage>,
    /// The same of the peer, as it reported it.
    pub cpu_remote: Option<CpuUsage>,
    /// Congestion control at the sending end of the forward direction (of the reverse one, if it is
    /// the only one).
    pub sender_congestion: Option<String>,
    /// Congestion control at the receiving end.
    pub receiver_congestion: Option<String>,
    /// Times a full receive buffer of a UDP stream made this end's kernel drop what had arrived;
    /// `None` when unknown. Each represents at least one lost datagram that the network did
    /// deliver.
    pub overflows_local: Option<u64>,
    /// The same of the peer, as it reported it.
    pub overflows_remote: Option<u64>,
}

/// CPU use in percent of one core over the test.
#[stored(Copy, Default)]
pub struct CpuUsage {
    /// User and system.
    pub total_percent: f64,
    /// User mode.
    pub user_percent: f64,
    /// Kernel mode.
    pub system_percent: f64,
}

/// One stream over the whole measured part.
#[stored(Default)]
pub struct StreamSummary {
    /// The stream.
    pub id: StreamId,
    /// Role of this end on it.
    pub role: StreamRole,
    /// Its direction.
    pub flow: Flow,
    /// Counts of the sending end; `None` when it is the peer and did not report.
    pub sender: Option<EndpointTotals>,
    /// Counts of the receiving end; `None` when it is the peer and did not report.
    pub receiver: Option<EndpointTotals>,
    /// Data that reached the receiving end between start and end of the measured time, as this
    /// end saw it: without what arrived later. A sender knows it from acknowledgements (TCP), a
    /// receiver from its own counters. `None` where neither is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<EndpointTotals>,
    /// TCP facts of the sending end.
    pub tcp: Option<TcpSummary>,
    /// File that was read or written on this end.
    pub file: Option<FileSummary>,
    /// Further measures of this end.
    pub local_metrics: Option<Box<StreamMetrics>>,
    /// The same of the peer, as it reported it.
    pub peer_metrics: Option<Box<StreamMetrics>>,
}

impl StreamSummary {
    /// The half this end measured itself.
    pub fn local(&self) -> Option<&EndpointTotals> {
        match self.role {
            StreamRole::Sender => self.sender.as_ref(),
            StreamRole::Receiver => self.receiver.as_ref(),
        }
    }
}

/// One end's view of one stream, or of the sum of several.
#[stored(Copy, Default)]
pub struct EndpointTotals {
    /// Payload bytes of the measured part.
    pub bytes: u64,
    /// Length of the measured part in ns.
    pub duration_ns: u64,
    /// UDP counters.
    pub udp: Option<UdpTotals>,
}

impl EndpointTotals {
    /// Payload bytes of `duration_ns`, and the counters of a UDP stream.
    pub const fn new(bytes: u64, duration_ns: u64, udp: Option<UdpTotals>) -> Self {
        Self {
            bytes,
            duration_ns,
            udp,
        }
    }

    /// Length in seconds.
    pub fn seconds(&self) -> f64 {
        ns_to_s(self.duration_ns)
    }

    /// Payload rate in bit/s.
    pub fn bits_per_second(&self) -> f64 {
        rate_bps(self.bytes, self.seconds())
    }
}

/// UDP counters of one end. `packets` and `lost` include the warm-up; the `omitted_*` fields are
/// its share.
#[stored(Copy, Default)]
pub struct UdpTotals {
    /// Sender: datagrams sent. Receiver: highest sequence number seen.
    pub packets: u64,
    /// Datagrams that are missing below the highest sequence number.
    pub lost: u64,
    /// Datagrams that came late or twice.
    pub out_of_order: u64,
    /// Smoothed interarrival jitter in s at the end.
    pub jitter_s: f64,
    /// `packets` when the warm-up ended; `None` when the peer does not report it.
    pub omitted_packets: Option<u64>,
    /// `lost` when the warm-up ended; `None` when the peer does not report it and it cannot be
    /// known.
    pub omitted_lost: Option<u64>,
}

impl UdpTotals {
    /// Counters of an end that does not report its warm-up.
    pub const fn new(packets: u64, lost: u64, out_of_order: u64, jitter_s: f64) -> Self {
        Self {
            packets,
            lost,
            out_of_order,
            jitter_s,
            omitted_packets: None,
            omitted_lost: None,
        }
    }
}

/// TCP facts of a sending end.
#[stored(Copy, Default, Eq)]
pub struct TcpSummary {
    /// Segments retransmitted in the measured part.
    pub retransmits: Option<u64>,
    /// Segments that the peer reported as received twice (DSACK, RFC 2883) in the measured part;
    /// only the sending end itself knows them.
    pub dsack_segments: Option<u64>,
    /// Distance in segments up to which the kernel does not take a late one for lost; only the
    /// sending end itself knows it.
    pub reordering_segments: Option<u32>,
    /// Reordering events; only the sending end itself knows them.
    pub reorder_events: Option<u64>,
    /// Largest congestion window in bytes.
    pub max_snd_cwnd_bytes: Option<u64>,
    /// Largest window the peer advertised, in bytes.
    pub max_snd_wnd_bytes: Option<u64>,
    /// Largest smoothed round-trip time in µs.
    pub max_rtt_us: Option<u32>,
    /// Smallest smoothed round-trip time in µs.
    pub min_rtt_us: Option<u32>,
    /// Mean of the smoothed round-trip times in µs.
    pub mean_rtt_us: Option<u32>,
    /// Times limited by receiver or buffer in the measured part; only the sending end itself knows
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<TcpLimits>,
}

/// A file that was sent or received.
#[stored(Eq)]
pub struct FileSummary {
    /// Its name as given.
    pub name: String,
    /// Its size in bytes at the end.
    pub size_bytes: u64,
}
