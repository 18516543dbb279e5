//! Options of commands whose runs are recorded, and what the user reads about a record.

use clap::Args;
use linerate::command_line;
use linerate::record::{self, Labels, RecordOptions};

use crate::output::warn;

/// Record of a native command.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Record")]
pub(crate) struct RecordArgs {
    /// Keep the run in the history, with these labels, or not: off
    #[arg(long, value_name = "KEY=VALUE,...", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    record: Option<String>,
    /// History to write to: a file, postgresql://..., or off [default: $LINERATE_STORE, or
    /// history.db in the state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Title of the run
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// Label of the run; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    label: Vec<String>,
}

impl RecordArgs {
    /// Where the record goes. `is_usual`: the command makes one unless it is off.
    ///
    /// # Errors
    /// A label that is none, in words.
    pub(crate) fn resolve(&self, is_usual: bool) -> Result<RecordOptions, String> {
        let typed = self.record.as_deref();
        let mut labels = record::labels(typed.filter(|typed| *typed != "off").unwrap_or_default())
            .map_err(|error| format!("--record {error}"))?;

        for label in &self.label {
            labels.extend(record::labels(label).map_err(|error| format!("--label {error}"))?);
        }

        let is_off = typed == Some("off") || typed.is_none() && !is_usual;
        Ok(placed(
            if is_off {
                Some("off")
            } else {
                self.store.as_deref()
            },
            self.title.clone(),
            labels,
        ))
    }

    /// Where the records of a server's tests go; `None` for nowhere.
    ///
    /// # Errors
    /// A label that is none, in words.
    pub(crate) fn of_server(&self) -> Result<Option<RecordOptions>, String> {
        Ok(Some(self.resolve(false)?).filter(|options| options.place.is_some()))
    }
}

/// The record that `--lr-record` requests.
pub(crate) fn of_drop_in(typed: Option<&str>) -> Option<RecordOptions> {
    let options = placed(None, None, command_line::labels(typed)?);
    options.place.is_some().then_some(options)
}

/// Writes a message about a record to standard error; the exit code stays the same.
pub(crate) fn report(message: Option<String>) {
    if let Some(message) = message {
        warn("linerate", &message);
    }
}

fn placed(store: Option<&str>, title: Option<String>, labels: Labels) -> RecordOptions {
    RecordOptions::new(store, title.clone(), labels.clone()).unwrap_or_else(|error| {
        // A history that cannot be opened does not prevent the test.
        report(Some(format!("no record: {error}")));
        RecordOptions {
            title,
            labels,
            ..RecordOptions::default()
        }
    })
}
