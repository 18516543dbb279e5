//! Tables of HTTP loads.

use linerate_model::finding::{Confidence, Severity};

use crate::arithmetic::tcp_ceiling;
use crate::rule::{Rule, Ruling, Suspect, clear, matched, require};
use crate::scope::{Host, Scope};

pub(super) const RULES: &[Rule] = &[
    Rule::scope("HTTP-01", Severity::Medium, "More concurrency only adds waiting", http_01)
        .explanation(
            "Throughput does not grow with concurrency any more. In a closed loop latency then grows in proportion \
             (Little's law).",
        )
        .reference("Little, 1961"),
    Rule::host("HTTP-02", Severity::High, "The client is the limit", http_02)
        .explanation("The client ran out of descriptors, ports or processor. The result says nothing about the server.")
        .reference("getrlimit(2), ip(7)"),
    Rule::host("HTTP-03", Severity::Info, "The server's processor limits small payloads", http_03)
        .explanation("The link has room and the server has none. More workers or larger payloads help.")
        .reference("proc(5)"),
];

fn http_01(scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    payload_rows(scope, flat)
}

/// Applies a rule to every row of a table of HTTP payloads.
pub(super) fn payload_rows(scope: &Scope<'_>, rule: fn(&Host<'_>, &str) -> Ruling) -> Vec<(String, Ruling)> {
    let mut rulings = Vec::new();
    for host in &scope.hosts {
        let rows = host.snapshot.facts_under("http.row.");
        for row in rows.filter_map(|(key, _)| key.strip_suffix(".best_bytes_per_second")) {
            rulings.push((format!("{} {row}", host.name()), rule(host, row)));
        }
    }
    rulings
}

fn flat(host: &Host<'_>, row: &str) -> Ruling {
    let point = host.number(&format!("http.row.{row}.best_concurrency"))?;
    let beyond = host.number(&format!("http.row.{row}.flat_concurrency"))?;
    require(beyond.value >= 2.0 * point.value, || "throughput still grows".to_owned())?;
    let matched = matched()
        .read(&point, "the lowest concurrency within 2 % of the peak")
        .read(&beyond, "still within 2 % of the peak");
    let matched = match host.number(&format!("http.row.{row}.p99_growth")) {
        Ok(growth) => {
            require(growth.value >= 1.8, || format!("p99 grows {:.1} times", growth.value))?;
            matched.read(&growth, "below 1.8")
        }
        Err(_) => matched.cap(Confidence::Medium),
    };
    Ok(matched.advice(format!("use a concurrency of {}", point.value)))
}

fn http_02(host: &Host<'_>) -> Ruling {
    if let Ok(errors) = host.text("load.client_limit") {
        return Ok(matched()
            .read_text(&errors, "no limit of the client may be hit")
            .advice("raise the limits (SYS-01 to SYS-03) or add a client, and measure again"));
    }
    let client = host.number("load.client_cpu")?;
    let server = host.number("load.server_cpu")?;
    require(client.value >= 0.9 && server.value < 0.7, || "the client has time to spare".to_owned())?;
    Ok(matched().read(&client, "below 0.9").read(&server, "below 0.7").advice("add a client"))
}

fn http_03(host: &Host<'_>) -> Ruling {
    let server = host.number("load.server_cpu")?;
    let rate = host.number("load.bytes_per_second")?;
    let speed = host.number("path.line_rate_mbps").suspect(|| "the speed of the link is not known".to_owned())?;
    let ceiling = tcp_ceiling(speed.value * 1e6, 1500.0) / 8.0;
    if rate.value >= 0.9 * ceiling {
        return clear("the link is nearly full");
    }
    require(server.value >= 0.95, || format!("the server is {:.0} % busy", server.value * 100.0))?;
    Ok(matched()
        .read(&server, "below 0.95")
        .read(&rate, format!("{ceiling:.0} bytes/s fit the link"))
        .advice("more workers, or larger payloads"))
}
