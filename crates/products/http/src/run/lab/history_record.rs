//! The record of an experiment in the history, beside its directory.

use std::net::SocketAddr;

use linerate_history::run::record::{Recording, Run};
use linerate_model::http::{CellRun, Study};
use linerate_model::outcome::Error;
use linerate_model::record::{Body, RunKind, RunState};
use linerate_store::keys;

use super::spec::LabSpec;
use crate::conclude::ceiling::Link;
use crate::conclude::trials;
use crate::plan::Plan;

/// The history's record of an experiment while it runs.
pub(super) struct HistoryRecord {
    recording: Recording,
}

impl HistoryRecord {
    /// The experiment begins; `None` where it is not recorded.
    pub(super) fn begin(spec: &LabSpec, server: SocketAddr) -> Option<Self> {
        spec.record.place.as_ref()?;
        let plan = Plan {
            target: None,
            ..spec.plan.clone()
        };

        let spec_key = keys::spec_key("http-lab", &(plan.to_toml(), format!("{:?}", spec.phases)));
        let run = Run {
            server: Some(spec.target.host.clone()),
            peer: Some(server),
            ..Run::new(RunKind::HttpLab, Body::HttpLab(None), spec_key)
        };
        Some(Self {
            recording: Recording::begin(spec.record.clone(), run),
        })
    }

    /// A run has ended, or was made before the experiment was resumed.
    pub(super) fn add(&mut self, run: &CellRun, link: Option<&Link>) {
        // One that was made before begins with the record.
        let ms = run
            .started_unix_ms
            .saturating_sub(self.recording.started_unix_ms());
        let mut trial = trials::trial(run, link);
        trial.started_ns = ms * 1_000_000;
        self.recording.add(trial);
    }

    /// The experiment ended. Returns what the user should know about the record.
    pub(super) fn finish(
        self,
        outcome: &Result<Study, Error>,
        is_server_gone: bool,
    ) -> Option<String> {
        let (state, reason, body) = match outcome {
            Err(error) => {
                let reason = error.to_string();
                (RunState::of_failure(&reason), Some(reason), None)
            }
            Ok(study) => {
                let (state, reason) = match study.is_complete {
                    _ if is_server_gone => {
                        (RunState::Partial, Some("the server was gone".to_owned()))
                    }
                    false => (RunState::Interrupted, Some("interrupted".to_owned())),
                    true => (RunState::Complete, None),
                };
                (
                    state,
                    reason,
                    Some(Box::new(trials::without_runs(study.clone()))),
                )
            }
        };
        self.recording
            .finish(state, reason, Body::HttpLab(body))
            .message
    }
}
