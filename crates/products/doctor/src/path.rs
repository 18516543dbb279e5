//! The diagnosis of an examined path: its load phases as runs, what was found out about its packets
//! as facts, and one verdict over all phases.
//!
//! Every phase is judged on its own, with the counters of that phase; up is a run forward, down one
//! in reverse.

mod conclusion;
mod facts;
mod merge;
mod packets;
mod place;

use linerate_model::finding::Diagnosis;
use linerate_model::path::{EndpointPhase, PathDirection, PathReport, PhaseKind};
use linerate_model::snapshot::{Snapshot, Source};

use crate::judge::diagnose_with;
use crate::observation::{EndpointObservation, diagnose_test, is_same_host};
use crate::observed::Observed;
use crate::runs;
use crate::timeline::insert;
use facts::busiest_thread;

pub use facts::{PathRun, path_runs, sender_facts};
pub use packets::record_path;
pub use place::{first_changed, place};

/// Observations during one load phase beside the report.
#[derive(Debug)]
pub struct ObservedPhase {
    /// Which phase.
    pub kind: PhaseKind,
    /// The client's host over the phase. Facts of runs in it are added to those of the report.
    pub client: Option<EndpointObservation>,
    /// The server's host, where it sends its facts.
    pub server: Option<EndpointObservation>,
    /// Measurements of the server; has the state of its senders.
    pub remote: Option<EndpointPhase>,
}

/// Rules about tests of both directions together.
const ACROSS: [&str; 3] = ["PATH-08", "LNK-03", "PAU-01"];

/// Diagnoses an examined path. `observed` has at most one entry for each load phase; a phase
/// without one is judged by the report alone.
pub fn diagnose_path(report: &PathReport, mut observed: Vec<ObservedPhase>) -> Diagnosis {
    let mut runs = path_runs(report);
    let mut parts = Vec::new();
    let mut hosts = (Snapshot::new("client", Source::Live), None);

    for phase in &report.phases {
        let at = observed.iter().position(|one| one.kind == phase.kind);
        let seen = at.map(|at| observed.swap_remove(at));
        let (client, server, remote) = seen.map_or((None, None, None), |seen| {
            (seen.client, seen.server, seen.remote)
        });
        let mut client = client.unwrap_or_else(|| unobserved("client"));
        let mut server = server;

        record_path(report, PathDirection::Up, &mut client.snapshot);
        if let Some(server) = &mut server {
            record_path(report, PathDirection::Down, &mut server.snapshot);
        }

        // The facts of the last phase; a server that sent none then has those of an earlier one.
        hosts = (
            client.snapshot.clone(),
            server
                .as_ref()
                .map(|server| server.snapshot.clone())
                .or(hosts.1),
        );
        for run in runs.iter_mut().filter(|run| run.phase == phase.kind) {
            // In this direction the server sends: its kernel has the state of the streams.
            if let Some(remote) = remote
                .as_ref()
                .filter(|_| run.direction == PathDirection::Down)
            {
                run.facts.extend(sender_facts(
                    &remote.streams,
                    PathDirection::Down,
                    remote.elapsed_ns,
                ));
            }

            give(run, &mut client, server.as_mut());
        }

        parts.push((phase.kind, diagnose_test(client, server)));
    }

    let across = across(&runs, hosts);
    let mut diagnosis = merge::merged(parts.iter().map(|(_, part)| part).chain([&across]));
    let mut verdicts: Vec<_> = parts
        .into_iter()
        .map(|(kind, part)| (kind, part.verdict))
        .collect();
    place::name_places(&mut verdicts, &report.path);
    place::add_places(&mut diagnosis.findings, &report.path);
    diagnosis.verdict = conclusion::conclude(
        &verdicts,
        &diagnosis.findings,
        !report.path.queues.is_empty(),
    );

    diagnosis
}

/// A host of which nothing is known.
fn unobserved(name: &str) -> EndpointObservation {
    EndpointObservation {
        snapshot: Snapshot::new(name, Source::Live),
        period: None,
        forward: None,
        reverse: None,
        forward_intervals: Vec::new(),
        reverse_intervals: Vec::new(),
    }
}

/// Adds a run to the observations of both ends, each with the load of its threads.
fn give(run: &PathRun, client: &mut EndpointObservation, server: Option<&mut EndpointObservation>) {
    let is_up = run.direction == PathDirection::Up;
    let intervals = run.intervals.clone();

    let add = |end: &mut EndpointObservation, sends: bool| {
        let part = if sends { "sender" } else { "receiver" };
        let thread = end.period.as_ref().and_then(busiest_thread);

        let run = if is_up {
            &mut end.forward
        } else {
            &mut end.reverse
        };
        let facts = run.get_or_insert_default();

        if let Some(share) = thread {
            facts
                .entry(format!("{part}_thread_cpu"))
                .or_insert_with(|| share.into());
        }
    };
    add(client, is_up);

    if let Some(server) = server {
        add(server, !is_up);
    }

    let (own, timeline) = if is_up {
        (&mut client.forward, &mut client.forward_intervals)
    } else {
        (&mut client.reverse, &mut client.reverse_intervals)
    };
    let own = own.get_or_insert_default();

    // What the end observed itself comes before the report.
    for (name, value) in &run.facts {
        own.entry(name.clone()).or_insert_with(|| value.clone());
    }

    // A load begins with the streams that it may have; its target rate is that of those at its end,
    // and its rate that of the report, which leaves out the time in which streams are added.
    for name in ["streams", "target_bps", "received_bps"] {
        own.extend(
            run.facts
                .get(name)
                .map(|value| (name.to_owned(), value.clone())),
        );
    }

    if timeline.is_empty() {
        *timeline = intervals;
    }
}

/// Findings of the directions together. Counters belong to one phase each, so they are left out.
fn across(runs: &[PathRun], (client, server): (Snapshot, Option<Snapshot>)) -> Diagnosis {
    const SRC: &str = "test";

    let alone = || runs.iter().filter(|run| run.phase != PhaseKind::Both);
    let same_host = is_same_host(&client, server.as_ref());
    let host = |mut snapshot: Snapshot, name: &str, sends: PathDirection| {
        snapshot.host = name.to_owned();
        snapshot.counters.clear();

        for run in alone() {
            let part = if run.direction == sends {
                "sender"
            } else {
                "receiver"
            };
            let mut facts = run.facts.clone();
            insert(&mut facts, "end", Some(part));
            insert(&mut facts, "same_host", same_host);
            runs::add(&mut snapshot, SRC, facts);
        }

        Observed::once(snapshot)
    };
    let mut observed = vec![host(client, "client", PathDirection::Up)];
    observed.extend(server.map(|server| host(server, "server", PathDirection::Down)));

    diagnose_with(&observed, &ACROSS.map(str::to_owned), &[])
}
