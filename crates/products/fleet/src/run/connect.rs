//! Connections to the hosts of an inventory, over ssh or a bus.

use crate::protocol::coordinator::{Coordinator, Settings};
use crate::run::carrier::Carrier;
use crate::run::carrier::ssh::{AgentProgram, Remote, SshCarrier, SshOptions};
use crate::spec::FleetHosts;
use crate::spec::inventory::{Host, Reach};
use linerate_model::fleet::PlanHash;
use linerate_model::record::RunId;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::signal::Signals;

use super::bus;
use super::control::{Control, Ended, Lease};
use super::members::Prepared;
use super::prepare::{hello_timeout_ns, prepare};
use super::script::ScriptCarrier;
use super::targets::targets;
use linerate_model::outcome::{Error, Outcome};

/// Period of the renewal of leases.
const BEAT_NS: u64 = 1_000_000_000;
/// Silence of a host after which it is dropped.
const SILENCE_MAX_NS: u64 = 10_000_000_000;
/// Longest distance of the starts.
pub(super) const CLOCK_BUDGET_NS: u64 = 10_000_000;

/// Connects to all hosts and prepares those that answer for the planned tests. The hash of a plan
/// has a coordinator on a bus stand by, and continue the run that another one began with it.
pub(super) fn connect<'a>(
    run: (RunId, Option<PlanHash>),
    hosts: &FleetHosts,
    paths: &[String],
    signals: &'a Signals,
    note: &mut dyn FnMut(&str),
) -> Result<(Control<'a>, Prepared), Error> {
    // A resolver may take longer than agents wait for their plan.
    let targets = targets(&hosts.inventory, paths);
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

    let mut control = Control::new(
        Coordinator::new(monotonic_ns(), settings, hosts.with_agent().count()),
        carrier,
        signals,
    );
    control.history = history;

    match prepare(&mut control, hosts, targets, paths) {
        Ok(prepared) => Ok((control, prepared)),
        // Hosts that have a plan are released before the error is reported.
        Err(ended) => {
            control.finish();
            Err(error_of(ended))
        }
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
    let program = AgentProgram::own(arguments.to_owned()).map_err(Error::failed)?;
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
        is_path_shared: hosts.inventory.is_control_shared(),
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
