//! What a test is to do, resolved: no text left to parse, no option left to interpret.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::policy::ServerPolicy;
use crate::workload::{Pairing, Release, Shape, Workload};

/// Transport of the data streams. The control connection is always TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// TCP, RFC 9293.
    Tcp,
    /// UDP, RFC 768.
    Udp,
    /// SCTP one-to-one style, RFC 9260 and RFC 6458 section 4.
    Sctp,
}

/// Who sends, seen from the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
    /// Both at the same time, on separate streams.
    Bidirectional,
}

/// What ends the measured part of a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
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
    /// The time limit, if this is one.
    #[must_use]
    pub fn duration(self) -> Option<Duration> {
        match self {
            Self::Duration(d) => Some(d),
            _ => None,
        }
    }
}

/// A test, as both ends understand it after the parameters were exchanged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default)]
#[non_exhaustive]
pub struct TestSpec {
    /// Transport of the data streams.
    pub transport: Transport,
    /// Data streams use Multipath TCP (RFC 8684).
    pub mptcp: bool,
    /// Who sends.
    pub direction: Direction,
    /// Streams per direction, at least 1.
    pub streams: u32,
    /// What ends the measured part.
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
    /// What the blocks contain.
    pub payload: Payload,
    /// How senders of a byte stream hand their bytes to the kernel.
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
    /// The client requests facts of the server's host. Receivers then keep to one datagram per buffer, so
    /// that the kernel's counters of drops count datagrams.
    pub want_peer_facts: bool,
    /// What only some dialects can express; all of it off by default.
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
    /// Whether receivers report each burst or frame instead of intervals.
    #[must_use]
    pub fn reports_bursts(&self) -> bool {
        match self.workload.shape {
            Shape::Bursts { .. } => self.transport == Transport::Tcp,
            Shape::Isochronous(_) => self.workload.reports_frames,
            _ => false,
        }
    }

    /// Streams this test opens in total, both directions.
    #[must_use]
    pub fn total_streams(&self) -> u32 {
        match self.direction {
            Direction::Bidirectional => self.streams.saturating_mul(2),
            _ => self.streams,
        }
    }
}

/// Block length of the streams of a working load.
const LOAD_BLOCK_LEN_BYTES: u32 = 128 * 1024;
/// What such a stream holds unsent in the releases that limit it: a queue in the sender is none of the path.
const LOAD_UNSENT_LIMIT_BYTES: u32 = 256 * 1024;

/// The test of each stream that loads the path beside the bounce-back test `test`; `None` without a load.
#[must_use]
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
        socket: SocketTuning { tos: 0, no_delay: false, ..test.socket.clone() },
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
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

/// How a sender of a byte stream hands its bytes to the kernel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SendPath {
    /// What is known to be fastest among those that copy, as an application would.
    #[default]
    Auto,
    /// The kernel copies from the program's memory (`sendmsg(2)`).
    Copy,
    /// The kernel takes pages of a file (`sendfile(2)`).
    SendFile,
    /// The kernel borrows the program's pages (`MSG_ZEROCOPY`, Linux 4.14). Pays on network devices; on loopback the
    /// kernel copies all the same.
    ZeroCopy,
}

impl SendPath {
    /// Every path by the name it has on command lines and on the wire.
    pub const NAMES: [(&str, Self); 4] =
        [("auto", Self::Auto), ("copy", Self::Copy), ("sendfile", Self::SendFile), ("zerocopy", Self::ZeroCopy)];

    /// The path of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, path)| *path)
    }

    /// The name of this path.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(_, path)| *path == self).map_or("auto", |(name, _)| name)
    }
}

/// Datagrams of which a UDP receiver reads the header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SequenceCheck {
    /// The header of every datagram is read; loss and order are exact.
    #[default]
    EveryDatagram,
    /// Of datagrams that the kernel joined (`UDP_GRO`) only the first header is copied and read. Loss stays exact; the
    /// order inside such a burst is not looked at.
    FirstOfBurst,
}

/// What a block contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Payload {
    /// Random bytes, the same for every block.
    Random,
    /// `0123456789` repeated.
    Repeating,
}

/// UDP specifics.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct UdpOptions {
    /// Sequence numbers are 64 bits wide.
    pub counters_64bit: bool,
    /// Segmentation offload requested by the user (`UDP_SEGMENT`, udp(7)).
    pub gso: Option<Segmentation>,
    /// Receive coalescing requested by the user (`UDP_GRO`, udp(7)).
    pub gro: Option<Segmentation>,
    /// Which datagrams receivers look at.
    pub check: SequenceCheck,
}

/// Sizes of a segmented or coalesced UDP buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
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

    /// Datagrams of `datagram_bytes` in buffers of `buffer_bytes`.
    #[must_use]
    pub const fn new(datagram_bytes: u32, buffer_bytes: u32) -> Self {
        Self { datagram_bytes, buffer_bytes }
    }

    /// As many datagrams of this length as fit one system call, at least one.
    #[must_use]
    pub fn of_datagrams(datagram_bytes: u32) -> Self {
        let fitting = Self::BUFFER_MAX_BYTES / datagram_bytes.max(1);
        let buffer_bytes = fitting.clamp(1, Self::DATAGRAMS_MAX) * datagram_bytes;
        Self { datagram_bytes, buffer_bytes }
    }
}

/// Address family the user insists on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AddressFamily {
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Where local sockets are bound. `None` leaves the choice to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct BindSpec {
    /// Local address or host name.
    pub host: Option<String>,
    /// Local device (`SO_BINDTODEVICE`, socket(7)).
    pub device: Option<String>,
    /// First local port of the data streams; following streams use the following ports.
    pub client_port: Option<u16>,
    /// Address family the user insists on.
    pub family: Option<AddressFamily>,
}

/// Keepalive of the control connection (tcp(7)). Zero leaves the kernel's default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[non_exhaustive]
pub struct Keepalive {
    /// Idle seconds before the first probe (`TCP_KEEPIDLE`).
    pub idle_s: u32,
    /// Seconds between probes (`TCP_KEEPINTVL`).
    pub interval_s: u32,
    /// Unanswered probes before the connection is given up (`TCP_KEEPCNT`).
    pub count: u32,
}

impl Keepalive {
    /// `count` probes, the first after `idle_s` seconds, the others `interval_s` seconds apart.
    #[must_use]
    pub const fn new(idle_s: u32, interval_s: u32, count: u32) -> Self {
        Self { idle_s, interval_s, count }
    }
}

/// Options that concern one end alone and never travel; the same for client and server.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LocalOptions {
    /// Port of the server, control connection and data.
    pub port: u16,
    /// Local addresses.
    pub bind: BindSpec,
    /// Time between two interval reports, `None` for no periodic reports.
    pub interval: Option<Duration>,
    /// Longest time without received data, while receiving.
    pub rcv_timeout: Duration,
    /// Longest time sent data may stay unacknowledged (`TCP_USER_TIMEOUT`, tcp(7)).
    pub snd_timeout: Option<Duration>,
    /// Keepalive on the control connection.
    pub control_keepalive: Option<Keepalive>,
    /// CPU the process is pinned to.
    pub cpu: Option<u32>,
    /// File that is sent, or that receives what arrives.
    pub file: Option<PathBuf>,
    /// How byte streams are written and read; `None` lets the test find out while it runs.
    pub io_strategy: Option<IoStrategy>,
    /// What only some dialects have; all of it off by default.
    pub end: EndOptions,
}

impl Default for LocalOptions {
    fn default() -> Self {
        Self {
            port: 5201,
            bind: BindSpec::default(),
            interval: Some(Duration::from_secs(1)),
            rcv_timeout: Duration::from_secs(120),
            snd_timeout: None,
            control_keepalive: None,
            cpu: None,
            file: None,
            io_strategy: None,
            end: EndOptions::default(),
        }
    }
}

/// How the workers of one end write and read byte streams where the user left it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoStrategy {
    /// Blocks that one send call submits, 1 to 64.
    pub blocks_per_call: u16,
    /// Time between two reads of an emptied receive queue in us, at most 1000; 0 waits for every segment.
    pub receive_pause_us: u16,
}

impl IoStrategy {
    /// One block per call, and a wait for every segment: what iperf3 does.
    pub const PLAIN: Self = Self { blocks_per_call: 1, receive_pause_us: 0 };
    /// Most blocks of a call.
    pub const BLOCKS_MAX: u16 = 64;
    /// Longest pause in us. Data waits so much longer in the receive queue at most.
    pub const PAUSE_MAX_US: u16 = 1000;
}

/// Options of one end that only some dialects have and that never travel.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct EndOptions {
    /// Request the real-time scheduler.
    pub realtime: bool,
    /// Last of a range of ports, `None` for a single one.
    pub last_port: Option<u16>,
    /// What is sent comes from the standard input.
    pub from_stdin: bool,
    /// Only this source of a multicast group.
    pub multicast_source: Option<String>,
    /// Network device of the peer's address (`SO_BINDTODEVICE`, socket(7)).
    pub peer_device: Option<String>,
    /// How long a client insists on connecting.
    pub connect_retry: Option<ConnectRetry>,
    /// The report of a sender ends with its last write and not with the peer's good-bye.
    pub without_shutdown_wait: bool,
    /// Time every sent segment is held back in the kernel (`TCP_TX_DELAY`, tcp(7)).
    pub send_delay: Option<Duration>,
    /// What a server applies to every test.
    pub defaults: Option<Box<Iperf2Defaults>>,
}

/// How long a client insists on connecting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectRetry {
    /// Further attempts, `None` for as many as fit the time.
    pub attempts: Option<u32>,
    /// Time for all attempts, `None` for no limit.
    pub within: Option<Duration>,
    /// Shortest time from one attempt to the next.
    pub pause: Duration,
}

impl ConnectRetry {
    /// Attempts at least `pause` apart, without a limit of their number or time.
    #[must_use]
    pub const fn new(pause: Duration) -> Self {
        Self { attempts: None, within: None, pause }
    }
}

/// What a server of a dialect without negotiation applies to every test.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct Iperf2Defaults {
    /// Transport, block length, socket options and measurements.
    pub test: TestSpec,
    /// Time after which the server ends, and every test with it.
    pub lifetime: Option<Duration>,
    /// Connections it accepts before it ends.
    pub connections_max: Option<u32>,
    /// One test after the other.
    pub one_at_a_time: bool,
    /// Accept IPv4 and IPv6.
    pub dual_stack: bool,
    /// TOS byte of what the server sends, regardless of what the client requested.
    pub reply_tos: Option<u8>,
    /// Time after which the permit key opens nothing.
    pub permit_key_lifetime: Option<Duration>,
    /// Longest wait for a client's header.
    pub handshake_timeout: Option<Duration>,
    /// Final reports of UDP flows contain one-way delays even if the client did not send its clock.
    pub reports_delays: bool,
}

/// Everything a client needs to run one test.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ClientSpec {
    /// The server as the user named it: host name or address.
    pub host: String,
    /// Options of this end.
    pub local: LocalOptions,
    /// The test. A UDP block length of 0 requests the path's segment size.
    pub test: TestSpec,
    /// Longest time to set up the control connection, `None` for the system's limit.
    pub connect_timeout: Option<Duration>,
    /// CPU to which the server is to pin itself.
    pub server_cpu: Option<u32>,
    /// User, password and key for a server that requires them.
    pub credentials: Option<Credentials>,
}

impl ClientSpec {
    /// `test` against the server `host`, with the options `local` of this end.
    #[must_use]
    pub fn new(host: impl Into<String>, local: LocalOptions, test: TestSpec) -> Self {
        Self { host: host.into(), local, test, ..Self::default() }
    }
}

/// What a client proves its identity with.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credentials {
    /// User name.
    pub username: String,
    /// Password; never printed.
    pub password: String,
    /// The server's RSA public key, PEM.
    pub public_key_pem: String,
    /// Old PKCS#1 v1.5 padding instead of OAEP.
    pub pkcs1_padding: bool,
}

impl Credentials {
    /// A login with OAEP padding; `public_key_pem` is the server's.
    #[must_use]
    pub fn new(username: impl Into<String>, password: impl Into<String>, public_key_pem: impl Into<String>) -> Self {
        Self {
            username: username.into(),
            password: password.into(),
            public_key_pem: public_key_pem.into(),
            pkcs1_padding: false,
        }
    }
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials").field("username", &self.username).finish_non_exhaustive()
    }
}

/// Everything a server needs.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct ServerSpec {
    /// Options of this end.
    pub local: LocalOptions,
    /// Leave after the first test.
    pub one_off: bool,
    /// Re-open the listener (or leave, with `one_off`) after this time without a client.
    pub idle_timeout: Option<Duration>,
    /// Highest average rate of one test.
    pub bitrate_limit: Option<BitrateLimit>,
    /// Longest test that is accepted, warm-up included.
    pub max_duration: Option<Duration>,
    /// Clients must authenticate.
    pub auth: Option<ServerAuth>,
    /// Listener and data sockets use Multipath TCP even if the client did not request it.
    pub mptcp: bool,
    /// How the server is shared among its clients.
    pub policy: ServerPolicy,
}

/// Highest average rate a server tolerates.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BitrateLimit {
    /// Sum of all streams in both directions, bit/s.
    pub rate_bps: u64,
    /// Averaging window.
    pub window: Duration,
}

impl BitrateLimit {
    /// `rate_bps` bit/s on an average over `window`.
    #[must_use]
    pub const fn new(rate_bps: u64, window: Duration) -> Self {
        Self { rate_bps, window }
    }
}

/// What a server checks clients with.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerAuth {
    /// The server's RSA private key, PEM.
    pub private_key_pem: String,
    /// File of `user,hash` lines; read again for every test.
    pub users_file: PathBuf,
    /// Largest accepted difference of the two clocks.
    pub max_skew: Duration,
    /// Which paddings of logins are accepted.
    pub padding: AcceptedPadding,
}

impl ServerAuth {
    /// Largest accepted difference of the two clocks unless named otherwise, the iperf3 default.
    pub const MAX_SKEW: Duration = Duration::from_secs(10);

    /// Logins with OAEP padding, at most [`Self::MAX_SKEW`] off the clock of the server.
    #[must_use]
    pub fn new(private_key_pem: impl Into<String>, users_file: impl Into<PathBuf>) -> Self {
        Self {
            private_key_pem: private_key_pem.into(),
            users_file: users_file.into(),
            max_skew: Self::MAX_SKEW,
            padding: AcceptedPadding::default(),
        }
    }
}

/// Paddings of logins a server accepts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AcceptedPadding {
    /// OAEP, as clients from 3.17 on use (RFC 8017 section 7.1).
    #[default]
    Oaep,
    /// PKCS#1 v1.5, as clients up to 3.16 use (RFC 8017 section 7.2).
    Pkcs1,
    /// Either.
    Both,
}

impl std::fmt::Debug for ServerAuth {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerAuth").field("users_file", &self.users_file).finish_non_exhaustive()
    }
}
