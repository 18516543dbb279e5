//! The command line of `linerate compare`.

use std::fs;
use std::path::PathBuf;

use clap::Args;
use linerate::compare::{CompareSpec, compare};
use linerate::progress::style;
use linerate::{Error, Outcome};
use linerate_history::conclude::expect::Expectations;
use linerate_history::report::compare as report;
use linerate_model::measure::MeasureName;
use linerate_model::two_sample::{MARGIN, Verdict};

use crate::expect::missed;
use crate::output::{outcome_of, print_all};

const COMMAND: &str = "linerate compare";

/// Two sides, and what counts as a change.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct CompareArgs {
    /// Runs to compare with: an id or its end, last, last~2, @BASELINE, label:k=v, or a file
    #[arg(value_name = "A")]
    a: String,
    /// Runs to judge
    #[arg(value_name = "B")]
    b: String,
    /// Smallest change that matters
    #[arg(long, value_name = "PERCENT", default_value_t = format!("{}%", MARGIN * 100.0))]
    margin: String,
    /// Measure that decides, for example retr [default: rx, of HTTP ok]
    #[arg(long, value_name = "NAME", value_parser = measure)]
    measure: Option<MeasureName>,
    /// Compare also runs of different tests
    #[arg(long)]
    force: bool,
    /// Exit with 0 also when the trials allow no verdict
    #[arg(long)]
    allow_undecided: bool,
    /// Limits that B must hold, for example rx>=900M,retr<10,p99<5ms,loss<=0.1%
    #[arg(long, value_name = "LIMITS")]
    expect: Option<Expectations>,
    /// History to read: a file or postgresql://... [default: $LINERATE_STORE, or history.db in the
    /// state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write a page with charts to a file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print all measures, trials and differences of configuration
    #[arg(short, long)]
    verbose: bool,
}

const NOTES: &str = "\
The unit of comparison is the trial. B is worse or better when an exact rank-sum test shows it at 5 %, and the change is \
beyond the noise of the path from run to run. 4 trials a side are the least, 5 or more are usual.

Examples:
  linerate compare last~1 last                        was the last run worse than the one before?
  linerate compare @monday label:kernel=6.12          several runs: the trials of all count
  linerate compare a.json b.json --measure p99        by files and by another measure

Exit codes: 0 same or better, 1 not completed, 2 wrong command line, 5 a limit of --expect was missed, 10 worse, \
11 undecided, 12 not comparable.";

/// Carries out the command line.
pub(crate) fn main(args: &CompareArgs) -> Outcome {
    outcome_of(COMMAND, run(args))
}

fn run(args: &CompareArgs) -> Result<Outcome, Error> {
    let margin = share(&args.margin).ok_or_else(|| {
        Error::usage(format!(
            "--margin {}: expected a percentage, as 5%",
            args.margin
        ))
    })?;
    let spec = CompareSpec {
        store: args.store.clone(),
        margin,
        measure: args.measure,
        is_forced: args.force,
        expectations: args.expect.clone(),
        ..CompareSpec::new(args.a.as_str(), args.b.as_str())
    };

    let found = compare(&spec)?;
    let comparison = &found.comparison;
    print_all(&if args.json {
        report::json(comparison)
    } else {
        report::text(comparison, args.verbose, style())
    })?;
    if let Some(path) = &args.html {
        fs::write(path, report::html(comparison))
            .map_err(|error| Error::failed(format!("{}: {error}", path.display())))?;
    }

    let outcome = match comparison.conclusion {
        None => Outcome::NotComparable,
        Some(Verdict::Worse) => Outcome::Worse,
        Some(Verdict::Undecided { .. } | Verdict::TooFew) if !args.allow_undecided => {
            Outcome::Undecided
        }
        Some(_) => Outcome::Done,
    };
    Ok(missed(
        COMMAND,
        args.expect.as_ref(),
        &found.missed,
        outcome,
    ))
}

pub(super) fn measure(name: &str) -> Result<MeasureName, String> {
    name.parse()
        .map_err(|()| linerate_history::conclude::expect::parse::unknown_measure(name))
}

/// A percentage above 0 as a share; the sign may be left out.
fn share(text: &str) -> Option<f64> {
    let percent: f64 = text.strip_suffix('%').unwrap_or(text).parse().ok()?;
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
}
