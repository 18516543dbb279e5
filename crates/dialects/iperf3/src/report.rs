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
mod server;
mod text;
mod totals;
mod wording;

use std::sync::Arc;

use linerate_document::Output;
use linerate_model::sink::Tee;
use linerate_model::{Event, EventSink, Failure, SinkError};

use document::RowBudget;

pub use options::{Options, Style};
pub use peer_report::peer_report;
pub use server::server_reporter;

/// The report of one test.
pub trait TestReport: EventSink {
    /// Adds to the report; before the last event.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError>;
}

impl<T: TestReport + ?Sized> TestReport for &mut T {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        (**self).append(appendix)
    }
}

/// Additions are for the second sink alone.
impl<A: EventSink, B: TestReport> TestReport for Tee<A, B> {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.1.append(appendix)
    }
}

/// An addition to a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appendix {
    /// Its name in structured reports.
    pub name: &'static str,
    /// The addition for people; lines without an end.
    pub text: String,
    /// The same for programs: one JSON value.
    pub json: String,
}

/// A writer for the one test of a client.
#[must_use]
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
