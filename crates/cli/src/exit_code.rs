//! The exit codes of the program.

use linerate::Outcome;

/// Exit codes, converted to numbers in `main` only. The drop-in modes use the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitCode {
    /// Everything was done.
    Done,
    /// The test could not be completed; in a drop-in mode also a wrong command line.
    NotCompleted,
    /// Wrong command line of the native commands.
    Usage,
    /// `linerate doctor` found something at or above the level of `--fail-on`, or a check of the HTTP lab failed.
    Found,
    /// The server does not answer.
    Unreachable,
    /// The objectives of `--assert` were missed.
    Missed,
    /// More than a fifth of the HTTP lab's cells are invalid.
    Invalid,
    /// A signal interrupted it.
    Interrupted,
}

impl From<Outcome> for ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Done => Self::Done,
            Outcome::NotCompleted => Self::NotCompleted,
            Outcome::Usage => Self::Usage,
            Outcome::CheckFailed => Self::Found,
            Outcome::Unreachable => Self::Unreachable,
            Outcome::ObjectiveMissed => Self::Missed,
            Outcome::TooManyInvalid => Self::Invalid,
            Outcome::Interrupted => Self::Interrupted,
        }
    }
}

impl From<ExitCode> for std::process::ExitCode {
    fn from(code: ExitCode) -> Self {
        Self::from(match code {
            ExitCode::Done => 0,
            ExitCode::NotCompleted => 1,
            ExitCode::Usage => 2,
            ExitCode::Found => 3,
            ExitCode::Unreachable => 4,
            ExitCode::Missed => 5,
            ExitCode::Invalid => 6,
            ExitCode::Interrupted => 130,
        })
    }
}
