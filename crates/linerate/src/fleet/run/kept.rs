//! The record of a run: every round the moment it is through, so that a run that breaks off can be resumed.

use linerate_lab::fleet::trials;
use linerate_model::fleet::{Cell, FleetReport, FleetRun, HostId, NotRunReason, PlanHash};
use linerate_model::record::{Body, HostPart, RunId, RunKind, RunRecord, RunState, Trial};
use linerate_record::keys;
use linerate_sys::clock::monotonic_ns;

use super::{RunResult, RunSpec, outcome_of};
use crate::Error;
use crate::record::{RecordOptions, Recording, Run};

/// A run that is being recorded.
pub(super) struct KeptRun {
    recording: Recording,
    run: FleetRun,
    begun_ns: u64,
    /// Length of every test.
    test_ns: u64,
}

impl KeptRun {
    /// The run begins.
    pub(super) fn begin(options: RecordOptions, spec: &RunSpec, plan: PlanHash) -> Result<Self, Error> {
        let inputs = serde_json::to_value(spec).map_err(Error::failed)?;
        let run = FleetRun { plan, inputs, report: None, unconfirmed: Vec::new() };
        let recording = Run {
            kind: RunKind::Fleet,
            body: Body::Fleet(Box::new(run.clone())),
            server: Some(spec.hosts.name()),
            spec_key: keys::spec_key("fleet", &plan),
            peer: None,
        };
        let recording = Recording::begin(options, recording);
        let test_ns = spec.test.omit_ns().saturating_add(spec.test.time_ns());
        Ok(Self { recording, run, begun_ns: monotonic_ns(), test_ns })
    }

    pub(super) fn id(&self) -> RunId {
        self.recording.run_id()
    }

    /// Takes over the cells of an earlier part of the run.
    pub(super) fn resume(&mut self, earlier: RunRecord) {
        self.recording.take_over(earlier.run_id, earlier.trials);
    }

    /// The hosts answered.
    pub(super) fn between(&mut self, hosts: Vec<HostPart>, path: &str) {
        self.recording.between(hosts, path);
    }

    /// A round is through.
    pub(super) fn add(&mut self, cells: &[Cell]) {
        let elapsed_ns = self.recording.elapsed_ns();
        let trial = |cell: &Cell| {
            let started_ns = match cell.measurement()?.start {
                Some(start) => start.actual_ns.saturating_sub(self.begun_ns),
                None => elapsed_ns.saturating_sub(self.test_ns),
            };
            Some(Trial { started_ns, elapsed_ns: self.test_ns, ..trials::trial(cell)? })
        };
        let trials: Vec<Trial> = cells.iter().filter_map(trial).collect();
        self.recording.add_all(trials.into_iter());
    }

    /// The run ended with a report.
    pub(super) fn finish(self, report: FleetReport, unconfirmed: Vec<HostId>) -> RunResult {
        let (state, reason) = state(&report);
        let kept = Some(Box::new(trials::without_trials(report.clone())));
        let body = Body::Fleet(Box::new(FleetRun { report: kept, unconfirmed, ..self.run }));
        let message = self.recording.finish(state, reason, body).message;
        RunResult { outcome: outcome_of(&report), report, message }
    }

    /// The run ended before its first round.
    pub(super) fn fail(self, error: &Error) {
        let state = if error.outcome == crate::Outcome::Interrupted { RunState::Interrupted } else { RunState::Failed };
        let _ = self.recording.finish(state, Some(error.to_string()), Body::Fleet(Box::new(self.run)));
    }
}

/// Whether every task has a result, and why not.
fn state(report: &FleetReport) -> (RunState, Option<String>) {
    let without = report.cells.iter().filter(|cell| cell.measurement().is_none()).count();
    let lacking = || format!("{without} of {} cells have no result", report.cells.len());
    match report.header.ended.as_ref() {
        Some(ended) if ended.reason == NotRunReason::Cancelled => (RunState::Interrupted, Some("cancelled".to_owned())),
        Some(ended) => (RunState::Partial, Some(ended.detail.clone().unwrap_or_else(lacking))),
        None if without > 0 => (RunState::Partial, Some(lacking())),
        None => (RunState::Complete, None),
    }
}
