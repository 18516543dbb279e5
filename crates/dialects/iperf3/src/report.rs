//! The output of iperf3, in the layout of version 3.22.
//!
//! One set of [`Options`], three styles: text, one JSON document per test, or one JSON object per
//! event. The sums of all three come from the same rules, the objects of both JSON styles from the
//! same builder.

mod document;
mod json;
mod numbered;
mod options;
mod peer_report;
pub mod reader;
mod server;
mod test_report;
mod text;
mod totals;
mod wording;

use std::sync::Arc;

use linerate_document::Output;
use linerate_model::{Event, Failure, SinkError};

use document::RowBudget;

pub use options::{Options, Style};
pub use peer_report::peer_report;
pub use server::server_reporter;
pub use test_report::{Appendix, TestReport};

/// A writer for the one test of a client.
pub fn client_sink(options: Options, output: Output) -> Box<dyn TestReport> {
    sink(Arc::new(options), output, None)
}

/// Reports a failure outside any test, for example of a server that was interrupted while it
/// waited.
///
/// # Errors
/// When the report cannot be written.
pub fn report_failure(
    options: Options,
    output: Output,
    failure: &Failure,
) -> Result<(), SinkError> {
    client_sink(options, output).event(&Event::Failed(failure.clone()))
}

/// A writer for one test in the chosen style. `budget` bounds the intervals that documents keep.
fn sink(options: Arc<Options>, output: Output, budget: Option<RowBudget>) -> Box<dyn TestReport> {
    match options.style {
        Style::Text => Box::new(text::TextWriter::new(options, output)),
        Style::Json | Style::JsonStream { .. } => {
            Box::new(json::JsonWriter::new(options, output, budget))
        }
    }
}
