//! The settings as typed. Options act in command-line order, and each checks its own bounds when it
//! acts; whatever needs more than one option is left to [`mod@super::resolve`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::PortRange;
use linerate_model::command_line::values::ValueChecks;
use linerate_model::event::Endpoint;
use linerate_model::policy::ServerPolicy;
use linerate_model::spec::{BitrateLimit, LocalOptions, TestSpec};
use linerate_model::units::UnitFormat;

use super::error::ParameterError;
use crate::report::{Options, Style};

/// The result of the effect of an option.
pub(crate) type Outcome = Result<(), ParameterError>;

/// All settings as typed. Model types are used as they are where an option fills a field on its
/// own.
#[derive(Debug, Default)]
pub(crate) struct Args {
    /// Client or server.
    pub role: Option<ChosenRole>,
    /// An option for clients alone was typed.
    pub client_only_seen: bool,
    /// An option for servers alone was typed.
    pub server_only_seen: bool,
    /// Range of ports of the server.
    pub ports: Option<PortRange>,
    /// Options of this end.
    pub local: LocalOptions,
    /// A receive time-out was named.
    pub rcv_timeout_given: bool,
    /// The test, but for the fields that depend on several options: `end`, the block length, the
    /// rate.
    pub test: TestSpec,
    /// End conditions as typed.
    pub end: EndArgs,
    /// Block length, 0 for the default.
    pub block_len_bytes: f64,
    /// Rate per stream in bit/s, 0 for no limit.
    pub rate_bps: Option<u64>,
    /// Datagrams are handed over in large buffers.
    pub gsro: bool,
    /// Longest time to set up the control connection.
    pub connect_timeout: Option<Duration>,
    /// CPU the server is asked to pin itself to.
    pub server_cpu: Option<u32>,
    /// Options of a server.
    pub server: ServerArgs,
    /// Authentication, both ends.
    pub auth: AuthArgs,
    /// Files and background.
    pub process: ProcessOptions,
    /// Reports.
    pub output: OutputOptions,
    /// A unit was named.
    pub format_given: bool,
    /// Remarks for the user, printed before the test.
    pub warnings: Vec<&'static str>,
    /// Checks of values for other parts of the program.
    pub checks: ValueChecks,
    /// Bound of `-P`.
    pub streams_max: u32,
    /// Set by options that end everything: the text they show.
    pub print: Option<fn() -> String>,
}

/// Client or server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ChosenRole {
    /// Client of this host.
    Client(String),
    /// Server.
    Server,
}

/// End conditions as typed.
#[derive(Debug, Default)]
pub(crate) struct EndArgs {
    /// Seconds, 0 for no limit.
    pub duration_s: Option<u32>,
    /// Bytes, 0 for no limit.
    pub bytes: u64,
    /// Blocks, 0 for no limit.
    pub blocks: u64,
}

/// Options of a server.
#[derive(Debug, Default)]
pub(crate) struct ServerArgs {
    /// Leave after one test.
    pub one_off: bool,
    /// Time without a client.
    pub idle_timeout: Option<Duration>,
    /// Highest average rate.
    pub bitrate_limit: Option<BitrateLimit>,
    /// Longest test.
    pub max_duration: Option<Duration>,
    /// Sharing of the server among its clients.
    pub policy: ServerPolicy,
    /// The idle timeout was set.
    pub liveness_given: bool,
}

/// Authentication, both ends.
#[derive(Debug, Default)]
pub(crate) struct AuthArgs {
    /// User name of a client.
    pub username: Option<String>,
    /// The server's public key, at the client.
    pub public_key_path: Option<PathBuf>,
    /// The server's private key, at the server.
    pub private_key_path: Option<PathBuf>,
    /// Users a server knows.
    pub users_path: Option<PathBuf>,
    /// Largest accepted difference of the clocks.
    pub max_skew_s: Option<u32>,
    /// Old padding.
    pub pkcs1_padding: bool,
    /// Either padding; servers only.
    pub both_paddings: bool,
}

/// Actions of the process besides testing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProcessOptions {
    /// Go to the background; servers only.
    pub daemon: bool,
    /// File that holds the process id while the process lives.
    pub pidfile: Option<PathBuf>,
    /// Address of the endpoint with the server's numbers.
    pub metrics: Option<SocketAddr>,
    /// Limits that the test of a client must hold, as typed and checked.
    pub expect: Option<String>,
    /// Labels of a record in the history, as typed and checked; `None` for no record.
    pub record: Option<String>,
    /// A terminal view shows the test; clients only.
    pub tui: bool,
}

/// Format and destination of reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// One JSON document per test; also set by `json_stream`.
    pub json: bool,
    /// One JSON object per line, as things happen.
    pub json_stream: bool,
    /// The stream is followed by the whole document.
    pub json_stream_full: bool,
    /// Unit of rates.
    pub format: UnitFormat,
    /// More detail.
    pub verbose: bool,
    /// 0 for none, up to 4 for everything.
    pub debug: u8,
    /// File that gets all output, appended.
    pub logfile: Option<PathBuf>,
    /// Flush after every interval.
    pub forceflush: bool,
    /// Prefix of every line, in the notation of strftime(3).
    pub timestamps: Option<String>,
    /// Prefix of every line.
    pub title: Option<String>,
    /// Report what the original does not; set by every option that the original does not have.
    pub additions: bool,
}

impl OutputOptions {
    /// The options of the writers for one end.
    pub fn report_options(&self, endpoint: Endpoint) -> Options {
        let style = match (self.json_stream, self.json) {
            (true, _) => Style::JsonStream {
                full_output: self.json_stream_full,
            },
            (false, true) => Style::Json,
            (false, false) => Style::Text,
        };
        Options {
            style,
            format: self.format,
            verbose: self.verbose,
            debug: self.debug,
            timestamps: self.timestamps.clone(),
            title: self.title.clone(),
            additions: self.additions,
            ..Options::new(endpoint)
        }
    }
}

impl Args {
    /// The defaults.
    pub(crate) fn new(streams_max: u32, checks: ValueChecks) -> Self {
        let mut test = TestSpec::default();
        test.pacing.timer_us = 1000;
        Self {
            test,
            checks,
            streams_max,
            ..Self::default()
        }
    }
}
