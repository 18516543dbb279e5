//! The settings as typed. Options act in command-line order, after those of the environment;
//! whatever needs more than one option is left to [`mod@super::resolve`].

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::command_line::values::ValueChecks;
use linerate_model::event::Endpoint;
use linerate_model::spec::{LocalOptions, TestSpec};
use linerate_model::units::UnitFormat;
use linerate_model::workload::{HistogramSpec, WorkingLoad};

use super::{Message, Stop};
use crate::report::{Excluded, Layout, Options, Style};

/// The result of the effect of an option: an error ends the program at once.
pub(crate) type Outcome = Result<(), Stop>;

/// Client or server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// Client of this host.
    Client(String),
    /// Server.
    Server,
}

/// All settings as typed. Model types are used as they are where an option fills a field on its
/// own.
#[derive(Debug, Default)]
pub(crate) struct Args {
    /// The first of `-s` and `-c` decides.
    pub role: Option<Role>,
    /// Options of this end.
    pub local: LocalOptions,
    /// The test, but for the fields that depend on several options.
    pub test: TestSpec,
    /// Seconds, not positive for no limit.
    pub time_s: Option<f64>,
    /// Amount in bytes.
    pub amount_bytes: Option<u64>,
    /// Block length in bytes.
    pub block_len_bytes: Option<u32>,
    /// Rate limit.
    pub rate: Option<RateArg>,
    /// Options by which the other end sends.
    pub directions: DirectionArgs,
    /// Frames, bursts and pauses.
    pub shape: ShapeArgs,
    /// Requests and replies.
    pub bounce: BounceArgs,
    /// `--connect-only`, with a number of connections.
    pub connect_only: Option<Option<u32>>,
    /// `--permit-key`, with the key.
    pub permit_key: Option<Option<String>>,
    /// Streams.
    pub parallel: Option<u32>,
    /// Start times.
    pub start: StartArgs,
    /// A distribution was asked for.
    pub histogram: Option<HistogramSpec>,
    /// Options only a server has.
    pub server: ServerArgs,
    /// Options of a server that were typed, and those only clients have.
    pub misplaced: Misplaced,
    /// Go to the background.
    pub daemon: bool,
    /// Reports.
    pub output: OutputOptions,
    /// Checks of values for other parts of the program.
    pub checks: ValueChecks,
    /// Remarks for the user, in order.
    pub messages: Vec<Message>,
}

/// A rate as typed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RateArg {
    /// Bit/s and, behind a comma, a standard deviation.
    Bits {
        /// Target.
        bps: u64,
        /// Variation.
        deviation_bps: Option<u64>,
    },
    /// Datagrams per second.
    Datagrams(u64),
}

/// Options by which the other end sends; at most one of them is possible.
#[derive(Debug, Default)]
pub(crate) struct DirectionArgs {
    /// `-R`
    pub reverse: bool,
    /// `--full-duplex`
    pub full_duplex: bool,
    /// `-d`
    pub dual: bool,
    /// `-r`
    pub trade_off: bool,
}

/// Default size of a burst in bytes.
pub(crate) const BURST_BYTES: u32 = 1 << 20;

/// Rate of frames as typed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum FrameRate {
    /// Bits per second.
    Bits(f64),
    /// Datagrams per frame.
    Datagrams(f64),
}

/// The value of `--isochronous`.
#[derive(Debug)]
pub(crate) struct IsochronousArg {
    /// Frames per second.
    pub frames_per_s: f64,
    /// Mean rate.
    pub mean: FrameRate,
    /// Standard deviation of the rate.
    pub deviation: FrameRate,
}

impl IsochronousArg {
    /// A number of it has the unit of datagrams.
    pub(crate) fn is_in_datagrams(&self) -> bool {
        [self.mean, self.deviation]
            .iter()
            .any(|rate| matches!(rate, FrameRate::Datagrams(_)))
    }
}

/// Frames, bursts and pauses.
#[derive(Debug, Default)]
pub(crate) struct ShapeArgs {
    /// Frames.
    pub isochronous: Option<IsochronousArg>,
    /// Gap between datagrams in s.
    pub gap_s: Option<f64>,
    /// Bytes of a burst.
    pub burst_bytes: Option<u32>,
    /// Seconds between bursts.
    pub burst_period_s: Option<f64>,
    /// Weight of the pause.
    pub near_congestion: Option<f64>,
}

/// Requests and replies.
#[derive(Debug, Default)]
pub(crate) struct BounceArgs {
    /// `--bounceback`, with the requests of a burst.
    pub burst: Option<u32>,
    /// Time the server waits.
    pub hold: Duration,
    /// Seconds between bursts.
    pub period_s: Option<f64>,
    /// Bytes of a request.
    pub request_bytes: Option<u32>,
    /// Bytes of a reply.
    pub reply_bytes: Option<u32>,
    /// The server acknowledges as it likes.
    pub slow_ack: bool,
    /// Streams beside it.
    pub load: Option<WorkingLoad>,
}

/// Start times.
#[derive(Debug, Default)]
pub(crate) struct StartArgs {
    /// Since 1970, as typed and as read.
    pub at: Option<(String, f64)>,
    /// After connecting, in s.
    pub after_s: Option<f64>,
}

/// Options only a server has.
#[derive(Debug, Default)]
pub(crate) struct ServerArgs {
    /// One test after the other.
    pub one_at_a_time: bool,
    /// TOS byte of what is sent.
    pub reply_tos: Option<u8>,
    /// Time the permit key is valid.
    pub permit_key_s: Option<f64>,
    /// Time for a header in s.
    pub handshake_s: Option<f64>,
}

/// Options that mean nothing at the other end: they are named and ignored, in the wording of the
/// table.
#[derive(Debug, Default)]
pub(crate) struct Misplaced {
    /// Warnings of a server.
    pub on_server: Vec<&'static str>,
    /// Warnings of a client.
    pub on_client: Vec<&'static str>,
}

/// Format and destination of reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutputOptions {
    /// Release whose layout is used.
    pub layout: Layout,
    /// Comma-separated values.
    pub csv: bool,
    /// More columns.
    pub enhanced: bool,
    /// Letter of the unit.
    pub format: Option<char>,
    /// Sums and nothing else.
    pub sum_only: bool,
    /// Sums by destination instead of by source.
    pub sum_by_destination: bool,
    /// Addresses are not shown.
    pub hide_addresses: bool,
    /// The segment size is shown.
    pub print_mss: bool,
    /// Dates are shown in UTC.
    pub utc: bool,
    /// A report per frame or burst.
    pub per_frame: bool,
    /// Parts that are left out.
    pub excluded: Excluded,
    /// File that gets all output, appended.
    pub file: Option<PathBuf>,
    /// Limits that the test of a client must hold, as typed and checked.
    pub expect: Option<String>,
    /// Labels of a record in the history, as typed and checked; `None` for no record.
    pub record: Option<String>,
    /// A terminal view shows the test; clients only.
    pub tui: bool,
}

impl OutputOptions {
    /// The options of the writers for one end.
    pub fn report_options(&self, endpoint: Endpoint, local: &LocalOptions) -> Options {
        Options {
            endpoint,
            layout: self.layout,
            style: if self.csv { Style::Csv } else { Style::Text },
            units: self
                .format
                .and_then(UnitFormat::from_letter)
                .unwrap_or_default(),
            enhanced: self.enhanced,
            sum_only: self.sum_only,
            hide_addresses: self.hide_addresses,
            print_mss: self.print_mss,
            utc: self.utc,
            excluded: self.excluded,
            process_id: std::process::id(),
            defaults: local.end.defaults.clone(),
        }
    }
}

impl Args {
    /// A line on the standard error.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.messages.push(Message::Error(text.into().into_bytes()));
    }

    pub(crate) fn is_server(&self) -> bool {
        self.role == Some(Role::Server)
    }

    pub(crate) fn is_client(&self) -> bool {
        matches!(self.role, Some(Role::Client(_)))
    }
}

/// The layout of a release, if it is one of the two.
pub(crate) fn named_layout(value: &OsStr) -> Option<Layout> {
    match value.as_encoded_bytes() {
        b"2.1" | b"2.1.8" => Some(Layout::V2_1),
        b"2.2" | b"2.2.1" => Some(Layout::V2_2),
        _ => None,
    }
}
