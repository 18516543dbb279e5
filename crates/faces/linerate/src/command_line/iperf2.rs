//! The command line of iperf 2.1.8 and 2.2.1.

use std::ffi::{OsStr, OsString};

use linerate_iperf2::options;

pub use linerate_iperf2::options::{
    Command, Message, OutputOptions, Parsed, Request, option_groups, options_without_effect,
    variables,
};

use super::CHECKS;

/// Parses the environment and the arguments after the program name, see [`options::parse`].
pub fn parse(program: &OsStr, args: &[OsString]) -> Parsed {
    options::parse(program, args, CHECKS)
}
