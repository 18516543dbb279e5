//! Command lines.

pub(crate) mod compare;
pub(crate) mod doctor;
mod file_modes;
mod generate;
mod history;
mod how_to;
pub(crate) mod http;
pub(crate) mod iperf2;
pub(crate) mod iperf3;
pub(crate) mod links;
mod man;
pub(crate) mod native;
mod record;
mod report;
mod roff;
pub(crate) mod serve;
pub(crate) mod sweep;
mod try_self;
pub(crate) mod watch;

use std::io::{self, Write};

use linerate::Outcome;

/// Reports on standard error why `command` ends with this outcome.
fn complain(command: &str, text: &str, outcome: Outcome) -> Outcome {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "{command}: {text}");
    outcome
}
