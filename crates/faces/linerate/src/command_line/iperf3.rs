//! The command line of iperf3.

use std::ffi::{OsStr, OsString};

use linerate_iperf3::options;
use linerate_model::Failure;

pub use linerate_iperf3::FOLLOWS;
pub use linerate_iperf3::options::{
    Command, OutputOptions, ProcessOptions, Request, option_groups,
};

use super::CHECKS;

/// Parses the arguments after the program name, see [`options::parse`].
///
/// # Errors
/// The text for standard error, with the line ends.
pub fn parse(program: &OsStr, args: &[OsString]) -> Result<Request, Vec<u8>> {
    options::parse(program, args, CHECKS)
}

/// Like [`parse`], for a library, see [`options::read_args`].
///
/// # Errors
/// The first argument or combination that is not accepted.
pub fn read_args(args: &[OsString]) -> Result<Request, Failure> {
    options::read_args(args, CHECKS)
}
