//! The output of iperf 2, in the layout of 2.1.8 or of 2.2.1.
//!
//! One set of [`Options`], two styles: text in four families of columns (few or many, client or
//! server, TCP or UDP, sender or receiver), and comma-separated values.

mod amount;
mod banner;
mod clock;
mod connection;
mod csv;
mod options;
pub mod reader;
mod row;
mod stream_columns;
mod sum;
mod text;

use std::sync::Arc;

use linerate_document::Output;
use linerate_model::{EventSink, ServerReporter};

pub use options::{Excluded, Layout, Options, Style};

/// A writer for the one test of a client.
pub fn client_sink(options: Options, output: Output) -> Box<dyn EventSink> {
    text::Reporter::new(Arc::new(options), output).sink()
}

/// A reporter for a server and all its tests.
pub fn server_reporter(options: Options, output: Output) -> Box<dyn ServerReporter> {
    Box::new(text::Reporter::new(Arc::new(options), output))
}
