//! Runs as requests of OTLP over HTTP in its JSON form: 64-bit integers are texts, ids are
//! hexadecimal.

use std::collections::BTreeMap;

use linerate_model::measure::MeasureName;
use linerate_model::record::{RunRecord, RunState, Trial};
use linerate_model::stored_name;
use serde_json::{Value, json};

use super::{name, protocol, unit_symbol};

/// Body of a request to `/v1/metrics`: a gauge per measure, a point per trial.
pub fn metrics(runs: &[RunRecord]) -> Value {
    let mut points: BTreeMap<MeasureName, Vec<Value>> = BTreeMap::new();
    for run in runs {
        let of_run = run_attributes(run);
        for trial in &run.trials {
            let start = unix_ns(run, trial.started_ns);
            let end = unix_ns(run, trial.started_ns + trial.elapsed_ns);
            for measure in &trial.measures {
                let own = [
                    ("direction", stored_name(measure.way)),
                    ("trial", trial.no.to_string()),
                ];
                let pairs = of_run.iter().cloned().chain(own);
                let pairs = pairs.map(|(key, value)| (key.to_owned(), value));
                points.entry(measure.name).or_default().push(json!({
                    "attributes": attributes(pairs.chain(factors(trial))),
                    "startTimeUnixNano": start,
                    "timeUnixNano": end,
                    "asDouble": measure.value,
                }));
            }
        }
    }

    let metrics: Vec<Value> = points
        .into_iter()
        .map(|(measure, points)| metric(measure, &points))
        .collect();
    let scope = json!({ "scope": { "name": "linerate" }, "metrics": metrics });
    json!({ "resourceMetrics": [{ "resource": resource(), "scopeMetrics": [scope] }] })
}

/// Body of a request to `/v1/traces`: a span per run, and one in it for each of its trials.
pub fn traces(runs: &[RunRecord]) -> Value {
    let spans: Vec<Value> = runs.iter().flat_map(spans).collect();
    let scope = json!({ "scope": { "name": "linerate" }, "spans": spans });
    json!({ "resourceSpans": [{ "resource": resource(), "scopeSpans": [scope] }] })
}

fn metric(measure: MeasureName, points: &[Value]) -> Value {
    let info = measure.info();
    json!({
        "name": format!("linerate.{}", info.name),
        "description": info.meaning,
        "unit": unit_symbol(info.unit),
        "gauge": { "dataPoints": points },
    })
}

fn spans(run: &RunRecord) -> Vec<Value> {
    let trace_id = run.run_id.to_string().replace('-', "");
    // A trace id has 16 bytes, as the id of a run; a span id has 8.
    let run_span = trace_id[16..].to_owned();

    let mut of_run = span(
        &stored_name(run.kind),
        run,
        (0, run.elapsed_ns),
        (run.state, run.reason.as_deref()),
    );
    of_run["traceId"] = trace_id.clone().into();
    of_run["spanId"] = run_span.clone().into();
    of_run["attributes"] = attributes(run_attributes(run));

    let of_trials = run.trials.iter().map(|trial| {
        let mut span = span(
            "trial",
            run,
            (trial.started_ns, trial.elapsed_ns),
            (trial.state, trial.reason.as_deref()),
        );
        span["traceId"] = trace_id.clone().into();
        span["spanId"] = trial_span(&run_span, trial.no).into();
        span["parentSpanId"] = run_span.clone().into();
        span["attributes"] =
            attributes(factors(trial).chain([("trial".to_owned(), trial.no.to_string())]));

        span
    });
    std::iter::once(of_run)
        .chain(of_trials.collect::<Vec<_>>())
        .collect()
}

fn span(
    name: &str,
    run: &RunRecord,
    (start_ns, elapsed_ns): (u64, u64),
    state: (RunState, Option<&str>),
) -> Value {
    // STATUS_CODE_OK and STATUS_CODE_ERROR of the protocol.
    let status = match state {
        (RunState::Complete, _) => json!({ "code": 1 }),
        (state, reason) => {
            json!({ "code": 2, "message": reason.map_or_else(|| stored_name(state), str::to_owned) })
        }
    };
    json!({
        "name": name,
        // The number is SPAN_KIND_INTERNAL of the protocol.
        "kind": 1,
        "startTimeUnixNano": unix_ns(run, start_ns),
        "endTimeUnixNano": unix_ns(run, start_ns.saturating_add(elapsed_ns)),
        "status": status,
    })
}

/// Differs from the span of the run and those of other trials.
fn trial_span(run_span: &str, trial: u32) -> String {
    let run_span = u64::from_str_radix(run_span, 16).unwrap_or_default();
    // The span of trial 0 must differ from that of its run.
    format!("{:016x}", run_span ^ (u64::from(trial) + 1))
}

fn resource() -> Value {
    json!({ "attributes": attributes([("service.name", "linerate".to_owned())]) })
}

fn run_attributes(run: &RunRecord) -> Vec<(&'static str, String)> {
    let known = [
        ("run", Some(run.run_id.to_string())),
        ("version", run.origin.version.clone()),
        ("client", run.path.client.clone()),
        ("server", run.path.server.clone()),
        ("protocol", protocol(run)),
        (
            "name",
            Some(name(run).to_owned()).filter(|name| !name.is_empty()),
        ),
    ];
    known
        .into_iter()
        .filter_map(|(key, value)| Some((key, value?)))
        .collect()
}

fn factors(trial: &Trial) -> impl Iterator<Item = (String, String)> + '_ {
    trial
        .factors
        .iter()
        .map(|(name, level)| (format!("factor.{name}"), level.clone()))
}

fn attributes<K: Into<String>>(pairs: impl IntoIterator<Item = (K, String)>) -> Value {
    let pair =
        |(key, value): (K, String)| json!({ "key": key.into(), "value": { "stringValue": value } });
    pairs.into_iter().map(pair).collect()
}

fn unix_ns(run: &RunRecord, ns: u64) -> String {
    (u128::from(run.started_unix_ms) * 1_000_000 + u128::from(ns)).to_string()
}
