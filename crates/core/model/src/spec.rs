//! Specification of a test, resolved: no text left to parse, no option left to interpret.

mod ends;

use std::time::Duration;

use linerate_macros::stored;

use crate::workload::{Pairing, Release, Shape, Workload};

pub use ends::{
    AcceptedPadding, AddressFamily, BindSpec, BitrateLimit, ClientSpec, ConnectRetry, Credentials,
    EndOptions, IoStrategy, Iperf2Defaults, Keepalive, LocalOptions, ReceiveWait, ServerAuth,
    ServerSpec,
};

/// Transport of the data streams. The control connection is always TCP.
#[stored(Copy, Eq)]
pub enum Transport {
    /// TCP, RFC 9293.
    Tcp,
    /// UDP, RFC 768.
    Udp,
    /// SCTP one-to-one style, RFC 9260 and RFC 6458 section 4.
    Sctp,
}

/// Who sends, seen from the client.
#[stored(Copy, Eq)]
pub enum Direction {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
    /// Both at the same time, on separate streams.
    Bidirectional,
}

/// End condition of the measured part of a test.
#[stored(Copy, Eq)]
pub enum EndCondition {
    /// After this time.
    #[serde(rename = "duration_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    Duration(Duration),
    /// When all streams of one direction together moved this many payload bytes.
    Bytes(u64),
    /// When all streams of one direction together moved this many blocks.
    Blocks(u64),
    /// Only when it is interrupted.
    Unlimited,
}

impl EndCondition {
    /// Time, bytes and blocks, of which at most one is not 0; all are 0 of a test without an end.
    pub fn amounts(self) -> (Duration, u64, u64) {
        match self {
            Self::Duration(time) => (time, 0, 0),
            Self::Bytes(bytes) => (Duration::ZERO, bytes, 0),
            Self::Blocks(blocks) => (Duration::ZERO, 0, blocks),
            Self::Unlimited => (Duration::ZERO, 0, 0),
        }
    }

    /// The time limit, if this is one.
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Duration(d) => Some(d),
            _ => None,
        }
    }
}

/// A test, as both ends understand it after the parameters were exchanged.
#[stored]
#[serde(default)]
pub struct TestSpec {
    /// Transport of the data streams.
    pub transport: Transport,
    /// Data streams use Multipath TCP (RFC 8684).
    pub mptcp: bool,
    /// Who sends.
    pub direction: Direction,
    /// Streams per direction, at least 1.
    pub streams: u32,
    /// End condition of the measured part.
    pub end: EndCondition,
    /// Warm-up that is reported but not counted.
    #[serde(rename = "omit_ns", with = "crate::units::whole_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "u64"))]
    pub omit: Duration,
    /// Bytes per block: one write of a stream transport, one datagram of UDP.
    pub block_len_bytes: u32,
    /// The user named the block length: it is then one write of exactly that size.
    pub block_len_explicit: bool,
    /// Rate limits.
    pub pacing: Pacing,
    /// Socket options of the data streams.
    pub socket: SocketTuning,
    /// Content of the blocks.
    pub payload: Payload,
    /// System call by which senders of a byte stream hand their bytes to the kernel.
    pub send_path: SendPath,
    /// Blocks of an explicit length may share a write.
    pub coalesce: bool,
    /// Receivers let the kernel discard the payload (`MSG_TRUNC`, tcp(7)).
    pub skip_rx_copy: bool,
    /// UDP specifics.
    pub udp: UdpOptions,
    /// Label of the test.
    pub title: Option<String>,
    /// Text that is carried into the JSON output.
    pub extra_data: Option<String>,
    /// The client requests the server's own report.
    pub want_server_output: bool,
    /// The client requests facts of the server's host. Receivers then keep to one datagram per
    /// buffer, so that the kernel's counters of drops count datagrams.
    pub want_peer_facts: bool,
    /// Options that only some dialects can express; all off by default.
    pub workload: Workload,
}

impl Default for TestSpec {
    /// Ten seconds of TCP on one stream with 128 KiB blocks, the iperf3 default.
    fn default() -> Self {
        Self {
            transport: Transport::Tcp,
            mptcp: false,
            direction: Direction::Forward,
            streams: 1,
            end: EndCondition::Duration(Duration::from_secs(10)),
            omit: Duration::ZERO,
            block_len_bytes: 128 * 1024,
            block_len_explicit: false,
            pacing: Pacing::default(),
            socket: SocketTuning::default(),
            payload: Payload::Random,
            send_path: SendPath::Auto,
            coalesce: false,
            skip_rx_copy: false,
            udp: UdpOptions::default(),
            title: None,
            extra_data: None,
            want_server_output: false,
            want_peer_facts: false,
            workload: Workload::default(),
        }
    }
}

impl TestSpec {
    /// True if receivers report each burst or frame instead of intervals.
    pub fn reports_bursts(&self) -> bool {
        match self.workload.shape {
            Shape::Bursts { .. } => self.transport == Transport::Tcp,
            Shape::Isochronous(_) => self.workload.reports_frames,
            _ => false,
        }
    }

    /// Streams this test opens in total, both directions.
    pub fn total_streams(&self) -> u32 {
        match self.direction {
            // iperf3 opens the number of -P for each direction.
            Direction::Bidirectional => self.streams.saturating_mul(2),
            _ => self.streams,
        }
    }
}

/// Block length of the streams of a working load.
const LOAD_BLOCK_LEN_BYTES: u32 = 128 * 1024;
/// Unsent bytes of such a stream in the releases that limit it: a queue in the sender is none of
/// the path.
const LOAD_UNSENT_LIMIT_BYTES: u32 = 256 * 1024;

/// The test of each stream that loads the path beside the bounce-back test `test`; `None` without a
/// load.
pub fn working_load(test: &TestSpec) -> Option<TestSpec> {
    let Shape::BounceBack(bounce) = &test.workload.shape else {
        return None;
    };
    let load = bounce.load?;
    let (direction, pairing) = match (load.up, load.down) {
        (true, false) => (Direction::Forward, Pairing::Separate),
        (false, true) => (Direction::Reverse, Pairing::Separate),
        _ => (Direction::Bidirectional, Pairing::Shared),
    };

    let release = test.workload.release;
    Some(TestSpec {
        direction,
        streams: load.streams.max(1),
        block_len_bytes: LOAD_BLOCK_LEN_BYTES,
        block_len_explicit: false,
        socket: SocketTuning {
            tos: 0,
            no_delay: false,
            ..test.socket.clone()
        },
        workload: Workload {
            pairing,
            unsent_limit_bytes: (release == Release::V2_2).then_some(LOAD_UNSENT_LIMIT_BYTES),
            permit_key: test.workload.permit_key.clone(),
            start: test.workload.start,
            exact_reads: test.workload.exact_reads,
            without_routing: test.workload.without_routing,
            release,
            ..Workload::default()
        },
        ..test.clone()
    })
}

/// Rate limits of one stream.
#[stored(Default, Eq)]
pub struct Pacing {
    /// Target payload rate of each stream in bit/s, `None` for as fast as possible.
    pub rate_bps: Option<u64>,
    /// Blocks sent back to back between two checks of the rate.
    pub burst_blocks: Option<u32>,
    /// Kernel pacing (`SO_MAX_PACING_RATE`, socket(7)) in bit/s.
    pub fq_rate_bps: Option<u64>,
    /// Historic interval of the pacing timer in µs; only forwarded to old peers.
    pub timer_us: u32,
}

/// Options set on every data socket. `None` leaves the kernel's default.
#[stored(Default, Eq)]
pub struct SocketTuning {
    /// Send and receive buffer in bytes (`SO_SNDBUF`, `SO_RCVBUF`).
    pub window_bytes: Option<u32>,
    /// Maximum segment size in bytes (`TCP_MAXSEG`).
    pub mss_bytes: Option<u32>,
    /// Nagle's algorithm off (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Congestion control algorithm (`TCP_CONGESTION`).
    pub congestion: Option<String>,
    /// IPv4 TOS or IPv6 traffic class, 0..=255.
    pub tos: u8,
    /// IPv6 flow label, 1..=0xFFFFF.
    pub flow_label: Option<u32>,
    /// IPv4 UDP: never fragment (`IP_MTU_DISCOVER`).
    pub dont_fragment: bool,
    /// SCTP: number of streams in the INIT message.
    pub sctp_streams: Option<u16>,
    /// SCTP: further local addresses of the association (`sctp_bindx(3)`).
    pub sctp_bind: Vec<String>,
}

/// System call by which a sender of a byte stream hands its bytes to the kernel.
#[stored(Copy, Default, Eq)]
pub enum SendPath {
    /// Fastest known way among those that copy, as an application would.
    #[default]
    Auto,
    /// The kernel copies from the program's memory (`sendmsg(2)`).
    Copy,
    /// The kernel takes pages of a file (`sendfile(2)`).
    SendFile,
    /// The kernel borrows the program's pages (`MSG_ZEROCOPY`, Linux 4.14). Pays on network
    /// devices; on loopback the kernel copies all the same.
    ZeroCopy,
}

impl SendPath {
    /// Every path by the name it has on command lines and on the wire.
    pub const NAMES: [(&str, Self); 4] = [
        ("auto", Self::Auto),
        ("copy", Self::Copy),
        ("sendfile", Self::SendFile),
        ("zerocopy", Self::ZeroCopy),
    ];

    /// The path of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, path)| *path)
    }

    /// The name of this path.
    pub fn name(self) -> &'static str {
        Self::NAMES
            .iter()
            .find(|(_, path)| *path == self)
            .map_or("auto", |(name, _)| name)
    }
}

/// Datagrams of which a UDP receiver reads the header.
#[stored(Copy, Default, Eq)]
pub enum SequenceCheck {
    /// The header of every datagram is read; loss and order are exact.
    #[default]
    EveryDatagram,
    /// Only the first header of datagrams that the kernel joined (`UDP_GRO`) is copied and read.
    /// Loss stays exact; the order inside such a burst is not checked.
    FirstOfBurst,
}

/// Content of a block.
#[stored(Copy, Eq)]
pub enum Payload {
    /// Random bytes, the same for every block.
    Random,
    /// `0123456789` repeated.
    Repeating,
}

impl Payload {
    /// Fills a block with [`Payload::Repeating`]. Each copy is as long as what is filled: byte by
    /// byte, requests for blocks of 4 MiB took 80 % of the CPU of a server under attack.
    pub fn fill_repeating(block: &mut [u8]) {
        for (byte, digit) in block.iter_mut().zip(b'0'..=b'9') {
            *byte = digit;
        }

        let mut filled = 10;
        while filled < block.len() {
            let copied = filled.min(block.len() - filled);
            block.copy_within(..copied, filled);
            filled += copied;
        }
    }
}

/// UDP specifics.
#[stored(Default, Eq)]
pub struct UdpOptions {
    /// Sequence numbers are 64 bits wide.
    pub counters_64bit: bool,
    /// Segmentation offload requested by the user (`UDP_SEGMENT`, udp(7)).
    pub gso: Option<Segmentation>,
    /// Receive coalescing requested by the user (`UDP_GRO`, udp(7)).
    pub gro: Option<Segmentation>,
    /// Datagrams whose heads receivers read.
    pub check: SequenceCheck,
}

/// Sizes of a segmented or coalesced UDP buffer.
#[stored(Copy, Eq)]
pub struct Segmentation {
    /// Bytes per datagram.
    pub datagram_bytes: u32,
    /// Bytes per system call.
    pub buffer_bytes: u32,
}

impl Segmentation {
    /// Most datagrams per system call (`UDP_MAX_SEGMENTS`, include/linux/udp.h).
    pub const DATAGRAMS_MAX: u32 = 128;
    /// Largest UDP payload over IPv4 in bytes.
    pub const BUFFER_MAX_BYTES: u32 = 65_507;

    /// As many datagrams of this length as fit one system call, at least one.
    pub fn of_datagrams(datagram_bytes: u32) -> Self {
        let fitting = Self::BUFFER_MAX_BYTES / datagram_bytes.max(1);
        // A datagram that is longer than the buffer is a buffer of its own.
        let buffer_bytes = fitting.clamp(1, Self::DATAGRAMS_MAX) * datagram_bytes;
        Self {
            datagram_bytes,
            buffer_bytes,
        }
    }
}
