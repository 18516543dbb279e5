//! The command line of linerate itself.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use linerate::Outcome;
use linerate::command_line::misplaced_options;
use linerate_model::printable::{acts, printable_lines};

use crate::generate::{self, GenerateArgs};
use crate::help;
use crate::links::{self, LinksArgs};
use crate::output;
#[cfg(feature = "full")]
use crate::products::{self, ProductCommand};
use crate::serve::config::Settings;
use crate::serve::{self, ServeArgs};
#[cfg(feature = "full")]
use crate::test::{self, TestArgs};
use crate::try_self;

/// How fast is this path really, and what is holding it back?
#[derive(Debug, Parser)]
#[command(name = "linerate", version = VERSION, arg_required_else_help = true, after_help = EXAMPLES, max_term_width = 100)]
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

#[cfg(feature = "full")]
const EXAMPLES: &str = "\
Examples:
  linerate try                                a test on this machine
  linerate test 192.0.2.7                     how good is that path?
  linerate serve                              serve clients on port 5201
  linerate iperf3 -s                          with the reports of iperf3
  linerate iperf3 -c 192.0.2.7                10 seconds of TCP to it
  linerate iperf3 -c 192.0.2.7 -u -b 1G -R    the other way, UDP
  linerate doctor eth0 --window 5s            why is it not faster?
  linerate sweep 192.0.2.7                    how many streams are best?
  linerate compare last~1 last                was the last run worse?
  linerate watch --every 5m -- iperf3 -c 192.0.2.7    every five minutes
  linerate links ~/bin                        call it as iperf3, iperf

The other end may be linerate or any iperf3 from version 3.12 on, or iperf 2.1.8 and 2.2.1.

Environment:
  LINERATE_LOG=debug    log connections, admission and protocol states on standard error

Exit codes: 0 done, 1 not completed, 2 wrong command line, 3 a check failed, 4 no answer from the server, \
130 interrupted.";

#[cfg(not(feature = "full"))]
const EXAMPLES: &str = "\
Examples:
  linerate try                    a test on this machine
  linerate serve                  serve clients on port 5201
  linerate iperf3 -s              with the reports of iperf3
  linerate iperf3 -c 192.0.2.7    10 seconds of TCP to it
  linerate links ~/bin            call it as iperf3, iperf

The other end may be linerate or any iperf3 from version 3.12 on, or iperf 2.1.8 and 2.2.1.

Exit codes: 0 done, 1 not completed, 2 wrong command line, 130 interrupted.";

const TRY_EXAMPLES: &str = "\
The last line holds the answer: passed or failed, what arrived in each of the four tests, and the next command.

Examples:
  linerate try    takes 8 seconds

Exit codes: 0 passed, 1 failed, 2 wrong command line, 130 interrupted.";

#[derive(Debug, Subcommand)]
enum Command {
    /// Examine a path: rate of both directions, latency under load, loss by place, and what limits
    /// it
    ///
    /// Runs several phases against `linerate serve`, and what is left of them against an iperf3
    /// server.
    #[cfg(feature = "full")]
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
    #[cfg(feature = "full")]
    #[command(flatten)]
    Product(ProductCommand),
    /// Create links in a directory, so that iperf3, iperf and iperf2 start linerate
    ///
    /// Nothing that is already there is overwritten. Reports afterwards which program each name
    /// starts.
    Links(LinksArgs),
    /// Write the manual, shell completions, units of systemd, or a line of a user file
    Generate(GenerateArgs),
}

/// Carries out a native command line; `args` is what followed the program name.
pub(crate) fn main(args: &[OsString]) -> Outcome {
    let given = args;
    let args = match serve::config::expanded(given, &command()) {
        Ok(expanded) => expanded.unwrap_or_else(|| given.to_vec()),
        Err(error) => return output::complain("linerate", &error, Outcome::Usage),
    };
    let args = &args[..];
    // clap expects the name of the program as the first argument.
    let argv = std::iter::once(OsString::from("linerate")).chain(args.iter().cloned());
    let columns = help::columns().min(HELP_COLUMNS_MAX);
    let parsed = help::laid_out(command(), columns).try_get_matches_from(argv);
    let parsed = parsed.and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let (cli, matches) = match parsed {
        Ok(parsed) => parsed,
        Err(answer) => return show(&answer, args),
    };
    match cli.command {
        Command::Iperf3 { options } => crate::iperf3::main("iperf3".as_ref(), &options),
        Command::Iperf2 { options } => crate::iperf2::main("iperf2".as_ref(), &options),
        Command::Serve(args) => serve::main(*args, Settings::of(command(), given, &matches)),
        Command::Try => try_self::main(),
        Command::Links(args) => links::main(&args),
        Command::Generate(args) => generate::main(&args, command()),
        #[cfg(feature = "full")]
        Command::Test(args) => test::main(*args),
        #[cfg(feature = "full")]
        Command::Product(command) => products::main(command),
    }
}

/// The command line with the exit codes of every command.
fn command() -> clap::Command {
    help::with_exit_codes(Cli::command())
}

/// Longest line of a help text.
const HELP_COLUMNS_MAX: usize = 100;

/// Prints help, version or the error of a command line. A reader that has gone away is no error of
/// ours.
fn show(answer: &clap::Error, args: &[OsString]) -> Outcome {
    if !answer.use_stderr() {
        let _ = answer.print();
        return Outcome::Done;
    }

    // Control characters of an argument could act on the terminal.
    let quotes_acting = args.iter().any(|arg| arg.to_string_lossy().contains(acts));
    match misplaced_options(args) {
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
    use crate::man;

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
        command().debug_assert();
    }

    /// Commands with help of their own; iperf3 and iperf 2 have that of the originals.
    fn commands(command: &clap::Command, found: &mut Vec<clap::Command>) {
        found.push(command.clone());
        let own = command
            .get_subcommands()
            .filter(|sub| !sub.is_hide_set() && !sub.is_disable_help_flag_set());
        own.for_each(|sub| commands(sub, found));
    }

    #[test]
    fn every_help_has_examples_and_exit_codes_and_wraps_at_any_width() {
        let mut found = Vec::new();
        let mut root = command();
        root.build();
        commands(&root, &mut found);
        assert!(found.len() > 40, "{} commands", found.len());

        for command in found.iter().filter(|found| found.get_name() != "help") {
            let name = command.get_bin_name().unwrap_or_default();
            let after = command.get_after_help().map(ToString::to_string);
            let after = after.unwrap_or_default();
            for part in ["Examples:\n  ", "Exit codes"] {
                assert!(after.contains(part), "{name}: {part}");
            }

            for paragraph in after.split("\n\n") {
                let is_list = paragraph.contains("\n  ");
                assert!(is_list || !paragraph.contains('\n'), "{name}: {paragraph}");
            }

            for width in [40, 80, 132] {
                let wide = command.clone().term_width(width).max_term_width(width);
                let help = help::laid_out(wide, width).render_long_help().to_string();
                // clap wraps neither a usage line, which is one form of a call, nor a heading;
                // an example is copied whole.
                let is_kept = |line: &str| {
                    let line = line.trim_start();
                    line.starts_with("linerate ")
                        || line.starts_with("Usage: ")
                        || line.ends_with(':')
                };
                let is_long = |line: &&str| {
                    line.chars().count() > width && line.trim().contains(' ') && !is_kept(line)
                };
                let long: Vec<&str> = help.lines().filter(is_long).collect();
                assert!(long.is_empty(), "{name} at {width}: {long:#?}");
            }
        }
    }

    #[test]
    fn every_page_has_examples_and_every_reference_a_page() {
        let pages = man::pages(command());
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
            for section in [".SH NAME\n", ".SH DESCRIPTION\n", ".SH \"SEE ALSO\"\n"] {
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
