//! Runs of a store, and the reports of other programs that are written from them.

use linerate_document::{Output, Style};
pub use linerate_history::run::history::{
    Filter, History, Keep, Label, ListForm, RunForm, Sort, by_name, local_time, parse_label, since,
};
use linerate_model::EventSink;
use linerate_model::event::Endpoint;

use crate::Error;
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
            let options = linerate_iperf2::report::Options {
                endpoint,
                ..Default::default()
            };
            return Box::new(linerate_iperf2::report::client_sink(
                options,
                Output::standard(),
            ));
        }
        Dialect::Iperf3Json => linerate_iperf3::report::Style::Json,
        Dialect::Iperf3 => linerate_iperf3::report::Style::Text,
    };

    let options = linerate_iperf3::report::Options {
        style,
        ..linerate_iperf3::report::Options::new(endpoint)
    };
    Box::new(linerate_iperf3::report::client_sink(
        options,
        Output::standard(),
    ))
}
