//! Result of a load: the verdict that one run allows, its record, and the text or the object.

use std::time::Duration;

use linerate_doctor::http::cell_verdict;
use linerate_history::run::record::{self, RecordOptions, Recorded, Recording, Run};
use linerate_model::http::{
    Cell, CellKey, CellRun, CellVerdict, Flag, LoadResult, Mode, Phase, RunState,
};
use linerate_model::measure::MeasureName;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::record::{Body, HttpLoad, RunKind, Trial};
use linerate_store::{keys, scrubbed};
use linerate_sys::clock;

use super::planned::PlannedLoad;
use super::spec::LoadEnd;
use crate::conclude::study::{Kept, Setup, StudyInput, study};
use crate::conclude::trials;
use crate::plan::Plan;
use crate::plan::cells::Phases;
use crate::report::{LoadReport, load_text};
use crate::run::sampled_load::BothSides;
use crate::run::{Output, outputs, own_environment};
use crate::target::Target;

/// Where the result of a load goes.
pub(super) struct Reporting {
    /// True if the record is printed instead of the text.
    is_json: bool,
    is_verbose: bool,
    /// `None` where nothing is kept or printed.
    recording: Option<Recording>,
}

impl Reporting {
    /// The load begins; so does its record, where one is kept or printed.
    pub(super) fn begin(
        load: &PlannedLoad,
        output: Output,
        is_verbose: bool,
        record: &RecordOptions,
    ) -> Self {
        let is_json = output.json || output.json_stream;
        // JSON output is the record, so one is made even where none is kept.
        let is_recorded = is_json || record.place.is_some();
        Self {
            is_json,
            is_verbose,
            recording: is_recorded.then(|| Recording::begin(record.clone(), recorded_run(load))),
        }
    }

    /// The load ended: judges it, finishes its record and writes the report.
    ///
    /// # Errors
    /// The error of the load, or a standard output that cannot be written.
    pub(super) fn end(
        self,
        load: &PlannedLoad,
        measured: Result<(LoadResult, BothSides), Error>,
        kept: Kept,
        remarks: &[String],
    ) -> Result<LoadEnd, Error> {
        let (result, sides) = match measured {
            Ok(measured) => measured,
            Err(error) => {
                let _ = self.recording.map(|recording| recording.fail(&error));
                return Err(error);
            }
        };

        let run = cell_run(load, &result, &sides);
        let trial = trials::trial(&run, None);
        let runs = vec![run];
        let verdict = judged(load, &Kept { runs, ..kept }).map(|cell| cell.verdict);

        let body = body(&load.target, verdict.clone());
        let recorded = self
            .recording
            .map(|recording| finish(recording, &trial, remarks, body));
        let text = match &recorded {
            Some(recorded) if self.is_json => record::json(&recorded.record),
            _ => {
                let report = LoadReport {
                    target: &load.target.to_string(),
                    load: &result,
                    wire_bps: wire_bps(&trial),
                    client: sides.client.as_ref(),
                    server: sides.server.as_ref(),
                    verdict: verdict.as_ref(),
                    remarks,
                };
                load_text(&report, self.is_verbose, outputs::style())
            }
        };
        outputs::print(&text)?;

        Ok(LoadEnd {
            outcome: code(&result),
            trial: Some(trial),
            record_message: recorded.and_then(|recorded| recorded.message),
        })
    }
}

/// The run of the record, with the key of what makes two loads comparable.
fn recorded_run(load: &PlannedLoad) -> Run {
    let (spec, Target { is_tls, path, .. }) = (&load.spec, &load.target);
    let compared = serde_json::json!({
        "path": path,
        "is_tls": is_tls,
        "is_http2": spec.protocol.is_http2,
        "is_head": spec.is_head,
        "mode": spec.mode,
        "streams": spec.streams,
        "connections": spec.connections,
        "warmup_ns": spec.warmup_ns,
        "duration_ns": spec.duration_ns,
    });

    let spec_key = keys::spec_key("http-load", &compared);
    Run {
        server: Some(load.target.host.clone()),
        peer: Some(load.address),
        ..Run::new(RunKind::HttpLoad, body(&load.target, None), spec_key)
    }
}

fn body(target: &Target, verdict: Option<CellVerdict>) -> Body {
    Body::HttpLoad(HttpLoad {
        target: scrubbed(&[target.to_string()]).concat(),
        verdict: verdict.map(Box::new),
    })
}

fn finish(mut recording: Recording, trial: &Trial, remarks: &[String], body: Body) -> Recorded {
    recording.note(remarks.to_vec());
    let mut repetition = trial.clone();
    repetition.started_ns = recording.elapsed_ns().saturating_sub(trial.elapsed_ns);
    recording.add(repetition);

    recording.finish(trial.state, trial.reason.clone(), body)
}

fn wire_bps(trial: &Trial) -> Option<f64> {
    let mut measures = trial.measures.iter();
    let wire = measures.find(|measure| measure.name == MeasureName::WireBps);
    wire.map(|measure| measure.value)
}

/// The load as a run of a cell.
fn cell_run(load: &PlannedLoad, result: &LoadResult, sides: &BothSides) -> CellRun {
    let payload_bytes = result.payload_bytes.checked_div(result.ok).unwrap_or(0);
    let key = CellKey {
        rate_per_s: match load.spec.mode {
            Mode::Open { rate_per_s, .. } => Some(rate_per_s as u32),
            Mode::Closed { .. } | Mode::Idle { .. } => None,
        },
        ..CellKey::new(Phase::Matrix, payload_bytes, load.spec.connections)
    };

    let state = match result.outage {
        Some(_) => RunState::Aborted,
        None => RunState::Done,
    };
    CellRun {
        reason: result.outage.clone(),
        started_unix_ms: clock::unix_ms(),
        client: sides.client.clone().unwrap_or_default(),
        server: sides.server.clone(),
        flags: result.flags.clone(),
        load: Some(result.clone()),
        ..CellRun::new(key, 1, state)
    }
}

/// The load as an experiment of one cell; `None` of connections that are only held.
fn judged(load: &PlannedLoad, kept: &Kept) -> Option<Cell> {
    if matches!(load.spec.mode, Mode::Idle { .. }) {
        return None;
    }

    let address = load.address.ip();
    let setup = Setup {
        target: String::new(),
        port: *load.target.ports.start(),
        is_ipv6: address.is_ipv6(),
        plan: Plan {
            line_rate_bps: load.line_rate_bps,
            ..Plan::default()
        },
        phases: Phases::ALL,
        started_unix_ms: clock::unix_ms(),
        checks: Vec::new(),
        client: own_environment(address, Duration::ZERO),
        server: load.side.as_ref().map(|side| side.info.environment.clone()),
        judge: cell_verdict,
    };
    let study = study(&StudyInput {
        setup: &setup,
        elapsed_ns: 0,
        is_complete: true,
        kept,
    });
    study.cells.into_iter().next()
}

fn code(result: &LoadResult) -> Outcome {
    if result.flags.contains(&Flag::Interrupted) {
        Outcome::Interrupted
    } else if result.connections.opened == 0 || result.outage.is_some() {
        Outcome::Unreachable
    } else if result.flags.contains(&Flag::BreakerTripped)
        || (result.requests > 0 && result.ok == 0)
    {
        Outcome::NotCompleted
    } else {
        Outcome::Done
    }
}
