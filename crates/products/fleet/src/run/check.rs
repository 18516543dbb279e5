//! `linerate fleet check`: connects to all hosts and to every planned port of a test, without load.

use crate::conclude::hosts::HostFindings;
use crate::protocol::clock::Estimate;
use crate::protocol::message::{Hello, ProbeReport};
use crate::report::{CheckReport, CheckRow, CheckState};
use crate::spec::inventory::{Host, Reach};
use linerate_model::finding::Finding;
use linerate_model::record::RunId;
use linerate_sys::clock::{monotonic_ns, unix_ns};
use linerate_sys::random;
use linerate_sys::signal::Signals;

use super::connect::{Connected, connect};
use super::host_rules::seen;
use super::members::{Member, Prepared, TestEnd};
use crate::spec::FleetHosts;
use linerate_model::outcome::{Error, Outcome};

/// Note of a server without an agent.
const NO_AGENT: &str = "a server without an agent: no facts, no clock";

/// Result of a check.
#[derive(Debug, Clone, PartialEq)]
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
    let rows: Vec<CheckRow> = (hosts.inventory.hosts.iter().enumerate())
        .map(|(index, host)| row(&connected, index, host))
        .collect();

    let Connected { control, found, .. } = connected;
    control.finish();
    let is_reached = |row: &&CheckRow| row.state != CheckState::Unreachable;
    // A test needs two hosts.
    let outcome = match rows.iter().filter(is_reached).count() {
        0 | 1 => Outcome::Unreachable,
        _ if rows.iter().any(|row| row.state != CheckState::Ready) => Outcome::CheckFailed,
        _ => Outcome::Done,
    };

    let carrier = match (&hosts.bus, hosts.is_scripted) {
        (Some(_), _) => "bus",
        (None, true) => "script",
        (None, false) => "ssh",
    };
    let next = next_step(&rows, &found, hosts);
    Ok(CheckResult {
        report: CheckReport {
            carrier: carrier.to_owned(),
            paths,
            rows,
            next,
        },
        outcome,
    })
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
    // One host that reaches the port shows that the server listens.
    let (failed, all) = prepared.failed_probes(index);
    let is_closed = all > 0 && failed.len() == all;
    let is_target = member.is_some_and(|member| member.is_target);
    let state = match (hello, member) {
        _ if is_target && is_closed => CheckState::Blocked,
        _ if is_target => CheckState::Ready,
        (None, _) => CheckState::Unreachable,
        (Some(_), Some(_)) if found.excluded.contains_key(&host.id) => CheckState::Blocked,
        (Some(_), Some(_)) if !is_closed && control.coordinator.is_planned(index) => {
            CheckState::Ready
        }
        _ => CheckState::Blocked,
    };

    let mut notes: Vec<String> = control.reasons.get(&index).cloned().into_iter().collect();
    notes.extend(is_target.then(|| NO_AGENT.to_owned()));
    let is_unproved =
        matches!(host.reach, Reach::Server(_)) && all == 0 && !control.reasons.contains_key(&index);
    notes.extend(is_unproved.then(|| "no host has connected to it".to_owned()));
    notes.extend(prepared.unreached_note(index));
    notes.extend(hello.and_then(|hello| version_note(&hello.version)));
    notes.extend(end.and_then(|end| slower_note(end, prepared)));
    notes.extend(
        member
            .zip(end)
            .and_then(|(member, end)| route_note(member, end)),
    );
    notes.extend(
        found
            .findings
            .iter()
            .filter(|finding| is_about(finding, host))
            .map(finding_note),
    );

    let clock = control.coordinator.clock(index, monotonic_ns());
    let wall_clock =
        |hello: &Hello, clock: Estimate| (wall_clock_offset_ns(hello, clock), clock.uncertainty_ns);
    CheckRow {
        host: host.id.clone(),
        state,
        version: hello.map(|hello| hello.version.clone()),
        clock_ns: hello
            .zip(clock)
            .map(|(hello, clock)| wall_clock(hello, clock)),
        address: end.map(|end| end.address.to_string()),
        device: end.and_then(|end| end.device.clone()),
        port: end.map(|end| end.port),
        link_bps: end.and_then(|end| end.speed_bps).map(|bps| bps as f64),
        rtt_ns: member.and_then(median_rtt_ns),
        notes,
    }
}

/// The wall clock of a host against that of this one, from its monotonic clock: each end reads both
/// of its clocks at the same time.
fn wall_clock_offset_ns(hello: &Hello, clock: Estimate) -> i64 {
    let since_boot = |unix_ns: u64, mono_ns: u64| unix_ns.wrapping_sub(mono_ns).cast_signed();
    let there_ns = since_boot(hello.unix_ns, hello.mono_ns);
    let here_ns = since_boot(unix_ns(), monotonic_ns());
    clock
        .offset_ns
        .saturating_add(there_ns.saturating_sub(here_ns))
}

fn median_rtt_ns(member: &Member) -> Option<u64> {
    let mut rtts: Vec<u64> = member
        .probes
        .iter()
        .filter_map(|probe| probe.rtt_ns)
        .collect();
    rtts.sort_unstable();
    rtts.get(rtts.len() / 2).copied()
}

fn version_note(version: &str) -> Option<String> {
    let own = env!("CARGO_PKG_VERSION");
    (version != own).then(|| format!("this host has version {own}"))
}

/// A link that is slower than those of most others.
fn slower_note(end: &TestEnd, prepared: &Prepared<'_>) -> Option<String> {
    let own_bps = end.speed_bps?;
    let ends = prepared
        .members
        .values()
        .flat_map(|member| member.ends.values());
    let mut speeds: Vec<u64> = ends.filter_map(|end| end.speed_bps).collect();
    speeds.sort_unstable();

    let median_bps = speeds.get(speeds.len() / 2).copied()?;
    (own_bps < median_bps).then(|| format!("most others have {} Mbit/s", median_bps / 1_000_000))
}

/// A route that leaves through another device than that of the address: a trap of several addresses
/// per host.
fn route_note(member: &Member, end: &TestEnd) -> Option<String> {
    let device = end.device.as_ref()?;
    let leaves_elsewhere =
        |probe: &&ProbeReport| probe.device.as_ref().is_some_and(|found| found != device);
    let probe = member.probes.iter().find(leaves_elsewhere)?;
    let found = probe.device.as_deref().unwrap_or_default();

    Some(format!(
        "the route to {} leaves through {found}, the address is on {device}",
        probe.peer
    ))
}

/// The finding is about this host, alone or among others.
fn is_about(finding: &Finding, host: &Host) -> bool {
    finding
        .subject
        .split([',', ' '])
        .any(|word| word == host.id.as_str())
}

/// `FLT-17: The path MTU differs between hosts: path MTU of h2 1400 bytes, 1500 on most hosts`
fn finding_note(finding: &Finding) -> String {
    let seen = seen(finding);
    format!("{}: {}: {seen}", finding.id, finding.title)
}

/// Next step for the first host that is not ready.
fn next_step(rows: &[CheckRow], found: &HostFindings, hosts: &FleetHosts) -> Option<String> {
    let server_of = |row: &CheckRow| {
        let host = hosts
            .inventory
            .hosts
            .iter()
            .find(|host| host.id == row.host)?;
        if let Reach::Server(server) = &host.reach {
            Some(server)
        } else {
            None
        }
    };
    // Without a host that answers, nothing is known about servers.
    let row = rows
        .iter()
        .max_by_key(|row| (row.state, server_of(row).is_none()))?;
    let host = &row.host;
    let excluded_by = found
        .excluded
        .get(host)
        .filter(|_| row.state == CheckState::Blocked);
    let of_host = |finding: &&Finding| {
        Some(&finding.id) == excluded_by && finding.subject.contains(host.as_str())
    };
    if let Some(finding) = found.findings.iter().find(of_host) {
        return finding.advice.clone();
    }
    if let Some(server) = server_of(row).filter(|_| row.state != CheckState::Ready) {
        return Some(format!(
            "a server has to listen at {server} for the other hosts, then check again"
        ));
    }

    match (row.state, row.port) {
        (CheckState::Ready, _) => None,
        (CheckState::Blocked, Some(port)) => Some(format!(
            "open TCP port {port} on {host} to the other hosts, then check again"
        )),
        (CheckState::Blocked, None) => Some(format!("see the note of {host}, then check again")),
        _ if hosts.bus.is_some() => Some(format!(
            "start `linerate fleet agent` on {host}, then check again"
        )),
        _ => Some(format!(
            "`ssh {host} true` has to work without a prompt, then check again"
        )),
    }
}
