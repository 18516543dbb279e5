//! The policy of a server with many clients: admission, access, limits.

use std::path::PathBuf;
use std::time::Duration;

use crate::network::Network;

/// Who may start which tests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerPolicy {
    /// Who may start a test while others run.
    pub admission: Admission,
    /// Longest time a running test may make no progress.
    pub liveness: Liveness,
    /// Which addresses may connect.
    pub access: AccessRules,
    /// Quotas of one test, one client and all together.
    pub limits: ServerLimits,
    /// Longest time of a test whose client has not logged in; `None` for no such bound.
    pub anonymous_time_max: Option<Duration>,
    /// UDP streams may come from another address than the control connection.
    pub allow_split_address: bool,
    /// Where tests without a control connection are accepted.
    pub iperf2: Iperf2Listener,
    /// UDP flows without a control connection may request data. Their address is not verified.
    pub iperf2_udp_reverse: bool,
    /// Which clients get facts about this host when they request them.
    pub facts: FactsAccess,
    /// Tests of iperf3's dialect.
    pub iperf3: bool,
    /// Tests of the native dialect; `None` for a server that does not speak it.
    pub native: Option<NativePolicy>,
    /// Tests of browsers and of ndt7 clients; `None` for a server without.
    pub browsers: Option<BrowserPolicy>,
    /// UDP port of the STAMP session reflector (RFC 8762); `None` for a server without. It needs a
    /// list of allowed addresses.
    pub stamp: Option<u16>,
}

/// Longest times without progress of a running test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Liveness {
    /// While another client waits for a place.
    pub while_wanted: Duration,
    /// While no client waits: the test continues after an outage of the path, or after a pause of
    /// either end.
    pub otherwise: Duration,
}

impl Liveness {
    /// The same time in both cases.
    pub fn always(timeout: Duration) -> Self {
        Self {
            while_wanted: timeout,
            otherwise: timeout,
        }
    }

    /// Times that are never below `least`.
    #[must_use]
    pub fn at_least(self, least: Duration) -> Self {
        Self {
            while_wanted: self.while_wanted.max(least),
            otherwise: self.otherwise.max(least),
        }
    }
}

/// The longer time is the default of `--rcv-timeout`, after which a server of iperf3 ends a test.
impl Default for Liveness {
    fn default() -> Self {
        Self {
            while_wanted: Duration::from_secs(10),
            otherwise: Duration::from_secs(120),
        }
    }
}

/// Identity of a server towards clients of the native dialect, and which clients it accepts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativePolicy {
    /// File of the host key, made where it does not exist; `None` for a key that lasts as long as
    /// the server.
    pub host_key: Option<PathBuf>,
    /// File of tokens; with it every client has to prove one. They guard this dialect alone:
    /// neither iperf3 nor iperf 2 has a message for them.
    pub tokens: Option<PathBuf>,
}

/// What browsers and ndt7 clients get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BrowserPolicy {
    /// They may test; the page of the operator alone is served otherwise.
    pub may_test: bool,
    /// Pages of other origins may test, too.
    pub any_origin: bool,
    /// How long the server keeps the result of a page.
    pub keep: Duration,
    /// Certificate and key with which the port speaks TLS, too; `None` for plain HTTP alone.
    pub certificate: Option<CertificateFiles>,
    /// Directory that keeps results when the server ends; `None` for memory alone.
    pub results: Option<PathBuf>,
}

/// Files of a server's certificate, PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate and those that lead to its authority.
    pub chain: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Default for BrowserPolicy {
    fn default() -> Self {
        Self {
            may_test: true,
            any_origin: false,
            keep: Duration::from_secs(30 * 24 * 3600),
            certificate: None,
            results: None,
        }
    }
}

/// Clients that get facts about a server's host: interfaces, counters, kernel settings.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum FactsAccess {
    /// Those that have logged in, and all clients of a server with a list of allowed addresses.
    #[default]
    Trusted,
    /// Every client.
    All,
    /// No client.
    None,
}

/// Where a server accepts iperf 2 tests, which begin with a header on each connection and flow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Iperf2Listener {
    /// Nowhere.
    #[default]
    Refused,
    /// On this port, TCP and UDP.
    Port(u16),
    /// On the port of the control connections, TCP only; the first bytes decide.
    SamePort,
}

/// Admission of a client while tests run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Its test runs beside the others; beyond `tests_max` at once it is refused as busy.
    Parallel {
        /// Most tests at once, at least 1.
        tests_max: u32,
    },
    /// It waits until fewer than `tests_max` tests run, in the order of arrival.
    Queue {
        /// Most tests at once, at least 1.
        tests_max: u32,
        /// Longest wait; a client that would wait longer is refused as busy.
        wait_max: Duration,
    },
    /// It is refused as busy.
    Exclusive,
}

impl Admission {
    /// Tests at once unless named otherwise: more than a room full of people starts, few enough for
    /// the descriptors and threads of an ordinary host.
    pub const TESTS_MAX: u32 = 1000;
    /// Longest wait in a queue unless named otherwise. Releases from 3.15 on wait 30 s for a
    /// server.
    pub const WAIT_MAX: Duration = Duration::from_secs(25);
}

impl Default for Admission {
    fn default() -> Self {
        Self::Parallel {
            tests_max: Self::TESTS_MAX,
        }
    }
}

/// Which addresses may connect. A denied address may not, whatever else applies; with a list of
/// allowed addresses all others are denied.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRules {
    /// Addresses that may connect; empty for all.
    pub allow: Vec<AccessSource>,
    /// Addresses that may not.
    pub deny: Vec<AccessSource>,
}

impl AccessRules {
    /// Addresses of `allow`, or all where it is empty, without those of `deny`.
    pub const fn new(allow: Vec<AccessSource>, deny: Vec<AccessSource>) -> Self {
        Self { allow, deny }
    }
}

/// Largest file of users or of address ranges that a server reads.
pub const LIST_BYTES_MAX: u64 = 16 << 20;

/// Most address ranges of all lists of one kind (allowed, denied) together. A server compares each
/// client with all of them.
pub const RANGES_MAX: usize = 100_000;

/// Where address ranges come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AccessSource {
    /// One range.
    Network(Network),
    /// A file with one range per line; what follows a `#` is a comment. Read again on request.
    File(PathBuf),
}

/// Limits of the whole server, of one client address (a single IPv4 address, a /64 of IPv6) and of
/// one user that has logged in. The strictest that applies decides.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ServerLimits {
    /// All clients together.
    pub server: Limits,
    /// One client address. Unless named otherwise it may have a tenth of the places, at least 8.
    pub address: Limits,
    /// One user.
    pub user: Limits,
}

/// Limits of one scope; `None` for none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Tests at once.
    pub tests: Option<u32>,
    /// Streams of one test, both directions together.
    pub streams: Option<u32>,
    /// Length of one test, warm-up included.
    pub duration: Option<Duration>,
    /// Payload bytes of one test, both directions together.
    pub bytes: Option<u64>,
    /// Payload rate of all tests of the scope together, both directions, bit/s on an average over
    /// five seconds.
    pub rate_bps: Option<u64>,
}

impl Limits {
    /// Each limit of these, and of `others` where these have none.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        let Self {
            tests,
            streams,
            duration,
            bytes,
            rate_bps,
        } = self;
        Self {
            tests: tests.or(others.tests),
            streams: streams.or(others.streams),
            duration: duration.or(others.duration),
            bytes: bytes.or(others.bytes),
            rate_bps: rate_bps.or(others.rate_bps),
        }
    }
}
