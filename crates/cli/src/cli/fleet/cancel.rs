//! The command line of `linerate fleet cancel`.

use clap::Args;
use linerate::fleet::cancel::{Cancelled, cancel};
use linerate::{Error, Outcome};

use crate::cli::{complain, print};

const COMMAND: &str = "linerate fleet cancel";

/// Which run is ended.
#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The run: its id or the end of it [default: the only one that goes on]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// History that the run is in [default: $LINERATE_STORE, or history.db in the state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
}

impl CancelArgs {
    pub(super) fn main(self) -> Outcome {
        match self.carry_out() {
            Ok(outcome) => outcome,
            Err(error) => complain(COMMAND, &error.to_string(), error.outcome),
        }
    }

    fn carry_out(self) -> Result<Outcome, Error> {
        let Cancelled { run, confirmed, unconfirmed } = cancel(self.run.as_deref(), self.store.as_deref())?;
        let hosts = |hosts: &[String]| if hosts.is_empty() { "none".to_owned() } else { hosts.join(" ") };
        let mut text = format!("run {} cancelled; end confirmed by: {}\n", run.short(), hosts(&confirmed));
        if !unconfirmed.is_empty() {
            let hosts = hosts(&unconfirmed);
            text += &format!("not confirmed by: {hosts}\nnext: linerate fleet leftovers {run} -i INVENTORY\n");
        }
        print(&text).map_err(Error::failed)?;
        Ok(if unconfirmed.is_empty() { Outcome::Done } else { Outcome::NotCompleted })
    }
}
