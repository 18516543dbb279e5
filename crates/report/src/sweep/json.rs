//! The report for programs: one object, units in the names, `null` for what nobody told.

use linerate_lab::sweep::reasons::Reason;
use serde_json::{Map, Value, json};

use super::sentences;
use linerate_lab::sweep::{Answer, Cost, FactorReport, Fall, Level, Run, RunFigures, Side, Sweep};

/// The report as one JSON object with its schema's name.
#[must_use]
pub fn json(sweep: &Sweep) -> String {
    let object = json!({
        "schema": "linerate.sweep/1",
        "host": sweep.host,
        "port": sweep.port,
        "protocol": sweep.protocol,
        "reverse": sweep.is_reverse,
        "objective": sweep.objective.name(),
        "value_unit": sweep.objective.key(),
        "cpu_of_client_only": sweep.is_client_cpu_only,
        "plan": {
            "factors": sweep.planned.iter().map(|one| json!({ "name": one.name, "levels": one.levels })).collect::<Vec<_>>(),
            "seed": sweep.method.seed,
            "repetitions": sweep.method.repetitions,
            "time_s": sweep.method.time_s,
            "omit_s": sweep.method.omit_s,
            "budget_s": sweep.method.budget_s,
            "confidence": sweep.method.confidence,
            "tolerance": sweep.method.tolerance,
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
        Answer::Use {
            levels,
            value,
            spread,
            command,
        } => json!({
            "verdict": "use",
            "setting": named(levels),
            "value": value,
            "interval": spread.map(interval),
            "command": command,
        }),
        Answer::Inconclusive { reason, leader } => json!({
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

fn factor(factor: &FactorReport) -> Value {
    let label = |place: usize| factor.levels.get(place).map(|level| level.label.as_str());
    json!({
        "name": factor.name,
        "best": label(factor.best),
        "advised": label(factor.advised),
        "chance": factor.chance,
        "plateau": [label(*factor.plateau.start()), label(*factor.plateau.end())],
        "limits": factor.limits.iter().map(reason).collect::<Vec<_>>(),
        "falls": factor.falls.iter().map(|one| fall(factor, one)).collect::<Vec<_>>(),
        "levels": factor.levels.iter().map(level).collect::<Vec<_>>(),
    })
}

fn fall(factor: &FactorReport, fall: &Fall) -> Value {
    let label = |place: usize| factor.levels.get(place).map(|level| level.label.as_str());
    json!({
        "side": match fall.side { Side::Below => "below", Side::Above => "above", Side::Elsewhere => "elsewhere" },
        "edge": label(fall.edge),
        "worst": label(fall.worst),
        "change_percent": fall.change_percent,
        "reasons": fall.reasons.iter().map(reason).collect::<Vec<_>>(),
    })
}

fn reason(reason: &Reason) -> Value {
    let mut object = json!({ "reason": sentences::reason_name(reason), "sentence": sentences::reason(reason) });
    if let Reason::WindowBelowBdp {
        window_bytes,
        rtt_us,
        wanted_bps,
        bdp_bytes,
    } = reason
    {
        object["window_bytes"] = json!(window_bytes);
        object["rtt_us"] = json!(rtt_us);
        object["stream_rate_bps"] = json!(wanted_bps);
        object["bdp_bytes"] = json!(bdp_bytes);
    }
    object
}

fn level(level: &Level) -> Value {
    let mut object = json!({
        "level": level.label,
        "median": level.median,
        "interval": level.spread.map(interval),
        "runs": level.runs,
        "failures": level.failures,
    });
    add_figures(&mut object, &level.figures);
    object
}

fn run(sweep: &Sweep, run: &Run) -> Value {
    let mut object = json!({
        "setting": named(sweep, &run.levels),
        "started_s": run.started_s,
        "warm_up": run.is_warm_up,
    });
    match &run.outcome {
        Ok((value, figures)) => {
            object["value"] = json!(value);
            add_figures(&mut object, figures);
        }
        Err(text) => object["error"] = json!(text),
    }
    object
}

fn add_figures(object: &mut Value, figures: &RunFigures) {
    object["received_bps"] = json!(figures.received_bps);
    object["cpu_client_percent"] = json!(figures.cpu_client_percent);
    object["cpu_server_percent"] = json!(figures.cpu_server_percent);
    object["retransmits"] = json!(figures.retransmits);
    object["rtt_us"] = json!(figures.rtt_us);
    object["lost_percent"] = json!(figures.lost_percent);
}

fn interval(spread: linerate_lab::stats::Interval) -> Value {
    json!([spread.low, spread.high])
}

fn named(sweep: &Sweep, levels: &[String]) -> Value {
    let pairs = sweep.planned.iter().zip(levels);
    Value::Object(
        pairs
            .map(|(factor, level)| (factor.name.to_owned(), Value::from(level.as_str())))
            .collect::<Map<_, _>>(),
    )
}
