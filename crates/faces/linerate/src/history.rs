//! Runs of a store, and the reports of other programs that are written from them.

use linerate_document::{Output, Style, iperf2, iperf3};
pub use linerate_history::run::history::{
    Filter, History, Keep, Label, ListForm, RunForm, Sort, by_name, local_time, parse_label, since,
};
use linerate_model::EventSink;
use linerate_model::event::Endpoint;

use crate::Error;
use crate::command_line::iperf3::{program_version, system_line};
use crate::report::PRODUCTS;

/// A report of another program, written from a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// The text of iperf3.
    Iperf3,
    /// The document of `iperf3 -J`.
    Iperf3Json,
    /// The text of iperf 2.
    Iperf2,
}

/// Runs in a form.
///
/// # Errors
/// A name of no run, or a record that cannot be read.
pub fn show(
    history: &History,
    names: &[String],
    form: RunForm,
    style: Style,
) -> Result<String, Error> {
    history.show(names, form, PRODUCTS, style)
}

/// Plays throughput tests back into the report of another program on the standard output.
///
/// # Errors
/// A name of no run, one without a throughput test, or an output that fails.
pub fn replay(history: &History, names: &[String], dialect: Dialect) -> Result<(), Error> {
    history.replay(names, |endpoint| sink(endpoint, dialect))
}

fn sink(endpoint: Endpoint, dialect: Dialect) -> Box<dyn EventSink> {
    let style = match dialect {
        Dialect::Iperf2 => {
            let options = iperf2::Options {
                endpoint,
                ..Default::default()
            };
            return Box::new(iperf2::client_sink(options, Output::standard()));
        }
        Dialect::Iperf3Json => iperf3::Style::Json,
        Dialect::Iperf3 => iperf3::Style::Text,
    };

    let options = iperf3::Options {
        style,
        ..iperf3::Options::new(endpoint, program_version(), system_line())
    };
    Box::new(iperf3::client_sink(options, Output::standard()))
}
