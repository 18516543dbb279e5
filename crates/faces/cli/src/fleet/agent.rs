//! The command line of `linerate fleet agent`.

use clap::Args;
use linerate::fleet::{SITE_DEFAULT, agent};
use linerate::{Error, Outcome};
use linerate_sys::process;

use super::bus::BusArgs;
use super::output::done;

/// Where the coordinator is.
#[derive(Debug, Args)]
pub(super) struct AgentArgs {
    /// The coordinator is at the other end of standard input and output
    #[arg(long, required_unless_present = "bus", conflicts_with = "bus")]
    stdio: bool,
    #[command(flatten)]
    bus: BusArgs,
    /// Name of the site, as in the inventory of the coordinator
    #[arg(long, value_name = "NAME", default_value = SITE_DEFAULT, requires = "bus")]
    site: String,
    /// Name of this host, as in the inventory of the coordinator [default: that of the system]
    #[arg(long, value_name = "NAME", requires = "bus")]
    host: Option<String>,
}

impl AgentArgs {
    pub(super) fn run(self) -> Result<Outcome, Error> {
        // clap requires either --stdio or --bus.
        let Some(bus) = self.bus.resolve() else {
            return agent::run_stdio().map(done);
        };
        let host = self.host.unwrap_or_else(|| process::uname().node);
        agent::run_bus(&bus, &self.site, host).map(done)
    }
}
