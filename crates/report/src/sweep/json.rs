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
        "started_at": sweep.provenance.started_at,
        "client": sweep.provenance.client,
        "server": sweep.provenance.server,
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
        "best": best(sweep),
        "verdict": verdict(sweep),
        "factors": sweep.factors.iter().map(factor).collect::<Vec<_>>(),
        "runs": sweep.runs.iter().map(|one| run(sweep, one)).collect::<Vec<_>>(),
    });
    crate::pretty_json(&object)
}

/// The answer, or `null`.
fn best(sweep: &Sweep) -> Value {
    match &sweep.answer {
        Recommendation::Use { levels, value, interval, command } => json!({
            "setting": named(sweep, levels),
            "value": value,
            "interval": interval,
            "confidence": sweep.confidence,
            "command": command,
        }),
        Recommendation::Inconclusive { .. } => Value::Null,
    }
}

fn verdict(sweep: &Sweep) -> Value {
    let (name, reason, ahead) = match &sweep.answer {
        Recommendation::Use { .. } => ("use", None, None),
        Recommendation::Inconclusive { reason, leader } => ("inconclusive", Some(reason), leader.as_ref()),
    };
    let ahead = ahead
        .map(|(levels, value, command)| json!({ "setting": named(sweep, levels), "value": value, "command": command }));
    json!({
        "verdict": name,
        "reason": reason,
        "ahead": ahead,
        "sentence": sentences::verdict(sweep),
        "in_flight_share": sweep.in_flight_share,
        "drift_ratio": sweep.drift_ratio,
        "cut_short": sweep.is_cut_short,
        "ended_by": sweep.ended_by,
    })
}

fn factor(factor: &FactorResult) -> Value {
    let label = |place: usize| factor.levels.get(place).map(|level| level.label.as_str());
    json!({
        "name": factor.name,
        "best": label(factor.best),
        "advised": label(factor.advised),
        "confidence": factor.confidence,
        "plateau": [label(*factor.plateau.start()), label(*factor.plateau.end())],
        "failed": factor.failed,
        "limited": label(factor.limited),
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
