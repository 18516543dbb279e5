//! Errors of an iperf3 command line. The texts are those of iperf3 3.22: scripts match
//! them.

use std::ffi::OsStr;

use linerate_model::command_line::getopt::{GLIBC, GetoptError};
use thiserror::Error;

use crate::wire::ErrorCode;

/// The command line cannot be carried out.
#[derive(Debug)]
pub(crate) enum UsageError {
    /// Not even readable.
    Getopt(GetoptError),
    /// Readable, but a value or a combination is not accepted.
    Parameter(ParameterError),
}

impl UsageError {
    /// The first line on stderr, without a line end. Reading errors quote the program as it was
    /// called, parameter errors always say `iperf3`, as the original does.
    pub(crate) fn message(&self, program: &OsStr) -> Vec<u8> {
        match self {
            Self::Getopt(error) => error.message(program, GLIBC),
            Self::Parameter(error @ ParameterError::Unreadable { file, .. }) => {
                format!("iperf3: {file}\n\niperf3: parameter error - {error}").into_bytes()
            }
            Self::Parameter(error) => format!("iperf3: parameter error - {error}").into_bytes(),
        }
    }
}

impl UsageError {
    /// The error, without the name of a program.
    pub(crate) fn text(&self) -> String {
        match self {
            Self::Getopt(error) => {
                let text = String::from_utf8_lossy(&error.message(OsStr::new("iperf3"), GLIBC))
                    .into_owned();
                text.strip_prefix("iperf3: ")
                    .map(str::to_owned)
                    .unwrap_or(text)
            }
            Self::Parameter(error) => error.to_string(),
        }
    }
}

impl From<GetoptError> for UsageError {
    fn from(error: GetoptError) -> Self {
        Self::Getopt(error)
    }
}

impl From<ParameterError> for UsageError {
    fn from(error: ParameterError) -> Self {
        Self::Parameter(error)
    }
}

/// The value of an option that the original does not have.
impl From<linerate_model::Error> for ParameterError {
    fn from(error: linerate_model::Error) -> Self {
        Self::Text(error.to_string())
    }
}

/// A value or a combination that is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum ParameterError {
    /// One with a number. To a text that ends in `: ` the original appends the text of `errno`,
    /// which is empty for a mere range error.
    #[error("{}", .0.message(None))]
    Numbered(ErrorCode),
    #[error("invalid number of parallel streams (min = 1, max = {max})")]
    Streams {
        /// The bound in force.
        max: u32,
    },
    /// A file that a login needs. The cause is in a line of its own, as in the original.
    #[error("{}", .complaint.message(None))]
    Unreadable {
        /// The path and the system's words.
        file: String,
        /// The original's error about the command line.
        complaint: ErrorCode,
    },
    /// One that has an argument, or of an option that the original does not have.
    #[error("{0}")]
    Text(String),
    /// Ours: servers read both as single words, so such a login could never succeed.
    #[error("user name and password must not contain white space")]
    BlankInCredentials,
}

impl From<ErrorCode> for ParameterError {
    fn from(code: ErrorCode) -> Self {
        Self::Numbered(code)
    }
}
