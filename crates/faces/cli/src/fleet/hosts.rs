//! Hosts of a command line of the fleet.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use linerate::Error;
use linerate::fleet::FleetHosts;
use linerate::fleet::inventory::{Inventory, from_file, from_list, from_ssh};

use super::bus::BusArgs;

/// Where the hosts are named.
#[derive(Debug, Args)]
pub(super) struct HostArgs {
    /// Inventory: TOML, or JSON of ansible-inventory --list; - for the standard input
    #[arg(short, long, value_name = "FILE")]
    inventory: Option<PathBuf>,
    /// Names that ssh understands, for example 'h[1-8],nas'
    #[arg(long, value_name = "LIST", conflicts_with = "inventory")]
    hosts: Option<String>,
    /// Names of Host lines in the configuration of ssh that fit a pattern, for example 'rack1-*'
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["inventory", "hosts"])]
    ssh_hosts: Option<String>,
    /// Configuration of ssh instead of the user's (ssh -F)
    #[arg(long, value_name = "FILE")]
    ssh_config: Option<PathBuf>,
    /// Path of the inventory that is tested [default: its only one]
    #[arg(long, value_name = "NAME")]
    path: Option<String>,
    /// What carries the control connections [default: the bus, where one is named, else ssh]
    #[arg(long, value_name = "CARRIER")]
    carrier: Option<CarrierArg>,
    #[command(flatten)]
    bus: BusArgs,
}

/// Words for what carries the control connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum CarrierArg {
    /// An agent over ssh, which is copied where it is missing
    Ssh,
    /// A shell over ssh, with the iperf3 that is there
    Script,
    /// Agents that are services, over the broker of --bus
    Bus,
}

impl HostArgs {
    /// Reads the inventory.
    ///
    /// # Errors
    /// It is not readable, or is none.
    pub(super) fn resolve(self) -> Result<FleetHosts, Error> {
        let inventory = self.inventory()?;
        let bus = self.bus.resolve();
        let is_scripted = self.carrier == Some(CarrierArg::Script);

        match (self.carrier, &bus) {
            (Some(CarrierArg::Bus), None) => Err(Error::usage("--carrier bus needs --bus URL")),
            // Each of the two options names a carrier.
            (Some(CarrierArg::Ssh | CarrierArg::Script), Some(_)) => {
                Err(Error::usage("only --carrier bus has a --bus"))
            }
            _ => Ok(FleetHosts {
                inventory,
                paths: self.path.into_iter().collect(),
                ssh_config: self.ssh_config,
                is_scripted,
                bus,
            }),
        }
    }

    fn inventory(&self) -> Result<Inventory, Error> {
        match (&self.inventory, &self.hosts, &self.ssh_hosts) {
            (Some(path), _, _) => from_file(path),
            (None, Some(list), _) => from_list(list),
            (None, None, Some(pattern)) => from_ssh(pattern, self.ssh_config.as_deref()),
            (None, None, None) => Err(Error::usage(
                "no hosts; name them with -i FILE, --hosts LIST or --ssh-hosts PATTERN",
            )),
        }
    }
}
