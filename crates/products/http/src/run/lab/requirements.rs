//! Requirements of a plan on both hosts, and whether they have it.

use std::time::Duration;

use linerate_doctor::http::Preflight;
use linerate_model::http::{CellKey, Check, CheckStatus};
use linerate_sys::clock;

use super::spec::LabSpec;
use super::target::TargetServer;
use crate::conclude::changes::StartRecord;
use crate::plan::estimate::estimate;
use crate::report::{plan_json, plan_text};
use crate::run::{generator, outputs, own_environment};

/// Observes both hosts before the first run.
pub(super) fn hosts(target: &TargetServer) -> StartRecord {
    StartRecord {
        started_unix_ms: clock::unix_ms(),
        protocol: Some(target.answer.protocol.clone()),
        client: own_environment(target.address().ip(), LOOK_WINDOW),
        server: target
            .server
            .as_ref()
            .map(|side| side.info.environment.clone()),
    }
}

/// Looks whether both hosts can do what the cells need.
pub(super) fn checks(
    spec: &LabSpec,
    target: &TargetServer,
    hosts: &StartRecord,
    keys: &[CellKey],
) -> Vec<Check> {
    let plan = &spec.plan;
    let preflight = Preflight {
        cells: keys.to_vec(),
        device: plan.dev.clone(),
        sources: count(plan.source.addresses.len()),
        ports: plan.source.ports,
        ramp_per_s: plan.defaults.ramp_per_s,
        streams: plan.protocol.streams,
        is_plain_http1: plan.is_plain_http1(),
        generator_threads: Some(generator::threads(
            target.is_local(),
            plan.defaults.explicit_threads(),
        )),
        client: hosts.client.clone(),
        server: hosts.server.clone(),
        server_address: Some(target.address().ip()),
        client_address: target.client,
        port: target.address().port(),
        destinations: count(target.destinations.len()),
        clock_error_ns: target.server.as_ref().and_then(|side| side.clock_error_ns),
    };
    preflight.checks()
}

fn count(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

pub(super) fn has_failed(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.status == CheckStatus::Fail)
}

/// Listing of the runs, their estimated time, and their purpose.
pub(super) fn listing(spec: &LabSpec) -> String {
    let cost = estimate(&spec.plan, spec.phases);
    let connections = cost
        .cells
        .iter()
        .map(|(key, _)| key.connections)
        .max()
        .unwrap_or(0);

    let need = |what: &str, need: String| [what.to_owned(), need];
    let needs = [
        need("protocol", protocol(spec)),
        need(
            "connections",
            format!("{connections} at once, on both ends"),
        ),
        need(
            "descriptors",
            format!(
                "{} on each end",
                u64::from(connections) + DESCRIPTORS_BESIDE
            ),
        ),
        need(
            "local ports",
            format!("{connections} on the client, over all its addresses"),
        ),
    ];

    let target = spec.target.to_string();
    if spec.output.json {
        plan_json(&target, &cost, &needs)
    } else {
        plan_text(&target, &cost, &needs, outputs::style())
    }
}

/// `HTTP/2 over TLS, 8 requests at a time on each connection`
fn protocol(spec: &LabSpec) -> String {
    let version = if spec.protocol.is_http2 {
        "HTTP/2"
    } else {
        "HTTP/1.1"
    };
    let carrier = if spec.protocol.tls.is_some() {
        "over TLS"
    } else {
        "in plain text"
    };

    let streams = match spec.plan.protocol.streams {
        1 => String::new(),
        streams => format!(", {streams} requests at a time on each connection"),
    };
    format!("{version} {carrier}{streams}")
}

/// Duration of the sample of the load by other programs on a host.
const LOOK_WINDOW: Duration = Duration::from_millis(300);
/// Files, listeners, threads.
const DESCRIPTORS_BESIDE: u64 = 128;
