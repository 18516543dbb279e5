//! The way between the hosts: route, link, clocks.

use std::net::IpAddr;

use linerate_model::http::{Check, CheckStatus, Environment, Side};

use super::{Preflight, not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::units::{grouped, rate_name, time_name};

/// Samples of the two hosts are put on one time axis; further apart they do not fit.
const CLOCK_ERROR_MAX_NS: u64 = 5_000_000;

pub(super) fn checks(preflight: &Preflight<'_>) -> Vec<Check> {
    let is_same_host = is_same_host(preflight);
    let mut checks = vec![if !is_same_host && share_a_kernel(preflight) {
        same_kernel()
    } else {
        same_host(is_same_host)
    }];
    if !is_same_host {
        checks.push(route(preflight));
        checks.extend(speeds(preflight));
    }
    checks.extend(preflight.server.map(|_| clock(preflight.path.clock_error_ns)));
    checks
}

fn is_same_host(preflight: &Preflight<'_>) -> bool {
    let is_own = preflight
        .path
        .server
        .is_some_and(|server| server.is_loopback() || Some(server) == preflight.path.client);
    is_own || preflight.client.is_loopback
}

/// Namespaces of one host, with a network between them.
fn share_a_kernel(preflight: &Preflight<'_>) -> bool {
    let server = preflight.server.and_then(|server| server.boot_id.as_ref());
    server.is_some() && preflight.client.boot_id.as_ref() == server
}

fn same_kernel() -> Check {
    Check {
        have: "one host, two network namespaces".to_owned(),
        fix: vec!["run the server on another host: here both ends share the processors".to_owned()],
        status: CheckStatus::Warn,
        ..same_host(false)
    }
}

fn same_host(is_same_host: bool) -> Check {
    let check = passed("same_host", Side::Client, "two hosts", "two hosts");
    if !is_same_host {
        return check;
    }
    Check {
        have: "one host".to_owned(),
        ..not_passed(
            check,
            CheckStatus::Warn,
            vec![
                "run the server on another host: here both ends share the processors, and no link can be full"
                    .to_owned(),
            ],
        )
    }
}

fn route(preflight: &Preflight<'_>) -> Check {
    const ID: &str = "route";
    let wanted = preflight.plan.dev.as_deref();
    let need = wanted.map_or_else(|| "a wired device".to_owned(), |dev| format!("over {dev}"));
    let Some(device) = preflight.client.device.as_deref() else {
        return unknown(ID, Side::Client, need);
    };
    let mut check = passed(ID, Side::Client, format!("over {device}"), need);
    let fix = || {
        let (server, prefix) = match preflight.path.server {
            Some(address @ IpAddr::V4(_)) => (address.to_string(), 32),
            Some(address @ IpAddr::V6(_)) => (address.to_string(), 128),
            None => ("SERVER".to_owned(), 32),
        };
        fixes::route(&server, prefix, wanted.unwrap_or("DEVICE"))
    };
    if wanted.is_some_and(|wanted| wanted != device) {
        return not_passed(check, CheckStatus::Fail, fix());
    }
    if preflight.client.is_wireless_or_tunnel {
        check.have += ", which is wireless or a tunnel";
        return not_passed(check, CheckStatus::Warn, fix());
    }
    check
}

/// One end of the link.
pub(super) fn link(side: Side, host: &Environment) -> Vec<Check> {
    if host.is_loopback {
        return Vec::new();
    }
    let device = host.device.as_deref().unwrap_or("DEVICE");
    let doctor = || vec![format!("linerate doctor {device}")];
    let mut checks = Vec::new();
    let need = "a known speed, full duplex";
    checks.push(match (host.link_bps, host.is_full_duplex) {
        (None, _) => not_passed(
            passed("link", side, "unknown speed", need),
            CheckStatus::Info,
            vec!["what the network allows cannot be computed; a full link is not recognised".to_owned()],
        ),
        (Some(bps), Some(false)) => {
            let have = format!("{}, half duplex", rate_name(bps as f64));
            not_passed(passed("link", side, have, need), CheckStatus::Warn, doctor())
        }
        (Some(bps), _) => passed("link", side, rate_name(bps as f64), need),
    });
    checks.extend(host.nic_errors.map(|errors| {
        let check = passed("nic_errors", side, grouped(errors), "0 since the host started");
        if errors == 0 {
            check
        } else {
            not_passed(check, CheckStatus::Warn, doctor())
        }
    }));
    checks
}

/// A slower end is often one that fell back to a lower speed.
fn speeds(preflight: &Preflight<'_>) -> Option<Check> {
    let client = preflight.client.link_bps?;
    let server = preflight.server?.link_bps?;
    let (rate_client, rate_server) = (rate_name(client as f64), rate_name(server as f64));
    let have = format!("{rate_client} at the client, {rate_server} at the server");
    let (side, slower) = if client < server {
        (Side::Client, preflight.client)
    } else {
        (Side::Server, preflight.server?)
    };
    let check = passed("link_speeds", side, have, "the same at both ends");
    if client == server {
        return Some(check);
    }
    let device = slower.device.as_deref().unwrap_or("DEVICE");
    Some(not_passed(
        check,
        CheckStatus::Warn,
        vec![format!("linerate doctor {device}")],
    ))
}

fn clock(error_ns: Option<u64>) -> Check {
    let need = format!("known to {}", time_name(CLOCK_ERROR_MAX_NS as f64));
    let have = error_ns.map_or_else(
        || "not known".to_owned(),
        |error_ns| format!("known to {}", time_name(error_ns as f64)),
    );
    let check = passed("clock", Side::Server, have, need);
    if error_ns.is_some_and(|error_ns| error_ns < CLOCK_ERROR_MAX_NS) {
        return check;
    }
    let fix = vec!["a nearer --control-url; only the common time axis of the samples suffers".to_owned()];
    not_passed(check, CheckStatus::Warn, fix)
}
