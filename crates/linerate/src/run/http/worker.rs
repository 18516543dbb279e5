//! A worker process of the load generator: led by another linerate over its standard input and output.

use std::io;

use linerate_http::load;
use linerate_sys::process;

use crate::exit_code::ExitCode;

/// Carries out what comes in, and says what was found.
pub(crate) fn run() -> ExitCode {
    // Every worker has a limit of its own, which is what it is for.
    let _ = process::raise_fd_limit();
    match load::work(io::stdin(), io::stdout()) {
        Ok(()) => ExitCode::Done,
        Err(error) => {
            super::say(&format!("worker: {error}"));
            ExitCode::NotCompleted
        }
    }
}
