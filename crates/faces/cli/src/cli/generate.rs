//! `linerate generate`: files that belong to an installation or to a server.

use std::fs;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Command, Subcommand, ValueEnum};
use clap_complete::{Shell, generate};
use linerate_iperf3::wire::auth;
use linerate_sys::error::io_text;
use linerate_sys::process;

use super::complain;
use super::iperf3::completion;
use super::man::{self, ManualPage};
use super::native::of_this_build;
use super::systemd::{self, SystemdArgs};
use linerate::Outcome;

/// What to write.
#[derive(Debug, Args)]
#[command(after_help = of_this_build(EXAMPLES))]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    what: Artefact,
}

const EXAMPLES: &str = "\
Examples:
  linerate generate man --dir /usr/local/share/man   install the manual
  linerate generate completions bash                 completions for a shell, on the standard output
  linerate generate schema > linerate.run.1.json     the JSON schema of records of runs
  linerate generate systemd --every 5m -- iperf3 -c 192.0.2.7
                                                     units that repeat a run
  linerate generate user mario >> users.csv          add a user to the user file of a server";

#[derive(Debug, Subcommand)]
enum Artefact {
    /// Write a page of the manual to the standard output, or all pages to a directory
    Man(ManArgs),
    /// Write shell completions to the standard output
    Completions(CompletionArgs),
    /// Write the JSON schema of records of runs, linerate.run/1, to the standard output
    ///
    /// It describes what --json of the native commands and `linerate history show --json` print.
    #[command(after_help = SCHEMA_EXAMPLES)]
    Schema,
    /// Write a service and a timer of systemd that repeat a run
    ///
    /// The timer starts `linerate watch --once` on a grid; the service keeps the history in
    /// /var/lib/linerate.
    Systemd(SystemdArgs),
    /// Write a line of the user file of a server that requires logins
    ///
    /// Asks for the password twice and does not show it, or reads one line from the standard input
    /// if that is not a terminal. The line is understood by `linerate serve --users` and by
    /// `iperf3 --authorized-users-path`.
    User(UserArgs),
}

#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
struct ManArgs {
    /// Name of the page
    #[arg(default_value = "linerate")]
    page: String,
    /// Write all pages to the subdirectories man1 and man7 of this directory
    #[arg(long, value_name = "DIRECTORY", conflicts_with = "page")]
    dir: Option<PathBuf>,
}

const MAN_EXAMPLES: &str = "\
Examples:
  linerate generate man linerate-serve | man -l -    read one page
  linerate generate man --dir ~/.local/share/man     install all of them for this user";

#[derive(Debug, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
struct CompletionArgs {
    /// The shell
    shell: CompletionShell,
    /// The name that is completed
    #[arg(default_value = "linerate")]
    program: CompletedProgram,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  linerate generate completions bash > ~/.local/share/bash-completion/completions/linerate
  linerate generate completions bash iperf3 > ~/.local/share/bash-completion/completions/iperf3
  linerate generate completions fish > ~/.config/fish/completions/linerate.fish";

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CompletedProgram {
    /// linerate with its subcommands
    Linerate,
    /// The options of iperf3
    Iperf3,
}

const SCHEMA_EXAMPLES: &str = "\
Examples:
  linerate generate schema > linerate.run.1.json     for a validator or a generator of types";

/// Schema of the records of runs, generated from their types.
const RUN_SCHEMA_TEXT: &str = include_str!("../../../../../docs/schema/linerate.run.1.json");

#[derive(Debug, Args)]
#[command(after_help = USER_EXAMPLES)]
struct UserArgs {
    /// User name, without blanks and commas
    name: String,
}

const USER_EXAMPLES: &str = "\
Examples:
  linerate generate user mario >> users.csv                   asks for the password
  linerate generate user mario < password.txt >> users.csv    for scripts";

/// Longest password line, the line end included.
const PASSWORD_LINE_BYTES_MAX: u64 = 4096;

/// Writes what was asked for; `program` is the command line that the manual and the completions
/// describe.
pub(crate) fn main(args: &GenerateArgs, mut program: Command) -> Outcome {
    match &args.what {
        Artefact::Man(args) => manual(args, &man::pages(program)),
        Artefact::Completions(args) => write_out(&completions(args, &mut program)),
        Artefact::Schema => write_out(RUN_SCHEMA_TEXT.as_bytes()),
        Artefact::Systemd(args) => systemd::main(args),
        Artefact::User(UserArgs { name }) => user(name),
    }
}

fn manual(args: &ManArgs, pages: &[ManualPage]) -> Outcome {
    if let Some(directory) = &args.dir {
        return match write_manual(directory, pages) {
            Ok(text) => write_out(text.as_bytes()),
            Err(text) => complain("linerate", &text, Outcome::NotCompleted),
        };
    }

    match pages.iter().find(|found| found.name == args.page) {
        Some(found) => write_out(found.text.as_bytes()),
        None => unknown_page(&args.page, pages),
    }
}

fn unknown_page(page: &str, pages: &[ManualPage]) -> Outcome {
    let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
    let text = format!(
        "the manual has no page {page:?}\nhint: its pages are {}",
        names.join(", ")
    );
    complain("linerate", &text, Outcome::Usage)
}

/// Writes every page, and returns where to.
fn write_manual(directory: &Path, pages: &[ManualPage]) -> Result<String, String> {
    let mut written = String::new();
    for page in pages {
        let folder = directory.join(format!("man{}", page.section));
        let path = folder.join(format!("{}.{}", page.name, page.section));
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, &page.text))
            .map_err(|error| format!("cannot write {}: {}", path.display(), io_text(&error)))?;
        written.push_str(&format!("{}\n", path.display()));
    }

    Ok(written)
}

fn completions(args: &CompletionArgs, program: &mut Command) -> Vec<u8> {
    let shell = match (args.program, args.shell) {
        (CompletedProgram::Iperf3, CompletionShell::Bash) => {
            return completion::bash().into_bytes();
        }
        (CompletedProgram::Iperf3, CompletionShell::Zsh) => return completion::zsh().into_bytes(),
        (CompletedProgram::Iperf3, CompletionShell::Fish) => {
            return completion::fish().into_bytes();
        }
        (CompletedProgram::Linerate, CompletionShell::Bash) => Shell::Bash,
        (CompletedProgram::Linerate, CompletionShell::Zsh) => Shell::Zsh,
        (CompletedProgram::Linerate, CompletionShell::Fish) => Shell::Fish,
    };
    let mut script = Vec::new();
    generate(shell, program, "linerate", &mut script);

    script
}

fn user(name: &str) -> Outcome {
    // A name that cannot be used is reported before a password is typed.
    let line = auth::check_user_name(name)
        .map_err(|error| (Outcome::Usage, error.to_string()))
        .and_then(|()| password().map_err(|text| (Outcome::NotCompleted, text)))
        .and_then(|password| {
            auth::users_file_line(name, &password)
                .map_err(|error| (Outcome::NotCompleted, error.to_string()))
        });
    match line {
        Ok(line) => write_out(format!("{line}\n").as_bytes()),
        Err((outcome, text)) => complain("linerate", &text, outcome),
    }
}

fn password() -> Result<String, String> {
    if !process::isatty(io::stdin()) {
        return password_line(io::stdin().lock());
    }

    let ask = |prompt| process::read_password(prompt).map_err(|error| error.to_string());
    let password = ask("Password: ")?;
    if ask("The same again: ")? != password {
        return Err("the passwords differ".to_owned());
    }

    Ok(password)
}

/// One line without its end.
fn password_line(input: impl BufRead) -> Result<String, String> {
    let mut line = String::new();
    let mut input = input.take(PASSWORD_LINE_BYTES_MAX);
    input.read_line(&mut line).map_err(|error| {
        format!(
            "cannot read the password from the standard input: {}",
            io_text(&error)
        )
    })?;

    if input.limit() == 0 {
        return Err(format!(
            "the password is longer than {PASSWORD_LINE_BYTES_MAX} bytes"
        ));
    }

    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
}

pub(super) fn write_out(text: &[u8]) -> Outcome {
    match io::stdout()
        .write_all(text)
        .and_then(|()| io::stdout().flush())
    {
        // A reader that needs no more, as head(1), is no failure.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            let text = format!("cannot write to the standard output: {}", io_text(&error));
            complain("linerate", &text, Outcome::NotCompleted)
        }
        _ => Outcome::Done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_one_line() {
        let rows = [
            ("rossi\nmore", "rossi"),
            ("rossi", "rossi"),
            ("rossi\r\n", "rossi"),
            ("", ""),
        ];
        for (input, expected) in rows {
            assert_eq!(password_line(input.as_bytes()).as_deref(), Ok(expected));
        }

        assert!(password_line("x".repeat(5000).as_bytes()).is_err());
        assert!(password_line(&b"\xff\xfe\n"[..]).is_err());
    }
}
