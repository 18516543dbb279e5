//! Worker process of a load, controlled over its standard input and output.

use std::io;

use linerate_http::load;
use linerate_sys::process;

use crate::Error;

/// Runs the assigned workers.
///
/// # Errors
/// An assignment that cannot be read, or a lost parent.
pub fn run() -> Result<(), Error> {
    // Each process has its own limit, which is its purpose.
    let _ = process::raise_fd_limit();
    load::work(io::stdin(), io::stdout()).map_err(|error| Error::failed(format!("worker: {error}")))
}
