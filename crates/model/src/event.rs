//! What the engine tells the world. Writers turn it into text, JSON or anything else.

use std::net::SocketAddr;
use std::time::Duration;

use thiserror::Error;

use crate::data_path::DataPath;
use crate::details::Details;
use crate::failure::Failure;
use crate::interval::IntervalReport;
use crate::service::ServerEvent;
use crate::spec::TestSpec;
use crate::stream::Stream;
use crate::summary::Summary;

/// One thing that happened in a test. Order, on both ends: `ControlConnected`, `TestAccepted`, `StreamOpened` per
/// stream, `TestStarted`, `Interval`…, `OmitEnded` between two of them, `Summary`, `PeerOutput`, and at last exactly
/// one of `Finished` or `Failed`. A failure may come at any point; a `Summary` of the part that happened precedes it
/// if the test had started.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Client: the control connection stands and the block length is known.
    ControlConnected(ControlConnected),
    /// The parameters are agreed (server) or about to be sent (client).
    TestAccepted(Box<TestHeader>),
    /// A data stream stands.
    StreamOpened(Stream),
    /// All streams stand, the clock runs.
    TestStarted,
    /// An interval ended.
    Interval(IntervalReport),
    /// The warm-up ended; counting begins.
    OmitEnded,
    /// The test ended. On a server this comes before the client's results are known.
    Summary(Box<Summary>),
    /// The peer's own report, as the client asked for.
    PeerOutput(ServerOutput),
    /// Facts of the peer about its host, which this end requested: an unparsed JSON object.
    PeerFacts(String),
    /// Text to be reported after the results, by an observer of the test.
    Appendix(Box<Appendix>),
    /// Something the user should know, without consequences for the test.
    Warning(String),
    /// The same, where the original of the dialect has nothing to report.
    Notice(String),
    /// How the data of one role will move; before `TestStarted`.
    DataPath(DataPath),
    /// A fact for verbose reports; one line.
    Detail(String),
    /// The same, where the original of the dialect has none.
    Addition(String),
    /// Facts for a user who debugs; one line.
    Debug(String),
    /// Facts that belong to the next event, which only some dialects measure or show.
    Details(Details),
    /// The test is complete.
    Finished,
    /// The test is over and not complete.
    Failed(Failure),
}

/// The control connection of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ControlConnected {
    /// Local address.
    pub local: SocketAddr,
    /// Server address.
    pub remote: SocketAddr,
    /// Maximum segment size of the connection (`TCP_MAXSEG`), when the kernel tells.
    pub mss_bytes: Option<u32>,
    /// UDP block length derived from the segment size, when the user named none.
    pub chosen_block_len_bytes: Option<u32>,
}

/// Which end of a test this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Endpoint {
    /// The end that opened the control connection.
    Client,
    /// The end that accepted it.
    Server,
}

/// Who tests what with whom.
#[derive(Debug, Clone, PartialEq)]
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
    pub interval: Option<Duration>,
    /// File that is sent or received on this end.
    pub file_name: Option<String>,
}

/// A server's report, carried to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOutput {
    /// Lines of text.
    Text(String),
    /// One JSON value, serialised.
    Json(String),
}

/// An addition to the report of a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appendix {
    /// Its name in structured reports.
    pub name: &'static str,
    /// The addition for people; lines without an end.
    pub text: String,
    /// The same for programs: one JSON value.
    pub json: String,
}

/// A writer could not write.
#[derive(Debug, Error)]
pub enum SinkError {
    /// The operating system refused.
    #[error("unable to write the report: {0}")]
    Io(#[from] std::io::Error),
}

/// Receives the events of one test.
pub trait EventSink {
    /// Takes one event, in order.
    ///
    /// # Errors
    /// When the report cannot be written; the test then ends.
    fn event(&mut self, event: &Event) -> Result<(), SinkError>;

    /// The report so far, in the form this writer makes, for a client that asked for the server's report.
    /// Called after `Summary`.
    fn server_output(&mut self) -> Option<ServerOutput> {
        None
    }

    /// What is known about this host, for a client that asked for it: a JSON object. Called after `Summary`.
    fn facts_for_peer(&mut self) -> Option<String> {
        None
    }

    /// Streams are to be shown with numbers from this position on, so that concurrent tests of a server do not share
    /// any. Called before `TestAccepted`, if at all.
    fn number_streams_from(&mut self, _position: u32) {}
}

impl<S: EventSink + ?Sized> EventSink for &mut S {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        (**self).event(event)
    }

    fn server_output(&mut self) -> Option<ServerOutput> {
        (**self).server_output()
    }

    fn facts_for_peer(&mut self) -> Option<String> {
        (**self).facts_for_peer()
    }

    fn number_streams_from(&mut self, position: u32) {
        (**self).number_streams_from(position);
    }
}

/// Receives what happens to a server, and makes a sink for each test.
pub trait ServerReporter {
    /// The server is ready for its next test.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError>;

    /// The server opened its listener again after an idle time; the test number stays.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn reopened(&mut self) -> Result<(), SinkError> {
        Ok(())
    }

    /// A client connected; the sink receives the events of its test.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError>;

    /// Something the operator should know that belongs to no test.
    fn warning(&mut self, text: &str);

    /// Facts that belong to no test and that only some dialects show, for example of a listening socket.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn details(&mut self, _details: &Details) -> Result<(), SinkError> {
        Ok(())
    }

    /// What happened, for logs and metrics; the reports of tests do not depend on it.
    fn server_event(&mut self, _event: &ServerEvent) {}
}
