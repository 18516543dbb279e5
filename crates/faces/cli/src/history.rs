//! The command line of `linerate history`.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use linerate::history::{
    Dialect, Filter, History, Keep, Label, ListForm, RunForm, Sort, by_name, local_time,
    parse_label, since,
};
use linerate::import::import_file;
use linerate::model::measure::MeasureName;
use linerate::model::record::{RunKind, RunState};
use linerate::progress::style;
use linerate::{Error, Outcome};
use linerate_history::conclude::expect::Expectations;
use linerate_history::conclude::trend::TrendState;
use linerate_history::report::trend as report;
use linerate_model::printable::printable;

use super::compare::measure;
use super::expect::missed;
use crate::output::complain;

const COMMAND: &str = "linerate history";

/// Carries out the command line.
pub(crate) fn main(args: HistoryArgs) -> Outcome {
    match run(args) {
        Ok(outcome) => outcome,
        Err(error) => complain(COMMAND, &error.to_string(), error.outcome),
    }
}

/// Which runs, and what to do with them.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct HistoryArgs {
    #[command(subcommand)]
    command: Option<HistoryCommand>,
    #[command(flatten)]
    list: ListArgs,
    /// The history: a file or postgresql://... [default: $LINERATE_STORE, or history.db in the
    /// state directory]
    #[arg(long, value_name = "PLACE", global = true)]
    store: Option<String>,
}

const NOTES: &str = "\
A run is named by its id or the end of it, last, last~2, @BASELINE, label:KEY=VALUE, or a file: a record, or \
any report that can be imported.

Examples:
  linerate history                                     the newest 20 runs
  linerate history --peer 192.0.2.7 --since 7d         those to one server
  linerate history show last                           the report of the last run
  linerate history show last~1 --as iperf3             the same as iperf3 prints it
  linerate history label last site=lab -old            set one label, remove another
  linerate history baseline set before last            compare with it later as @before
  linerate history export last --form csv > run.csv
  linerate history import iperf3.log                   the runs of other programs

Nothing is removed unless prune is called.

Exit codes: 0 done, 1 not completed, or a check found damage, 2 wrong command line or no such run, \
5 a limit of show --expect was missed.";

#[derive(Debug, Subcommand)]
enum HistoryCommand {
    /// List runs, the newest first
    #[command(
        after_help = "Examples:\n  linerate history list --peer 192.0.2.7 --since 7d    the runs \
                      of a week to one server"
    )]
    List(ListArgs),
    /// Show runs
    #[command(
        after_help = "Examples:\n  linerate history show last --as iperf3    the last run as \
                      iperf3 prints it"
    )]
    Show(ShowArgs),
    /// Set labels (KEY=VALUE) and remove labels (-KEY)
    #[command(
        after_help = "Examples:\n  linerate history label last site=lab -old    set one label, \
                      remove another\n  linerate history label last last~1 side=b    label two runs"
    )]
    Label {
        /// The runs, then KEY=VALUE or -KEY
        #[arg(
            required = true,
            allow_hyphen_values = true,
            value_name = "RUN|KEY=VALUE|-KEY"
        )]
        words: Vec<String>,
    },
    /// Add a note to a run
    #[command(
        after_help = "Examples:\n  linerate history note last new cable    add a sentence to the \
                      last run"
    )]
    Note {
        /// The run
        run: String,
        /// The text
        #[arg(required = true)]
        text: Vec<String>,
    },
    /// Name runs for later comparisons
    #[command(
        subcommand,
        after_help = "Examples:\n  linerate history baseline set before last    name the last run \
                      @before"
    )]
    Baseline(BaselineCommand),
    /// Write runs for other programs on the standard output
    #[command(
        after_help = "Examples:\n  linerate history export last --form csv    the measures for a \
                      spreadsheet"
    )]
    Export {
        /// The runs
        #[arg(required = true, value_name = "RUN")]
        runs: Vec<String>,
        /// Form of the output
        #[arg(long, value_name = "FORM", default_value = "json")]
        form: ExportForm,
    },
    /// Add the runs in reports of iperf3 and iperf 2 (text, JSON, CSV), speed tests (JSON), and of
    /// this program
    #[command(
        after_help = "Examples:\n  linerate history import iperf3.json logs/*.csv    one line for \
                      each file\n  linerate history import --label side=a a*.json    to compare \
                      with those of side=b"
    )]
    Import {
        /// Label of the runs; may be repeated
        #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
        label: Vec<Label>,
        /// Files; - for the standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<String>,
    },
    /// Show a measure over the runs of one path and test, with its changes
    #[command(
        after_help = "Examples:\n  linerate history trend last    since when is the path slower, \
                      and what changed then\n\nExit codes: 0 steady, 1 not completed, 2 wrong \
                      command line or no such run, 10 the last change is for the worse, 11 too \
                      few runs."
    )]
    Trend(TrendArgs),
    /// Examine the database and every checksum
    #[command(
        after_help = "Examples:\n  linerate history check    one line, and one for each problem"
    )]
    Check,
    /// Copy every run that can be read into a new database; the old file is kept under another name
    #[command(after_help = "Examples:\n  linerate history repair    after a check found damage")]
    Repair,
    /// Remove old values over time and old runs; baselines, runs with the label keep and those with
    /// a severe finding stay
    #[command(
        after_help = "Examples:\n  linerate history prune --keep points=30d,runs=2y --dry-run    \
                      count, and remove nothing"
    )]
    Prune {
        /// How long: values over time (points) and runs; units d, w, mo, y
        #[arg(
            long,
            value_name = "points=AGE,runs=AGE",
            default_value = "points=14d,runs=396d"
        )]
        keep: Keep,
        /// Remove nothing
        #[arg(long)]
        dry_run: bool,
    },
    /// Compute the measures of every run again
    #[command(
        after_help = "Examples:\n  linerate history reindex    after an upgrade that defines a \
                      measure in another way"
    )]
    Reindex,
}

#[derive(Debug, Subcommand)]
enum BaselineCommand {
    /// Name a run; the name moves from the run that had it
    #[command(
        after_help = "Examples:\n  linerate history baseline set before last    name the last run \
                      @before"
    )]
    Set {
        /// The name, later @NAME
        name: String,
        /// The run
        run: String,
    },
    /// Remove a name; the run stays
    #[command(
        after_help = "Examples:\n  linerate history baseline remove before    remove the name \
                      @before"
    )]
    Remove {
        /// The name
        name: String,
    },
    /// List the names
    #[command(after_help = "Examples:\n  linerate history baseline list    each name and its run")]
    List,
}

/// Which runs are listed.
#[derive(Debug, Default, PartialEq, Args)]
struct ListArgs {
    /// Runs of this kind: test, sweep, http-load, http-lab, doctor, session, fleet
    #[arg(long, value_parser = by_name::<RunKind>)]
    kind: Option<RunKind>,
    /// Runs of this client host
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// Runs to this server
    #[arg(long, value_name = "NAME")]
    peer: Option<String>,
    /// Runs with this label; may be repeated
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    label: Vec<Label>,
    /// Runs since an age (7d, 12h) or a date
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<u64>,
    /// Runs in this state: complete, partial, failed, refused, no-answer, interrupted, ended,
    /// running
    #[arg(long, value_parser = by_name::<RunState>)]
    state: Option<RunState>,
    /// Runs of this watch
    #[arg(long, value_name = "NAME")]
    watch: Option<String>,
    /// Order [default: newest]
    #[arg(long, value_name = "ORDER")]
    sort: Option<SortArg>,
    /// Number of runs [default: 20]
    #[arg(long, value_name = "N", conflicts_with = "all")]
    limit: Option<u32>,
    /// All runs
    #[arg(long)]
    all: bool,
    /// One JSON array
    #[arg(long, conflicts_with_all = ["csv", "markdown"])]
    json: bool,
    /// Comma-separated values
    #[arg(long, conflicts_with = "markdown")]
    csv: bool,
    /// A table in Markdown
    #[arg(long)]
    markdown: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum SortArg {
    /// Latest start first
    Newest,
    /// Earliest start first
    Oldest,
    /// Highest result first
    Highest,
    /// Lowest result first
    Lowest,
}

#[derive(Debug, Args)]
struct ShowArgs {
    /// The runs
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<String>,
    /// Form of the output
    #[arg(long = "as", value_name = "FORM", default_value = "text")]
    form: ShowForm,
    /// The same as --as json
    #[arg(long, conflicts_with = "form")]
    json: bool,
    /// Values over time, comma-separated
    #[arg(long, conflicts_with_all = ["form", "json"])]
    series: bool,
    /// The command line, ready to paste
    #[arg(long, conflicts_with_all = ["form", "json", "series"])]
    argv: bool,
    /// Limits that each run must hold, for example rx>=900M,retr<10,p99<5ms
    #[arg(long, value_name = "LIMITS")]
    expect: Option<Expectations>,
}

#[derive(Debug, Args)]
struct TrendArgs {
    /// A run of the path and the test
    #[arg(value_name = "RUN")]
    run: String,
    /// The measure, for example retr [default: rx, of HTTP ok]
    #[arg(long, value_name = "NAME", value_parser = measure)]
    measure: Option<MeasureName>,
    /// Write one JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Write a page with a chart to a file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ShowForm {
    /// The report for people
    Text,
    /// The record, one line per run
    Json,
    /// The text of iperf3
    Iperf3,
    /// The document of iperf3 -J
    Iperf3Json,
    /// The text of iperf 2
    Iperf2,
    /// Measures, comma-separated
    Csv,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExportForm {
    /// The record, one line per run
    Json,
    /// Measures, comma-separated
    Csv,
    /// Values over time, comma-separated
    Series,
    /// Markdown with tables
    Markdown,
    /// The exposition format of Prometheus
    Prom,
    /// OTLP metrics in their JSON form
    Otlp,
}

fn run(mut args: HistoryArgs) -> Result<Outcome, Error> {
    if let Some(HistoryCommand::Label { words }) = &mut args.command {
        args.store = store_among(words).or(args.store);
    }

    let history = History::find(args.store.as_deref())?;
    // Options without `list` would be dropped silently by another command.
    if args.command.is_some() && args.list != ListArgs::default() {
        return Err(Error::usage(
            "options of a list belong behind list, or stand without another command",
        ));
    }

    match args.command.unwrap_or(HistoryCommand::List(args.list)) {
        HistoryCommand::List(list) => return self::list(&history, list),
        HistoryCommand::Show(show) => {
            let outcome = self::show(&history, &show)?;
            let Some(limits) = &show.expect else {
                return Ok(outcome);
            };
            return Ok(missed(
                COMMAND,
                Some(limits),
                &history.missed(&show.runs, limits)?,
                outcome,
            ));
        }
        HistoryCommand::Label { words } => labels(&history, &words)?,
        HistoryCommand::Note { run, text } => history.note(&run, &text.join(" "))?,
        HistoryCommand::Baseline(BaselineCommand::Set { name, run }) => {
            history.set_baseline(&name, &run)?;
        }
        HistoryCommand::Baseline(BaselineCommand::Remove { name }) => {
            history.remove_baseline(&name)?;
        }
        HistoryCommand::Baseline(BaselineCommand::List) => return print(&history.baselines()?),
        HistoryCommand::Export { runs, form } => {
            return print(&linerate::history::show(
                &history,
                &runs,
                form.into(),
                style(),
            )?);
        }
        HistoryCommand::Import { label, files } => {
            return import(args.store.as_deref(), &files, &label);
        }
        HistoryCommand::Trend(trend) => return self::trend(args.store.as_deref(), &trend),
        HistoryCommand::Check => return verdict(&history.check()?),
        HistoryCommand::Repair => return verdict(&history.repair()?),
        HistoryCommand::Prune { keep, dry_run } => return print(&history.prune(&keep, dry_run)?),
        HistoryCommand::Reindex => return print(&history.reindex()?),
    }

    Ok(Outcome::Done)
}

/// The trend that a run belongs to.
fn trend(store: Option<&str>, args: &TrendArgs) -> Result<Outcome, Error> {
    let trend = linerate::trend::trend(store, &args.run, args.measure)?;
    print(&if args.json {
        report::json(&trend)
    } else {
        report::text(&trend, &local_time, style())
    })?;

    if let Some(path) = &args.html {
        let written = fs::write(path, report::html(&trend, &local_time));
        written.map_err(|error| Error::failed(format!("{}: {error}", path.display())))?;
    }

    Ok(match trend.state() {
        TrendState::Steady => Outcome::Done,
        TrendState::Worse => Outcome::Worse,
        TrendState::TooFew => Outcome::Undecided,
    })
}

/// One line for each file: what was added, and what is known.
fn import(store: Option<&str>, files: &[String], labels: &[Label]) -> Result<Outcome, Error> {
    let mut outcome = Outcome::Done;
    for file in files {
        match import_file(store, file, labels) {
            Ok(imported) => {
                print(&format!("{}: {imported}\n", printable(file)))?;
            }
            Err(error) if error.outcome == Outcome::Usage => return Err(error),
            // An unreadable file does not keep the others from being added.
            Err(error) => outcome = complain(COMMAND, &error.to_string(), error.outcome),
        }
    }

    Ok(outcome)
}

fn list(history: &History, args: ListArgs) -> Result<Outcome, Error> {
    let form = match (args.json, args.csv, args.markdown) {
        (true, ..) => ListForm::Json,
        (_, true, _) => ListForm::Csv,
        (.., true) => ListForm::Markdown,
        _ => ListForm::Text,
    };
    match history.list(&args.filter(), form, style())? {
        Some(text) => print(&text),
        None => Ok(complain(COMMAND, "no runs are recorded yet", Outcome::Done)),
    }
}

fn show(history: &History, args: &ShowArgs) -> Result<Outcome, Error> {
    let form = match (args.form, args.json, args.series, args.argv) {
        (_, true, ..) | (ShowForm::Json, ..) => RunForm::Json,
        (_, _, true, _) => RunForm::Series,
        (.., true) => RunForm::Argv,
        (ShowForm::Text, ..) => RunForm::Text,
        (ShowForm::Csv, ..) => RunForm::Csv,
        (ShowForm::Iperf3, ..) => return replay(history, args, Dialect::Iperf3),
        (ShowForm::Iperf3Json, ..) => return replay(history, args, Dialect::Iperf3Json),
        (ShowForm::Iperf2, ..) => return replay(history, args, Dialect::Iperf2),
    };
    print(&linerate::history::show(
        history,
        &args.runs,
        form,
        style(),
    )?)
}

fn replay(history: &History, args: &ShowArgs, dialect: Dialect) -> Result<Outcome, Error> {
    linerate::history::replay(history, &args.runs, dialect).map(|()| Outcome::Done)
}

/// Takes `--store PLACE` out of the words of `label`: clap takes it for a label to remove, as these
/// begin with a hyphen.
fn store_among(words: &mut Vec<String>) -> Option<String> {
    let at = words
        .iter()
        .position(|word| word == "--store" || word.starts_with("--store="))?;
    if let Some(place) = words[at].strip_prefix("--store=").map(str::to_owned) {
        words.remove(at);
        return Some(place);
    }

    let place = words.get(at + 1)?.clone();
    words.drain(at..at + 2);
    Some(place)
}

/// Labels stand behind the runs. A run can be named by a label that it has: `label:KEY=VALUE`.
fn labels(history: &History, words: &[String]) -> Result<(), Error> {
    let is_label = |word: &String| {
        word.starts_with('-') || (word.contains('=') && !word.starts_with("label:"))
    };
    let first = words.iter().position(is_label).unwrap_or(words.len());
    let (runs, labels) = words.split_at(first);
    if runs.is_empty() || labels.is_empty() {
        return Err(Error::usage(
            "name the runs, then the labels: linerate history label RUN... KEY=VALUE|-KEY...",
        ));
    }

    let (remove, set): (Vec<&String>, Vec<&String>) =
        labels.iter().partition(|label| label.starts_with('-'));
    let set: Result<Vec<Label>, _> = set.into_iter().map(|label| parse_label(label)).collect();

    let remove: Vec<String> = remove
        .iter()
        .filter_map(|label| label.strip_prefix('-'))
        .map(str::to_owned)
        .collect();
    history.label(runs, &set.map_err(Error::usage)?, &remove)
}

fn verdict((report, is_sound): &(String, bool)) -> Result<Outcome, Error> {
    print(report)?;
    Ok(if *is_sound {
        Outcome::Done
    } else {
        Outcome::NotCompleted
    })
}

fn print(text: &str) -> Result<Outcome, Error> {
    crate::output::print(text)
        .map(|()| Outcome::Done)
        .map_err(Error::failed)
}

impl ListArgs {
    fn filter(self) -> Filter {
        Filter {
            kind: self.kind,
            state: self.state,
            client: self.host,
            server: self.peer,
            watch: self.watch,
            labels: self.label,
            since_ms: self.since,
            sort: match self.sort {
                None | Some(SortArg::Newest) => Sort::Newest,
                Some(SortArg::Oldest) => Sort::Oldest,
                Some(SortArg::Highest) => Sort::Highest,
                Some(SortArg::Lowest) => Sort::Lowest,
            },
            limit: (!self.all).then_some(self.limit.unwrap_or(20)),
            ..Filter::default()
        }
    }
}

impl From<ExportForm> for RunForm {
    fn from(form: ExportForm) -> Self {
        match form {
            ExportForm::Json => Self::Json,
            ExportForm::Csv => Self::Csv,
            ExportForm::Series => Self::Series,
            ExportForm::Markdown => Self::Markdown,
            ExportForm::Prom => Self::Prometheus,
            ExportForm::Otlp => Self::Otlp,
        }
    }
}

fn label(text: &str) -> Result<Label, String> {
    parse_label(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        args: HistoryArgs,
    }

    fn carry_out(line: &str) -> Result<Outcome, Error> {
        let words = std::iter::once("history").chain(line.split_whitespace());
        run(Line::try_parse_from(words).map_err(Error::usage)?.args)
    }

    #[test]
    fn wrong_command_lines_are_refused_before_a_store_is_opened() {
        let rows = [
            ("--kind nosuch", "nosuch"),
            ("--since yesterday", "7d"),
            ("--limit 5 --all", "--all"),
            ("--json --csv", "--csv"),
            ("--label Rack=7", "a-z"),
            ("--kind test show last", "list"),
            ("--store off show last", "--store off"),
            ("--store postgresql://[/x", "postgresql://"),
            ("show", "RUN"),
            ("show last --as nosuch", "nosuch"),
            ("show last --json --series", "--series"),
            ("prune --keep trials=5d", "points or runs"),
            ("--store off check", "--store off"),
        ];
        for (line, part) in rows {
            let error = carry_out(line).expect_err(line);
            assert_eq!(error.outcome, Outcome::Usage, "{line}");
            assert!(error.to_string().contains(part), "{line}: {error}");
        }
    }
}
