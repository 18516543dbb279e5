//! Worker process of a load, controlled over its standard input and output.

use std::io;

use linerate_http::load;
use linerate_sys::process;

use crate::exit_code::ExitCode;

/// Runs the assigned workers.
pub fn run() -> ExitCode {
    // Each process has its own limit, which is its purpose.
    let _ = process::raise_fd_limit();
    match load::work(io::stdin(), io::stdout()) {
        Ok(()) => ExitCode::Done,
        Err(error) => {
            super::say(&format!("worker: {error}"));
            ExitCode::NotCompleted
        }
    }
}
