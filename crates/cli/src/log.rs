//! Diagnostic log of the control threads on standard error, off unless `LINERATE_LOG` is set.

use std::io;

use tracing_subscriber::filter::LevelFilter;

/// Holds the least important level: error, warn, info, debug or trace.
const VARIABLE: &str = "LINERATE_LOG";

/// Starts the log if the variable names a level.
pub(crate) fn start() {
    let level = std::env::var(VARIABLE).ok().and_then(|level| level.parse().ok());
    if let Some(level) = level.filter(|level: &LevelFilter| *level != LevelFilter::OFF) {
        tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr).with_ansi(false).init();
    }
}
