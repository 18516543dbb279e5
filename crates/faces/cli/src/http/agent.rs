//! The command line of `linerate http agent`.

use clap::Args;

use super::control::ControlArgs;
use crate::output::warn;
use linerate::http::agent::{AgentSpec, RunningAgent};
use linerate::{Error, Outcome};
use linerate_sys::signal::{Signal, Signals};

/// Basis of the default control port without a port under test.
const PORT_BEFORE: u16 = 8080;

/// What is measured, and who has access.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct AgentArgs {
    /// Watch this process
    #[arg(long, value_name = "PID", value_parser = clap::value_parser!(u32).range(1..))]
    pid: Option<u32>,
    /// Watch the processes that listen on this TCP port, and the connections to it
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    listen_port: Option<u16>,
    #[command(flatten)]
    control: ControlArgs,
}

const NOTES: &str = "\
With both --pid and --listen-port, the process is the one that is named and the connections are \
those of the port; with neither, only the host is watched.

Examples:
  linerate http agent --listen-port 80    beside nginx; answers on port 81";

impl AgentArgs {
    /// Finds the processes.
    ///
    /// # Errors
    /// No such process, or no listener on the port.
    pub(crate) fn resolve(&self) -> Result<AgentSpec, String> {
        let control = self
            .control
            .resolve(self.listen_port.unwrap_or(PORT_BEFORE))?;
        AgentSpec::find(self.pid, self.listen_port, control).map_err(|error| error.to_string())
    }
}

/// Answers clients until a signal comes.
///
/// # Errors
/// A channel that cannot be opened.
pub(super) fn run(spec: &AgentSpec) -> Result<Outcome, Error> {
    // Before any thread starts: threads inherit the signal mask.
    let signals = Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup])
        .map_err(Error::failed)?;
    let agent = RunningAgent::start(spec)?;
    for warning in agent.warnings() {
        warn("linerate http", &format!("warning - {warning}"));
    }

    super::say(&agent.introduction);
    super::wait_for_signal(&signals);
    Ok(Outcome::Done)
}
