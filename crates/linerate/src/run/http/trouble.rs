//! Why a command of the HTTP lab cannot go on, and what its caller is told.

use std::fmt;

use crate::exit_code::ExitCode;

/// A reason in words with the exit code that belongs to it.
#[derive(Debug)]
pub(super) struct Trouble {
    pub(super) code: ExitCode,
    text: String,
}

impl Trouble {
    pub(super) fn new(code: ExitCode, text: impl fmt::Display) -> Self {
        Self {
            code,
            text: text.to_string(),
        }
    }

    /// The command line asks for what cannot be.
    pub(super) fn usage(text: impl fmt::Display) -> Self {
        Self::new(ExitCode::Usage, text)
    }

    /// Something of this host failed.
    pub(super) fn failed(text: impl fmt::Display) -> Self {
        Self::new(ExitCode::NotCompleted, text)
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
