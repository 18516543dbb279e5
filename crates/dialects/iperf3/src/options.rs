//! The command line of iperf3, option for option and message for message: from arguments to a
//! specification.

mod args;
mod dscp;
mod effects;
mod error;
mod help;
mod parse;
mod resolve;
mod table;

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;

use args::Args;
use error::UsageError;
use linerate_model::command_line::getopt::knows_options;
use linerate_model::command_line::values::ValueChecks;
use linerate_model::{Failure, FailureKind};
use linerate_sys::{file_system, process};
use parse::Parsed;
use resolve::{Surroundings, resolve};

use crate::wire::ErrorCode;

pub use args::{OutputOptions, ProcessOptions};
pub use resolve::Command;
pub use table::option_groups;

/// Longest key and list of users: that of a list at a login.
const FILE_LEN_MAX: u64 = 16 << 20;
/// Variable that holds the password.
const PASSWORD_VARIABLE: &str = "IPERF3_PASSWORD";

/// The request of a command line.
#[derive(Debug)]
pub enum Request {
    /// A test or a server, and lines for standard error before it.
    Run(Box<Command>, Vec<&'static str>),
    /// A text for standard output, and nothing else.
    Print(String),
}

/// Parses the arguments after the program name. `program` is the name in messages.
///
/// Reads keys from their files, and the password from the environment or the terminal.
///
/// # Errors
/// The text for standard error, with the line ends.
pub fn parse(program: &OsStr, args: &[OsString], checks: ValueChecks) -> Result<Request, Vec<u8>> {
    request(args, checks).map_err(|error| {
        let mut text = error.message(program);
        text.extend_from_slice(b"\n\n");
        text.extend_from_slice(help::SHORT_USAGE.as_bytes());
        text
    })
}

/// Like [`parse`], for a library: a failure has the number and the text of iperf3, without the
/// program's name.
///
/// # Errors
/// The first argument or combination that is not accepted.
pub fn read_args(args: &[OsString], checks: ValueChecks) -> Result<Request, Failure> {
    request(args, checks).map_err(|error| {
        let text = error.text();
        let code = ErrorCode::ALL
            .iter()
            .find(|code| code.message(None) == text);
        let mut failure = Failure::new(FailureKind::Error, text);
        failure.code = code.map(|code| code.number());
        failure
    })
}

fn request(argv: &[OsString], checks: ValueChecks) -> Result<Request, UsageError> {
    let args = match Args::parse(argv, checks)? {
        Parsed::Print(text) => return Ok(Request::Print(text())),
        Parsed::Run(args) => args,
    };
    let warnings = resolve::warnings(&args);

    let surroundings = Surroundings {
        read_file: &read_file,
        file_len: &file_len,
        password: &password,
    };
    Ok(Request::Run(
        Box::new(resolve(*args, &surroundings)?),
        warnings,
    ))
}

/// All options on this command line are options of iperf3. A missing value or an ambiguous
/// abbreviation still names one.
pub fn are_known(args: &[OsString]) -> bool {
    knows_options(&table::grammar(), args)
}

fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    file_system::read_bytes(path, FILE_LEN_MAX)
}

/// Pipes and devices have no length.
fn file_len(path: &Path) -> Option<u64> {
    std::fs::metadata(path)
        .ok()
        .filter(std::fs::Metadata::is_file)
        .map(|file| file.len())
}

/// The password from the environment or the terminal.
fn password() -> Option<String> {
    match std::env::var(PASSWORD_VARIABLE) {
        Ok(password) => Some(password),
        Err(_) if process::isatty(io::stdin()) => process::read_password("Password: ").ok(),
        Err(_) => None,
    }
}
