//! Events of a server as a whole, for logs and metrics.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use linerate_macros::stored;
use serde::Serialize;

use crate::spec::{Direction, Transport};

/// One thing that happened to a server.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerEvent {
    /// Clients may come.
    Listening {
        /// Where the server listens.
        address: SocketAddr,
    },
    /// Clients of the native dialect recognise the server by this.
    HostKey {
        /// Fingerprint of its key, and how long it lasts.
        text: String,
    },
    /// Browsers may come, to the port of [`Self::Listening`].
    Browsers {
        /// Address of the test page.
        url: String,
        /// They may test; the page of the operator alone is served otherwise.
        may_test: bool,
    },
    /// Clients of iperf 2 may come, to a port of their own.
    Iperf2 {
        /// Where the server listens for them, on TCP and UDP.
        address: SocketAddr,
    },
    /// Senders of STAMP packets may come.
    Stamp {
        /// Where the session reflector listens.
        address: SocketAddr,
    },
    /// A test began.
    TestStarted(TestFacts),
    /// Totals of all running tests since the last event of this kind, and of all tests in
    /// total.
    Progress(Progress),
    /// A test that had begun has ended.
    TestEnded(TestRecord),
    /// The test page of a browser has stored its result.
    ResultStored {
        /// The client.
        peer: SocketAddr,
        /// Label that the page was opened with.
        label: Option<String>,
        /// Where the server shows it.
        path: String,
    },
    /// A result of a test page that the server has, the new ones and those of earlier servers.
    PageResult(PageResult),
    /// A client was refused by the rules.
    Refused {
        /// The client.
        peer: SocketAddr,
        /// Which rule.
        reason: RefusalReason,
    },
    /// A client that had to log in was not let in.
    LoginFailed {
        /// The client.
        peer: SocketAddr,
        /// Why, as a stable word.
        cause: &'static str,
        /// Why, for the operator; never contains a secret.
        explanation: String,
    },
    /// A connection ended before its test began.
    HandshakeFailed {
        /// The client.
        peer: SocketAddr,
        /// Its progress.
        cause: HandshakeCause,
        /// Description of the failure.
        explanation: String,
    },
    /// The settings that can change were read again.
    Reloaded,
    /// The server was requested to end.
    Stopping {
        /// By whom, for example `Terminated(15)`.
        signal_text: String,
    },
}

/// What a test page measured, as far as it sent it.
#[derive(Debug, Clone, PartialEq)]
pub struct PageResult {
    /// Label that the page was opened with, or the address of the client.
    pub subject: String,
    /// When it was stored, ms since 1970.
    pub at_unix_ms: u64,
    /// Rate to the client.
    pub down_bps: Option<f64>,
    /// Rate from the client.
    pub up_bps: Option<f64>,
    /// Round trip under load.
    pub loaded_ms: Option<f64>,
}

/// A test as it was agreed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFacts {
    /// Number of the test since the server started, from 1.
    pub number: u64,
    /// The client's end of the control connection.
    pub peer: SocketAddr,
    /// Who the client proved to be.
    pub user: Option<String>,
    /// Transport of the data streams.
    pub transport: Transport,
    /// Who sends, seen from the client.
    pub direction: Direction,
    /// Streams of both directions together.
    pub streams: u32,
    /// Tests that were running when this one began.
    pub running_beside: u32,
}

impl TestFacts {
    /// A test without a number or a user, beside no other.
    pub const fn new(
        peer: SocketAddr,
        transport: Transport,
        direction: Direction,
        streams: u32,
    ) -> Self {
        Self {
            number: 0,
            peer,
            user: None,
            transport,
            direction,
            streams,
            running_beside: 0,
        }
    }
}

/// A test that has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct TestRecord {
    /// Agreed parameters.
    pub facts: TestFacts,
    /// Name of the test that both ends share.
    pub cookie: String,
    /// Payload bytes of the measured part that arrived here.
    pub received_bytes: u64,
    /// Payload bytes of the measured part that left here.
    pub sent_bytes: u64,
    /// Length of the measured part in ns.
    pub duration_ns: u64,
    /// Its end state.
    pub outcome: Outcome,
    /// Most other tests that ran at the same time.
    pub ran_beside_max: u32,
}

/// End state of a test that had begun.
#[stored(Eq)]
#[serde(rename_all = "snake_case", tag = "outcome")]
pub enum Outcome {
    /// As agreed.
    Complete,
    /// Early; the totals are those of the part that ran.
    Partial {
        /// Why, in words.
        reason: String,
    },
}

/// State of the running tests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Progress {
    /// Tests that run.
    pub tests: u32,
    /// Streams of these tests.
    pub streams: u32,
    /// Time since the last event of this kind.
    pub elapsed: Duration,
    /// Payload bytes of these tests since then, one row per test in the order of their numbers.
    pub clients: Vec<ClientProgress>,
    /// Payload bytes of all tests since the server started, per transport.
    pub totals: Vec<TransportTotal>,
    /// Descriptors that admission counted for these tests: what they may have open at most.
    pub reserved_descriptors: u64,
    /// Memory of the process in bytes that admission counted for them, at most.
    pub reserved_memory_bytes: u64,
}

/// One running test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientProgress {
    /// Number of the test.
    pub number: u64,
    /// The client.
    pub peer: SocketAddr,
    /// Payload bytes that arrived here.
    pub received_bytes: u64,
    /// Payload bytes that left here.
    pub sent_bytes: u64,
}

/// Bytes of all tests over one transport, warm-ups included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransportTotal {
    /// The transport.
    pub transport: Transport,
    /// Payload bytes that arrived here.
    pub received_bytes: u64,
    /// Payload bytes that left here.
    pub sent_bytes: u64,
}

/// Why a client is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RefusalReason {
    /// As many tests run as may.
    Busy,
    /// The queue is full, or the wait would be too long.
    QueueTooLong,
    /// The address is not allowed, or denied.
    Address,
    /// The client's address has as many tests as it may.
    AddressTests,
    /// The user has as many tests as he may.
    UserTests,
    /// The test would have too many streams.
    Streams,
    /// The test would take too long, or names no duration.
    Duration,
    /// The test would move, or has moved, too much.
    Bytes,
    /// The requested rate is too high.
    Rate,
    /// Another session has the same name; one of them is not what it seems.
    DuplicateCookie,
    /// Too many pending connections.
    Crowded,
    /// The client requests data over UDP, and nothing proves its address.
    UdpReverse,
    /// As many UDP flows run as may whose address nothing proves.
    Flows,
    /// The server has not as many descriptors as the test needs.
    Descriptors,
    /// The server, or what one address may have of it, has not as much memory as the test needs.
    Memory,
}

impl fmt::Display for RefusalReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Busy => "as many tests run as are allowed",
            Self::QueueTooLong => "the wait for its turn would be too long",
            Self::Address => "its address is not allowed",
            Self::AddressTests => "its address runs as many tests as one address may",
            Self::UserTests => "its user runs as many tests as one user may",
            Self::Streams => "it asks for more streams than a test may have",
            Self::Duration => "it asks for a longer test than is allowed",
            Self::Bytes => "it moves more bytes than a test may",
            Self::Rate => "it asks for a higher rate than is allowed",
            Self::DuplicateCookie => "another test has the same cookie",
            Self::Crowded => "too many connections wait to say what they want",
            Self::UdpReverse => "it asks for data over UDP, and nothing proves its address",
            Self::Flows => "as many UDP flows run as are allowed",
            Self::Descriptors => "the server has not enough descriptors left",
            Self::Memory => "the test needs more memory than is left for it",
        })
    }
}

/// Progress of a connection that never became a test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HandshakeCause {
    /// It sent no cookie in time.
    Cookie,
    /// Parameters did not come in time, or could not be read or accepted.
    Parameters,
    /// Its data streams did not come in time, or could not be set up.
    Streams,
    /// The client left.
    ClientLeft,
}
