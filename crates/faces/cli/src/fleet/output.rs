//! Reports of a run on a command line of the fleet.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use linerate::fleet::report;
use linerate::fleet::run::RunResult;
use linerate::progress::style;
use linerate::{Error, Outcome, Progress};
use linerate_model::fleet::FleetReport;
use linerate_sys::signal::{Signal, Signals};

use crate::doctor::FailOn;
use crate::output::{check_files, print};
use crate::record::report as report_record;

/// Destinations and forms of the reports.
#[derive(Debug, Args)]
pub(super) struct OutputArgs {
    /// Write the report as one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write one line for each cell to a file, comma-separated
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Exit with 3 when something at least this severe was found
    #[arg(long, value_name = "SEVERITY")]
    fail_on: Option<FailOn>,
    /// Print no progress
    #[arg(short, long)]
    quiet: bool,
    /// Print every finding in full, and all effects
    #[arg(short, long)]
    verbose: bool,
}

impl OutputArgs {
    /// Runs tests that signals cancel, and writes the reports.
    pub(super) fn run(
        &self,
        run: impl FnOnce(&Signals, &mut Progress) -> Result<RunResult, Error>,
    ) -> Result<Outcome, Error> {
        // A directory that is missing is reported before the run, not after it.
        check_files([&self.csv, &self.html].into_iter().flatten()).map_err(Error::failed)?;
        let result = run(&signals()?, &mut Progress::new(self.quiet))?;
        report_record(result.message);
        self.write(&result.report)?;
        Ok(self.outcome(&result.report, result.outcome))
    }

    fn write(&self, run: &FleetReport) -> Result<(), Error> {
        let text = if self.json {
            report::json(run)
        } else {
            report::text(run, self.verbose, style())
        };
        let printed = print_text(&text);

        let write = |path: &Option<PathBuf>, text: fn(&FleetReport) -> String| {
            let Some(path) = path else { return Ok(()) };
            fs::write(path, text(run)).map_err(|error| {
                // A part of a report could be taken for a whole one.
                let _ = fs::remove_file(path);
                Error::failed(format!("cannot write {}: {error}", path.display()))
            })
        };
        let csv = write(&self.csv, report::csv);
        let html = write(&self.html, report::html);

        // Each output is tried, and the first error is reported: one full disk does not lose the
        // others.
        printed.and(csv).and(html)
    }

    /// The outcome of a run that is done, by its findings.
    fn outcome(&self, run: &FleetReport, outcome: Outcome) -> Outcome {
        let is_found = |level: FailOn| {
            run.findings
                .iter()
                .any(|found| found.severity >= level.into())
        };
        match outcome {
            // An incomplete run keeps its own exit code.
            Outcome::Done if self.fail_on.is_some_and(is_found) => Outcome::CheckFailed,
            outcome => outcome,
        }
    }
}

/// The outcome of a command that has no other one.
pub(super) fn done((): ()) -> Outcome {
    Outcome::Done
}

/// Signals that end a command.
pub(super) fn signals() -> Result<Signals, Error> {
    Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(|error| Error::failed(error.text()))
}

/// Writes to the standard output.
pub(super) fn print_text(text: &str) -> Result<(), Error> {
    print(text).map_err(Error::failed)
}
