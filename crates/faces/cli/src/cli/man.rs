//! The manual: a page for every command, those of the dialects, and the how-to for logins.

use clap::{Arg, Command};

use super::roff::{Page, bold, option_term, reference};
use super::{how_to, iperf2, iperf3};

/// A page of the manual.
pub(crate) struct ManualPage {
    /// Its name without the section.
    pub(crate) name: String,
    /// Its section.
    pub(crate) section: u8,
    /// The page in the roff language of man(7).
    pub(crate) text: String,
}

/// All pages, those of `program` and its subcommands first.
pub(crate) fn pages(program: Command) -> Vec<ManualPage> {
    let mut program = program.disable_help_subcommand(true);
    program.build();
    let mut pages = Vec::new();
    collect(&program, None, &mut pages);
    pages.push(ManualPage {
        name: how_to::LOGINS.to_owned(),
        section: 7,
        text: how_to::logins(),
    });

    pages
}

fn collect(command: &Command, parent: Option<&str>, pages: &mut Vec<ManualPage>) {
    let name = page_name(command);
    let text = match name.as_str() {
        "linerate-iperf3" => iperf3::man::man_page(),
        "linerate-iperf2" => iperf2::man::man_page(),
        _ => command_page(command, &name, parent),
    };
    pages.push(ManualPage {
        name: name.clone(),
        section: 1,
        text,
    });

    for subcommand in subcommands(command) {
        collect(subcommand, Some(&name), pages);
    }
}

/// `linerate-http-serve` for `linerate http serve`.
fn page_name(command: &Command) -> String {
    command
        .get_display_name()
        .unwrap_or_else(|| command.get_name())
        .to_owned()
}

fn subcommands(command: &Command) -> impl Iterator<Item = &Command> {
    command
        .get_subcommands()
        .filter(|subcommand| !subcommand.is_hide_set())
}

fn command_page(command: &Command, name: &str, parent: Option<&str>) -> String {
    let about = command
        .get_about()
        .map(ToString::to_string)
        .unwrap_or_default();
    let mut page = Page::new(&[name], 1, &about);
    page.section("Synopsis");

    let usage = command.clone().render_usage().to_string();
    page.paragraphs(&synopsis(usage.trim_start_matches("Usage: ")));
    page.section("Description");
    page.paragraphs(&command.get_long_about().map_or(about, ToString::to_string));
    options(&mut page, command);

    if subcommands(command).next().is_some() {
        page.section("Commands");
        for subcommand in subcommands(command) {
            let about = subcommand
                .get_about()
                .map(ToString::to_string)
                .unwrap_or_default();
            page.item(&reference(&format!("{}(1)", page_name(subcommand))), &about);
        }
    }

    let after = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    closing_sections(&mut page, &after);
    page.references(&related(name, parent));

    page.finish()
}

/// The command in bold, what follows it as it is.
fn synopsis(usage: &str) -> String {
    let end = usage.find([' ', '\n']).map_or(usage.len(), |_| {
        usage.find(['[', '<']).unwrap_or(usage.len())
    });
    let (command, rest) = usage.split_at(end);
    format!("`{}` {rest}", command.trim_end())
}

fn options(page: &mut Page, command: &Command) {
    let mut heading = None;
    let visible = || {
        command
            .get_arguments()
            .filter(|argument| !argument.is_hide_set())
    };
    let (with_heading, without): (Vec<&Arg>, Vec<&Arg>) =
        visible().partition(|arg| arg.get_help_heading().is_some());
    let (positional, named): (Vec<&Arg>, Vec<&Arg>) =
        without.into_iter().partition(|arg| arg.is_positional());
    for (title, arguments) in [("Arguments", positional), ("Options", named)] {
        if !arguments.is_empty() {
            page.section(title);
            arguments.iter().for_each(|argument| option(page, argument));
        }
    }

    for argument in with_heading {
        if heading != argument.get_help_heading() {
            heading = argument.get_help_heading();
            page.section(heading.unwrap_or_default());
        }
        option(page, argument);
    }
}

fn option(page: &mut Page, argument: &Arg) {
    let short = argument.get_short().map(|letter| format!("-{letter}"));
    let long = argument.get_long().map(|name| format!("--{name}"));
    let names: Vec<String> = short.into_iter().chain(long).collect();
    let value = value_names(argument);
    let term = if names.is_empty() {
        option_term(&[], &format!(" {value}"))
            .trim_start()
            .to_owned()
    } else {
        option_term(
            &names,
            &if value.is_empty() {
                value
            } else {
                format!(" {value}")
            },
        )
    };
    page.item(&term, &meaning(argument));
}

fn value_names(argument: &Arg) -> String {
    let takes_value = argument
        .get_num_args()
        .is_some_and(|range| range.takes_values());
    let names = argument.get_value_names().filter(|_| takes_value);
    names.map(|names| names.join(" ")).unwrap_or_default()
}

/// The long help where there is one, the values that are possible, and the default.
fn meaning(argument: &Arg) -> String {
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let mut text = help.map(ToString::to_string).unwrap_or_default();
    let takes_value = !value_names(argument).is_empty();

    let values = argument.get_possible_values();
    for value in values
        .iter()
        .filter(|value| takes_value && !value.is_hide_set())
    {
        let help = value
            .get_help()
            .map(|help| format!(": {help}"))
            .unwrap_or_default();
        text.push_str(&format!("\n\n`{}`{help}", value.get_name()));
    }

    let defaults = argument.get_default_values();
    if takes_value && !argument.is_hide_default_value_set() && !defaults.is_empty() {
        let defaults: Vec<_> = defaults
            .iter()
            .map(|value| value.to_string_lossy())
            .collect();
        text.push_str(&format!("\n\nDefault: {}.", defaults.join(", ")));
    }

    text
}

/// The text behind the options: lists with a title, other paragraphs as notes, and the exit codes.
fn closing_sections(page: &mut Page, text: &str) {
    let mut notes = Vec::new();
    let mut exit_status = "0 done, 1 not completed, 2 wrong command line.";

    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
        if let Some(codes) = paragraph.strip_prefix("Exit codes: ") {
            exit_status = codes;
        } else if let Some((title, entries)) = list(paragraph) {
            page.section(title);
            entries.for_each(|(term, text)| page.item(&bold(term), text));
        } else {
            notes.push(paragraph);
        }
    }

    if !notes.is_empty() {
        page.section("Notes");
        page.paragraphs(&notes.join("\n\n"));
    }

    page.section("Exit status");
    page.paragraphs(exit_status);
}

/// A paragraph of the form `Title:` with indented lines below, each a term and, behind two blanks,
/// its meaning.
fn list(paragraph: &str) -> Option<(&str, impl Iterator<Item = (&str, &str)>)> {
    let (title, entries) = paragraph.split_once(":\n")?;
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
        "linerate" | "linerate-serve" | "linerate-generate-user"
    ) {
        related.push(format!("{}(7)", how_to::LOGINS));
    }

    if related.is_empty() || parent.is_some_and(|parent| parent != "linerate") {
        related.insert(0, "linerate(1)".to_owned());
    }

    related
}
