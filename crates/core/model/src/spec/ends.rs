//! Specification of one end beside the test: a client or a server.

use std::path::PathBuf;
use std::time::Duration;

use linerate_macros::stored;

use super::TestSpec;
use crate::PortRange;
use crate::policy::ServerPolicy;

/// Address family the user insists on.
#[stored(Copy, Eq)]
pub enum AddressFamily {
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

/// Where local sockets are bound. `None` leaves the choice to the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
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
#[stored(Copy, Default, Eq)]
pub struct Keepalive {
    /// Idle seconds before the first probe (`TCP_KEEPIDLE`).
    pub idle_s: u32,
    /// Seconds between probes (`TCP_KEEPINTVL`).
    pub interval_s: u32,
    /// Unanswered probes before the connection is given up (`TCP_KEEPCNT`).
    pub count: u32,
}

/// Options that concern one end alone and never travel; the same for client and server.
#[derive(Debug, Clone, PartialEq)]
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
    /// Longest time sent control messages may stay unacknowledged (`TCP_USER_TIMEOUT`, tcp(7));
    /// `None` is `snd_timeout`. A data stream that starves among others says nothing of the path, a
    /// control connection does.
    pub control_timeout: Option<Duration>,
    /// Longest wait of a client for the answer to the first datagram of a stream, after which its
    /// error is that UDP is blocked; `None` is iperf3's wait of 30 s, and its error.
    pub udp_answer_timeout: Option<Duration>,
    /// Keepalive on the control connection.
    pub control_keepalive: Option<Keepalive>,
    /// CPU the process is pinned to.
    pub cpu: Option<u32>,
    /// File that is sent, or that receives what arrives.
    pub file: Option<PathBuf>,
    /// File for a flame graph of what the CPUs of this host did during a diagnosed test.
    pub flame: Option<PathBuf>,
    /// Strategy of byte streams; `None` lets the test find out while it runs.
    pub io_strategy: Option<IoStrategy>,
    /// Options of some dialects only; all off by default.
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
            control_timeout: None,
            udp_answer_timeout: None,
            flame: None,
            control_keepalive: None,
            cpu: None,
            file: None,
            io_strategy: None,
            end: EndOptions::default(),
        }
    }
}

/// Strategy of the workers of one end for byte streams where the user left it open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoStrategy {
    /// Blocks that one send call submits, 1 to 64.
    pub blocks_per_call: u16,
    /// Wait of a worker while the receive queues of all its streams are empty.
    pub receive_wait: ReceiveWait,
}

/// Wait of a worker for data while the receive queues of all its streams are empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveWait {
    /// It sleeps until data arrives (epoll_wait(2)).
    Event,
    /// It sleeps this long after each read that emptied a queue, in us, 1 to
    /// [`IoStrategy::PAUSE_MAX_US`].
    Pause(u16),
    /// It polls its sockets every few microseconds without sleeping, for a bounded time, then as
    /// [`ReceiveWait::Event`].
    Spin,
}

impl IoStrategy {
    /// One block per call, and a wait for every segment: what iperf3 does.
    pub const PLAIN: Self = Self {
        blocks_per_call: 1,
        receive_wait: ReceiveWait::Event,
    };
    /// Most blocks of a call.
    pub const BLOCKS_MAX: u16 = 64;
    /// Longest pause in us. Data waits so much longer in the receive queue at most.
    pub const PAUSE_MAX_US: u16 = 1000;
}

/// Options of one end that only some dialects have and that never travel.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EndOptions {
    /// Request the real-time scheduler.
    pub realtime: bool,
    /// Last of a range of ports, `None` for a single one.
    pub last_port: Option<u16>,
    /// Payload is read from the standard input.
    pub from_stdin: bool,
    /// Only this source of a multicast group.
    pub multicast_source: Option<String>,
    /// Network device of the peer's address (`SO_BINDTODEVICE`, socket(7)).
    pub peer_device: Option<String>,
    /// Retries of a client's connect.
    pub connect_retry: Option<ConnectRetry>,
    /// The report of a sender ends with its last write and not with the peer's good-bye.
    pub without_shutdown_wait: bool,
    /// Time every sent segment is held back in the kernel (`TCP_TX_DELAY`, tcp(7)).
    pub send_delay: Option<Duration>,
    /// Settings that a server applies to every test.
    pub defaults: Option<Box<Iperf2Defaults>>,
}

/// Retries of a client's connect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    pub const fn new(pause: Duration) -> Self {
        Self {
            attempts: None,
            within: None,
            pause,
        }
    }
}

/// Settings that a server of a dialect without negotiation applies to every test.
#[derive(Debug, Clone, Default, PartialEq)]
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
pub struct ClientSpec {
    /// The server as the user named it: host name or address.
    pub host: String,
    /// Ports of the server, of which the first free one replaces that of `local`.
    pub ports: Option<PortRange>,
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
    pub fn new(host: impl Into<String>, local: LocalOptions, test: TestSpec) -> Self {
        Self {
            host: host.into(),
            local,
            test,
            ..Self::default()
        }
    }
}

/// Credentials of a client.
#[derive(Clone, PartialEq, Eq)]
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
    pub fn new(
        username: impl Into<String>,
        password: impl Into<String>,
        public_key_pem: impl Into<String>,
    ) -> Self {
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
        f.debug_struct("Credentials")
            .field("username", &self.username)
            .finish_non_exhaustive()
    }
}

/// Everything a server needs.
#[derive(Debug, Clone, Default, PartialEq)]
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
    /// Policy by which clients share the server.
    pub policy: ServerPolicy,
}

/// Highest average rate a server tolerates.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BitrateLimit {
    /// Sum of all streams in both directions, bit/s.
    pub rate_bps: u64,
    /// Averaging window.
    pub window: Duration,
}

/// Key and users by which a server checks clients.
#[derive(Clone, PartialEq, Eq)]
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
        f.debug_struct("ServerAuth")
            .field("users_file", &self.users_file)
            .finish_non_exhaustive()
    }
}
