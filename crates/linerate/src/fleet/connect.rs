//! Connections to the hosts of an inventory, over ssh or a bus.

use std::collections::BTreeSet;
use std::path::PathBuf;

use linerate_carrier::Carrier;
use linerate_carrier::ssh::{AgentProgram, SshCarrier, SshOptions};
use linerate_fleet::coordinator::{Coordinator, Settings};
use linerate_fleet::inventory::{Host, Inventory, Reach};
use linerate_model::record::RunId;
use linerate_sys::clock::{monotonic_ns, unix_ns};
use linerate_sys::random;
use linerate_sys::signal::Signals;

use super::agent::sha256_of_program;
use super::bus::{self, BusOptions, Charge};
use super::control::{Control, Ended};
use super::prepare::{CONTROL_PATH, Prepared, is_shared, prepare};
use crate::{Error, Outcome};

/// Longest wait for the first message of a host: several attempts to connect, and a copy of the agent.
const HELLO_TIMEOUT_NS: u64 = 30_000_000_000;
/// The same on a bus, where agents are there: one that is busy is free once its lease has expired.
const HELLO_TIMEOUT_BUS_NS: u64 = 15_000_000_000;
/// Period of the renewal of leases.
const BEAT_NS: u64 = 1_000_000_000;
/// Silence of a host after which it is dropped.
const SILENCE_MAX_NS: u64 = 10_000_000_000;
/// How far starts may be apart.
pub(super) const CLOCK_BUDGET_NS: u64 = 10_000_000;

/// Name of a site whose inventory has none.
pub const SITE_DEFAULT: &str = "fleet";

/// Hosts and the way to them.
#[derive(Debug, Clone, PartialEq)]
pub struct FleetHosts {
    /// The hosts.
    pub inventory: Inventory,
    /// Name of the path that is tested; `None` for the only one of the inventory.
    pub path: Option<String>,
    /// Configuration of ssh instead of the user's.
    pub ssh_config: Option<PathBuf>,
    /// The bus that carries the control connections; ssh without one.
    pub bus: Option<BusOptions>,
}

impl FleetHosts {
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

/// Control connections of a run, of whatever kind.
pub(super) type HostControl<'a> = Control<'a, Box<dyn Carrier>>;

/// Connects to all hosts and prepares those that answer for tests of this length over the path. With the id of the run. The hash
/// of a plan has a coordinator on a bus stand by, and continue the run that another one began with it.
pub(super) fn connect<'a>(
    hosts: &FleetHosts,
    path: &str,
    test_ms: u64,
    plan: Option<String>,
    signals: &'a Signals,
    note: &mut dyn FnMut(&str),
) -> Result<(RunId, HostControl<'a>, Prepared), Error> {
    let Charge { carrier, epoch, run, history } = charge(hosts, plan, signals, note)?;
    let settings = Settings {
        run,
        epoch,
        hello_timeout_ns: if hosts.bus.is_some() { HELLO_TIMEOUT_BUS_NS } else { HELLO_TIMEOUT_NS },
        silence_max_ns: SILENCE_MAX_NS,
        beat_ns: BEAT_NS,
        is_solicited: hosts.bus.is_some(),
        clock_budget_ns: CLOCK_BUDGET_NS,
    };
    let ids = hosts.inventory.hosts.iter().map(|host| host.id.clone()).collect();
    let mut control = Control::new(Coordinator::new(monotonic_ns(), settings, ids), carrier, signals);
    control.history = history;
    match prepare(&mut control, hosts, path, test_ms) {
        Ok(prepared) => Ok((run, control, prepared)),
        Err(ended) => {
            control.finish();
            Err(error_of(ended))
        }
    }
}

/// Begins to connect.
fn charge(
    hosts: &FleetHosts,
    plan: Option<String>,
    signals: &Signals,
    note: &mut dyn FnMut(&str),
) -> Result<Charge, Error> {
    let destination = |host: &Host| match &host.reach {
        Reach::Ssh(destination) => Ok(destination.clone()),
        Reach::Server(_) => Err(Error::usage(format!("{}: servers without an agent cannot be tested yet", host.id))),
    };
    let destinations = hosts.inventory.hosts.iter().map(destination).collect::<Result<Vec<_>, _>>()?;
    let run = RunId::new(unix_ns() / 1_000_000, random::bytes());
    if let Some(options) = &hosts.bus {
        return bus::take_charge(options, hosts, (run, plan), signals, note);
    }
    let program = AgentProgram::own(sha256_of_program().map_err(Error::failed)?).map_err(Error::failed)?;
    let options = SshOptions { config: hosts.ssh_config.clone(), is_path_shared: is_shared(&hosts.inventory) };
    let carrier = SshCarrier::new(options, program, destinations).map_err(Error::failed)?;
    Ok(Charge { carrier: Box::new(carrier), epoch: 1, run, history: Vec::new() })
}

/// Why there is no result.
fn error_of(ended: Ended) -> Error {
    match ended {
        Ended::Cancelled(_) => Error::new(Outcome::Interrupted, "interrupted"),
        Ended::Failed(text) => Error::failed(text),
    }
}
