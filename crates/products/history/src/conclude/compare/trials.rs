//! Which trials of a run are compared.

use linerate_model::record::{RunId, RunRecord, RunState, Trial};
use serde::Serialize;

/// Flags of trials that other things than the path decided.
const UNSOUND: [&str; 7] = [
    "unsteady",
    "dirty-start",
    "generator-late",
    "control-lost",
    "foreign-load",
    "steal",
    "interrupted",
];

/// A trial that is not compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftOut {
    /// Its run.
    pub run: RunId,
    /// Its number in the run.
    pub trial: u32,
    /// Why.
    pub reason: String,
}

/// Trials of runs that count, and those that do not.
pub fn counted(runs: &[RunRecord]) -> (Vec<&Trial>, Vec<LeftOut>) {
    let mut counted = Vec::new();
    let mut left_out = Vec::new();
    for run in runs {
        for trial in run.trials.iter().filter(|trial| !trial.is_warm_up) {
            match reason(trial) {
                None => counted.push(trial),
                Some(reason) => left_out.push(LeftOut {
                    run: run.run_id,
                    trial: trial.no,
                    reason,
                }),
            }
        }
    }

    (counted, left_out)
}

/// Why a trial does not count.
fn reason(trial: &Trial) -> Option<String> {
    let flag = trial
        .flags
        .iter()
        .find(|flag| UNSOUND.contains(&flag.as_str()));
    if trial.state == RunState::Complete {
        return flag.cloned();
    }

    let words = trial.state.words();
    Some(
        trial
            .reason
            .as_ref()
            .map_or_else(|| words.to_owned(), |reason| format!("{words}: {reason}")),
    )
}
