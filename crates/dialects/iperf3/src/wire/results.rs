//! The results both ends exchange after a test.

mod wire;

use linerate_model::event::{Endpoint, ServerOutput};
use linerate_model::summary::{StreamSummary, TcpSummary, UdpTotals};
use linerate_model::{
    CpuUsage, Direction, EndpointTotals, StreamId, StreamRole, Summary, TestSpec, Transport,
};

use serde::Serialize;

use crate::wire::error_code::ErrorCode;

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

/// Counters of one end for one stream, in the order of the wire. Peers keep integers as signed
/// 64-bit numbers, which hold what one test can count.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamResult {
    /// Number of the stream on the wire, see [`wire_id`]; 0 when the peer sent nonsense.
    #[serde(rename = "id")]
    pub wire_id: u32,
    /// Payload bytes of the measured part.
    pub bytes: u64,
    /// Retransmitted segments; `None` on a receiver and for UDP.
    #[serde(serialize_with = "wire::known_or_minus_one")]
    pub retransmits: Option<u64>,
    /// Interarrival jitter in s; 0 for TCP.
    #[serde(rename = "jitter", serialize_with = "wire::short_number")]
    pub jitter_s: f64,
    /// Lost datagrams, warm-up included.
    pub errors: u64,
    /// Lost datagrams of the warm-up; `None` from releases up to 3.13.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_errors: Option<u64>,
    /// Sender: datagrams sent. Receiver: highest counter seen. Warm-up included.
    pub packets: u64,
    /// The same at the end of the warm-up; present exactly when `omitted_errors` is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub omitted_packets: Option<u64>,
    /// Start of the measured part in s, always 0 from real peers.
    #[serde(
        rename = "start_time",
        serialize_with = "wire::short_optional_number",
        skip_serializing_if = "Option::is_none"
    )]
    pub start_time_s: Option<f64>,
    /// End of the measured part in s.
    #[serde(
        rename = "end_time",
        serialize_with = "wire::short_optional_number",
        skip_serializing_if = "Option::is_none"
    )]
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

impl Results {
    /// The results for the peer: this end's half of every stream. The caller adds the server's
    /// report.
    pub fn from_summary(summary: &Summary, spec: &TestSpec, endpoint: Endpoint) -> Self {
        let tcp = spec.transport == Transport::Tcp;
        let congestion = if sends_first_direction(spec, endpoint) {
            &summary.sender_congestion
        } else {
            &summary.receiver_congestion
        };
        Self {
            cpu: summary.cpu_local.unwrap_or_default(),
            sender_has_retransmits: sender_has_retransmits(summary, tcp),
            congestion_used: congestion.clone().filter(|_| tcp),
            server_output: None,
            streams: summary
                .streams
                .iter()
                .map(|stream| own_half(stream, tcp))
                .collect(),
            // A server knows its client from the parameters; only a client needs the field.
            linerate: endpoint == Endpoint::Server,
            ran_beside: None,
            overflows: summary.overflows_local,
            facts: None,
        }
    }
}

/// Adds what the server counted to the summary of a client. Streams it does not mention stay
/// without its half.
///
/// # Errors
/// `StreamId` when the peer names a stream this test does not have; the summary then keeps what
/// came before it.
pub fn merge_peer(summary: &mut Summary, spec: &TestSpec, peer: &Results) -> Result<(), ErrorCode> {
    summary.cpu_remote = Some(peer.cpu).filter(is_measured);
    summary.overflows_remote = peer.overflows;

    if peer.congestion_used.is_some() {
        let theirs = if sends_first_direction(spec, Endpoint::Client) {
            &mut summary.receiver_congestion
        } else {
            &mut summary.sender_congestion
        };
        theirs.clone_from(&peer.congestion_used);
    }

    // Entries usually come in stream order, so the search starts where it should end.
    for result in &peer.streams {
        let id = stream_id(result.wire_id).ok_or(ErrorCode::StreamId)?;
        let guess = id.0 as usize;
        let index = match summary.streams.get(guess) {
            Some(stream) if stream.id == id => guess,
            _ => summary
                .streams
                .iter()
                .position(|s| s.id == id)
                .ok_or(ErrorCode::StreamId)?,
        };
        let stream = summary.streams.get_mut(index).ok_or(ErrorCode::StreamId)?;
        merge_stream(stream, spec, peer.sender_has_retransmits > 0, result);
    }

    Ok(())
}

/// Checks whether this end sends on the forward direction, or on the reverse one when it is the
/// only one.
fn sends_first_direction(spec: &TestSpec, endpoint: Endpoint) -> bool {
    (endpoint == Endpoint::Client) == (spec.direction != Direction::Reverse)
}

/// CPU shares are finite on the wire by construction; what is not is not shown.
fn is_measured(cpu: &CpuUsage) -> bool {
    cpu.total_percent.is_finite() && cpu.user_percent.is_finite() && cpu.system_percent.is_finite()
}

fn sender_has_retransmits(summary: &Summary, tcp: bool) -> i64 {
    let mut sending = summary
        .streams
        .iter()
        .filter(|s| s.role == StreamRole::Sender)
        .peekable();
    // -1 of the original: this end does not send, so it cannot know.
    if sending.peek().is_none() {
        return -1;
    }

    let counted = sending.all(|s| s.tcp.is_some_and(|t| t.retransmits.is_some()));
    i64::from(tcp && counted)
}

fn own_half(stream: &StreamSummary, tcp: bool) -> StreamResult {
    let half = stream.local().copied().unwrap_or_default();
    let udp = half.udp.unwrap_or_default();
    let sends_tcp = tcp && stream.role == StreamRole::Sender;
    StreamResult {
        wire_id: wire_id(stream.id),
        bytes: half.bytes,
        retransmits: stream.tcp.filter(|_| sends_tcp).and_then(|t| t.retransmits),
        jitter_s: udp.jitter_s,
        errors: udp.lost,
        // The two travel together or not at all.
        omitted_errors: Some(udp.omitted_lost.unwrap_or(0)),
        packets: udp.packets,
        omitted_packets: Some(udp.omitted_packets.unwrap_or(0)),
        start_time_s: Some(0.0),
        end_time_s: Some(half.seconds()),
    }
}

fn merge_stream(
    stream: &mut StreamSummary,
    spec: &TestSpec,
    retransmits_known: bool,
    peer: &StreamResult,
) {
    let own_duration_ns = stream.local().map_or(0, |half| half.duration_ns);
    let half = EndpointTotals::new(
        peer.bytes,
        duration_ns(peer).unwrap_or(own_duration_ns),
        (spec.transport == Transport::Udp).then(|| peer_udp(stream.role, spec, peer)),
    );

    match stream.role {
        StreamRole::Sender => stream.receiver = Some(half),
        StreamRole::Receiver => {
            stream.sender = Some(half);
            if spec.transport == Transport::Tcp && retransmits_known {
                let tcp = TcpSummary {
                    retransmits: peer.retransmits,
                    ..TcpSummary::default()
                };
                stream.tcp = Some(tcp);
            }
        }
    }
}

/// The peer's measured part; `None` from releases that do not send it.
fn duration_ns(peer: &StreamResult) -> Option<u64> {
    let seconds = peer.end_time_s? - peer.start_time_s?;
    // A float cast saturates, and turns what is not a number into 0.
    Some((seconds.max(0.0) * 1e9).round() as u64)
}

/// A sender's jitter and losses are echoes of the receiver's and mean nothing.
fn peer_udp(own_role: StreamRole, spec: &TestSpec, peer: &StreamResult) -> UdpTotals {
    let peer_receives = own_role == StreamRole::Sender;
    let lost = if peer_receives { peer.errors } else { 0 };
    let no_warm_up = spec.omit.is_zero();

    UdpTotals {
        packets: peer.packets,
        lost,
        out_of_order: 0,
        jitter_s: if peer_receives { peer.jitter_s } else { 0.0 },
        omitted_packets: peer.omitted_packets.or(no_warm_up.then_some(0)),
        omitted_lost: peer
            .omitted_errors
            .filter(|_| peer_receives)
            .or((no_warm_up || lost == 0).then_some(0)),
    }
}
