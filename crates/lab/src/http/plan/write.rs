//! A plan as TOML.

use std::fmt::Display;
use std::time::Duration;

use linerate_model::http::{Arrivals, HttpVersion};

use super::{Close, Direction, Plan, Ports, Protocol, Ramp, Trust};
use crate::http::units::{duration_name, payload_name};

/// Every key with what it means.
pub(super) fn explained(plan: &Plan) -> String {
    written(plan, true)
}

/// Keys and values alone.
pub(super) fn bare(plan: &Plan) -> String {
    written(plan, false)
}

fn written(plan: &Plan, is_explained: bool) -> String {
    let mut text = Text {
        out: String::new(),
        is_explained,
    };
    top(plan, &mut text);
    protocol(plan, &mut text);
    defaults(plan, &mut text);
    phases(plan, &mut text);
    c10k(plan, &mut text);
    ends(plan, &mut text);
    text.out
}

fn top(plan: &Plan, text: &mut Text) {
    text.key("version", 1, "");
    text.maybe(
        "target",
        plan.target.as_deref(),
        "http://192.168.5.2:8080",
        "the server",
    );
    text.maybe(
        "control",
        plan.control.as_deref(),
        "http://192.168.5.2:8081",
        "its control channel; by default the next port",
    );
    text.maybe("dev", plan.dev.as_deref(), "enp1s0", "device the route must take");
    text.key("seed", plan.seed, "order of cells and Poisson arrivals");
}

/// Without explanations the default has no words: a plan that was named before this table was there keeps its name.
fn protocol(plan: &Plan, text: &mut Text) {
    let protocol = &plan.protocol;
    if !text.is_explained && *protocol == Protocol::default() {
        return;
    }
    text.section("protocol", "TLS is spoken where the target is an https URL");
    let version = match protocol.version {
        HttpVersion::Http1 => "1.1",
        HttpVersion::Http2 => "2",
    };
    text.key("version", quoted(version), "of HTTP: \"1.1\" or \"2\"");
    text.key(
        "streams",
        protocol.streams,
        "requests at a time on each connection of HTTP/2",
    );
    text.key("insecure", protocol.trust == Trust::Anything, "believe any certificate");
    let (file, pin) = match &protocol.trust {
        Trust::File(file) => (Some(file.clone()), None),
        Trust::Pinned(pin) => (None, Some(hexadecimal(pin))),
        Trust::System | Trust::Anything => (None, None),
    };
    text.maybe(
        "cacert",
        file.as_deref(),
        "ca.pem",
        "authorities to believe instead of this host's",
    );
    text.maybe(
        "pin_sha256",
        pin.as_deref(),
        "64 hexadecimal digits",
        "the one certificate to believe",
    );
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn defaults(plan: &Plan, text: &mut Text) {
    let defaults = &plan.defaults;
    text.section("defaults", "");
    text.key("warmup", time(defaults.warmup), "load before the measured window");
    text.key("duration", time(defaults.duration), "measured window");
    text.key("timeout", time(defaults.timeout), "after that a request has failed");
    text.key("cooldown", time(defaults.cooldown), "least pause between runs");
    text.key("repeats", defaults.repeats, "runs of each cell of phases 1 and 2");
    let ramp = match defaults.ramp {
        Ramp::PerSecond(rate) => rate.to_string(),
        Ramp::Max => quoted("max"),
    };
    text.key("ramp", ramp, "connections opened per second, or \"max\"");
    text.key(
        "threads",
        defaults.threads.unwrap_or(0),
        "of the generator; 0 for as many as fit",
    );
}

fn phases(plan: &Plan, text: &mut Text) {
    text.section("phase0", "TCP alone: the ceiling of everything after it");
    let directions = plan.tcp.directions.iter().map(|direction| match direction {
        Direction::Forward => quoted("forward"),
        Direction::Reverse => quoted("reverse"),
    });
    text.key("directions", list(directions), "reverse: the server sends");
    text.key("streams", list(&plan.tcp.streams), "one test for each");
    text.key("duration", time(plan.tcp.duration), "");

    text.section("phase1", "payloads at one number of connections");
    text.key(
        "payloads",
        payloads(&plan.payloads.payloads_bytes),
        "k is 1024 bytes, m is 1024 k",
    );
    text.key(
        "connections",
        plan.payloads.connections,
        "no runs of its own when it is in phase 2",
    );

    text.section("phase2", "payloads by connections");
    text.key("payloads", payloads(&plan.matrix.payloads_bytes), "");
    text.key("connections", list(&plan.matrix.connections), "");
    text.key(
        "refine_knee",
        plan.matrix.refine_knee,
        "at most two more cells for each payload",
    );
}

fn c10k(plan: &Plan, text: &mut Text) {
    text.section("phase3.idle", "connections that are only held");
    text.key("steps", list(&plan.idle.steps), "");
    text.key("hold", time(plan.idle.hold), "");
    text.key(
        "heartbeat",
        time_or(plan.idle.heartbeat, "off"),
        "\"off\", or the pause between two of a connection",
    );
    text.key(
        "touch",
        plan.idle.touch,
        "one request on each first, so that the server has its buffers",
    );

    text.section("phase3.lowrate", "few requests on many connections");
    text.key("connections", plan.low_rate.connections, "0 leaves it out");
    text.key("rate", plan.low_rate.rate_per_s, "requests per second over all of them");
    text.key("payload", quoted(&payload_name(plan.low_rate.payload_bytes)), "");
    text.key("duration", time(plan.low_rate.duration), "");
    let arrivals = match plan.low_rate.arrivals {
        Arrivals::Uniform => "uniform",
        Arrivals::Poisson => "poisson",
    };
    text.key("arrival", quoted(arrivals), "\"uniform\" or \"poisson\"");

    text.section("phase3.active", "many connections that are all busy");
    text.key("connections", plan.active.connections, "0 leaves it out");
    text.key("payloads", payloads(&plan.active.payloads_bytes), "");
    text.key("duration", time(plan.active.duration), "");
}

fn ends(plan: &Plan, text: &mut Text) {
    text.section("slo", "what is wanted: decides the best stable case and --assert");
    text.key(
        "p99",
        time_or(plan.objective.p99, "none"),
        "\"none\", or the most it may be",
    );
    text.key(
        "error_rate",
        format!("{:?}", plan.objective.error_share),
        "most failures as a share",
    );

    text.section("source", "");
    let addresses = plan.source.addresses.iter().map(|address| quoted(&address.to_string()));
    text.key(
        "addresses",
        list(addresses),
        "of this host; none for the one of the route",
    );
    let ports = match plan.source.ports {
        Ports::Auto => "auto",
        Ports::Kernel => "kernel",
        Ports::Explicit => "explicit",
    };
    text.key("ports", quoted(ports), "\"auto\", \"kernel\" or \"explicit\"");
    let close = match plan.source.close {
        Close::Auto => "auto",
        Close::Reset => "rst",
        Close::Fin => "fin",
    };
    text.key("close", quoted(close), "\"auto\", \"rst\" or \"fin\"");
}

struct Text {
    out: String,
    is_explained: bool,
}

impl Text {
    fn section(&mut self, name: &str, meaning: &str) {
        self.out.push('\n');
        self.line(&format!("[{name}]"), meaning);
    }

    fn key(&mut self, name: &str, value: impl Display, meaning: &str) {
        self.line(&format!("{name} = {value}"), meaning);
    }

    /// A key without a default: where it is absent, an example behind a `#`.
    fn maybe(&mut self, name: &str, value: Option<&str>, example: &str, meaning: &str) {
        match value {
            Some(value) => self.key(name, quoted(value), meaning),
            None if self.is_explained => self.line(&format!("# {name} = {}", quoted(example)), meaning),
            None => {}
        }
    }

    fn line(&mut self, line: &str, meaning: &str) {
        const MEANINGS_AT: usize = 44;
        self.out.push_str(line);
        if self.is_explained && !meaning.is_empty() {
            let gap = MEANINGS_AT.saturating_sub(line.chars().count()).max(1);
            self.out.extend(std::iter::repeat_n(' ', gap));
            self.out.push_str("# ");
            self.out.push_str(meaning);
        }
        self.out.push('\n');
    }
}

fn time(time: Duration) -> String {
    quoted(&duration_name(time))
}

fn time_or(maybe: Option<Duration>, none: &str) -> String {
    maybe.map_or_else(|| quoted(none), time)
}

fn payloads(bytes: &[u64]) -> String {
    list(bytes.iter().map(|bytes| quoted(&payload_name(*bytes))))
}

fn list<T: Display>(values: impl IntoIterator<Item = T>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("[{}]", values.join(", "))
}

/// A basic string of TOML. Texts of a plan hold no control characters, so two escapes suffice.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}
