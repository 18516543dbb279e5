//! Events of a test. Writers turn them into text, JSON or another form.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_macros::stored;

use crate::data_path::DataPath;
use crate::failure::Failure;
use crate::interval::{IntervalReport, StreamInterval};
use crate::metrics::ConnectTimes;
use crate::spec::TestSpec;
use crate::stream::{ListenerFacts, SocketFacts, Stream};
use crate::summary::Summary;

/// One thing that happened in a test. Order, on both ends: `ControlConnected`, `TestAccepted`,
/// `StreamOpened` per stream, `TestStarted`, `Interval`…, `OmitEnded` between two of them,
/// `Summary`, `PeerOutput`, and at last exactly one of `Finished` or `Failed`. A failure may come
/// at any point; a `Summary` of the part that happened precedes it if the test had started.
#[stored]
pub enum Event {
    /// Client: the control connection is established and the block length is known.
    ControlConnected(ControlConnected),
    /// The parameters are agreed (server) or about to be sent (client).
    TestAccepted(Box<TestHeader>),
    /// A data stream is open.
    StreamOpened(Stream),
    /// All streams are open, the clock runs.
    TestStarted {
        /// Begin of the data in ns of this end's monotonic clock (`CLOCK_MONOTONIC`,
        /// clock_gettime(2)); `None` in reports of other programs.
        at_monotonic_ns: Option<u64>,
    },
    /// An interval ended.
    Interval(IntervalReport),
    /// The warm-up ended; counting begins.
    OmitEnded,
    /// The test ended. On a server this comes before the client's results are known.
    Summary(Box<Summary>),
    /// The peer's own report, which the client requested.
    PeerOutput(ServerOutput),
    /// Something the user should know, without consequences for the test.
    Warning(String),
    /// The same, where the original of the dialect has nothing to report.
    Notice(String),
    /// Data path of one role; before `TestStarted`.
    DataPath(DataPath),
    /// A fact for verbose reports; one line.
    Detail(String),
    /// The same, where the original of the dialect has none.
    Addition(String),
    /// Facts for a user who debugs; one line.
    Debug(String),
    /// Bursts or frames that have arrived, in the order of their ends.
    Bursts(Vec<StreamInterval>),
    /// A server is about to open a connection or flow back to its client.
    ConnectingBack {
        /// Address of the client.
        remote: SocketAddr,
        /// The socket, not yet connected.
        socket: SocketFacts,
    },
    /// The peer compared the two clocks.
    ClockCheck(ClockCheck),
    /// Sending begins at a later time.
    DelayedStart(DelayedStart),
    /// At the end of a test: the times of all attempts to connect.
    ConnectTimes(ConnectTimes),
    /// The test is complete.
    Finished,
    /// The test has ended and is not complete.
    Failed(Failure),
}

/// The control connection of a client.
#[stored(Eq)]
pub struct ControlConnected {
    /// Local address.
    pub local: SocketAddr,
    /// Server address.
    pub remote: SocketAddr,
    /// Maximum segment size of the connection (`TCP_MAXSEG`), when the kernel reports it.
    pub mss_bytes: Option<u32>,
    /// UDP block length derived from the segment size, when the user named none.
    pub chosen_block_len_bytes: Option<u32>,
}

/// Which end of a test this is.
#[stored(Copy, Default, Eq)]
pub enum Endpoint {
    /// The end that opened the control connection.
    #[default]
    Client,
    /// The end that accepted it.
    Server,
}

/// Who tests what with whom.
#[stored(Default)]
pub struct TestHeader {
    /// Which end this is.
    pub endpoint: Endpoint,
    /// Client: the server as the user named it. Server: the client's address.
    pub peer_host: String,
    /// The peer's port of the control connection.
    pub peer_port: u16,
    /// Session name both ends share.
    pub cookie: String,
    /// Wall-clock time of the start in ms since 1970.
    pub started_at_unix_ms: u64,
    /// Maximum segment size of the control connection; clients only.
    pub control_mss_bytes: Option<u32>,
    /// The test.
    pub spec: TestSpec,
    /// Time between two interval reports on this end.
    #[serde(default, rename = "interval_ns", with = "crate::units::optional_ns")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub interval: Option<Duration>,
    /// File that is sent or received on this end.
    pub file_name: Option<String>,
    /// Server: number of the first stream in reports, so that concurrent tests share none.
    pub first_stream_position: u32,
    /// Client: its first data socket, not yet connected.
    pub first_socket: Option<SocketFacts>,
    /// Client: the socket on which it waits for connections from the server.
    pub listener: Option<ListenerFacts>,
}

/// Data of a server's response about the two clocks.
#[stored(Copy, Eq)]
pub struct ClockCheck {
    /// Number of the stream in reports.
    pub number: u32,
    /// One-way delay of the request in ns, as far as the clocks agree.
    pub request_ns: i64,
    /// One-way delay of the response in ns.
    pub response_ns: i64,
}

/// A start that the user set for a later time.
#[stored(Copy, Eq)]
pub struct DelayedStart {
    /// Number of the stream in reports.
    pub number: u32,
    /// Whole seconds to wait.
    pub in_s: u64,
    /// The start in µs since 1970.
    pub at_unix_us: u64,
    /// Now, in µs since 1970.
    pub now_unix_us: u64,
}

/// A server's report, carried to the client.
#[stored(Eq)]
pub enum ServerOutput {
    /// Lines of text.
    Text(String),
    /// One JSON value, serialised.
    Json(String),
}
