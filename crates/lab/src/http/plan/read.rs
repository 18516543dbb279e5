//! A plan from a tree: every key with its range, and what must fit together.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use linerate_model::http::{Arrivals, HttpVersion};

use super::protocol::{file_name, fingerprint};
use super::tree::{Field, Keys, Node, PlanError, Value};
use super::{
    ActivePhase, Close, Defaults, Direction, IdlePhase, LowRatePhase, MatrixPhase, Objective, PayloadPhase, Plan,
    Ports, Protocol, RUNS_MAX, Ramp, Source, TcpPhase, Trust,
};
use crate::http::units::{self, duration_name, shown};

const LIST_MAX: usize = 64;
const TEXT_CHARS_MAX: usize = 2048;
/// Names of devices have at most 15 bytes (`IFNAMSIZ`).
const DEVICE_BYTES_MAX: usize = 15;
const CONNECTIONS: RangeInclusive<u32> = 1..=1_000_000;
const CONNECTIONS_OR_NONE: RangeInclusive<u32> = 0..=1_000_000;
const STREAMS: RangeInclusive<u32> = 1..=128;
/// Of HTTP/2, requests at a time on a connection.
const HTTP_STREAMS: RangeInclusive<u32> = 1..=1024;
const REPEATS: RangeInclusive<u32> = 1..=100;
const RAMP_PER_S: RangeInclusive<u32> = 1..=1_000_000;
const THREADS: RangeInclusive<u32> = 0..=1024;
const RATE_PER_S: RangeInclusive<u32> = 1..=10_000_000;
const SEED: RangeInclusive<u64> = 0..=i64::MAX as u64;
/// A window: a second is the least that figures per second can be made of.
const WINDOW: RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(3600);
const PAUSE: RangeInclusive<Duration> = Duration::ZERO..=Duration::from_secs(600);
const WAIT: RangeInclusive<Duration> = Duration::from_millis(1)..=Duration::from_secs(600);

pub(super) fn plan(tree: Node) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    let mut keys = Keys::of(Field {
        path: String::new(),
        node: tree,
    })?;
    keys.set("version", &mut 1, |field| integer(&field, &(1..=1)))?;
    keys.set("target", &mut plan.target, |field| url(&field).map(Some))?;
    keys.set("control", &mut plan.control, |field| url(&field).map(Some))?;
    keys.set("dev", &mut plan.dev, |field| device(&field).map(Some))?;
    keys.set("seed", &mut plan.seed, |field| integer(&field, &SEED))?;
    keys.table("protocol", |keys| protocol(keys, &mut plan.protocol))?;
    keys.table("defaults", |keys| defaults(keys, &mut plan.defaults))?;
    keys.table("phase0", |keys| tcp(keys, &mut plan.tcp))?;
    keys.table("phase1", |keys| payloads(keys, &mut plan.payloads))?;
    keys.table("phase2", |keys| matrix(keys, &mut plan.matrix))?;
    keys.table("phase3", |keys| {
        keys.table("idle", |keys| idle(keys, &mut plan.idle))?;
        keys.table("lowrate", |keys| low_rate(keys, &mut plan.low_rate))?;
        keys.table("active", |keys| active(keys, &mut plan.active))
    })?;
    keys.table("slo", |keys| objective(keys, &mut plan.objective))?;
    keys.table("source", |keys| source(keys, &mut plan.source))?;
    keys.finish()?;
    fits_together(&plan)?;
    Ok(plan)
}

fn protocol(keys: &mut Keys, protocol: &mut Protocol) -> Result<(), PlanError> {
    keys.set("version", &mut protocol.version, |field| http_version(&field))?;
    keys.set("streams", &mut protocol.streams, |field| integer(&field, &HTTP_STREAMS))?;
    let (mut believes_all, mut file, mut pin) = (false, None, None);
    keys.set("insecure", &mut believes_all, |field| yes_or_no(&field))?;
    keys.set("cacert", &mut file, |field| certificates(&field).map(Some))?;
    keys.set("pin_sha256", &mut pin, |field| pinned(&field).map(Some))?;
    protocol.trust = match (believes_all, file, pin) {
        (false, None, None) => Trust::System,
        (true, None, None) => Trust::Anything,
        (false, Some(file), None) => Trust::File(file),
        (false, None, Some(pin)) => Trust::Pinned(pin),
        _ => {
            return Err(PlanError::whole(
                "protocol.insecure, protocol.cacert and protocol.pin_sha256 exclude each other",
            ));
        }
    };
    Ok(())
}

fn defaults(keys: &mut Keys, defaults: &mut Defaults) -> Result<(), PlanError> {
    keys.set("warmup", &mut defaults.warmup, |field| time(&field, &PAUSE))?;
    keys.set("duration", &mut defaults.duration, |field| time(&field, &WINDOW))?;
    keys.set("timeout", &mut defaults.timeout, |field| time(&field, &WAIT))?;
    keys.set("cooldown", &mut defaults.cooldown, |field| time(&field, &PAUSE))?;
    keys.set("repeats", &mut defaults.repeats, |field| integer(&field, &REPEATS))?;
    keys.set("ramp", &mut defaults.ramp, |field| ramp(&field))?;
    keys.set("threads", &mut defaults.threads, |field| {
        integer(&field, &THREADS).map(|threads: u32| (threads > 0).then_some(threads))
    })
}

fn tcp(keys: &mut Keys, phase: &mut TcpPhase) -> Result<(), PlanError> {
    keys.set("directions", &mut phase.directions, |field| {
        list(field, |field| {
            word(
                field,
                &[("forward", Direction::Forward), ("reverse", Direction::Reverse)],
            )
        })
    })?;
    keys.set("streams", &mut phase.streams, |field| {
        list(field, |field| integer(field, &STREAMS))
    })?;
    keys.set("duration", &mut phase.duration, |field| time(&field, &WINDOW))
}

fn payloads(keys: &mut Keys, phase: &mut PayloadPhase) -> Result<(), PlanError> {
    keys.set("payloads", &mut phase.payloads_bytes, |field| list(field, payload))?;
    keys.set("connections", &mut phase.connections, |field| {
        integer(&field, &CONNECTIONS)
    })
}

fn matrix(keys: &mut Keys, phase: &mut MatrixPhase) -> Result<(), PlanError> {
    keys.set("payloads", &mut phase.payloads_bytes, |field| list(field, payload))?;
    keys.set("connections", &mut phase.connections, |field| {
        list(field, |field| integer(field, &CONNECTIONS))
    })?;
    keys.set("refine_knee", &mut phase.refine_knee, |field| yes_or_no(&field))
}

fn idle(keys: &mut Keys, part: &mut IdlePhase) -> Result<(), PlanError> {
    keys.set("steps", &mut part.steps, |field| {
        list(field, |field| integer(field, &CONNECTIONS))
    })?;
    keys.set("hold", &mut part.hold, |field| time(&field, &WINDOW))?;
    keys.set("heartbeat", &mut part.heartbeat, |field| {
        time_or(&field, "off", &WINDOW)
    })?;
    keys.set("touch", &mut part.touch, |field| yes_or_no(&field))
}

fn low_rate(keys: &mut Keys, part: &mut LowRatePhase) -> Result<(), PlanError> {
    keys.set("connections", &mut part.connections, |field| {
        integer(&field, &CONNECTIONS_OR_NONE)
    })?;
    keys.set("rate", &mut part.rate_per_s, |field| integer(&field, &RATE_PER_S))?;
    keys.set("payload", &mut part.payload_bytes, |field| payload(&field))?;
    keys.set("duration", &mut part.duration, |field| time(&field, &WINDOW))?;
    keys.set("arrival", &mut part.arrivals, |field| {
        word(
            &field,
            &[("uniform", Arrivals::Uniform), ("poisson", Arrivals::Poisson)],
        )
    })
}

fn active(keys: &mut Keys, part: &mut ActivePhase) -> Result<(), PlanError> {
    keys.set("connections", &mut part.connections, |field| {
        integer(&field, &CONNECTIONS_OR_NONE)
    })?;
    keys.set("payloads", &mut part.payloads_bytes, |field| list(field, payload))?;
    keys.set("duration", &mut part.duration, |field| time(&field, &WINDOW))
}

fn objective(keys: &mut Keys, objective: &mut Objective) -> Result<(), PlanError> {
    keys.set("p99", &mut objective.p99, |field| time_or(&field, "none", &WAIT))?;
    keys.set("error_rate", &mut objective.error_share, |field| share(&field))
}

fn source(keys: &mut Keys, source: &mut Source) -> Result<(), PlanError> {
    keys.set("addresses", &mut source.addresses, |field| list(field, address))?;
    keys.set("ports", &mut source.ports, |field| {
        let words = [
            ("auto", Ports::Auto),
            ("kernel", Ports::Kernel),
            ("explicit", Ports::Explicit),
        ];
        word(&field, &words)
    })?;
    keys.set("close", &mut source.close, |field| {
        word(
            &field,
            &[("auto", Close::Auto), ("rst", Close::Reset), ("fin", Close::Fin)],
        )
    })
}

/// What no key can say alone.
fn fits_together(plan: &Plan) -> Result<(), PlanError> {
    let wrong = |text: String| Err(PlanError::whole(text));
    if let Some(p99) = plan.objective.p99.filter(|p99| *p99 > plan.defaults.timeout) {
        let (p99, timeout) = (duration_name(p99), duration_name(plan.defaults.timeout));
        return wrong(format!(
            "slo.p99 ({p99}) is longer than defaults.timeout ({timeout}): requests that slow count as failed; raise the timeout"
        ));
    }
    if let Some(heartbeat) = plan.idle.heartbeat.filter(|heartbeat| *heartbeat > plan.idle.hold) {
        let (heartbeat, hold) = (duration_name(heartbeat), duration_name(plan.idle.hold));
        return wrong(format!(
            "phase3.idle.heartbeat ({heartbeat}) is longer than phase3.idle.hold ({hold}): none would be sent; hold longer or set it to \"off\""
        ));
    }
    if plan.protocol.has_streams_it_cannot_have() {
        return wrong(format!(
            "protocol.streams ({}) are HTTP/2's: set protocol.version to \"2\"",
            plan.protocol.streams
        ));
    }
    let cells = plan.matrix.payloads_bytes.len() * plan.matrix.connections.len() + plan.payloads.payloads_bytes.len();
    let runs = cells as u64 * u64::from(plan.defaults.repeats);
    if runs > RUNS_MAX {
        return wrong(format!(
            "phases 1 and 2 have {cells} cells with {} repeats each, which is {runs} runs of at most {RUNS_MAX}",
            plan.defaults.repeats
        ));
    }
    Ok(())
}

fn http_version(field: &Field) -> Result<HttpVersion, PlanError> {
    match &field.node.value {
        Value::Text(_) => word(field, &[("1.1", HttpVersion::Http1), ("2", HttpVersion::Http2)]),
        // Unlike the numbers they look like, versions are words.
        _ => Err(field.expected("\"1.1\" or \"2\" in quotes")),
    }
}

fn certificates(field: &Field) -> Result<String, PlanError> {
    file_name(text(field, "the name of a PEM file")?).map_err(|text| field.wrong(text))
}

fn pinned(field: &Field) -> Result<[u8; 32], PlanError> {
    fingerprint(text(field, "64 hexadecimal digits")?).map_err(|text| field.wrong(text))
}

fn integer<T: TryFrom<i64> + PartialOrd + std::fmt::Display>(
    field: &Field,
    range: &RangeInclusive<T>,
) -> Result<T, PlanError> {
    let wanted = || format!("a whole number from {} to {}", range.start(), range.end());
    let Value::Integer(number) = field.node.value else {
        return Err(field.expected(wanted()));
    };
    T::try_from(number)
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| field.wrong(format_args!("expected {}, found {number}", wanted())))
}

fn share(field: &Field) -> Result<f64, PlanError> {
    let share = match field.node.value {
        Value::Float(share) => share,
        Value::Integer(share) => share as f64,
        _ => return Err(field.expected("a share from 0 to 1")),
    };
    if (0.0..=1.0).contains(&share) {
        // A zero has no sign.
        Ok(share.abs())
    } else {
        Err(field.wrong(format_args!("expected a share from 0 to 1, found {share}")))
    }
}

fn yes_or_no(field: &Field) -> Result<bool, PlanError> {
    match field.node.value {
        Value::Bool(is_set) => Ok(is_set),
        _ => Err(field.expected("true or false")),
    }
}

fn text<'a>(field: &'a Field, what: &str) -> Result<&'a str, PlanError> {
    let Value::Text(text) = &field.node.value else {
        return Err(field.expected(what));
    };
    if text.chars().count() > TEXT_CHARS_MAX {
        return Err(field.wrong(format_args!("expected at most {TEXT_CHARS_MAX} characters")));
    }
    Ok(text)
}

fn word<T: Copy>(field: &Field, words: &[(&str, T)]) -> Result<T, PlanError> {
    let allowed = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(", ");
    let found = text(field, &format!("one of {allowed}"))?;
    words
        .iter()
        .find(|(word, _)| *word == found)
        .map(|(_, value)| *value)
        .ok_or_else(|| field.wrong(format_args!("expected one of {allowed}, found {}", shown(found))))
}

fn time(field: &Field, range: &RangeInclusive<Duration>) -> Result<Duration, PlanError> {
    let time =
        units::duration(text(field, "a time in quotes, for instance \"2s\"")?).map_err(|text| field.wrong(text))?;
    if range.contains(&time) {
        return Ok(time);
    }
    let (low, high, found) = (
        duration_name(*range.start()),
        duration_name(*range.end()),
        duration_name(time),
    );
    Err(field.wrong(format_args!("expected {low} to {high}, found {found}")))
}

/// A time, or this word for none.
fn time_or(field: &Field, none: &str, range: &RangeInclusive<Duration>) -> Result<Option<Duration>, PlanError> {
    match &field.node.value {
        Value::Text(text) if text == none => Ok(None),
        Value::Text(_) => time(field, range).map(Some),
        _ => Err(field.expected(format_args!("\"{none}\" or a time in quotes, for instance \"2s\""))),
    }
}

fn ramp(field: &Field) -> Result<Ramp, PlanError> {
    match &field.node.value {
        Value::Text(text) if text == "max" => Ok(Ramp::Max),
        Value::Integer(_) => integer(field, &RAMP_PER_S).map(Ramp::PerSecond),
        _ => Err(field.expected("connections per second or \"max\"")),
    }
}

fn payload(field: &Field) -> Result<u64, PlanError> {
    match &field.node.value {
        Value::Integer(_) => integer(field, &(0..=units::PAYLOAD_BYTES_MAX)),
        _ => units::payload_bytes(text(field, "a payload, for instance \"10k\"")?).map_err(|text| field.wrong(text)),
    }
}

fn url(field: &Field) -> Result<String, PlanError> {
    let url = text(field, "an URL")?;
    let host = url.split_once("://").and_then(|(scheme, host)| {
        let is_known = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
        is_known.then_some(host)
    });
    let is_printable = url.chars().all(|c| !c.is_control() && !c.is_whitespace());
    match host {
        Some(host) if is_printable && !host.is_empty() => Ok(url.to_owned()),
        _ => Err(field.wrong(format_args!(
            "`{}` is no URL: expected for instance http://192.168.5.2:8080",
            shown(url)
        ))),
    }
}

fn device(field: &Field) -> Result<String, PlanError> {
    let name = text(field, "the name of a device")?;
    let is_name = !name.is_empty()
        && name.len() <= DEVICE_BYTES_MAX
        && name.chars().all(|c| !c.is_control() && !c.is_whitespace() && c != '/');
    if is_name {
        Ok(name.to_owned())
    } else {
        Err(field.wrong(format_args!("`{}` is no name of a device", shown(name))))
    }
}

fn address(field: &Field) -> Result<IpAddr, PlanError> {
    let found = text(field, "an address in quotes")?;
    found
        .parse()
        .map_err(|_| field.wrong(format_args!("`{}` is no address of IPv4 or IPv6", shown(found))))
}

/// A list in which nothing stands twice.
fn list<T: PartialEq>(field: Field, read: impl Fn(&Field) -> Result<T, PlanError>) -> Result<Vec<T>, PlanError> {
    let Value::List(nodes) = field.node.value else {
        return Err(field.expected("a list"));
    };
    if nodes.len() > LIST_MAX {
        let text = format!(
            "{}: expected at most {LIST_MAX} values, found {}",
            field.path,
            nodes.len()
        );
        return Err(PlanError::at(field.node.line, text));
    }
    let mut values = Vec::with_capacity(nodes.len());
    for node in nodes {
        let item = Field {
            path: field.path.clone(),
            node,
        };
        let value = read(&item)?;
        if values.contains(&value) {
            return Err(item.wrong("the same value stands twice"));
        }
        values.push(value);
    }
    Ok(values)
}
