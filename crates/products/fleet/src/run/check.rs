//! `linerate fleet check`: connects to all hosts and to every planned port of a test, without load.

use crate::conclude::hosts::HostFindings;
use crate::conclude::seen;
use crate::protocol::clock::Estimate;
use crate::protocol::message::Hello;
use crate::report::{CheckReport, CheckRow, CheckState};
use crate::spec::inventory::{Host, Reach};
use linerate_model::finding::Finding;
use linerate_model::record::RunId;
use linerate_sys::clock::{monotonic_ns, unix_ns};
use linerate_sys::random;
use linerate_sys::signal::Signals;

use super::connect::{Connected, connect};
use super::members::{Member, Prepared, TestEnd};
use crate::spec::FleetHosts;
use linerate_model::outcome::{Error, Outcome};

/// Note of a server without an agent.
const NO_AGENT: &str = "a server without an agent: no facts, no clock";

/// Result of a check.
#[derive(Debug)]
pub struct CheckResult {
    /// The report.
    pub report: CheckReport,
    /// [`Outcome::CheckFailed`] where a host is not ready, [`Outcome::Unreachable`] where fewer
    /// than two are reached.
    pub outcome: Outcome,
}

/// Checks all hosts.
///
/// # Errors
/// The inventory or this host lacks what the coordinator needs, or a signal ended it.
pub fn check(hosts: &FleetHosts, signals: &Signals) -> Result<CheckResult, Error> {
    let paths = hosts.path_names()?;
    let run = RunId::new(unix_ns() / 1_000_000, random::bytes());
    let connected = connect((run, None), hosts, &paths, signals, &mut |_| {})?;
    let mut rows = Vec::new();
    for (index, host) in hosts.inventory.hosts.iter().enumerate() {
        rows.push(row(&connected, index, host));
    }

    let Connected { control, found, .. } = connected;
    control.finish();
    let reached = rows
        .iter()
        .filter(|row| row.state != CheckState::Unreachable);
    // A test needs two hosts.
    let outcome = if reached.count() < 2 {
        Outcome::Unreachable
    } else if rows.iter().any(|row| row.state != CheckState::Ready) {
        Outcome::CheckFailed
    } else {
        Outcome::Done
    };

    let carrier = match &hosts.bus {
        Some(_) => "bus",
        None if hosts.is_scripted => "script",
        None => "ssh",
    };
    let next = next_step(&rows, &found, hosts);
    let report = CheckReport {
        carrier,
        paths,
        rows,
        next,
    };
    Ok(CheckResult { report, outcome })
}

fn row(connected: &Connected<'_>, index: usize, host: &Host) -> CheckRow {
    let Connected {
        control,
        prepared,
        found,
    } = connected;
    let hello = control.coordinator.hello(index);
    let member = prepared.members.get(&index);
    let end = member.and_then(|member| member.ends.values().next());
    let is_closed = member.is_some_and(|member| member.reached.is_closed());
    let is_target = member.is_some_and(|member| member.is_target);

    let state = if is_target {
        if is_closed {
            CheckState::Blocked
        } else {
            CheckState::Ready
        }
    } else if hello.is_none() {
        CheckState::Unreachable
    } else if member.is_some()
        && !is_closed
        && control.coordinator.is_planned(index)
        && !found.excluded.contains_key(&host.id)
    {
        CheckState::Ready
    } else {
        CheckState::Blocked
    };

    let reason = control.reasons.get(&index);
    let mut notes: Vec<String> = reason.cloned().into_iter().collect();
    if is_target {
        notes.push(NO_AGENT.to_owned());
    }
    let is_proved = member.is_some_and(|member| member.reached.count > 0);
    if matches!(host.reach, Reach::Server(_)) && !is_proved && reason.is_none() {
        notes.push("no host has connected to it".to_owned());
    }
    notes.extend(prepared.unreached_note(index));
    notes.extend(hello.and_then(|hello| version_note(&hello.version)));
    if let Some(member) = member
        && let Some(end) = end
    {
        notes.extend(slower_note(end, prepared));
        notes.extend(route_note(member, end));
    }
    for finding in &found.findings {
        // The finding is about this host, alone or among others.
        let mut words = finding.subject.split([',', ' ']);
        if words.any(|word| word == host.id.as_str()) {
            let Finding { id, title, .. } = finding;
            notes.push(format!("{id}: {title}: {}", seen(finding)));
        }
    }

    let clock = control.coordinator.clock(index, monotonic_ns());
    let clock = hello.zip(clock);
    CheckRow {
        host: host.id.clone(),
        state,
        version: hello.map(|hello| hello.version.clone()),
        clock_ns: clock.map(|(hello, clock)| wall_clock_ns(hello, clock)),
        address: end.map(|end| end.address.to_string()),
        device: end.and_then(|end| end.device.clone()),
        port: end.map(|end| end.port),
        link_bps: end.and_then(|end| end.speed_bps).map(|bps| bps as f64),
        rtt_ns: member.and_then(median_rtt_ns),
        notes,
    }
}

/// The wall clock of a host against that of this one, from its monotonic clock, with its
/// uncertainty: each end reads both of its clocks at the same time.
fn wall_clock_ns(hello: &Hello, clock: Estimate) -> (i64, u64) {
    let since_boot = |unix_ns: u64, mono_ns: u64| unix_ns.wrapping_sub(mono_ns).cast_signed();
    let there_ns = since_boot(hello.unix_ns, hello.mono_ns);
    let here_ns = since_boot(unix_ns(), monotonic_ns());
    let apart_ns = there_ns.saturating_sub(here_ns);
    (
        clock.offset_ns.saturating_add(apart_ns),
        clock.uncertainty_ns,
    )
}

fn median_rtt_ns(member: &Member) -> Option<u64> {
    let rtts = member.probes.iter().filter_map(|probe| probe.rtt_ns);
    middle(rtts.collect())
}

fn middle(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

fn version_note(version: &str) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    (version != own).then(|| format!("this host has version {own}"))
}

/// A link that is slower than those of most others.
fn slower_note(end: &TestEnd, prepared: &Prepared<'_>) -> Option<String> {
    let own_bps = end.speed_bps?;
    let mut speeds = Vec::new();
    for member in prepared.members.values() {
        speeds.extend(member.ends.values().filter_map(|end| end.speed_bps));
    }

    let median_bps = middle(speeds)?;
    (own_bps < median_bps).then(|| format!("most others have {} Mbit/s", median_bps / 1_000_000))
}

/// A route that leaves through another device than that of the address: a trap of several addresses
/// per host.
fn route_note(member: &Member, end: &TestEnd) -> Option<String> {
    let device = end.device.as_ref()?;
    for probe in &member.probes {
        if let Some(found) = &probe.device
            && found != device
        {
            let peer = probe.peer;
            return Some(format!(
                "the route to {peer} leaves through {found}, the address is on {device}"
            ));
        }
    }

    None
}

/// Next step for the first host that is not ready.
fn next_step(rows: &[CheckRow], found: &HostFindings, hosts: &FleetHosts) -> Option<String> {
    let server_of = |row: &CheckRow| {
        let mut hosts = hosts.inventory.hosts.iter();
        match &hosts.find(|host| host.id == row.host)?.reach {
            Reach::Server(server) => Some(server),
            Reach::Ssh(_) => None,
        }
    };
    // Without a host that answers, nothing is known about servers.
    let row = rows
        .iter()
        .max_by_key(|row| (row.state, server_of(row).is_none()))?;
    let host = &row.host;
    if row.state == CheckState::Blocked
        && let Some(id) = found.excluded.get(host)
    {
        for finding in &found.findings {
            if finding.id == *id && finding.subject.contains(host.as_str()) {
                return finding.advice.clone();
            }
        }
    }

    let next = match (row.state, server_of(row), row.port) {
        (CheckState::Ready, ..) => return None,
        (_, Some(server), _) => format!("a server has to listen at {server} for the other hosts"),
        (CheckState::Blocked, None, Some(port)) => {
            format!("open TCP port {port} on {host} to the other hosts")
        }
        (CheckState::Blocked, None, None) => format!("see the note of {host}"),
        _ if hosts.bus.is_some() => format!("start `linerate fleet agent` on {host}"),
        _ => format!("`ssh {host} true` has to work without a prompt"),
    };
    Some(next + ", then check again")
}
