//! Command lines.

#[cfg(not(feature = "full"))]
mod absent;
#[cfg(feature = "full")]
mod compare;
#[cfg(feature = "full")]
mod doctor;
#[cfg(feature = "full")]
mod expect;
mod file_modes;
#[cfg(feature = "full")]
mod fleet;
mod generate;
#[cfg(feature = "full")]
mod history;
mod how_to;
#[cfg(feature = "full")]
mod http;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod links;
mod man;
pub(crate) mod native;
#[cfg(feature = "full")]
mod record;
#[cfg(feature = "full")]
mod report;
mod roff;
pub(crate) mod serve;
#[cfg(feature = "full")]
mod sweep;
#[cfg(feature = "full")]
mod systemd;
#[cfg(feature = "full")]
mod test;
mod try_self;
#[cfg(feature = "full")]
mod watch;

use std::io::{self, Write};

#[cfg(not(feature = "full"))]
use absent::{
    compare, doctor, expect, fleet, history, http, record, report, sweep, systemd, test, watch,
};
use linerate::Outcome;
use linerate_model::printable::printable_lines;

/// Reports on standard error why `command` ends with this outcome.
fn complain(command: &str, text: &str, outcome: Outcome) -> Outcome {
    warn(command, text);
    outcome
}

/// Writes a message to standard error. It quotes peers, files and devices.
fn warn(command: &str, text: &str) {
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

/// Opens files of reports for writing, so that nothing is measured in vain. What they contain stays
/// until there is a report.
#[cfg(feature = "full")]
fn check_files<'a>(paths: impl IntoIterator<Item = &'a std::path::PathBuf>) -> Result<(), String> {
    for path in paths {
        let opened = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path);
        opened.map_err(|error| format!("cannot write {}: {error}", path.display()))?;
    }

    Ok(())
}

/// Writes to the standard output. A reader that has read enough is no error.
#[cfg(feature = "full")]
fn print(text: &str) -> Result<(), String> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to the standard output: {error}"))
        }
        _ => Ok(()),
    }
}
