//! Diagnostic log of the control threads on standard error, off unless `LINERATE_LOG` is set.

use std::io::{self, Write};

use linerate_model::printable::printable_lines;
use tracing_subscriber::filter::LevelFilter;

/// Holds the least important level: error, warn, info, debug or trace.
const VARIABLE: &str = "LINERATE_LOG";

/// Starts the log if the variable names a level.
pub(crate) fn start() {
    let level = std::env::var(VARIABLE)
        .ok()
        .and_then(|level| level.parse().ok());
    if let Some(level) = level.filter(|level: &LevelFilter| *level != LevelFilter::OFF) {
        tracing_subscriber::fmt()
            .with_max_level(level)
            .with_writer(|| StandardError)
            // The log may go to a file, where colours would be control characters.
            .with_ansi(false)
            .init();
    }
}

/// Standard error for lines that quote peers. The log writes each event at once.
struct StandardError;

impl Write for StandardError {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = printable_lines(&String::from_utf8_lossy(event));
        io::stderr().write_all(text.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}
