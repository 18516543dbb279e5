//! The results both ends exchange after a test.

mod merge;
mod wire;

use linerate_model::CpuUsage;
use linerate_model::event::ServerOutput;

use linerate_model::StreamId;
pub use merge::merge_peer;

/// Counters of one end.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// CPU use in percent of one core.
    pub cpu: CpuUsage,
    /// −1 when this end only received, 1 when it counted retransmits of what it sent, else 0.
    pub sender_has_retransmits: i64,
    /// Congestion control algorithm of this end; TCP only.
    pub congestion_used: Option<String>,
    /// The server's own report, when the client requested it.
    pub server_output: Option<ServerOutput>,
    /// One entry per stream.
    pub streams: Vec<StreamResult>,
    /// The sender of these results is a linerate program.
    pub linerate: bool,
    /// Most tests that ran beside this one on the server; only linerate servers send it, and only
    /// to linerate clients.
    pub ran_beside: Option<u32>,
    /// See [`linerate_model::Summary::overflows_local`]; only linerate programs send it, and only
    /// to each other.
    pub overflows: Option<u64>,
    /// Facts of the server's host: a JSON object, for linerate clients that requested
    /// it.
    pub facts: Option<String>,
}

/// Counters of one end for one stream.
#[derive(Debug, Clone, PartialEq)]
pub struct StreamResult {
    /// Number of the stream on the wire, see [`wire_id`]; 0 when the peer sent nonsense.
    pub wire_id: u32,
    /// Payload bytes of the measured part.
    pub bytes: u64,
    /// Retransmitted segments; `None` on a receiver and for UDP.
    pub retransmits: Option<u64>,
    /// Interarrival jitter in s; 0 for TCP.
    pub jitter_s: f64,
    /// Lost datagrams, warm-up included.
    pub errors: u64,
    /// Lost datagrams of the warm-up; `None` from releases up to 3.13.
    pub omitted_errors: Option<u64>,
    /// Sender: datagrams sent. Receiver: highest counter seen. Warm-up included.
    pub packets: u64,
    /// The same at the end of the warm-up; present exactly when `omitted_errors` is.
    pub omitted_packets: Option<u64>,
    /// Start of the measured part in s, always 0 from real peers.
    pub start_time_s: Option<f64>,
    /// End of the measured part in s.
    pub end_time_s: Option<f64>,
}

/// Number of a stream on the wire: 1, 3, 4, 5, … in the order of creation.
pub fn wire_id(id: StreamId) -> u32 {
    if id.0 == 0 { 1 } else { id.0.saturating_add(2) }
}

/// The stream with this number on the wire; `None` for 0 and 2, which no stream has.
pub fn stream_id(wire_id: u32) -> Option<StreamId> {
    match wire_id {
        1 => Some(StreamId(0)),
        3.. => Some(StreamId(wire_id - 2)),
        _ => None,
    }
}

impl Results {
    /// Checks whether every entry names a stream of a test with this many.
    pub(crate) fn name_only_streams_below(&self, total_streams: u32) -> bool {
        self.streams
            .iter()
            .all(|stream| stream_id(stream.wire_id).is_some_and(|id| id.0 < total_streams))
    }
}
