//! Sends runs to a collector of OpenTelemetry over HTTP (OTLP/HTTP, JSON).

use std::net::ToSocketAddrs;
use std::time::Duration;

use linerate_history::report::export::otlp;
use linerate_http::load::Local;
use linerate_http::probe::{self, ProbeTarget};
use linerate_http::protocol::{Protocol, TlsPeer, Trust};
use linerate_http::target::Target;
use linerate_model::record::RunRecord;

/// Time for each of the two requests.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Sends the measures to `URL/v1/metrics` and the spans to `URL/v1/traces`.
///
/// # Errors
/// Why the collector has not taken them.
pub fn send(url: &Target, runs: &[RunRecord]) -> Result<(), String> {
    // The path of the collector may end with a slash.
    let base = url.path.trim_end_matches('/');
    for (path, body) in [
        ("/v1/metrics", otlp::metrics(runs)),
        ("/v1/traces", otlp::traces(runs)),
    ] {
        post(url, &format!("{base}{path}"), &body.to_string())?;
    }

    Ok(())
}

fn post(url: &Target, path: &str, body: &str) -> Result<(), String> {
    let trust = || TlsPeer {
        name: url.host.clone(),
        trust: Trust::System,
    };
    let protocol = Protocol {
        // Collectors accept HTTP/1.1 (OTLP specification, OTLP/HTTP).
        is_http2: false,
        tls: url.is_tls.then(trust),
    };
    let mut addresses = (url.host.as_str(), *url.ports.start())
        .to_socket_addrs()
        .map_err(|e| format!("{}: {e}", url.host))?;
    let address = addresses
        .next()
        .ok_or_else(|| format!("{}: no address", url.host))?;

    // One request per connection: the response ends with it.
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: \
         {}\r\nConnection: close\r\n\r\n{body}",
        url.authority(),
        body.len()
    );
    let target = ProbeTarget {
        address,
        local: Local::default(),
        protocol: &protocol,
        connect_timeout: TIMEOUT,
        timeout: TIMEOUT,
    };
    let response =
        probe::send(target, request.as_bytes(), false).map_err(|error| error.to_string())?;
    match response.status {
        200..300 => Ok(()),
        status => Err(format!(
            "{address} responded to {path} with the status {status}"
        )),
    }
}
