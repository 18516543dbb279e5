//! The command line of `linerate report`.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, ValueEnum};
use linerate::history::since;
use linerate::progress::style;
use linerate::report::{Form, GridSpec, ReportSpec, TimeRange, grid, report};
use linerate::{Error, Outcome};
use linerate_history::report::export::markdown::STEP_SUMMARY_BYTES_MAX;

use crate::output::{outcome_of, print};

const COMMAND: &str = "linerate report";

/// Which runs to report, and how.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct ReportArgs {
    /// Runs: id or its end, last, last~2, @BASELINE, label:KEY=VALUE, or a file with a record or a
    /// report
    #[arg(value_name = "RUN", required_unless_present = "grid")]
    runs: Vec<String>,
    /// Write to a file [default: the standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Form of the report [default: that of the file's name, else text]
    #[arg(long = "as", value_name = "FORM")]
    form: Option<FormName>,
    /// Charts begin at this time of each trial, for example 20s
    #[arg(long, value_name = "TIME", value_parser = crate::doctor::duration)]
    from: Option<Duration>,
    /// Charts end at this time of each trial
    #[arg(long, value_name = "TIME", value_parser = crate::doctor::duration)]
    to: Option<Duration>,
    /// Replace names of hosts and users, and addresses
    #[arg(long)]
    anonymize: bool,
    /// Results over time instead of runs: a row for each pair of the newest fleet, or for each title
    /// or path
    #[arg(long, conflicts_with_all = ["runs", "from", "to", "anonymize"])]
    grid: bool,
    /// Runs of the grid since an age (7d, 12h) or a date [default: all]
    #[arg(long, value_name = "TIME", value_parser = since, requires = "grid")]
    since: Option<u64>,
    /// Runs of the grid that this watch started
    #[arg(long, value_name = "NAME", requires = "grid")]
    watch: Option<String>,
    /// Rows of the grid are the values of this label
    #[arg(long, value_name = "KEY", requires = "grid")]
    by: Option<String>,
    /// History to read: a file or postgresql://... [default: $LINERATE_STORE, or history.db in the
    /// state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FormName {
    /// One file with charts, without script
    Html,
    /// Markdown of at most 60,000 bytes
    Markdown,
    /// The same, appended to the summary of the step of a job on GitHub
    Github,
    /// Lines for a terminal
    Text,
}

const EXAMPLES: &str = "\
The page has the answer first, then charts, values, hosts, the command and the record itself. It needs no network.

Examples:
  linerate report last -o run.html                 a page of the last run
  linerate report last -o run.html --from 20s --to 40s
  linerate report 9a3c01d2 --as markdown           for a comment
  linerate report run.json -o run.html --anonymize
  linerate report --grid --since 30d -o grid.html  pairs of a fleet, or labels, over time
  linerate report iperf3.json                      a report of another program, as of history import

Exit codes: 0 done, 1 not completed, 2 wrong command line.";

/// Carries out the command line.
pub(crate) fn main(args: &ReportArgs) -> Outcome {
    outcome_of(COMMAND, run(args))
}

fn run(args: &ReportArgs) -> Result<Outcome, Error> {
    let form = args.form();
    let spec = args.spec(form).map_err(Error::usage)?;
    let text = match (args.grid, spec.form) {
        (false, _) => report(&spec)?,
        (true, Form::Markdown) => return Err(Error::usage("a grid is html or text")),
        (true, form) => grid(&args.grid_spec(), form, style())?,
    };
    let summary = env::var_os("GITHUB_STEP_SUMMARY")
        .map(PathBuf::from)
        // Only this form is for the summary of a step; the variable is set for every command of a
        // job.
        .filter(|_| form == FormName::Github);
    let written = match (&args.output, summary) {
        (Some(path), _) => {
            fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
        }
        (None, Some(path)) => append(&path, &text),
        (None, None) => print(&text),
    };

    written.map_err(Error::failed)?;
    Ok(Outcome::Done)
}

impl ReportArgs {
    fn form(&self) -> FormName {
        let extension = self
            .output
            .as_deref()
            .and_then(Path::extension)
            .and_then(|extension| extension.to_str());
        self.form.unwrap_or(match extension {
            Some("html" | "htm") => FormName::Html,
            Some("md") => FormName::Markdown,
            _ => FormName::Text,
        })
    }

    fn grid_spec(&self) -> GridSpec {
        GridSpec {
            store: self.store.clone(),
            since_ms: self.since,
            watch: self.watch.clone(),
            by: self.by.clone(),
        }
    }

    fn spec(&self, form: FormName) -> Result<ReportSpec, &'static str> {
        let ns = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let stretch = TimeRange {
            from_ns: self.from.map_or(0, ns),
            to_ns: self.to.map_or(u64::MAX, ns),
        };
        // An empty range would show charts without a point.
        if stretch.from_ns >= stretch.to_ns {
            return Err("--from must be before --to");
        }

        let form = match form {
            FormName::Html => Form::Html,
            FormName::Markdown | FormName::Github => Form::Markdown,
            FormName::Text => Form::Text,
        };
        let mut spec = ReportSpec::new(self.runs.clone(), form);
        spec.store = self.store.clone();
        spec.stretch = stretch;
        spec.is_anonymous = self.anonymize;
        spec.style = style();

        Ok(spec)
    }
}

/// Appends to the summary of a step, which GitHub discards as a whole when it is too long.
fn append(path: &Path, text: &str) -> Result<(), String> {
    let used = fs::metadata(path).map_or(0, |metadata| metadata.len());
    if used + text.len() as u64 > STEP_SUMMARY_BYTES_MAX {
        return Err(format!(
            "{}: the summary of a step has at most {STEP_SUMMARY_BYTES_MAX} bytes",
            path.display()
        ));
    }

    let file = OpenOptions::new().append(true).create(true).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| format!("{}: {error}", path.display()))
}
