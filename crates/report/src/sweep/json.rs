//! The report for programs: one object, units in the names, `null` for what was not reported.

use serde_json::{Map, Value, json};

use super::sentences;
use linerate_lab::sweep::{
    Cost, Degradation, FactorResult, Level, PlateauSide, Recommendation, Run, RunMetrics, Sweep,
};

/// The report as one JSON object with its schema's name.
#[must_use]
pub fn json(sweep: &Sweep) -> String {
    let object = json!({
        "schema": "linerate.sweep/1",
        "host": sweep.spec.host,
        "port": sweep.spec.port,
        "protocol": sweep.spec.protocol(),
        "reverse": sweep.spec.is_reverse,
        "objective": sweep.spec.objective.name(),
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
        "estimate": cost(sweep.estimate),
        "cost": cost(sweep.cost),
        "client_cores": sweep.client_cores,
        "server_cores": sweep.server_cores,
        "verdict": verdict(sweep),
        "factors": sweep.factors.iter().map(factor).collect::<Vec<_>>(),
        "runs": sweep.runs.iter().map(|one| run(sweep, one)).collect::<Vec<_>>(),
    });
    crate::pretty_json(&object)
}

fn cost(cost: Cost) -> Value {
    json!({ "runs": cost.runs, "seconds": cost.seconds })
}

fn verdict(sweep: &Sweep) -> Value {
    let named = |levels: &[String]| named(sweep, levels);
    let mut verdict = match &sweep.answer {
        Recommendation::Use { levels, value, interval: range, command } => json!({
            "verdict": "use",
            "setting": named(levels),
            "value": value,
            "interval": range.map(interval),
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
        "levels": factor.levels.iter().map(level).collect::<Vec<_>>(),
    })
}

fn degradation(factor: &FactorResult, fall: &Degradation) -> Value {
    let label = |place: usize| factor.levels.get(place).map(|level| level.label.as_str());
    json!({
        "side": match fall.side { PlateauSide::Below => "below", PlateauSide::Above => "above", PlateauSide::Elsewhere => "elsewhere" },
        "edge": label(fall.edge),
        "worst": label(fall.worst),
        "change_percent": fall.change_percent,
        "reasons": fall.reasons,
    })
}

fn level(level: &Level) -> Value {
    let mut object = json!({
        "level": level.label,
        "median": level.median,
        "interval": level.interval.map(interval),
        "runs": level.runs,
        "failures": level.failures,
    });
    add_metrics(&mut object, &level.metrics);
    object
}

fn run(sweep: &Sweep, run: &Run) -> Value {
    let mut object = json!({
        "setting": named(sweep, &run.levels),
        "started_s": run.started_s,
        "warm_up": run.is_warm_up,
    });
    match &run.outcome {
        Ok((value, metrics)) => {
            object["value"] = json!(value);
            add_metrics(&mut object, metrics);
        }
        Err(error) => object["error"] = json!(error.to_string()),
    }
    object
}

fn add_metrics(object: &mut Value, metrics: &RunMetrics) {
    object["received_bps"] = json!(metrics.received_bps);
    object["cpu_client_percent"] = json!(metrics.cpu_client_percent);
    object["cpu_server_percent"] = json!(metrics.cpu_server_percent);
    object["retransmits"] = json!(metrics.retransmits);
    object["rtt_us"] = json!(metrics.rtt_us);
    object["lost_percent"] = json!(metrics.lost_percent);
}

fn interval(spread: linerate_lab::stats::Interval) -> Value {
    json!([spread.low, spread.high])
}

fn named(sweep: &Sweep, levels: &[String]) -> Value {
    let pairs = sweep.planned.iter().zip(levels);
    Value::Object(
        pairs.map(|(factor, level)| (factor.name.to_owned(), Value::from(level.as_str()))).collect::<Map<_, _>>(),
    )
}
