//! The output of iperf3, in the layout of version 3.22.
//!
//! One set of [`Options`], three styles: text, one JSON document per test, or one JSON object per
//! event. The sums of all three come from the same rules, the objects of both JSON styles from the
//! same builder.

mod document;
mod json;
mod numbered;
mod peer_report;
pub mod reader;
mod server;
mod text;
mod totals;
mod wording;

use std::sync::Arc;

use document::RowBudget;
use linerate_document::Output;
use linerate_model::event::Endpoint;
use linerate_model::units::UnitFormat;
use linerate_model::{Event, Failure, SinkError};

use crate::version::{program_version, system_line};

pub use peer_report::peer_report;
pub use server::server_reporter;
pub use totals::{Appendix, TestReport};

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

/// Form of the report.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Style {
    /// Lines for people.
    #[default]
    Text,
    /// One JSON document per test, when the test has ended (`-J`).
    Json,
    /// One JSON object per event and line (`--json-stream`).
    JsonStream {
        /// The whole document follows the last event (`--json-stream-full-output`).
        full_output: bool,
    },
}

/// Everything about the output that is not in the events.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Form of the report.
    pub style: Style,
    /// Which end reports.
    pub endpoint: Endpoint,
    /// Unit of bit rates in text (`-f`).
    pub format: UnitFormat,
    /// More facts about the test (`-V`).
    pub verbose: bool,
    /// Level of debug output, 0 for none (`-d`).
    pub debug: u8,
    /// strftime(3) format of the local time before every line (`--timestamps`).
    pub timestamps: Option<String>,
    /// Label before every line of a client (`-T`).
    pub title: Option<String>,
    /// Name and version of this program, for example `iperf 3.22 (linerate 0.1.0)`.
    pub version: String,
    /// The host in one line, as `uname -a` prints it.
    pub system_info: String,
    /// Show what the original does not report: more verbose lines, and a member of the JSON report.
    pub additions: bool,
}

impl Options {
    /// Text of this program and host, with iperf3's defaults.
    pub fn new(endpoint: Endpoint) -> Self {
        Self {
            endpoint,
            version: program_version(),
            system_info: system_line(),
            ..Self::default()
        }
    }
}
