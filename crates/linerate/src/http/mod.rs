//! Carries out the command lines of the HTTP lab.

pub mod agent;
mod command_error;
pub mod generator;
pub mod lab;
pub mod load;
mod observed;
pub mod output;
mod restartable_server;
pub mod serve;
pub mod server_side;
mod signals;
pub(crate) mod watch;
pub mod worker;

use std::io::{self, Write};

use crate::exit_code::ExitCode;

/// Says what is wrong with a command line.
pub fn complain(trouble: &str) -> ExitCode {
    say(trouble);
    ExitCode::Usage
}

fn say(trouble: &str) {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "linerate http: {trouble}");
}
