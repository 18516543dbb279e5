//! The settings as typed. Options act in command-line order, after those of the environment; whatever needs more than
//! one option is left to [`mod@super::resolve`].

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use linerate_model::spec::{LocalOptions, Payload, TestSpec};
use linerate_model::workload::{HistogramSpec, WorkingLoad};

use super::message::{Message, Stop};
use super::options::{self, Effect, OPTIONS};
use crate::command_line::getopt::{Getopt, OLD_GNU};

/// What an option's effect returns: an error ends the program at once.
pub type Outcome = Result<(), Stop>;

/// Client or server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// Client of this host.
    Client(String),
    /// Server.
    Server,
}

/// Everything that was typed. Model types are used as they are where an option fills a field on its own.
#[derive(Debug)]
pub struct Args {
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
    /// Ways of sending from the other end.
    pub ways: WaysArgs,
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
    /// Remarks for the user, in order.
    pub messages: Vec<Message>,
}

/// A rate as typed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RateArg {
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

/// Ways of sending from the other end; at most one of them is possible.
#[derive(Debug, Default)]
pub struct WaysArgs {
    /// `-R`
    pub reverse: bool,
    /// `--full-duplex`
    pub full_duplex: bool,
    /// `-d`
    pub dual: bool,
    /// `-r`
    pub trade_off: bool,
}

/// Frames, bursts and pauses.
#[derive(Debug, Default)]
pub struct ShapeArgs {
    /// Frames per second, mean and deviation in bit/s.
    pub isochronous: Option<(f64, f64, f64)>,
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
pub struct BounceArgs {
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
pub struct StartArgs {
    /// Since 1970, as typed and as read.
    pub at: Option<(String, f64)>,
    /// After connecting, in s.
    pub after_s: Option<f64>,
}

/// Options only a server has.
#[derive(Debug, Default)]
pub struct ServerArgs {
    /// One test after the other.
    pub one_at_a_time: bool,
    /// TOS byte of what is sent.
    pub reply_tos: Option<u8>,
    /// Time the permit key is valid.
    pub permit_key_s: Option<f64>,
    /// Time for a header in s.
    pub handshake_s: Option<f64>,
}

/// Options that mean nothing at the other end: they are named and ignored, in the words of the table.
#[derive(Debug, Default)]
pub struct Misplaced {
    /// What a server says.
    pub on_server: Vec<&'static str>,
    /// What a client says.
    pub on_client: Vec<&'static str>,
}

/// Release whose words and columns are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Layout {
    /// 2.1.8
    #[default]
    V2_1,
    /// 2.2.1
    V2_2,
}

/// How reports look and where they go.
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
}

/// Parts of a report that are left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Excluded {
    /// Connect lines.
    pub connection: bool,
    /// Interval and final lines.
    pub data: bool,
    /// Multicast settings.
    pub multicast: bool,
    /// The banner.
    pub settings: bool,
    /// The server's report.
    pub server: bool,
}

impl Args {
    /// Reads the environment and the words after the program name.
    ///
    /// # Errors
    /// The first option that ends the program; what was said before is part of it.
    pub fn parse(
        program: &OsStr,
        words: &[OsString],
        environment: &dyn Fn(&str) -> Option<OsString>,
    ) -> Result<Self, (Vec<Message>, Stop)> {
        let grammar = options::grammar();
        let mut args = Self::new(layout(words));
        if let Err(stop) = args.read_environment(environment) {
            return Err((args.messages, stop));
        }
        let mut walk = Getopt::new(&grammar, words);
        for found in &mut walk {
            let outcome = match found {
                Ok(found) => OPTIONS
                    .get(found.id)
                    .map_or(Ok(()), |option| option.act(&mut args, found.value)),
                // An unknown option is named and ignored.
                Err(error) => {
                    args.messages.push(Message::Error(error.message(program, OLD_GNU)));
                    Ok(())
                }
            };
            if let Err(stop) = outcome {
                return Err((args.messages, stop));
            }
        }
        for word in walk.operands() {
            let beginning = [program.as_encoded_bytes(), b": ignoring extra argument -- "].concat();
            args.messages
                .push(Message::Error([&beginning, word.as_encoded_bytes()].concat()));
        }
        Ok(args)
    }

    /// A line on the standard error.
    pub fn say(&mut self, text: impl Into<String>) {
        self.messages.push(Message::Error(text.into().into_bytes()));
    }

    pub fn is_server(&self) -> bool {
        self.role == Some(Role::Server)
    }

    pub fn is_client(&self) -> bool {
        matches!(self.role, Some(Role::Client(_)))
    }

    fn new(layout: Layout) -> Self {
        let local = LocalOptions {
            port: 5001,
            interval: None,
            ..LocalOptions::default()
        };
        let test = TestSpec {
            payload: Payload::Repeating,
            ..TestSpec::default()
        };
        Self {
            role: None,
            local,
            test,
            time_s: None,
            amount_bytes: None,
            block_len_bytes: None,
            rate: None,
            ways: WaysArgs::default(),
            shape: ShapeArgs::default(),
            bounce: BounceArgs::default(),
            connect_only: None,
            permit_key: None,
            parallel: None,
            start: StartArgs::default(),
            histogram: None,
            server: ServerArgs::default(),
            misplaced: Misplaced::default(),
            daemon: false,
            output: OutputOptions {
                layout,
                ..OutputOptions::default()
            },
            messages: Vec::new(),
        }
    }

    /// A later value overrides, so the command line comes afterwards.
    fn read_environment(&mut self, environment: &dyn Fn(&str) -> Option<OsString>) -> Outcome {
        for name in options::ENVIRONMENT {
            let Some(value) = environment(name) else { continue };
            let Some(option) = OPTIONS.iter().find(|option| option.variable == Some(name)) else {
                continue;
            };
            // The presence of the variable is enough for a switch.
            let value = (!matches!(option.effect, Effect::Switch(_))).then_some(value.as_os_str());
            option.act(self, value)?;
        }
        Ok(())
    }
}

/// `--lr-format` counts wherever it stands, so it is looked for before anything acts.
pub fn layout(words: &[OsString]) -> Layout {
    let grammar = options::grammar();
    let mut layout = Layout::default();
    for found in Getopt::new(&grammar, words).flatten() {
        let is_format = OPTIONS
            .get(found.id)
            .is_some_and(|option| option.long == options::LR_FORMAT);
        if is_format && let Some(named) = found.value.and_then(named_layout) {
            layout = named;
        }
    }
    layout
}

/// The layout of a release, if it is one of the two.
pub fn named_layout(value: &OsStr) -> Option<Layout> {
    match value.as_encoded_bytes() {
        b"2.1" | b"2.1.8" => Some(Layout::V2_1),
        b"2.2" | b"2.2.1" => Some(Layout::V2_2),
        _ => None,
    }
}

/// Text of a value; bytes that are no UTF-8 are replaced, names that matter as bytes are kept as paths.
pub fn text(value: &OsStr) -> String {
    value.to_string_lossy().into_owned()
}
