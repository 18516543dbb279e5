//! The rounds of a run, from the connections to the report.

use std::collections::BTreeSet;
use std::time::Instant;

use crate::conclude::hosts::HostFindings;
use crate::conclude::ranked;
use crate::conclude::shared_slot::{self, Forwarder};
use crate::conclude::{FleetOutcome, explore};
use crate::plan::PlannedRun;
use crate::report::{RunFacts, report};
use crate::spec::inventory::Host;
use linerate_model::finding::Finding;
use linerate_model::fleet::{Cell, CellOutcome, FleetReport, HostId, NotRun, NotRunReason};
use linerate_model::printable::printable;
use linerate_model::record::HostPart;
use linerate_store::keys;
use linerate_sys::signal::Signals;

use super::history_record::KeptRun;
use super::history_record::RunResult;
use super::plan::{Links, announced, plan};
use super::rounds::Rounds;
use crate::run::connect::connect;
use crate::run::control::Control;
use crate::run::host_rules::{forwarders, host_findings, seen};
use crate::run::members::{Member, Prepared};
use crate::run::targets::host_part;
use crate::spec::RunSpec;
use linerate_document::progress::Progress;
use linerate_model::outcome::{Error, Outcome};

/// Runs the tasks of a plan but the finished ones.
pub(super) fn execute(
    spec: &RunSpec,
    paths: &[String],
    finished: Vec<Cell>,
    mut kept: KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<RunResult, Error> {
    match all_rounds(spec, paths, finished, &mut kept, signals, progress) {
        Ok((report, unconfirmed)) => Ok(kept.finish(report, unconfirmed)),
        Err(error) => {
            kept.fail(&error);
            Err(error)
        }
    }
}

/// Hosts that are connected, and what is known about them before the first round.
struct Connected<'a> {
    control: Control<'a>,
    prepared: Prepared,
    found: HostFindings,
    /// Why others take no part, a line each.
    absent: BTreeSet<String>,
}

/// Connects to the hosts, and prints what is known about them.
fn connected<'a>(
    spec: &RunSpec,
    paths: &[String],
    kept: &mut KeptRun,
    signals: &'a Signals,
    progress: &mut Progress,
) -> Result<Connected<'a>, Error> {
    let hosts = &spec.hosts.inventory.hosts;
    let run = (kept.id(), Some(kept.plan));
    let (control, prepared) = connect(run, &spec.hosts, paths, signals, &mut |note| {
        progress.line(note);
    })?;
    let found = host_findings(&control, &prepared, &spec.hosts.inventory);
    let absent = reasons(&control, hosts);
    absent
        .iter()
        .chain(&notes(&prepared, &found, hosts))
        .for_each(|note| progress.line(note));
    kept.between(host_parts(&control, &prepared, hosts), &paths.join(","));

    // Excluded hosts are members as well, and two others have to be left.
    if prepared.members.len() < found.excluded.len() + 2 {
        control.finish();
        return Err(Error::new(
            Outcome::Unreachable,
            "fewer than two hosts can be tested",
        ));
    }

    Ok(Connected {
        control,
        prepared,
        found,
        absent,
    })
}

/// The report, and the hosts that did not confirm their end.
fn all_rounds(
    spec: &RunSpec,
    paths: &[String],
    mut finished: Vec<Cell>,
    kept: &mut KeptRun,
    signals: &Signals,
    progress: &mut Progress,
) -> Result<(FleetReport, Vec<HostId>), Error> {
    let started = Instant::now();
    let run_id = kept.id().to_string();
    let hosts = &spec.hosts.inventory.hosts;

    let Connected {
        control,
        prepared,
        found,
        absent,
    } = connected(spec, paths, kept, signals, progress)?;
    let forwarders = forwarders(&prepared, hosts);
    let links_bps = links_bps(&prepared, spec);
    let run = PlannedRun::new(plan(spec, paths, &links_bps));

    let alive = prepared
        .hosts(hosts)
        .map(|(_, id, _)| id.clone())
        .filter(|id| !found.excluded.contains_key(id))
        .collect();
    let known = finished.iter().map(|cell| cell.task.clone()).collect();
    let (line, cells_planned) = match announced(&run, spec, &known, &alive, &links_bps) {
        Ok(announced) => announced,
        Err(error) => {
            control.finish();
            return Err(error);
        }
    };
    progress.line(&line);

    let mut rounds = Rounds {
        control,
        prepared,
        hosts,
        plan: run.hash,
        options: spec.test,
        excluded: &found.excluded,
        progress,
        cells_planned,
        cells_done: BTreeSet::new(),
        number: 0,
        unconfirmed: Vec::new(),
        kept,
    };
    // Results of an earlier coordinator, which the broker kept, are not measured twice.
    finished.extend(rounds.take_over(&run));
    let outcome = explore(&run, finished, &mut rounds);
    let unconfirmed = end(rounds, &absent);
    let is_control_shared = spec.hosts.inventory.is_control_shared();
    let facts = RunFacts {
        run_id: Some(run_id),
        elapsed: started.elapsed(),
        is_control_shared,
        links_bps,
    };

    Ok((
        report(&run, with_hosts(outcome, &found, &forwarders), facts),
        unconfirmed,
    ))
}

/// Ends the run at the hosts, and prints which of them were lost and which did not confirm it: the
/// latter.
fn end(rounds: Rounds<'_>, absent: &BTreeSet<String>) -> Vec<HostId> {
    let Rounds {
        control,
        prepared,
        hosts,
        progress,
        mut unconfirmed,
        ..
    } = rounds;
    // Reasons are read first: the end of the run consumes the control loop.
    let lost = reasons(&control, hosts);
    unconfirmed.extend(control.finish());
    progress.clear();
    lost.difference(absent)
        .for_each(|reason| progress.line(reason));

    let of_plan = prepared
        .hosts(hosts)
        .filter(|(index, ..)| unconfirmed.contains(index));
    let unconfirmed: Vec<HostId> = of_plan.map(|(_, id, _)| id.clone()).collect();
    unconfirmed
        .iter()
        .for_each(|id| progress.line(&format!("{id}: did not confirm its end")));

    unconfirmed
}

/// Why hosts take no part, a line each.
fn reasons(control: &Control<'_>, hosts: &[Host]) -> BTreeSet<String> {
    let line = |(index, reason): (&usize, &String)| {
        Some(printable(&format!("{}: {reason}", hosts.get(*index)?.id)))
    };
    control.reasons.iter().filter_map(line).collect()
}

/// Other facts of the hosts before the first round, a line each.
fn notes(prepared: &Prepared, found: &HostFindings, hosts: &[Host]) -> Vec<String> {
    let excluding = found
        .findings
        .iter()
        .filter(|finding| found.excluded.values().any(|id| *id == finding.id));
    let lines = prepared
        .unreached(hosts)
        .into_iter()
        .chain(excluding.map(finding_line));
    lines.map(|line| printable(&line)).collect()
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

/// Adds what was found about the hosts: the findings, and why cells of excluded hosts have no
/// result.
fn with_hosts(
    mut outcome: FleetOutcome,
    found: &HostFindings,
    forwarders: &[Forwarder],
) -> FleetOutcome {
    outcome.findings.extend(found.findings.iter().cloned());
    outcome.findings.extend(shared_slot::findings(
        forwarders,
        &outcome.cells.iter().collect::<Vec<_>>(),
    ));
    outcome.findings = ranked(outcome.findings);

    for cell in &mut outcome.cells {
        let ends = [&cell.task.source, &cell.task.sink];
        let Some((host, id)) = ends
            .iter()
            .find_map(|host| found.excluded.get_key_value(*host))
        else {
            continue;
        };

        cell.outcome = CellOutcome::NotRun(NotRun {
            reason: NotRunReason::Refused,
            detail: Some(format!("{host} is excluded ({id})")),
        });
    }

    outcome
}

fn links_bps(prepared: &Prepared, spec: &RunSpec) -> Links {
    prepared
        .hosts(&spec.hosts.inventory.hosts)
        .filter_map(|(_, id, member)| Some((id.clone(), member.link_bps()?)))
        .collect()
}

/// The hosts that can be tested, as their record has them.
fn host_parts(control: &Control<'_>, prepared: &Prepared, hosts: &[Host]) -> Vec<HostPart> {
    let part = |(index, id, member): (usize, &HostId, &Member)| {
        if member.is_target {
            return Some(host_part(id, member));
        }

        let hello = control.coordinator.hello(index)?;
        Some(HostPart {
            host_key: hello.host_key.clone(),
            facts_key: member.facts.as_ref().map(keys::facts_key),
            snapshot: member.facts.clone().map(Box::new),
            ..HostPart::new(id.to_string(), hello.host.clone())
        })
    };
    prepared.hosts(hosts).filter_map(part).collect()
}
