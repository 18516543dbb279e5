//! `linerate generate`: files that belong to an installation or to a server.

use std::fs;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use clap::{Args, Command, Subcommand, ValueEnum};
use clap_complete::{Shell, generate};
use linerate::{Error, Outcome};
use linerate_iperf3::wire::auth;
use linerate_sys::error::io_text;
use linerate_sys::process;

use crate::iperf3;
use crate::man;
use crate::manual_page::ManualPage;
use crate::output::{outcome_of, print_all};
#[cfg(feature = "full")]
use crate::systemd::{self, SystemdArgs};

/// What to write.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct GenerateArgs {
    #[command(subcommand)]
    what: Artefact,
}

#[cfg(feature = "full")]
const EXAMPLES: &str = "\
Examples:
  linerate generate man --dir /usr/local/share/man   install the manual
  linerate generate completions bash                 completions for a shell, on the standard output
  linerate generate schema > linerate.run.1.json     the JSON schema of records of runs
  linerate generate systemd --every 5m -- iperf3 -c 192.0.2.7  units that repeat a run
  linerate generate user mario >> users.csv          add a user to the user file of a server";

#[cfg(not(feature = "full"))]
const EXAMPLES: &str = "\
Examples:
  linerate generate man --dir /usr/local/share/man   install the manual
  linerate generate completions bash                 completions for a shell, on the standard output
  linerate generate schema > linerate.run.1.json     the JSON schema of records of runs
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
    #[cfg(feature = "full")]
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
    shell: Shell,
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
const RUN_SCHEMA_TEXT: &str = include_str!("../../../../docs/schema/linerate.run.1.json");

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
pub(crate) fn main(args: &GenerateArgs, program: Command) -> Outcome {
    outcome_of("linerate", run(args, program))
}

fn run(args: &GenerateArgs, program: Command) -> Result<Outcome, Error> {
    match &args.what {
        Artefact::Man(args) => manual(args, &man::pages(program)),
        Artefact::Completions(args) => print_all(&completions(args, program)),
        Artefact::Schema => print_all(RUN_SCHEMA_TEXT),
        #[cfg(feature = "full")]
        Artefact::Systemd(args) => systemd::run(args),
        Artefact::User(UserArgs { name }) => user(name),
    }
}

fn manual(args: &ManArgs, pages: &[ManualPage]) -> Result<Outcome, Error> {
    if let Some(directory) = &args.dir {
        return print_all(&write_manual(directory, pages)?);
    }

    match pages.iter().find(|found| found.name == args.page) {
        Some(found) => print_all(&found.text),
        None => {
            let names: Vec<&str> = pages.iter().map(|page| page.name.as_str()).collect();
            Err(Error::usage(format!(
                "the manual has no page {:?}\nhint: its pages are {}",
                args.page,
                names.join(", ")
            )))
        }
    }
}

/// Writes every page, and returns where to.
fn write_manual(directory: &Path, pages: &[ManualPage]) -> Result<String, Error> {
    let mut written = String::new();
    for page in pages {
        let folder = directory.join(format!("man{}", page.section));
        let path = folder.join(format!("{}.{}", page.name, page.section));
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&path, &page.text))
            .map_err(|error| {
                Error::failed(format!(
                    "cannot write {}: {}",
                    path.display(),
                    io_text(&error)
                ))
            })?;
        written.push_str(&format!("{}\n", path.display()));
    }

    Ok(written)
}

fn completions(args: &CompletionArgs, program: Command) -> String {
    let (mut program, name) = match args.program {
        CompletedProgram::Linerate => (program, "linerate"),
        // Placeholders such as SCOPE:KEY=N have a meaning in the specifications of zsh.
        CompletedProgram::Iperf3 => (
            iperf3::man::command().mut_args(|option| {
                if option.get_action().takes_values() {
                    option.value_name("VALUE")
                } else {
                    option
                }
            }),
            "iperf3",
        ),
    };
    let mut script = Vec::new();
    generate(args.shell, &mut program, name, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn user(name: &str) -> Result<Outcome, Error> {
    // A name that cannot be used is reported before a password is typed.
    auth::check_user_name(name).map_err(Error::usage)?;
    let password = password().map_err(Error::failed)?;
    let line = auth::users_file_line(name, &password).map_err(Error::failed)?;
    print_all(&format!("{line}\n"))
}

fn password() -> Result<String, String> {
    if !process::isatty(io::stdin()) {
        // A pipe has no echo that would have to be turned off.
        return password_line(io::stdin().lock());
    }

    let ask = |prompt| process::read_password(prompt).map_err(|error| error.to_string());
    let password = ask("Password: ")?;
    // A typing error would lock the user out, and the terminal shows no characters.
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

    // The bound is reached, so the line may have been cut.
    if input.limit() == 0 {
        return Err(format!(
            "the password is longer than {PASSWORD_LINE_BYTES_MAX} bytes"
        ));
    }

    // Only the line end goes: blanks may be part of a password.
    Ok(line.trim_end_matches(['\n', '\r']).to_owned())
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
