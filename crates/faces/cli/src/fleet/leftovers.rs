//! The command line of `linerate fleet leftovers`.

use clap::Args;
use linerate::fleet::leftovers::{everywhere, here, report, run_named};
use linerate::progress::style;
use linerate::{Error, Outcome};

use super::hosts::HostArgs;
use super::output::{done, print_text, signals};

/// What is listed, and whether it is ended.
#[derive(Debug, Args)]
pub(super) struct LeftoverArgs {
    /// The run: its id, or the end of the id of a run of this history [default: all runs]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// End what has no agent; with RUN all workers of that run and their agents
    #[arg(long)]
    end: bool,
    /// History of the name RUN [default: $LINERATE_STORE, or history.db in the state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
    /// Of this host, for the other end of standard output
    #[arg(long, hide = true)]
    stdio: bool,
    #[command(flatten)]
    hosts: HostArgs,
}

impl LeftoverArgs {
    pub(super) fn run(self) -> Result<Outcome, Error> {
        let run = self
            .run
            .as_deref()
            .map(|name| run_named(name, self.store.as_deref()))
            .transpose()?;
        // With --stdio this process runs on a host of the fleet and answers the one that started
        // it.
        if self.stdio {
            return print_text(&here(run, self.end)).map(done);
        }

        let hosts = self.hosts.resolve()?;
        let found = everywhere(&hosts, run, self.end, &signals()?)?;
        let (text, outcome) = report(&found, style());

        print_text(&text).map(|()| outcome)
    }
}
