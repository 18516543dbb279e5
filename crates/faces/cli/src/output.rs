//! What commands write besides their reports, and their exit codes.

use std::io::{self, Write};

use linerate::{Error, Outcome};
use linerate_model::printable::printable_lines;
use linerate_model::{Failure, FailureKind};
use linerate_sys::error::io_text;
use linerate_sys::signal::{Signal, Signals};

/// Reports on standard error why `command` ends with this outcome.
pub(crate) fn complain(command: &str, text: &str, outcome: Outcome) -> Outcome {
    warn(command, text);
    outcome
}

/// The outcome of a command, with its error reported on standard error.
pub(crate) fn outcome_of(command: &str, result: Result<Outcome, Error>) -> Outcome {
    result.unwrap_or_else(|error| complain(command, &error.to_string(), error.outcome))
}

/// Writes a message to standard error. It quotes peers, files and devices.
pub(crate) fn warn(command: &str, text: &str) {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "{command}: {}", printable_lines(text));
}

/// The exit code. The drop-in modes use the first two, and 5 with `--lr-expect`.
pub(crate) fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::Usage => 2,
        Outcome::CheckFailed => 3,
        Outcome::Unreachable => 4,
        Outcome::ObjectiveMissed => 5,
        Outcome::TooManyInvalid => 6,
        Outcome::Worse => 10,
        Outcome::Undecided => 11,
        Outcome::NotComparable => 12,
        Outcome::Interrupted => 130,
        _ => 1,
    }
}

/// A signal ended it.
pub(crate) fn is_interrupted(result: &Result<(), Failure>) -> bool {
    result
        .as_ref()
        .is_err_and(|failure| failure.kind == FailureKind::Interrupted)
}

/// The signals that end a command. Before any thread starts: threads inherit the block.
pub(crate) fn signals() -> Result<Signals, Error> {
    Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|error| Error::failed(error.text()))
}

/// Opens files of reports for writing, so that nothing is measured in vain. What they contain stays
/// until there is a report.
#[cfg(feature = "full")]
pub(crate) fn check_files<'a>(
    paths: impl IntoIterator<Item = &'a std::path::PathBuf>,
) -> Result<(), String> {
    for path in paths {
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        opened.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }

    Ok(())
}

/// Writes to the standard output. A reader that has read enough, as head(1), is no error.
pub(crate) fn print(text: &str) -> Result<(), String> {
    let mut output = io::stdout();
    match output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
    {
        // A pipe that is closed early has a reader that wants no more (EPIPE, write(2)).
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(format!(
            "cannot write to the standard output: {}",
            io_text(&error)
        )),
        _ => Ok(()),
    }
}

/// Writes what a command was asked for to the standard output.
pub(crate) fn print_all(text: &str) -> Result<Outcome, Error> {
    print(text).map_err(Error::failed)?;
    Ok(Outcome::Done)
}
