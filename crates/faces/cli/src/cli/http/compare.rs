//! The command line of `linerate http compare`.

use std::path::PathBuf;

use clap::Args;

use linerate::http::lab::compare;
use linerate::{Error, Outcome};

/// Two experiments that were made.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct CompareArgs {
    /// Directory of the earlier experiment, or the JSON object it wrote
    #[arg(value_name = "BEFORE")]
    before: PathBuf,
    /// Directory of the later one, or its JSON object
    #[arg(value_name = "AFTER")]
    after: PathBuf,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write the comparison as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl CompareArgs {
    /// # Errors
    /// An experiment that cannot be read, or a report that cannot be written.
    pub(crate) fn run(&self) -> Result<Outcome, Error> {
        compare(&self.before, &self.after, self.json, self.html.as_deref())
    }
}

const NOTES: &str = "\
Figures are after over before. One is marked when the runs show that it is worse or better: by an exact rank-sum test at
5 % over all cells, and beyond the noise from run to run. A verdict needs 4 runs of a cell on each side.

Examples:
  linerate http compare linerate-http-20260131-120000 linerate-http-20260201-120000
  linerate http compare before.json after.json --html changes.html

Exit codes: 0 compared, whatever was found; 1 not completed; 2 one of them cannot be read.";
