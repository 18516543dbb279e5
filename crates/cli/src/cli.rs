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
use absent::{compare, doctor, expect, fleet, history, http, record, report, sweep, systemd, test, watch};
use linerate::Outcome;

/// Reports on standard error why `command` ends with this outcome.
fn complain(command: &str, text: &str, outcome: Outcome) -> Outcome {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "{command}: {text}");
    outcome
}

/// The exit code. The drop-in modes use the first two, and 5 with `--lr-expect`.
pub(crate) fn exit_code(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done => 0,
        Outcome::NotCompleted => 1,
        Outcome::Usage => 2,
        Outcome::CheckFailed => 3,
        Outcome::Unreachable => 4,
        Outcome::ObjectiveMissed => 5,
        Outcome::TooManyInvalid => 6,
        Outcome::Worse => 10,
        Outcome::Undecided => 11,
        Outcome::NotComparable => 12,
        Outcome::Interrupted => 130,
    }
}
