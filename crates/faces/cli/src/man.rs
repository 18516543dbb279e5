//! The manual: a page for every command, and the how-to for logins.

use clap::Command;
use clap::builder::{Resettable, Str, StyledStr};
use clap_mangen::Man;
use roff::{Roff, bold, roman};

use crate::manual_page::{ManualPage, NO_DATE, SOURCE, inlines, item, plain, references, section};
use crate::{how_to, iperf2, iperf3};

/// All pages, those of `program` and its subcommands first.
pub(crate) fn pages(program: Command) -> Vec<ManualPage> {
    let mut program = program
        // The pages of `help` would repeat those of the commands.
        .disable_help_subcommand(true)
        // The options of the dialects come from their tables, not from clap.
        .mut_subcommand("iperf3", |_| iperf3::man::command())
        .mut_subcommand("iperf2", |_| iperf2::man::command());
    program.build();

    let mut pages = Vec::new();
    collect(&program, None, &mut pages);
    pages.push(how_to::logins());
    pages
}

fn collect(command: &Command, parent: Option<&str>, pages: &mut Vec<ManualPage>) {
    // `linerate-http-serve` for `linerate http serve`.
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    pages.push(ManualPage {
        name: name.to_owned(),
        section: 1,
        text: command_page(command, name, parent),
    });
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        collect(subcommand, Some(name), pages);
    }
}

fn command_page(command: &Command, name: &str, parent: Option<&str>) -> String {
    let mut command = command.clone();
    // A synopsis with all options would hide the form of the call.
    let usage = command.render_usage().to_string();
    let after = command.get_after_help().map(ToString::to_string);
    let command = command
        .override_usage(usage.trim_start_matches("Usage: ").to_owned())
        .subcommand_help_heading("COMMANDS")
        .after_help(Resettable::<StyledStr>::Reset)
        .version(Resettable::<Str>::Reset);
    let man = Man::new(command)
        .title(name.to_uppercase())
        .date(NO_DATE)
        .source(SOURCE)
        .manual("User Commands");

    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = man.render(&mut text);
    let mut closing = closing_sections(&after.unwrap_or_default());
    references(&mut closing, &related(name, parent));
    plain(&(String::from_utf8_lossy(&text).into_owned() + &closing.render()))
}

/// The text behind the options: lists with a title, other paragraphs as notes, and the exit codes.
fn closing_sections(text: &str) -> Roff {
    let mut page = Roff::new();
    let mut notes = Vec::new();
    let mut exit_status = "0 done, 1 not completed, 2 wrong command line.";
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
            exit_status = codes;
        } else if let Some((title, entries)) = list(paragraph) {
            section(&mut page, title);
            entries.for_each(|(term, text)| item(&mut page, bold(term), text));
        } else {
            notes.push(paragraph);
        }
    }

    if !notes.is_empty() {
        section(&mut page, "Notes");
        for note in notes {
            page.control("PP", []).text(inlines(note));
        }
    }
    section(&mut page, "Exit status");
    page.text([roman(exit_status)]);
    page
}

/// A paragraph of the form `Title:` with indented lines below, each a term and, behind two blanks,
/// its meaning.
fn list(paragraph: &str) -> Option<(&str, impl Iterator<Item = (&str, &str)>)> {
    let (title, entries) = paragraph.split_once(":\n")?;
    // A paragraph with one line that is not indented is text with a colon.
    let is_list = entries.lines().all(|line| line.starts_with("  "));
    let entries = entries.lines().map(|line| {
        let line = line.trim();
        let (term, meaning) = line.split_once("  ").unwrap_or((line, ""));
        (term, meaning.trim())
    });
    is_list.then_some((title, entries))
}

fn related(name: &str, parent: Option<&str>) -> Vec<String> {
    let mut related: Vec<String> = parent
        .map(|parent| format!("{parent}(1)"))
        .into_iter()
        .collect();
    if matches!(
        name,
        "linerate" | "linerate-serve" | "linerate-iperf3" | "linerate-generate-user"
    ) {
        related.push(format!("{}(7)", how_to::LOGINS));
    }

    // Pages of subcommands below the first level refer to the program as well.
    if related.is_empty() || parent.is_some_and(|parent| parent != "linerate") {
        related.insert(0, "linerate(1)".to_owned());
    }

    related
}
