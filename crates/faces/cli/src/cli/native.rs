//! The command line of linerate itself.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, Parser, Subcommand};

use super::compare::{self, CompareArgs};
use super::doctor::DoctorArgs;
use super::fleet::{self, FleetArgs};
use super::generate::{self, GenerateArgs};
use super::history::{self, HistoryArgs};
use super::http::HttpArgs;
use super::links::{self, LinksArgs};
use super::report::{self, ReportArgs};
use super::serve::ServeArgs;
use super::sweep::SweepArgs;
use super::test::TestArgs;
use super::try_self;
use super::watch::WatchArgs;
use linerate::Outcome;
use linerate::command_line::misplaced_options;
use linerate_model::printable::{acts, printable_lines};

/// How fast is this path really, and what is holding it back?
#[derive(Debug, Parser)]
#[command(name = "linerate", version = VERSION, arg_required_else_help = true, after_help = of_this_build(EXAMPLES), max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// Version of the program. `make dist` adds the commit that it builds; other builds have none, for
/// they would recompile after each commit.
const VERSION: &str = match option_env!("LINERATE_VERSION") {
    Some(with_commit) => with_commit,
    None => env!("CARGO_PKG_VERSION"),
};

const EXAMPLES: &str = "\
Examples:
  linerate try                                see it work, on this machine alone
  linerate test 192.0.2.7                     how good is that path, and what limits it?
  linerate serve                              wait for clients on port 5201, any number at once
  linerate iperf3 -s                          the same with the reports of iperf3
  linerate iperf3 -c 192.0.2.7                test the path to that server, 10 seconds of TCP
  linerate iperf3 -c 192.0.2.7 -u -b 1G -R    the other direction, UDP at 1 Gbit/s
  linerate doctor eth0 --window 5s            why is it not faster?
  linerate sweep 192.0.2.7                    how many streams are best?
  linerate compare last~1 last                is the last run worse than the one before?
  linerate watch --every 5m -- iperf3 -c 192.0.2.7
                                              every five minutes, until it is stopped
  linerate links ~/bin                        call it as iperf3, iperf and iperf2 from now on

The other end may be linerate or any iperf3 from version 3.12 on, or iperf 2.1.8 and 2.2.1.

Environment:
  LINERATE_LOG=debug    log connections, admission and protocol states on standard error

Exit codes: 0 done, 1 not completed, 2 wrong command line, 3 a check failed, 4 no answer from the server,
130 interrupted.";

/// A text without the examples of commands that this build leaves out.
pub(super) fn of_this_build(text: &str) -> String {
    let is_there = |words: &str| match words {
        _ if ["doctor", "sweep", "test"]
            .iter()
            .any(|command| words.starts_with(command)) =>
        {
            cfg!(feature = "full")
        }
        _ if words.starts_with("compare") || words.starts_with("watch") => cfg!(feature = "full"),
        _ => cfg!(feature = "full") || !words.starts_with("generate systemd"),
    };
    let mut is_kept = true;
    let mut kept = |line: &&str| {
        // Further lines of an example are indented.
        if !line.starts_with("   ") {
            is_kept = line.strip_prefix("  linerate ").is_none_or(is_there);
        }
        is_kept
    };

    text.lines()
        .filter(|line| kept(line))
        .collect::<Vec<_>>()
        .join("\n")
}

const TRY_EXAMPLES: &str = "\
The last line holds the answer: sound or not, what arrived in each of the four tests, and the next command.

Examples:
  linerate try    takes 8 seconds

Exit codes: 0 sound, 1 not sound, 2 wrong command line, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Examine a path: rate of both directions, latency under load, loss by place, and what limits
    /// it
    ///
    /// Runs several phases against `linerate serve`, and what is left of them against an iperf3
    /// server.
    Test(Box<TestArgs>),
    /// Test a path, or serve tests, with the options of iperf3
    ///
    /// Takes exactly the options of iperf3, speaks its protocol and writes its reports;
    /// `linerate iperf3 --help` lists them all.
    #[command(disable_help_flag = true)]
    Iperf3 {
        /// Options of iperf3
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// Test a path, or serve tests, with the options of iperf 2
    ///
    /// Takes the options of iperf 2.1.8 and 2.2.1; `linerate iperf2 --help` lists them all.
    #[command(disable_help_flag = true)]
    Iperf2 {
        /// Options of iperf 2
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<OsString>,
    },
    /// Serve tests to any number of clients at the same time
    ///
    /// Speaks iperf3's protocol, with iperf3 from version 3.12 on and with linerate as clients.
    /// Writes a log line when a test begins, ends or is refused.
    Serve(Box<ServeArgs>),
    /// Run a short test on this machine alone: TCP and UDP, both directions
    ///
    /// Starts a server on a free port of the loopback interface and tests against it. Nothing
    /// leaves this machine and nothing is changed.
    #[command(visible_alias = "selftest")]
    #[command(after_help = TRY_EXAMPLES)]
    Try,
    /// Find what limits the network, with evidence, fix and undo
    ///
    /// Examines this host, or pasted output of commands. Reports what was found with its evidence,
    /// what was ruled out and why, and what could not be checked.
    Doctor(Box<DoctorArgs>),
    /// Find the best number of streams, window, rate or CPU for a path
    ///
    /// Runs many short tests against a server, iperf3 or linerate, in random order. Reports the
    /// best setting with its confidence, where the result falls and why, and the iperf3 command of
    /// that setting.
    Sweep(Box<SweepArgs>),
    /// Compare runs: is B worse than A, and what is configured differently?
    ///
    /// Judges every measure of two runs, or of several on each side, by their trials. Differences
    /// of the tests, the programs and the settings of the hosts are listed beside the result.
    Compare(Box<CompareArgs>),
    /// List, show, label and keep the runs that were recorded
    ///
    /// Runs are named by their id or its end, last, last~2, @BASELINE, label:KEY=VALUE, or the file
    /// of a record.
    History(Box<HistoryArgs>),
    /// Measure many hosts as one system
    Fleet(FleetArgs),
    /// Serve, load and measure HTTP: requests per second, latency, ten thousand connections
    Http(HttpArgs),
    /// Repeat a run on a grid, record each, and report when its state changes
    Watch(Box<WatchArgs>),
    /// Write a report of recorded runs: a page with charts, Markdown or text
    Report(Box<ReportArgs>),
    /// Create links in a directory, so that iperf3, iperf and iperf2 start linerate
    ///
    /// Nothing that is already there is overwritten. Reports afterwards which program each name
    /// starts.
    Links(LinksArgs),
    /// Write the manual, shell completions, units of systemd, or a line of a user file
    Generate(GenerateArgs),
}

/// Carries out a native command line; `words` is what followed the program name.
pub(crate) fn main(words: &[OsString]) -> Outcome {
    let argv = std::iter::once(OsString::from("linerate")).chain(words.iter().cloned());
    let cli = match Cli::try_parse_from(argv) {
        Ok(cli) => cli,
        Err(answer) => {
            return show(&answer, words);
        }
    };
    match cli.command {
        Command::Iperf3 { options } => super::iperf3::main("iperf3".as_ref(), &options),
        Command::Iperf2 { options } => super::iperf2::main("iperf2".as_ref(), &options),
        Command::Test(args) => super::test::main(*args),
        Command::Serve(options) => super::serve::main(*options),
        Command::Try => try_self::main(),
        Command::Doctor(args) => super::doctor::main(&args),
        Command::Sweep(args) => super::sweep::main(*args),
        Command::Compare(args) => compare::main(&args),
        Command::History(args) => history::main(*args),
        Command::Fleet(args) => fleet::main(args),
        Command::Http(args) => super::http::main(&args),
        Command::Watch(args) => super::watch::main(*args),
        Command::Report(args) => report::main(&args),
        Command::Links(args) => links::main(&args),
        Command::Generate(args) => generate::main(&args, Cli::command()),
    }
}

/// Expected time of a native command that `watch` repeats.
///
/// # Errors
/// Why it cannot be repeated.
#[cfg(feature = "full")]
pub(super) fn run_length(words: &[OsString]) -> Result<std::time::Duration, String> {
    let argv = std::iter::once(OsString::from("linerate")).chain(words.iter().cloned());
    let length = match Cli::try_parse_from(argv)
        .map_err(|error| error.to_string().trim_end().to_owned())?
        .command
    {
        Command::Test(args) => super::test::run_length(*args),
        Command::Sweep(args) => super::sweep::run_length(&args),
        Command::Http(args) => super::http::run_length(&args),
        _ => None,
    };
    length.ok_or_else(|| {
        "this command cannot be watched: it is none of test, iperf3, iperf2, sweep and http load".to_owned()
    })
}

/// Prints help, version or the error of a command line. A reader that has gone away is no error of
/// ours.
fn show(answer: &clap::Error, words: &[OsString]) -> Outcome {
    if !answer.use_stderr() {
        let _ = answer.print();
        return Outcome::Done;
    }

    let quotes_acting = words
        .iter()
        .any(|word| word.to_string_lossy().contains(acts));
    match misplaced_options(words) {
        Some(text) => drop(io::stderr().write_all(printable_lines(&text).as_bytes())),
        // The styled message is a sequence of control characters itself.
        None if quotes_acting => {
            drop(io::stderr().write_all(printable_lines(&answer.render().to_string()).as_bytes()));
        }
        None => drop(answer.print()),
    }

    Outcome::Usage
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use clap::error::ErrorKind;

    use super::*;
    use crate::cli::man;

    /// The Rust files below a folder.
    fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                sources(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }

    /// Commands of this program that the texts of a source file quote, with one space between
    /// words.
    fn quoted_commands(source: &str) -> Vec<String> {
        let code = source
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"));
        let text = code.collect::<Vec<_>>().join("\n").replace("\\\n", " ");
        let parts = text
            .split("`linerate ")
            .skip(1)
            .filter_map(|rest| rest.split_once('`'));
        let commands =
            parts.map(|(command, _)| command.split_whitespace().collect::<Vec<_>>().join(" "));

        commands
            .filter(|command| !command.starts_with('{') && !command.contains(['"', '\n']))
            .collect()
    }

    /// The name of a command may stand alone, without what it requires; an option that is named has
    /// to exist.
    #[test]
    fn commands_that_texts_quote_are_those_of_the_program() {
        let mut files = Vec::new();
        sources(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."),
            &mut files,
        );
        let mut count = 0;

        for file in files
            .iter()
            .filter(|file| file.iter().any(|part| part == "src"))
        {
            for command in quoted_commands(&fs::read_to_string(file).expect("a source")) {
                let filled = command
                    .replace("{}", "x")
                    .replace(['{', '}'], "")
                    .replace(" RATE", " 1G")
                    .replace(" N", " 1");
                if ["iperf3", "iperf2"]
                    .iter()
                    .any(|dialect| filled.starts_with(dialect))
                {
                    continue;
                }

                count += 1;
                let words = std::iter::once("linerate").chain(filled.split(' '));
                let Err(error) = Cli::try_parse_from(words) else {
                    continue;
                };
                let is_short = matches!(
                    error.kind(),
                    ErrorKind::MissingRequiredArgument
                        | ErrorKind::MissingSubcommand
                        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                assert!(is_short, "{}: {command}: {error}", file.display());
            }
        }

        assert!(count > 20, "{count} commands");
    }

    #[test]
    fn the_command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_page_has_examples_and_every_reference_a_page() {
        let pages = man::pages(Cli::command());
        let known: Vec<String> = pages
            .iter()
            .map(|page| format!("{}({})", page.name, page.section))
            .collect();

        for page in &pages {
            let text = page
                .text
                .replace(r"\-", "-")
                .replace(r"\fB", "")
                .replace(r"\fR", "");
            for section in [".SH NAME\n", ".SH DESCRIPTION\n", ".SH SEE ALSO\n"] {
                assert!(text.contains(section), "{}: {section}", page.name);
            }

            let has_examples = text.contains(".SH EXAMPLES\n.TP\n");
            assert!(has_examples || page.section == 7, "{}", page.name);
            let words = text.split(|c: char| c.is_whitespace() || c == ',');
            let references = words.map(|word| word.trim_end_matches('.'));

            for reference in
                references.filter(|word| word.starts_with("linerate") && word.ends_with(')'))
            {
                assert!(
                    known.iter().any(|known| known == reference),
                    "{}: {reference}",
                    page.name
                );
            }
        }

        for name in [
            "linerate",
            "linerate-serve",
            "linerate-http-lab",
            "linerate-iperf2",
            "linerate-logins",
        ] {
            assert!(pages.iter().any(|page| page.name == name), "{name}");
        }
    }
}
