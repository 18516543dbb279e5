//! The command line of iperf 2.1.8 and 2.2.1.

mod args;
mod conflicts;
mod effects;
mod help;
mod parse;
mod resolve;
mod table;
mod tos;

use std::ffi::{OsStr, OsString};
use std::time::{SystemTime, UNIX_EPOCH};

use args::Args;
use linerate_model::command_line::getopt::knows_options;
use linerate_model::command_line::values::ValueChecks;
use linerate_sys::random;
use resolve::{Surroundings, resolve};

use crate::report::Layout;

pub use args::OutputOptions;
pub use resolve::Command;
pub use table::{option_groups, options_without_effect, variables};

/// The request of a command line, and the messages before it.
#[derive(Debug)]
pub struct Parsed {
    /// Messages for the user, in order.
    pub messages: Vec<Message>,
    /// The request.
    pub request: Request,
}

/// The request of a command line.
#[derive(Debug)]
pub enum Request {
    /// A test or a server.
    Run(Command),
    /// A text, and nothing else.
    Print {
        /// With the line ends.
        text: Vec<u8>,
        /// On standard output, else on standard error.
        is_output: bool,
        /// The exit code is 0.
        is_success: bool,
    },
}

/// Parses the environment and the arguments after the program name. `program` is the name in
/// messages.
pub fn parse(program: &OsStr, argv: &[OsString], checks: ValueChecks) -> Parsed {
    let mut args = Args::new(argv, checks);
    let surroundings = Surroundings {
        now: SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default(),
        secret: &secret,
    };

    let parsed = args.parse(program, argv, &|name| std::env::var_os(name));
    let command = parsed.and_then(|()| resolve(&mut args, &surroundings));
    let request = match command.and_then(conflicts::check_supported) {
        Ok(command) => Request::Run(command),
        Err(stop) => print(program, &stop, args.output.layout),
    };

    Parsed {
        messages: args.messages,
        request,
    }
}

/// The text in place of a test. 2.1.8 writes its help and version to standard error and reports
/// failure, 2.2.1 writes them to standard output and reports success.
fn print(program: &OsStr, stop: &Stop, layout: Layout) -> Request {
    let is_new_release = layout == Layout::V2_2;
    let (text, is_help, is_success) = match stop {
        Stop::Help => (help::long_help().into_bytes(), true, is_new_release),
        Stop::Version => (help::version(layout).into_bytes(), true, is_new_release),
        Stop::Usage => (help::short_usage(program), false, true),
        Stop::Refused(lines) => {
            let text = lines
                .iter()
                .flat_map(|line| format!("{line}\n").into_bytes());
            (text.collect(), false, false)
        }
        Stop::Quiet(line) => (format!("{line}\n").into_bytes(), false, true),
    };
    Request::Print {
        text,
        is_output: is_help && is_new_release,
        is_success,
    }
}

/// All options on this command line are options of iperf 2. A missing value or an ambiguous
/// abbreviation still names one.
pub fn are_known(args: &[OsString]) -> bool {
    knows_options(&table::grammar(), args)
}

/// Sixteen letters and digits from the kernel's random source.
fn secret() -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    random::bytes::<16>()
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(byte & 63)]))
        .collect()
}

/// One remark for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// On the standard error; bytes, because it quotes what was typed.
    Error(Vec<u8>),
    /// On the standard output.
    Output(String),
}

/// The program ends without a test.
#[derive(Debug)]
pub(crate) enum Stop {
    /// `-h`
    Help,
    /// `-v`
    Version,
    /// No option selects client or server. The original exits with success.
    Usage,
    /// These lines on the standard error, and failure.
    Refused(Vec<String>),
    /// This line on the standard error, and success: some refusals of the original are.
    Quiet(String),
}

impl Stop {
    /// One line and failure.
    pub(crate) fn error(text: impl Into<String>) -> Self {
        Self::Refused(vec![text.into()])
    }
}
