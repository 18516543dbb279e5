//! Connections to the hosts of an inventory over ssh.

use std::collections::BTreeSet;
use std::path::PathBuf;

use linerate_carrier::ssh::{AgentProgram, SshCarrier, SshOptions};
use linerate_fleet::coordinator::{Coordinator, Settings};
use linerate_fleet::inventory::{Host, Inventory, Reach};
use linerate_model::record::RunId;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::signal::Signals;
use serde::{Deserialize, Serialize};

use super::agent::sha256_of_program;
use super::control::{Control, Ended};
use super::prepare::{CONTROL_PATH, Prepared, is_shared, prepare};
use crate::{Error, Outcome};

/// Longest wait for the first message of a host: several attempts to connect, and a copy of the agent.
pub(super) const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// Period of the renewal of leases.
const BEAT_NS: u64 = 1_000_000_000;
/// Silence of a host after which it is dropped.
const SILENCE_MAX_NS: u64 = 10_000_000_000;
/// How far starts may be apart.
pub(super) const CLOCK_BUDGET_NS: u64 = 10_000_000;

/// Hosts and the way to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetHosts {
    /// The hosts.
    pub inventory: Inventory,
    /// Name of the path that is tested; `None` for the only one of the inventory.
    pub path: Option<String>,
    /// Configuration of ssh instead of the user's. It starts programs, so no record determines it.
    #[serde(skip)]
    pub ssh_config: Option<PathBuf>,
}

impl FleetHosts {
    /// Name of the inventory; the number of hosts of one without a name.
    pub(super) fn name(&self) -> String {
        self.inventory.name.clone().unwrap_or_else(|| format!("{} hosts", self.inventory.hosts.len()))
    }

    /// Name of the path that is tested.
    ///
    /// # Errors
    /// No host has it, or it is not named and there are several.
    pub(super) fn path_name(&self) -> Result<String, Error> {
        let hosts = &self.inventory.hosts;
        let names: BTreeSet<&str> = hosts.iter().flat_map(|host| host.paths.keys().map(String::as_str)).collect();
        match (&self.path, names.iter().copied().collect::<Vec<_>>().as_slice()) {
            (Some(path), _) if names.contains(path.as_str()) => Ok(path.clone()),
            (Some(path), _) => Err(Error::usage(format!("no host has the path {path}"))),
            (None, []) => Ok(CONTROL_PATH.to_owned()),
            (None, [only]) => Ok((*only).to_owned()),
            (None, names) => Err(Error::usage(format!("{} paths in the inventory; name one with --path", names.len()))),
        }
    }
}

/// Connects to all hosts and prepares those that answer for tests of this length over the path.
pub(super) fn connect<'a>(
    run: RunId,
    hosts: &FleetHosts,
    path: &str,
    test_ms: u64,
    signals: &'a Signals,
) -> Result<(Control<'a, SshCarrier>, Prepared), Error> {
    let mut control = begin(run, hosts, signals)?;
    match prepare(&mut control, &hosts.inventory, path, test_ms) {
        Ok(prepared) => Ok((control, prepared)),
        Err(ended) => {
            control.finish();
            Err(error_of(ended))
        }
    }
}

/// Begins to connect.
fn begin<'a>(run: RunId, hosts: &FleetHosts, signals: &'a Signals) -> Result<Control<'a, SshCarrier>, Error> {
    let carrier = carrier(hosts, "fleet agent --stdio")?;
    let settings = Settings {
        run,
        epoch: 1,
        hello_timeout_ns: HELLO_TIMEOUT_NS,
        silence_max_ns: SILENCE_MAX_NS,
        beat_ns: BEAT_NS,
        clock_budget_ns: CLOCK_BUDGET_NS,
    };
    let ids = hosts.inventory.hosts.iter().map(|host| host.id.clone()).collect();
    Ok(Control::new(Coordinator::new(monotonic_ns(), settings, ids), carrier, signals))
}

/// Connections to this program with these arguments at all hosts.
pub(super) fn carrier(hosts: &FleetHosts, arguments: &str) -> Result<SshCarrier, Error> {
    let sha256 = sha256_of_program().map_err(Error::failed)?;
    let program = AgentProgram::own(sha256, arguments.to_owned()).map_err(Error::failed)?;
    let destination = |host: &Host| match &host.reach {
        Reach::Ssh(destination) => Ok(destination.clone()),
        Reach::Server(_) => Err(Error::usage(format!("{}: servers without an agent cannot be tested yet", host.id))),
    };
    let destinations = hosts.inventory.hosts.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    let options = SshOptions { config: hosts.ssh_config.clone(), is_path_shared: is_shared(&hosts.inventory) };
    SshCarrier::new(options, program, destinations).map_err(Error::failed)
}

/// Why there is no result.
fn error_of(ended: Ended) -> Error {
    match ended {
        Ended::Cancelled(_) => Error::new(Outcome::Interrupted, "interrupted"),
        Ended::Failed(text) => Error::failed(text),
    }
}
