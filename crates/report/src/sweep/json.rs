//! The report for programs: one object, units in the names, `null` for what was not reported.

use serde_json::{Map, Value, json};

use super::sentences;
use crate::members;
use linerate_lab::sweep::{Degradation, FactorResult, Recommendation, Run, Sweep};

/// The report as one JSON object with its schema's name.
#[must_use]
pub fn json(sweep: &Sweep) -> String {
    let object = json!({
        "schema": "linerate.sweep/1",
        "host": sweep.spec.host,
        "port": sweep.spec.port,
        "protocol": sweep.spec.protocol(),
        "reverse": sweep.spec.is_reverse,
        "objective": sweep.spec.objective,
        "value_unit": sweep.spec.objective.key(),
        "cpu_of_client_only": sweep.is_client_cpu_only,
        "plan": {
            "factors": sweep.planned.iter().map(|one| json!({ "name": one.name, "levels": one.levels_text() })).collect::<Vec<_>>(),
            "seed": sweep.spec.seed,
            "repetitions": sweep.spec.repetitions,
            "time_s": sweep.spec.time_s,
            "omit_s": sweep.spec.omit_s,
            "budget_s": sweep.spec.budget.as_secs_f64(),
            "confidence": sweep.confidence,
            "tolerance": sweep.tolerance,
        },
        "estimate": sweep.estimate,
        "cost": sweep.cost,
        "client_cores": sweep.client_cores,
        "server_cores": sweep.server_cores,
        "verdict": verdict(sweep),
        "factors": sweep.factors.iter().map(factor).collect::<Vec<_>>(),
        "runs": sweep.runs.iter().map(|one| run(sweep, one)).collect::<Vec<_>>(),
    });
    crate::pretty_json(&object)
}

fn verdict(sweep: &Sweep) -> Value {
    let named = |levels: &[String]| named(sweep, levels);
    let mut verdict = match &sweep.answer {
        Recommendation::Use { levels, value, interval: range, command } => json!({
            "verdict": "use",
            "setting": named(levels),
            "value": value,
            "interval": range,
            "command": command,
        }),
        Recommendation::Inconclusive { reason, leader } => json!({
            "verdict": "inconclusive",
            "reason": reason,
            "setting": leader.as_ref().map(|(levels, _, _)| named(levels)),
            "value": leader.as_ref().map(|(_, value, _)| value),
            "command": leader.as_ref().map(|(_, _, command)| command),
        }),
    };
    verdict["sentence"] = sentences::verdict(sweep).into();
    verdict["drift_ratio"] = json!(sweep.drift_ratio);
    verdict["cut_short"] = sweep.is_cut_short.into();
    verdict["ended_by"] = json!(sweep.ended_by);
    verdict
}

fn factor(factor: &FactorResult) -> Value {
    let label = |place: usize| factor.levels.get(place).map(|level| level.label.as_str());
    json!({
        "name": factor.name,
        "best": label(factor.best),
        "advised": label(factor.advised),
        "chance": factor.chance,
        "plateau": [label(*factor.plateau.start()), label(*factor.plateau.end())],
        "limits": factor.limits,
        "degradations": factor.degradations.iter().map(|one| degradation(factor, one)).collect::<Vec<_>>(),
        "levels": factor.levels,
    })
}

fn degradation(factor: &FactorResult, fall: &Degradation) -> Value {
    let label = |place: usize| factor.levels.get(place).map(|level| level.label.as_str());
    json!({
        "side": fall.side,
        "edge": label(fall.edge),
        "worst": label(fall.worst),
        "change_percent": fall.change_percent,
        "reasons": fall.reasons,
    })
}

fn run(sweep: &Sweep, run: &Run) -> Value {
    let mut object = members(json!({
        "setting": named(sweep, &run.levels),
        "started_s": run.started_s,
        "warm_up": run.is_warm_up,
    }));
    match &run.outcome {
        Ok((value, metrics)) => {
            object.insert("value".to_owned(), json!(value));
            object.extend(members(json!(metrics)));
        }
        Err(error) => {
            object.insert("error".to_owned(), error.to_string().into());
        }
    }
    object.into()
}

fn named(sweep: &Sweep, levels: &[String]) -> Map<String, Value> {
    let pairs = sweep.planned.iter().zip(levels);
    pairs.map(|(factor, level)| (factor.name.to_owned(), level.as_str().into())).collect()
}
