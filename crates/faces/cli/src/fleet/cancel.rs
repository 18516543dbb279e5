//! The command line of `linerate fleet cancel`.

use clap::Args;
use linerate::fleet::cancel::{Cancelled, cancel};
use linerate::{Error, Outcome};

use super::output::print_text;

/// Which run is ended.
#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The run: its id or the end of it [default: the only active one]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// History that the run is in [default: $LINERATE_STORE, or history.db in the state directory]
    #[arg(long, value_name = "PLACE")]
    store: Option<String>,
}

impl CancelArgs {
    pub(super) fn run(self) -> Result<Outcome, Error> {
        let Cancelled {
            run,
            confirmed,
            unconfirmed,
            ..
        } = cancel(self.run.as_deref(), self.store.as_deref())?;
        let hosts = |hosts: &[String]| {
            if hosts.is_empty() {
                "none".to_owned()
            } else {
                hosts.join(" ")
            }
        };

        let mut text = if confirmed.is_empty() && unconfirmed.is_empty() {
            format!("run {} cancelled before its first round\n", run.short())
        } else {
            format!(
                "run {} cancelled; end confirmed by: {}\n",
                run.short(),
                hosts(&confirmed)
            )
        };
        if !unconfirmed.is_empty() {
            text += &format!("not confirmed by: {}\n", hosts(&unconfirmed));
        }

        // Without a host that confirms the end, what still runs is not known.
        let is_sure = unconfirmed.is_empty() && !confirmed.is_empty();
        if !is_sure {
            text += &format!("next: linerate fleet leftovers {run} -i INVENTORY\n");
        }

        print_text(&text)?;
        Ok(if is_sure {
            Outcome::Done
        } else {
            Outcome::NotCompleted
        })
    }
}
