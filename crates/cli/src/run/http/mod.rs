//! Carries out the command lines of the HTTP lab.

pub(crate) mod agent;
mod command_error;
mod generator;
pub(crate) mod lab;
pub(crate) mod load;
mod observed;
pub(crate) mod output;
mod restartable_server;
pub(crate) mod serve;
pub(crate) mod server_side;
mod signals;
pub(crate) mod watch;
pub(crate) mod worker;

use std::io::{self, Write};

use crate::exit_code::ExitCode;

/// Says what is wrong with a command line.
pub(crate) fn complain(trouble: &str) -> ExitCode {
    say(trouble);
    ExitCode::Usage
}

fn say(trouble: &str) {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "linerate http: {trouble}");
}
