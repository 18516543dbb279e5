//! Why a command of the HTTP lab failed, and its exit code.

use std::fmt;

use linerate_http::probe::ProbeError;

use crate::exit_code::ExitCode;

/// A reason in words with the exit code that belongs to it.
#[derive(Debug)]
pub struct CommandError {
    pub code: ExitCode,
    text: String,
}

impl CommandError {
    pub fn new(code: ExitCode, text: impl fmt::Display) -> Self {
        Self {
            code,
            text: text.to_string(),
        }
    }

    /// The command line asks for what cannot be.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(ExitCode::Usage, text)
    }

    /// A server could not be asked, or did not answer.
    pub fn of_probe(error: ProbeError) -> Self {
        match error {
            ProbeError::Request(_) => Self::usage(error),
            error => Self::new(ExitCode::Unreachable, error),
        }
    }

    /// Something of this host failed.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::new(ExitCode::NotCompleted, text)
    }
}

impl fmt::Display for CommandError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
