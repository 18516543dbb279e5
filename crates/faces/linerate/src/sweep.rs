//! Sweeps: which setting of a path is best. Joins the plan, the runs and the reasons.

pub(crate) mod network;

use std::fs;

use linerate_model::record::{Body, RunKind, RunState};
use linerate_model::sweep::Sweep;
use linerate_store::keys;
use linerate_sweep::{Estimate, HostChoices, SettingSpace, explore, report};
pub use linerate_sweep::{SweepSpec, TestSettings};
use linerate_sys::{cpu, process};

use crate::live::Live;
use crate::record::{RecordOptions, Recorded, Recording, Run};
use crate::{Error, Interrupts, Progress};
use network::Network;

/// Result of a sweep.
#[derive(Debug)]
#[non_exhaustive]
pub struct SweepResult {
    /// The record: every run, and the best setting as far as the runs determine one.
    pub recorded: Recorded,
    /// Any run had a result.
    pub has_result: bool,
    /// It was interrupted.
    pub is_interrupted: bool,
    /// The server did not answer, or refused the first run.
    pub is_unreachable: bool,
    /// Why no further run was possible; `None` for a sweep that reached its end or its budget.
    pub ended_by: Option<String>,
}

/// Runs short tests against a server and compares their settings. `interrupts` end it with the runs
/// made until then. `live` takes what runs. Raises the soft limit of the process's descriptors
/// (`RLIMIT_NOFILE`, getrlimit(2)).
///
/// # Errors
/// A specification that does not fit this host.
pub fn sweep(
    spec: &SweepSpec,
    record: RecordOptions,
    interrupts: &dyn Interrupts,
    mut progress: Progress,
    live: Option<&Live>,
) -> Result<SweepResult, Error> {
    let space = SettingSpace::new(spec, &host_choices()).map_err(Error::usage)?;
    let plan = spec.plan(&space);
    // Many streams need many descriptors; without the right to raise the limit fewer fit.
    let _ = process::raise_fd_limit();
    let estimate = plan.estimate();
    announce(&mut progress, spec, estimate);

    let recording = Recording::begin(record, run(spec));
    let mut network = Network::new(spec, &space, interrupts, progress, Some(recording))
        .growing()
        .shown(live.cloned());
    let outcome = explore(&plan, &mut network);
    let recording = network.recording.take();
    let spec = &network.reached();
    let log = network.finish();
    let reasons = linerate_doctor::sweep_reasons;
    let found = linerate_sweep::sweep(spec, &space, &plan, estimate, &outcome, log, reasons);
    let (state, reason) = state(&network, &found);
    let recorded = recording
        .map(|recording| recording.finish(state, reason, Body::Sweep(Some(Box::new(found)))));

    Ok(SweepResult {
        recorded: recorded.ok_or_else(|| Error::failed("the sweep has no record"))?,
        has_result: network.has_result,
        is_interrupted: network.is_interrupted,
        is_unreachable: network.is_unreachable,
        ended_by: outcome.ended_by,
    })
}

/// State of the sweep at its end, and the reason where it is incomplete.
fn state(network: &Network<'_>, found: &Sweep) -> (RunState, Option<String>) {
    match &found.ended_by {
        reason if network.is_interrupted => (RunState::Interrupted, reason.clone()),
        Some(reason) if network.has_result => (RunState::Partial, Some(reason.clone())),
        reason if !network.has_result => (
            reason
                .as_deref()
                .map_or(RunState::Failed, RunState::of_failure),
            reason.clone(),
        ),
        _ if found.is_cut_short => {
            let budget = report::clock(found.plan.budget_ns as f64 / 1e9);
            (
                RunState::Partial,
                Some(format!(
                    "the budget of {budget} ended before all planned runs"
                )),
            )
        }
        _ => (RunState::Complete, None),
    }
}

fn run(spec: &SweepSpec) -> Run {
    let mut measured = spec.clone();
    // The key is that of the settings, so sweeps against several servers share it.
    measured.host = String::new();
    measured.port = 0.into();
    Run {
        kind: RunKind::Sweep,
        body: Body::Sweep(None),
        server: Some(spec.host.clone()),
        // A specification of a sweep is not stored; its text differs where it does.
        spec_key: keys::spec_key("sweep", &format!("{measured:?}")),
        peer: None,
    }
}

fn host_choices() -> HostChoices {
    let read =
        |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let available = read("tcp_available_congestion_control");

    let cpus = cpu::affinity().map(|affinity| {
        affinity
            .cpus()
            .filter_map(|cpu| u32::try_from(cpu).ok())
            .collect()
    });
    HostChoices {
        congestion: available.split_whitespace().map(str::to_owned).collect(),
        congestion_in_use: read("tcp_congestion_control").trim().to_owned(),
        cpus: cpus.unwrap_or_default(),
    }
}

fn announce(progress: &mut Progress, spec: &SweepSpec, estimate: Estimate) {
    let names: Vec<&str> = spec.over.iter().map(|swept| swept.name).collect();
    progress.line(&format!(
        "{} over {}: about {} runs of {} s, {} in all",
        spec.host,
        names.join(", "),
        estimate.runs,
        spec.time_s + spec.omit_s,
        report::clock(estimate.time.as_secs_f64()),
    ));

    if estimate.runs_if_dependent > estimate.runs {
        progress.line(&format!(
            "Up to {} runs, {}, if the best level of one depends on the others; the budget is {}",
            estimate.runs_if_dependent,
            report::clock(estimate.time_if_dependent.as_secs_f64()),
            report::clock(spec.budget.as_secs_f64()),
        ));
    }

    if !estimate.fits {
        progress.line(&format!(
            "The budget of {} allows fewer of them; a longer --budget, fewer --repetitions or a \
             narrower range may be needed for an answer",
            report::clock(spec.budget.as_secs_f64())
        ));
    }
}
