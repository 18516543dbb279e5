//! Parses the arguments of a command line: each option found acts on the settings.

use std::ffi::OsString;

use linerate_model::command_line::getopt::{Getopt, Grammar};
use linerate_model::command_line::values::ValueChecks;

use super::args::Args;
use super::error::UsageError;
use super::table::{self, OPTIONS, Role, Section};

/// The request of a command line.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// A test or a server.
    Run(Box<Args>),
    /// A text and nothing else.
    Print(fn() -> String),
}

/// Highest `-P` the original accepts.
const STREAMS_MAX: u32 = 128;
/// Highest `-P` after `--lr-many-streams`.
const MANY_STREAMS_MAX: u32 = 16_384;

/// Options of ours with which the report stays as it is.
const BESIDE_THE_REPORT: [&str; 2] = ["lr-record", "lr-tui"];

impl Args {
    /// Reads the arguments after the program name.
    ///
    /// # Errors
    /// The first option that cannot be read or is out of its bounds.
    pub(crate) fn parse(argv: &[OsString], checks: ValueChecks) -> Result<Parsed, UsageError> {
        let grammar = table::grammar();
        let mut args = Self::new(streams_max(&grammar, argv), checks);

        for found in Getopt::new(&grammar, argv) {
            let found = found?;
            let Some(option) = OPTIONS.get(found.id) else {
                continue;
            };
            args.note_role(option.extra);
            args.output.additions |=
                option.section == Section::Added && !BESIDE_THE_REPORT.contains(&option.long());
            option.effect.apply(&mut args, found.value)?;

            if let Some(text) = args.print {
                return Ok(Parsed::Print(text));
            }
        }

        Ok(Parsed::Run(Box::new(args)))
    }

    fn note_role(&mut self, role: Role) {
        match role {
            Role::Client => self.client_only_seen = true,
            Role::Server => self.server_only_seen = true,
            Role::Both | Role::Chooses => {}
        }
    }
}

/// `--lr-many-streams` counts at any position, so it is searched before any option acts.
fn streams_max(grammar: &Grammar<usize>, argv: &[OsString]) -> u32 {
    let many = Getopt::new(grammar, argv)
        .flatten()
        .filter_map(|found| OPTIONS.get(found.id))
        .any(|option| option.long() == table::MANY_STREAMS);
    if many { MANY_STREAMS_MAX } else { STREAMS_MAX }
}
