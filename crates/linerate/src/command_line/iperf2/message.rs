//! What the program says before a test, and how it ends without one.

use crate::exit_code::ExitCode;

/// One remark for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// On the standard error; bytes, because it quotes what was typed.
    Error(Vec<u8>),
    /// On the standard output.
    Output(String),
}

/// The program ends without a test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stop {
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
    pub fn error(text: impl Into<String>) -> Self {
        Self::Refused(vec![text.into()])
    }

    /// Exit code. After its help or version, 2.1.8 reports failure and 2.2.1 success.
    pub fn exit_code(&self, is_new_release: bool) -> ExitCode {
        match self {
            Self::Help | Self::Version if is_new_release => ExitCode::Done,
            Self::Help | Self::Version | Self::Refused(_) => ExitCode::NotCompleted,
            Self::Usage | Self::Quiet(_) => ExitCode::Done,
        }
    }
}
