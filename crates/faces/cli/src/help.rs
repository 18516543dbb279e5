//! Exit codes in the help texts of all commands, and lists of them at any width.

use std::fmt::Write;
use std::io;

use clap::Command;
use linerate_document::wrap::wrapped;
use linerate_sys::process::terminal_columns;

/// Longest term that has its meaning in a column beside it, on several lines if need be.
const TERM_CHARS_MAX: usize = 24;
/// Blanks before a meaning below its term.
const INDENT: usize = 6;

/// Commands whose exit codes are others than [`USUAL`]; they are those of their subcommands too.
const CODES: [(&str, &str); 11] = [
    (
        "linerate fleet check",
        "0 all hosts are ready, 1 not completed, 2 wrong command line, 3 a host is not ready, 4 \
         fewer than two hosts answer, 130 interrupted.",
    ),
    ("linerate fleet run", FLEET_RUN),
    ("linerate fleet resume", FLEET_RUN),
    (
        "linerate fleet cancel",
        "0 every host confirmed it, 1 a host did not, 2 wrong command line or no such run.",
    ),
    (
        "linerate fleet leftovers",
        "0 nothing is left, 1 a host does not answer, 2 wrong command line, 3 something is left, \
         130 interrupted.",
    ),
    (
        "linerate fleet agent",
        "0 done, 1 not completed, 2 wrong command line, 4 the bus is not reachable.",
    ),
    (
        "linerate history show",
        "0 done, 1 not completed, 2 wrong command line or no such run, 5 a limit of --expect was \
         missed.",
    ),
    (
        "linerate history check",
        "0 no damage, 1 damage, or not completed, 2 wrong command line.",
    ),
    (
        "linerate history",
        "0 done, 1 not completed, 2 wrong command line or no such run.",
    ),
    ("linerate http serve", SERVER),
    ("linerate http agent", SERVER),
];

const USUAL: &str = "0 done, 1 not completed, 2 wrong command line.";
const SERVER: &str = "0 ended by a signal, 1 it cannot serve, 2 wrong command line.";
const FLEET_RUN: &str = "0 done, 1 not completed, 2 wrong command line, 3 a finding at the level \
                         of --fail-on, 4 fewer than two hosts answer, 6 more than a fifth of the \
                         tests have no result, 130 interrupted.";

/// Adds the exit codes to the help of every command that does not list its own.
pub(crate) fn with_exit_codes(command: Command) -> Command {
    let name = command.get_name().to_owned();
    completed(command, &name)
}

fn completed(command: Command, path: &str) -> Command {
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.unwrap_or_default();
    let command = if after.contains("Exit codes") {
        command
    } else {
        let own = CODES.iter().find(|(of, _)| path.starts_with(of));
        let codes = own.map_or(USUAL, |(_, codes)| codes);
        command.after_help(
            format!("{after}\n\nExit codes: {codes}")
                .trim_start()
                .to_owned(),
        )
    };

    command.mut_subcommands(|subcommand| {
        let path = format!("{path} {}", subcommand.get_name());
        completed(subcommand, &path)
    })
}

/// Columns of the terminal, by `$COLUMNS` or the system; many where neither is known.
pub(crate) fn columns() -> usize {
    let set = std::env::var("COLUMNS").ok();
    set.and_then(|columns| columns.parse().ok())
        .or_else(|| terminal_columns(io::stdout()))
        .unwrap_or(usize::MAX)
}

/// Lists in the texts behind the options of all commands: a term and, behind two blanks, its
/// meaning, which stands below the term where the lines do not have room for both.
pub(crate) fn laid_out(command: Command, columns: usize) -> Command {
    let after = command.get_after_help().map(ToString::to_string);
    let command = match after {
        None => command,
        Some(text) => {
            let paragraphs = text.split("\n\n").map(|part| paragraph(part, columns));
            command.after_help(paragraphs.collect::<Vec<_>>().join("\n\n"))
        }
    };

    command.mut_subcommands(|subcommand| laid_out(subcommand, columns))
}

fn paragraph(text: &str, columns: usize) -> String {
    let Some((title, lines)) = text.split_once(":\n") else {
        return text.to_owned();
    };
    if lines.lines().any(|line| !line.starts_with("  ")) {
        return text.to_owned();
    }

    let row = |line: &str| {
        let line = line.trim();
        let (term, meaning) = line.split_once("  ").unwrap_or((line, ""));
        (term.to_owned(), meaning.trim().to_owned())
    };
    let rows: Vec<(String, String)> = lines.lines().map(row).collect();
    let chars = |text: &str| text.chars().count();
    let beside = rows.iter().filter(|(_, meaning)| !meaning.is_empty());
    let term_chars = beside.map(|(term, _)| chars(term)).max().unwrap_or(0);
    // Two blanks before the term, and two behind it.
    let meaning_column = term_chars + 4;
    let fits = rows
        .iter()
        .all(|(_, meaning)| meaning_column + chars(meaning) <= columns);

    let mut out = format!("{title}:");
    for (term, meaning) in &rows {
        let is_beside = !meaning.is_empty() && (fits || term_chars <= TERM_CHARS_MAX);
        let indent = if is_beside { meaning_column } else { INDENT };
        out += &if is_beside {
            format!("\n  {term:<term_chars$}  ")
        } else {
            format!("\n  {term}")
        };

        let lines = match meaning.as_str() {
            "" => Vec::new(),
            meaning => wrapped(meaning, columns.saturating_sub(indent)),
        };
        for (number, line) in lines.iter().enumerate() {
            // Writing to a string does not fail.
            let _ = if is_beside && number == 0 {
                write!(out, "{line}")
            } else {
                write!(out, "\n{:indent$}{line}", "")
            };
        }
    }
    out
}
