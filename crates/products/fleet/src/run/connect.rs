//! Connections to the hosts of an inventory, over ssh or a bus.

use std::collections::BTreeSet;

use crate::conclude::hosts::HostFindings;
use crate::conclude::seen;
use crate::protocol::coordinator::{Coordinator, Settings};
use crate::run::carrier::Carrier;
use crate::run::carrier::ssh::{Remote, SshCarrier, SshOptions};
use crate::spec::FleetHosts;
use crate::spec::inventory::Reach;
use linerate_model::finding::Finding;
use linerate_model::fleet::{HostId, PlanHash};
use linerate_model::printable::printable;
use linerate_model::record::{HostPart, RunId};
use linerate_store::keys;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::signal::Signals;

use super::bus;
use super::control::{Control, Ended, Lease};
use super::members::{CLOCK_BUDGET_NS, Prepared, host_findings, targets};
use super::prepare::{hello_timeout_ns, prepare};
use super::script::ScriptCarrier;
use linerate_model::outcome::{Error, Outcome};

/// Period of the renewal of leases.
const BEAT_NS: u64 = 1_000_000_000;
/// Silence of a host after which it is dropped.
const SILENCE_MAX_NS: u64 = 10_000_000_000;

/// Hosts that are connected, and what is known about them before the first round.
pub(super) struct Connected<'a> {
    pub control: Control<'a>,
    pub prepared: Prepared<'a>,
    pub found: HostFindings,
}

/// Connects to all hosts and prepares those that answer for tests over these paths. The hash of a
/// plan has a coordinator on a bus stand by, and continue the run that another one began with it.
pub(super) fn connect<'a>(
    run: (RunId, Option<PlanHash>),
    hosts: &'a FleetHosts,
    paths: &[String],
    signals: &'a Signals,
    note: &mut dyn FnMut(&str),
) -> Result<Connected<'a>, Error> {
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
        Ok(prepared) => {
            let is_separate = !hosts.inventory.is_control_shared();
            let found = host_findings(&control, &prepared, is_separate);
            Ok(Connected {
                control,
                prepared,
                found,
            })
        }
        // Hosts that have a plan are released before the error is reported.
        Err(ended) => {
            control.finish();
            Err(error_of(ended))
        }
    }
}

impl Connected<'_> {
    /// Two hosts take part, or more. Excluded ones are members as well.
    ///
    /// # Errors
    /// Fewer do.
    pub(super) fn check_count(&self) -> Result<(), Error> {
        if self.prepared.members.len() < self.found.excluded.len() + 2 {
            let text = "fewer than two hosts can be tested";
            return Err(Error::new(Outcome::Unreachable, text));
        }

        Ok(())
    }

    /// Hosts that can take part in a round now.
    pub(super) fn alive(&self) -> BTreeSet<HostId> {
        let mut alive = BTreeSet::new();
        for (index, host, member) in self.prepared.hosts() {
            let is_ready = member.is_target || self.control.coordinator.is_planned(index);
            if is_ready && !self.found.excluded.contains_key(&host.id) {
                alive.insert(host.id.clone());
            }
        }

        alive
    }

    /// Why hosts take no part, a line each.
    pub(super) fn reasons(&self) -> BTreeSet<String> {
        let mut lines = BTreeSet::new();
        for (index, reason) in &self.control.reasons {
            if let Some(host) = self.prepared.host(*index) {
                lines.insert(printable(&format!("{}: {reason}", host.id)));
            }
        }

        lines
    }

    /// Other facts of the hosts before the first round, a line each: which server cannot be
    /// reached by how many of the others, and why hosts are excluded.
    pub(super) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for (index, host, _) in self.prepared.hosts() {
            if let Some(note) = self.prepared.unreached_note(index) {
                notes.push(printable(&format!("{}: {note}", host.id)));
            }
        }

        for finding in &self.found.findings {
            if self.found.excluded.values().any(|id| *id == finding.id) {
                notes.push(printable(&finding_line(finding)));
            }
        }

        notes
    }

    /// The hosts that can be tested, as their record has them.
    pub(super) fn host_parts(&self) -> Vec<HostPart> {
        let mut parts = Vec::new();
        for (index, host, member) in self.prepared.hosts() {
            let hello = self.control.coordinator.hello(index);
            let name = match hello.filter(|_| !member.is_target) {
                Some(hello) => hello.host.clone(),
                None if member.is_target => member.place(),
                None => continue,
            };
            let mut part = HostPart::new(host.id.to_string(), name);
            if !member.is_target {
                part.host_key = hello.and_then(|hello| hello.host_key.clone());
                part.facts_key = member.facts.as_ref().map(keys::facts_key);
                part.snapshot = member.facts.clone().map(Box::new);
            }
            parts.push(part);
        }

        parts
    }
}

/// `h2: tests use the port of the control connection (FLT-13): route to …; next: …`
fn finding_line(finding: &Finding) -> String {
    let seen = seen(finding);
    let next = finding.advice.as_deref().unwrap_or_default();
    format!(
        "{}: {} ({}): {seen}; next: {next}",
        finding.subject, finding.title, finding.id
    )
}

/// Begins to connect.
fn lease(
    (run, plan): (RunId, Option<PlanHash>),
    hosts: &FleetHosts,
    signals: &Signals,
    note: &mut dyn FnMut(&str),
) -> Result<Lease, Error> {
    if let Some(options) = &hosts.bus {
        let plan = plan.map(|plan| plan.to_string());
        return bus::acquire_lease(options, hosts, (run, plan), signals, note);
    }

    let carrier: Box<dyn Carrier> = if hosts.is_scripted {
        let shells = ssh(hosts, Remote::Shell)?;
        Box::new(ScriptCarrier::new(shells, hosts.with_agent().count()))
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
    let remote = Remote::agent(arguments.to_owned()).map_err(Error::failed)?;
    ssh(hosts, remote)
}

fn ssh(hosts: &FleetHosts, remote: Remote) -> Result<SshCarrier, Error> {
    let mut destinations = Vec::new();
    for host in &hosts.inventory.hosts {
        if let Reach::Ssh(destination) = &host.reach {
            destinations.push(destination.clone());
        }
    }
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
