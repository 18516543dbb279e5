//! The record of a run: every round the moment it has ended, so that a run that breaks off can be
//! resumed.

use std::sync::Arc;

use crate::conclude::trials;
use linerate_model::fleet::{Cell, FleetReport, FleetRun, HostId, NotRunReason, PlanHash};
use linerate_model::record::{Body, HostPart, RunId, RunKind, RunState, Trial};
use linerate_store::keys;
use linerate_sys::clock::monotonic_ns;
use linerate_sys::process_mark::ProcessMark;

use crate::run::cancel::mark;
use crate::spec::RunSpec;
use linerate_history::run::record::{RecordOptions, Recording, Run};
use linerate_model::outcome::{Error, Outcome};

/// A run and how it ended.
#[derive(Debug)]
pub struct RunResult {
    /// The report.
    pub report: FleetReport,
    /// Outcome of the run.
    pub outcome: Outcome,
    /// Message for the user about its record.
    pub message: Option<String>,
}

/// A run that is being recorded.
pub(super) struct KeptRun {
    recording: Recording,
    begun_ns: u64,
    trials: KeptTrials,
    /// By it `fleet cancel` recognises this process; a run without one is ended where it was
    /// started.
    _mark: Option<ProcessMark>,
}

/// Cells with a result. A cell takes a sixth of what its trial does.
struct KeptTrials {
    /// In the order of their trials, with the starts of these in ns.
    cells: Vec<(Cell, u64)>,
    /// Length of every test.
    test_ns: u64,
}

impl KeptRun {
    /// The run begins.
    pub(super) fn begin(
        options: RecordOptions,
        spec: &RunSpec,
        plan: PlanHash,
    ) -> Result<Self, Error> {
        let inputs = serde_json::to_value(spec).map_err(Error::failed)?;
        let recording = Run {
            kind: RunKind::Fleet,
            body: Body::Fleet(Box::new(FleetRun::new(plan, inputs))),
            server: Some(spec.hosts.name()),
            spec_key: keys::spec_key("fleet", &plan),
            peer: None,
        };
        let recording = Recording::begin(options, recording);
        let trials = KeptTrials {
            cells: Vec::new(),
            test_ns: spec.test.omit_ns().saturating_add(spec.test.time_ns()),
        };
        let mark = ProcessMark::set(&mark(recording.run_id())).ok();

        Ok(Self {
            recording,
            begun_ns: monotonic_ns(),
            trials,
            _mark: mark,
        })
    }

    pub(super) fn id(&self) -> RunId {
        self.recording.run_id()
    }

    /// Takes over the cells of an earlier part of the run. Their trials begin with the record.
    pub(super) fn resume(&mut self, earlier: RunId, finished: &[Cell]) {
        self.recording.follow(earlier);
        self.keep(finished, |_| 0);
    }

    /// The hosts answered.
    pub(super) fn between(&mut self, hosts: Vec<HostPart>, path: &str) {
        self.recording.between(hosts, path);
    }

    /// A round has ended.
    pub(super) fn add(&mut self, cells: &[Cell]) {
        let begun_ns = self.begun_ns;
        // A test without an estimate of its clock has ended now and begun one test earlier.
        let latest_ns = self
            .recording
            .elapsed_ns()
            .saturating_sub(self.trials.test_ns);
        self.keep(cells, |cell| {
            let start = cell.measurement().and_then(|measured| measured.start);
            start.map_or(latest_ns, |start| start.actual_ns.saturating_sub(begun_ns))
        });
    }

    fn keep(&mut self, cells: &[Cell], started_ns: impl Fn(&Cell) -> u64) {
        if !self.recording.has_history() {
            return;
        }

        let first = self.trials.cells.len();
        for cell in cells.iter().filter(|cell| cell.measurement().is_some()) {
            self.trials.cells.push((cell.clone(), started_ns(cell)));
        }

        let new = first..self.trials.cells.len();
        let trials = new.filter_map(|no| self.trials.trial(no)).collect();
        self.recording.pass_on(trials);
    }

    /// The run ended with a report.
    pub(super) fn finish(mut self, report: FleetReport, unconfirmed: Vec<HostId>) -> RunResult {
        let (state, reason) = state(&report);
        if let Body::Fleet(run) = self.recording.body_mut() {
            run.report = Some(Box::new(trials::without_trials(&report)));
            run.unconfirmed = unconfirmed;
        }

        let message = self.end(state, reason);
        RunResult {
            outcome: outcome_of(&report),
            report,
            message,
        }
    }

    /// The run ended before its first round.
    pub(super) fn fail(self, error: &Error) {
        let state = match error.outcome {
            Outcome::Interrupted => RunState::Interrupted,
            _ => RunState::Failed,
        };
        let _ = self.end(state, Some(error.to_string()));
    }

    fn end(self, state: RunState, reason: Option<String>) -> Option<String> {
        let kept = Arc::new(self.trials);
        let trials = move || -> Box<dyn Iterator<Item = Trial>> {
            let kept = Arc::clone(&kept);
            Box::new((0..kept.cells.len()).filter_map(move |no| kept.trial(no)))
        };
        self.recording.finish_with(state, reason, Box::new(trials))
    }
}

impl KeptTrials {
    fn trial(&self, no: usize) -> Option<Trial> {
        let (cell, started_ns) = self.cells.get(no)?;
        Some(Trial {
            no: u32::try_from(no).ok()?,
            started_ns: *started_ns,
            elapsed_ns: self.test_ns,
            ..trials::trial(cell)?
        })
    }
}

/// Number of cells without a result.
fn lacking(report: &FleetReport) -> usize {
    let cells = report.cells.iter();
    cells.filter(|cell| cell.measurement().is_none()).count()
}

/// State of the run: complete where every task has a result, else the reason.
fn state(report: &FleetReport) -> (RunState, Option<String>) {
    let without = lacking(report);
    let all = report.cells.len();
    let lacking = format!("{without} of {all} cells have no result");
    match &report.header.ended {
        Some(ended) if ended.reason == NotRunReason::Cancelled => {
            (RunState::Interrupted, Some("cancelled".to_owned()))
        }
        Some(ended) => {
            let reason = ended.detail.clone().unwrap_or(lacking);
            (RunState::Partial, Some(reason))
        }
        None if without > 0 => (RunState::Partial, Some(lacking)),
        None => (RunState::Complete, None),
    }
}

fn outcome_of(report: &FleetReport) -> Outcome {
    match report.header.ended.as_ref().map(|ended| ended.reason) {
        Some(NotRunReason::Cancelled) => Outcome::Interrupted,
        Some(NotRunReason::Failed) => Outcome::NotCompleted,
        // A fifth of the cells is the limit of exit code 6.
        _ if lacking(report).saturating_mul(5) > report.cells.len() => Outcome::TooManyInvalid,
        _ => Outcome::Done,
    }
}
