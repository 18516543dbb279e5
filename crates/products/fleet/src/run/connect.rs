//! Connections to the hosts of an inventory, over ssh or a bus.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::inventory::{Control as ControlPath, Host, Inventory, Reach};
use crate::protocol::coordinator::{Coordinator, Settings};
use crate::run::carrier::Carrier;
use crate::run::carrier::ssh::{AgentProgram, Remote, SshCarrier, SshOptions};
use linerate_model::fleet::{HostId, PlanHash};
use linerate_model::record::RunId;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::signal::Signals;
use serde::{Deserialize, Serialize};

use super::agent::sha256_of_program;
use super::bus::{self, BusOptions};
use super::control::{Control, Ended};
use super::members::Prepared;
use super::prepare::{CONTROL_PATH, Planned, is_shared, prepare};
use super::script::ScriptCarrier;
use super::targets::targets;
use linerate_model::outcome::{Error, Outcome};

/// Longest wait for the first message of a host: several attempts to connect, and a copy of the
/// agent.
pub(super) const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// Longest wait on a bus, where agents are present: one that is busy is free once its lease has
/// expired.
const HELLO_TIMEOUT_BUS_NS: u64 = 15_000_000_000;
/// Period of the renewal of leases.
const BEAT_NS: u64 = 1_000_000_000;
/// Silence of a host after which it is dropped.
const SILENCE_MAX_NS: u64 = 10_000_000_000;
/// Longest distance of the starts.
pub(super) const CLOCK_BUDGET_NS: u64 = 10_000_000;

/// Name of a site whose inventory has none.
pub const SITE_DEFAULT: &str = "fleet";

/// Hosts and the way to them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FleetHosts {
    /// The hosts.
    pub inventory: Inventory,
    /// Names of the paths that are tested; empty for the only one of the inventory.
    pub paths: Vec<String>,
    /// Configuration of ssh instead of the user's. It starts programs, so no record determines it.
    #[serde(skip)]
    pub ssh_config: Option<PathBuf>,
    /// The hosts run sh(1) and iperf3 instead of an agent.
    pub is_scripted: bool,
    /// The bus that carries the control connections; ssh without one. No record determines it.
    #[serde(skip)]
    pub bus: Option<BusOptions>,
}

/// Control connections of a run, of whatever kind.
pub(super) type HostControl<'a> = Control<'a, Box<dyn Carrier>>;

/// A coordinator in charge of its hosts.
pub(super) struct Lease {
    pub(super) carrier: Box<dyn Carrier>,
    /// The epoch of its commands; 1 where no other coordinator can be in charge.
    pub(super) epoch: u64,
    /// The new run, or the one that is continued.
    pub(super) run: RunId,
    /// Lines of results that the run has so far, with their hosts.
    pub(super) history: Vec<(usize, Vec<u8>)>,
}

impl FleetHosts {
    /// The hosts of `inventory` by ssh, with an agent, on its only path.
    #[must_use]
    pub fn new(inventory: Inventory) -> Self {
        Self {
            inventory,
            paths: Vec::new(),
            ssh_config: None,
            is_scripted: false,
            bus: None,
        }
    }

    /// Name of the inventory; the number of hosts of one without a name.
    pub(super) fn name(&self) -> String {
        self.inventory
            .name
            .clone()
            .unwrap_or_else(|| format!("{} hosts", self.inventory.hosts.len()))
    }

    /// Hosts with an agent, the first ones of the inventory.
    pub(super) fn with_agent(&self) -> impl Iterator<Item = &Host> {
        self.inventory
            .hosts
            .iter()
            .filter(|host| matches!(host.reach, Reach::Ssh(_)))
    }

    /// Tests may use the network of the control connections.
    pub fn share_path(&mut self) {
        self.inventory.control = ControlPath::Shared;
    }

    /// Names of the paths that are tested.
    ///
    /// # Errors
    /// No host has one of them, or none is named and there are several.
    pub(super) fn path_names(&self) -> Result<Vec<String>, Error> {
        let hosts = &self.inventory.hosts;
        let names: BTreeSet<&str> = hosts
            .iter()
            .flat_map(|host| host.paths.keys().map(String::as_str))
            .collect();
        if let Some(path) = self
            .paths
            .iter()
            .find(|path| !names.contains(path.as_str()))
        {
            return Err(Error::usage(format!("no host has the path {path}")));
        }

        match names.into_iter().collect::<Vec<_>>().as_slice() {
            _ if !self.paths.is_empty() => Ok(self.paths.clone()),
            [] => Ok(vec![CONTROL_PATH.to_owned()]),
            [only] => Ok(vec![(*only).to_owned()]),
            names => Err(Error::usage(format!(
                "{} paths in the inventory; name one with --path",
                names.len()
            ))),
        }
    }
}

/// Connects to all hosts and prepares those that answer for the planned tests. The hash of a plan
/// has a coordinator on a bus stand by, and continue the run that another one began with it.
pub(super) fn connect<'a>(
    run: (RunId, Option<PlanHash>),
    hosts: &FleetHosts,
    planned: Planned<'_>,
    signals: &'a Signals,
    note: &mut dyn FnMut(&str),
) -> Result<(HostControl<'a>, Prepared), Error> {
    // A resolver may take longer than agents wait for their plan.
    let targets = targets(&hosts.inventory, planned.paths);
    let Lease {
        carrier,
        epoch,
        run,
        history,
    } = lease(run, hosts, signals, note)?;
    let settings = Settings {
        run,
        epoch,
        hello_timeout_ns: hello_timeout_ns(hosts),
        silence_max_ns: SILENCE_MAX_NS,
        beat_ns: BEAT_NS,
        is_solicited: hosts.bus.is_some(),
        clock_budget_ns: CLOCK_BUDGET_NS,
    };

    let ids: Vec<HostId> = hosts.with_agent().map(|host| host.id.clone()).collect();
    let mut control = Control::new(
        Coordinator::new(monotonic_ns(), settings, ids),
        carrier,
        signals,
    );
    control.history = history;

    match prepare(&mut control, hosts, targets, planned) {
        Ok(prepared) => Ok((control, prepared)),
        Err(ended) => {
            control.finish();
            Err(error_of(ended))
        }
    }
}

/// Longest wait for the first message of a host.
pub(super) fn hello_timeout_ns(hosts: &FleetHosts) -> u64 {
    if hosts.bus.is_some() {
        HELLO_TIMEOUT_BUS_NS
    } else {
        HELLO_TIMEOUT_NS
    }
}

/// Begins to connect.
fn lease(
    (run, plan): (RunId, Option<PlanHash>),
    hosts: &FleetHosts,
    signals: &Signals,
    note: &mut dyn FnMut(&str),
) -> Result<Lease, Error> {
    if let Some(options) = &hosts.bus {
        return bus::acquire_lease(
            options,
            hosts,
            (run, plan.map(|plan| plan.to_string())),
            signals,
            note,
        );
    }

    let carrier: Box<dyn Carrier> = if hosts.is_scripted {
        Box::new(ScriptCarrier::new(
            ssh(hosts, Remote::Shell)?,
            hosts.with_agent().count(),
        ))
    } else {
        Box::new(carrier(hosts, "fleet agent --stdio")?)
    };
    Ok(Lease {
        carrier,
        epoch: 1,
        run,
        history: Vec::new(),
    })
}

/// Connections to this program with these arguments at all hosts.
pub(super) fn carrier(hosts: &FleetHosts, arguments: &str) -> Result<SshCarrier, Error> {
    let sha256 = sha256_of_program().map_err(Error::failed)?;
    let program = AgentProgram::own(sha256, arguments.to_owned()).map_err(Error::failed)?;
    ssh(hosts, Remote::Agent(program))
}

fn ssh(hosts: &FleetHosts, remote: Remote) -> Result<SshCarrier, Error> {
    let destination = |host: &Host| match &host.reach {
        Reach::Ssh(destination) => Some(destination.clone()),
        Reach::Server(_) => None,
    };
    let destinations = hosts.inventory.hosts.iter().filter_map(destination);
    let options = SshOptions {
        config: hosts.ssh_config.clone(),
        is_path_shared: is_shared(&hosts.inventory),
    };

    SshCarrier::new(options, remote, destinations).map_err(Error::failed)
}

/// Why there is no result.
fn error_of(ended: Ended) -> Error {
    match ended {
        Ended::Cancelled(_) => Error::new(Outcome::Interrupted, "interrupted"),
        Ended::Failed(text) => Error::failed(text),
    }
}
