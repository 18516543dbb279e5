//! The command line of `linerate fleet check`.

use clap::Args;
use linerate::fleet::check::check;
use linerate::fleet::report::check_text;
use linerate::progress::style;
use linerate::{Error, Outcome};
use linerate_sys::signal::{Signal, Signals};

use super::hosts::HostArgs;
use crate::output::{complain, print};

const COMMAND: &str = "linerate fleet check";

/// Which hosts are checked.
#[derive(Debug, Args)]
pub(super) struct CheckArgs {
    #[command(flatten)]
    hosts: HostArgs,
}

impl CheckArgs {
    pub(super) fn main(self) -> Outcome {
        match self.carry_out() {
            Ok(outcome) => outcome,
            Err(error) => complain(COMMAND, &error.to_string(), error.outcome),
        }
    }

    fn carry_out(self) -> Result<Outcome, Error> {
        let hosts = self.hosts.resolve()?;
        let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]);
        let signals = signals.map_err(|error| Error::failed(error.text()))?;
        let result = check(&hosts, &signals)?;
        print(&check_text(&result.report, style())).map_err(Error::failed)?;
        Ok(result.outcome)
    }
}
