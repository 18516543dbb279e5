//! The parameters of a test, as the client sends them to the server.

mod parse;
mod spec;
mod wire;

use linerate_model::Transport;
use linerate_model::spec::{SendPath, SequenceCheck};

/// Most streams per direction between any two iperf3 programs.
pub const MAX_STREAMS: u32 = 128;
/// Most streams per direction between two linerate programs.
pub const MAX_STREAMS_EXTENDED: u32 = 16384;
/// Version of the additions between linerate programs.
pub const LINERATE_PROTOCOL: u32 = 1;

/// Value of the addition `udp_check` for [`SequenceCheck::FirstOfBurst`].
const FIRST_OF_BURST: &str = "burst";

/// Longest test, in s.
pub const MAX_TIME_S: u32 = 86400;
/// Longest warm-up, in s.
pub const MAX_OMIT_S: u32 = 600;
/// Largest block of a stream transport, in bytes.
pub const MAX_BLOCK_LEN_BYTES: u32 = 1 << 20;
/// Smallest UDP block, in bytes.
pub const MIN_UDP_BLOCK_LEN_BYTES: u32 = 16;
/// Largest UDP block and largest segmented buffer, in bytes.
pub const MAX_UDP_BLOCK_LEN_BYTES: u32 = 65507;
/// Largest socket buffer, in bytes.
pub const MAX_WINDOW_BYTES: u32 = 512 << 20;
/// Largest TCP segment size, in bytes.
pub const MAX_MSS_BYTES: u32 = 32767;
/// Most blocks sent back to back.
pub const MAX_BURST: u32 = 1000;
/// Highest CPU number.
pub const MAX_CPU: u32 = 1024;
/// Highest IPv6 flow label.
pub const MAX_FLOW_LABEL: u32 = 0xf_ffff;

/// Block length a server assumes when the client names none.
const DEFAULT_BLOCK_LEN_BYTES: u32 = 128 * 1024;
/// The same of the time of the test, in s.
const DEFAULT_TIME_S: u32 = 10;
/// The same of the period of the pacing timer, in µs.
const DEFAULT_PACING_TIMER_US: u32 = 1000;

/// Everything a client can ask for. Values of a parsed object are inside their ranges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Params {
    /// Transport of the data streams; keys `tcp`, `udp`, `sctp`.
    pub transport: Transport,
    /// Warm-up in s, 0..=600.
    pub omit_s: u32,
    /// CPU the server pins itself to, 0..=1024.
    pub server_affinity: Option<u32>,
    /// Length of the measured part in s, 0..=86400; 0 for no limit.
    pub time_s: u32,
    /// Bytes that end the test, 0 for no limit.
    pub num_bytes: u64,
    /// Blocks that end the test, 0 for no limit.
    pub block_count: u64,
    /// TCP segment size in bytes, 1..=32767.
    pub mss_bytes: Option<u32>,
    /// Nagle's algorithm off.
    pub no_delay: bool,
    /// Streams per direction, 1..=128, or 1..=16384 between linerate programs.
    pub parallel: u32,
    /// The server sends.
    pub reverse: bool,
    /// Both send.
    pub bidirectional: bool,
    /// Multipath TCP.
    pub mptcp: bool,
    /// Socket buffers in bytes, 1..=536870912.
    pub window_bytes: Option<u32>,
    /// Block length in bytes, 1..=1048576, UDP 16..=65507.
    pub len_bytes: u32,
    /// Rate of each stream in bit/s, 0 for unlimited.
    pub bandwidth_bps: u64,
    /// Kernel pacing in bit/s, 0 for none.
    pub fq_rate_bps: u64,
    /// Period of the pacing timer of releases up to 3.17, in µs; 0 when not sent.
    pub pacing_timer_us: u32,
    /// Blocks sent back to back, 1..=1000.
    pub burst: Option<u32>,
    /// Requested offloads; sent for UDP only.
    pub offload: UdpOffload,
    /// TOS or traffic class.
    pub tos: u8,
    /// IPv6 flow label, 1..=0xFFFFF.
    pub flow_label: Option<u32>,
    /// Label of the test.
    pub title: Option<String>,
    /// Text for the server's JSON output.
    pub extra_data: Option<String>,
    /// Congestion control algorithm.
    pub congestion: Option<String>,
    /// The server's report is wanted.
    pub get_server_output: bool,
    /// 64-bit counters in UDP datagrams.
    pub udp_counters_64bit: bool,
    /// Blocks contain `0123456789` repeated.
    pub repeating_payload: bool,
    /// Path of sent bytes to the kernel. Programs that are not linerate know
    /// `sendfile(2)` only.
    pub send_path: SendPath,
    /// IPv4 UDP is not fragmented.
    pub dont_fragment: bool,
    /// Proof of identity, see [`crate::wire::auth`].
    pub auth_token: Option<String>,
    /// Receivers let the kernel drop the payload.
    pub skip_rx_copy: bool,
    /// The client's version text.
    pub client_version: Option<String>,
    /// Version of linerate's additions the client knows; `None` for any other client.
    pub linerate_protocol: Option<u32>,
    /// Blocks may share a write; between linerate programs.
    pub coalesce: bool,
    /// Which datagrams receivers check; between linerate programs.
    pub udp_check: SequenceCheck,
    /// The client requests facts about the server's host; only linerate clients do.
    pub want_facts: bool,
}

/// UDP segmentation and coalescing as on the wire. Sizes have no upper bound there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpOffload {
    /// Segmentation is wanted when not 0.
    pub gso: u32,
    /// Bytes per datagram.
    pub gso_datagram_bytes: u32,
    /// Bytes per segmented buffer.
    pub gso_buffer_bytes: u32,
    /// Coalescing is wanted; 0 or 1.
    pub gro: u32,
    /// Bytes per coalesced buffer.
    pub gro_buffer_bytes: u32,
}

impl Default for UdpOffload {
    fn default() -> Self {
        Self {
            gso: 0,
            gso_datagram_bytes: 0,
            gso_buffer_bytes: MAX_UDP_BLOCK_LEN_BYTES,
            gro: 0,
            gro_buffer_bytes: MAX_UDP_BLOCK_LEN_BYTES,
        }
    }
}

impl Default for Params {
    /// Defaults of a server for `{}`.
    fn default() -> Self {
        Self::parse(b"{}").expect("every key is optional")
    }
}

impl Params {
    /// Checks whether the client is a linerate program and knows its additions.
    pub fn peer_is_linerate(&self) -> bool {
        self.linerate_protocol.is_some()
    }

    /// Streams of both directions together.
    pub fn total_streams(&self) -> u32 {
        self.parallel
            .saturating_mul(if self.bidirectional { 2 } else { 1 })
    }

    /// The highest total rate of the test, by either way of limiting it; 0 for no limit.
    pub fn requested_rate_bps(&self) -> u64 {
        let rate_bps = self.bandwidth_bps.max(self.fq_rate_bps);
        rate_bps.saturating_mul(u64::from(self.total_streams()))
    }
}
