//! Ranges of the values of a plan, and values that exclude each other.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::time::Duration;

use linerate_model::http::units::{duration_name, shown};

use super::form::{Plan, PlanError};
use crate::target::Target;

/// Most runs of a plan, refinements aside.
pub const RUNS_MAX: u64 = 10_000;

const LIST_MAX: usize = 64;
const HOST_BYTES_MAX: usize = 2048;
/// Names of devices have at most 15 bytes (`IFNAMSIZ`).
const DEVICE_BYTES_MAX: usize = 15;
const CONNECTIONS: RangeInclusive<u32> = 1..=1_000_000;
const CONNECTIONS_OR_NONE: RangeInclusive<u32> = 0..=1_000_000;
/// A measured period: a second is the least that has a rate per second.
const PERIOD: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
const PAUSE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);
const WAIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

type Checked = Result<(), PlanError>;

/// # Errors
/// The first key whose value is outside its range.
pub(super) fn check(plan: &Plan) -> Checked {
    top(plan)?;
    defaults(plan)?;
    lists(plan)?;
    c10k(plan)?;
    combinations(plan)
}

fn top(plan: &Plan) -> Checked {
    number("version", plan.version, &(1..=1))?;
    // Integers of TOML have 64 bits with a sign.
    number("seed", plan.seed, &(0..=i64::MAX as u64))?;
    if let Some(Err(error)) = plan.target.as_deref().map(str::parse::<Target>) {
        return wrong("target", error);
    }

    let control = plan.control.as_deref();
    if let Some(host) = control.filter(|host| !is_name(host, HOST_BYTES_MAX)) {
        let host = shown(host);
        return wrong(
            "control",
            format_args!("`{host}` is no host: expected for instance 192.168.5.2:8081"),
        );
    }

    if let Some(dev) = plan
        .dev
        .as_deref()
        .filter(|dev| !is_name(dev, DEVICE_BYTES_MAX))
    {
        return wrong(
            "dev",
            format_args!("`{}` is no name of a device", shown(dev)),
        );
    }

    number("protocol.streams", plan.protocol.streams, &(1..=1024))?;
    let trust = plan.protocol.trust();
    trust.map_err(|error| PlanError(error.to_string()))?;
    let share = plan.objective.error_share;
    if !(0.0..=1.0).contains(&share) {
        return wrong(
            "slo.error_rate",
            format_args!("expected a share from 0 to 1, found {share}"),
        );
    }

    plan.objective
        .p99
        .map_or(Ok(()), |p99| time("slo.p99", p99, &WAIT))
}

fn defaults(plan: &Plan) -> Checked {
    let defaults = &plan.defaults;
    time("defaults.warmup", defaults.warmup, &PAUSE)?;
    time("defaults.duration", defaults.duration, &PERIOD)?;
    time("defaults.timeout", defaults.timeout, &WAIT)?;
    time("defaults.cooldown", defaults.cooldown, &PAUSE)?;
    number("defaults.repeats", defaults.repeats, &(1..=100))?;
    number("defaults.threads", defaults.threads, &(0..=1024))?;

    defaults.ramp_per_s.map_or(Ok(()), |rate| {
        number("defaults.ramp", rate, &(1..=1_000_000))
    })
}

fn lists(plan: &Plan) -> Checked {
    list("phase0.directions", &plan.tcp.directions)?;
    numbers("phase0.streams", &plan.tcp.streams, &(1..=128))?;
    time("phase0.duration", plan.tcp.duration, &PERIOD)?;
    list("phase1.payloads", &plan.payloads.payloads_bytes)?;
    number(
        "phase1.connections",
        plan.payloads.connections,
        &CONNECTIONS,
    )?;
    list("phase2.payloads", &plan.matrix.payloads_bytes)?;
    numbers("phase2.connections", &plan.matrix.connections, &CONNECTIONS)?;

    list("source.addresses", &plan.source.addresses)
}

fn c10k(plan: &Plan) -> Checked {
    let idle = &plan.c10k.idle;
    let low_rate = &plan.c10k.low_rate;
    let active = &plan.c10k.active;
    numbers("phase3.idle.steps", &idle.steps, &CONNECTIONS)?;
    time("phase3.idle.hold", idle.hold, &PERIOD)?;

    if let Some(heartbeat) = idle.heartbeat {
        time("phase3.idle.heartbeat", heartbeat, &PERIOD)?;
    }

    number(
        "phase3.lowrate.connections",
        low_rate.connections,
        &CONNECTIONS_OR_NONE,
    )?;
    number(
        "phase3.lowrate.rate",
        low_rate.rate_per_s,
        &(1..=10_000_000),
    )?;
    time("phase3.lowrate.duration", low_rate.duration, &PERIOD)?;
    number(
        "phase3.active.connections",
        active.connections,
        &CONNECTIONS_OR_NONE,
    )?;
    list("phase3.active.payloads", &active.payloads_bytes)?;

    time("phase3.active.duration", active.duration, &PERIOD)
}

fn combinations(plan: &Plan) -> Checked {
    let refused = |text: String| Err(PlanError(text));
    if let Some(p99) = plan
        .objective
        .p99
        .filter(|p99| *p99 > plan.defaults.timeout)
    {
        let p99 = duration_name(p99);
        let timeout = duration_name(plan.defaults.timeout);
        return refused(format!(
            "slo.p99 ({p99}) is longer than defaults.timeout ({timeout}): requests that slow count \
             as failed; raise the timeout"
        ));
    }

    let idle = &plan.c10k.idle;
    if let Some(heartbeat) = idle.heartbeat.filter(|heartbeat| *heartbeat > idle.hold) {
        let heartbeat = duration_name(heartbeat);
        let hold = duration_name(idle.hold);
        return refused(format!(
            "phase3.idle.heartbeat ({heartbeat}) is longer than phase3.idle.hold ({hold}): none \
             would be sent; hold longer or set it to \"off\""
        ));
    }

    if plan.protocol.has_streams_without_http2() {
        let streams = plan.protocol.streams;
        return refused(format!(
            "protocol.streams ({streams}) are HTTP/2's: set protocol.version to \"2\""
        ));
    }

    let cells = plan.matrix.payloads_bytes.len() * plan.matrix.connections.len()
        + plan.payloads.payloads_bytes.len();
    let repeats = plan.defaults.repeats;
    let runs = cells as u64 * u64::from(repeats);
    if runs > RUNS_MAX {
        return refused(format!(
            "phases 1 and 2 have {cells} cells with {repeats} repeats each, which is {runs} runs \
             of at most {RUNS_MAX}"
        ));
    }

    Ok(())
}

fn wrong(key: &str, text: impl Display) -> Checked {
    Err(PlanError(format!("{key}: {text}")))
}

fn number<T: PartialOrd + Display + Copy>(
    key: &str,
    number: T,
    range: &RangeInclusive<T>,
) -> Checked {
    if range.contains(&number) {
        return Ok(());
    }

    let low = range.start();
    let high = range.end();
    wrong(
        key,
        format_args!("expected a whole number from {low} to {high}, found {number}"),
    )
}

fn numbers(key: &str, values: &[u32], range: &RangeInclusive<u32>) -> Checked {
    list(key, values)?;
    values
        .iter()
        .try_for_each(|value| number(key, *value, range))
}

/// A list of bounded length without duplicates.
fn list<T: PartialEq>(key: &str, values: &[T]) -> Checked {
    if values.len() > LIST_MAX {
        let found = values.len();
        return wrong(
            key,
            format_args!("expected at most {LIST_MAX} values, found {found}"),
        );
    }

    let has_duplicate = (1..values.len()).any(|at| values[..at].contains(&values[at]));
    if has_duplicate {
        return wrong(key, "a value is in the list twice");
    }

    Ok(())
}

fn time(key: &str, time: Duration, range: &RangeInclusive<Duration>) -> Checked {
    if range.contains(&time) {
        return Ok(());
    }
    let [low, high, found] = [*range.start(), *range.end(), time].map(duration_name);
    wrong(key, format_args!("expected {low} to {high}, found {found}"))
}

fn is_name(text: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&text.len())
        && text
            .chars()
            .all(|c| !c.is_control() && !c.is_whitespace() && c != '/')
}
