//! The command line of `linerate fleet hosts`.

use clap::Args;
use linerate::progress::style;
use linerate::{Error, Outcome, fleet};

use super::hosts::HostArgs;
use crate::output::{complain, print};

const COMMAND: &str = "linerate fleet hosts";

/// Which hosts are listed.
#[derive(Debug, Args)]
pub(super) struct ListArgs {
    #[command(flatten)]
    hosts: HostArgs,
    /// Write one JSON array instead of text
    #[arg(long)]
    json: bool,
}

impl ListArgs {
    pub(super) fn main(self) -> Outcome {
        match self.carry_out() {
            Ok(()) => Outcome::Done,
            Err(error) => complain(COMMAND, &error.to_string(), error.outcome),
        }
    }

    fn carry_out(self) -> Result<(), Error> {
        let hosts = self.hosts.resolve()?;
        let text = if self.json {
            fleet::hosts::json(&hosts)
        } else {
            fleet::hosts::text(&hosts, style())
        };
        print(&text).map_err(Error::failed)
    }
}
