//! Outcomes of a run, and reasons of failures.

use std::fmt;

use crate::{Failure, FailureKind};

/// Outcome of a run; the program has an exit code for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Everything was done.
    Done,
    /// It ended early or produced no result.
    NotCompleted,
    /// The request is invalid; nothing was run. In a drop-in mode this is [`Self::NotCompleted`].
    Usage,
    /// A check before the experiment failed, or a diagnosis found something of the severity that
    /// was asked for.
    CheckFailed,
    /// The server does not answer or refuses the connection.
    Unreachable,
    /// The service level of the plan, or a limit of `--expect`, was missed.
    ObjectiveMissed,
    /// More than a fifth of the cells are invalid.
    TooManyInvalid,
    /// A comparison found a change for the worse.
    Worse,
    /// The trials of a comparison allow no verdict.
    Undecided,
    /// The sides of a comparison are different tests.
    NotComparable,
    /// A signal interrupted it.
    Interrupted,
}

/// A failure: a text for the user, without a line end, and the outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Kind of failure.
    pub outcome: Outcome,
    text: String,
}

impl Error {
    /// An error of this outcome, with a text for a person.
    pub fn new(outcome: Outcome, text: impl fmt::Display) -> Self {
        Self {
            outcome,
            text: text.to_string(),
        }
    }

    /// An invalid request.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self::new(Outcome::Usage, text)
    }

    /// A request for what this build leaves out.
    pub fn absent(what: &str) -> Self {
        Self::usage(format!(
            "{what} is not in this build; the full program `linerate` has it"
        ))
    }

    /// An operation of this host failed.
    pub fn failed(text: impl fmt::Display) -> Self {
        Self::new(Outcome::NotCompleted, text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

/// A failure without a code of a dialect.
pub fn failure(error: &dyn fmt::Display) -> Failure {
    Failure::new(FailureKind::Error, error.to_string())
}
