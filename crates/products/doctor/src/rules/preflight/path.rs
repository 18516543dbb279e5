//! The path between the hosts: route, link, clocks.

use linerate_model::http::units::{grouped, rate_name, time_name};
use linerate_model::http::{Check, Environment, Side};

use super::plan::Preflight;
use super::requirement::Requirement;
use crate::rules::prelude::*;
use crate::rules::remedies::advise;

/// Samples of the two hosts are put on one time axis; further apart they do not fit.
const CLOCK_ERROR_MAX_NS: u64 = 5_000_000;

pub(super) fn checks(preflight: &Preflight) -> Vec<Check> {
    let is_same_host = is_same_host(preflight);
    let mut checks = vec![same_host(preflight, is_same_host)];

    if !is_same_host {
        checks.push(route(preflight));
        checks.extend(speeds(preflight));
    }

    checks.extend(
        preflight
            .server
            .iter()
            .map(|_| clock(preflight.clock_error_ns)),
    );
    checks
}

fn is_same_host(preflight: &Preflight) -> bool {
    let server = preflight.server_address;
    let is_own = server
        .is_some_and(|server| server.is_loopback() || Some(server) == preflight.client_address);
    is_own || preflight.client.is_loopback
}

fn same_host(preflight: &Preflight, is_same_host: bool) -> Check {
    let server = preflight
        .server
        .as_ref()
        .and_then(|server| server.boot_id.as_ref());
    let is_same_kernel = server.is_some() && preflight.client.boot_id.as_ref() == server;
    let (have, effect) = match (is_same_host, is_same_kernel) {
        (true, _) => ("one host", ", and no link can be full"),
        (false, true) => ("one host, two network namespaces", ""),
        (false, false) => ("two hosts", ""),
    };
    let remedy = format!("run the server on another host: here both ends share the CPUs{effect}");

    Requirement::new("same_host", Side::Client, "two hosts").check(|hosts| {
        hosts.ruling(
            !is_same_host && !is_same_kernel,
            Severity::Medium,
            have,
            advise(remedy),
        )
    })
}

fn route(preflight: &Preflight) -> Check {
    let wanted = preflight.device.as_deref();
    let need = wanted.map_or_else(
        || "a wired device".to_owned(),
        |device| format!("over {device}"),
    );
    Requirement::new("route", Side::Client, need)
        .check(|route| route_over(route, preflight, wanted))
}

fn route_over(
    requirement: &Requirement<'_>,
    preflight: &Preflight,
    wanted: Option<&str>,
) -> Ruling {
    let client = &preflight.client;
    let device = requirement.read(client.device.as_deref())?;
    let have = format!("over {device}");
    let is_other = wanted.is_some_and(|wanted| wanted != device);

    let (server, prefix) = match preflight.server_address {
        Some(address) => (
            address.to_string(),
            if address.is_ipv4() { 32 } else { 128 },
        ),
        None => ("SERVER".to_owned(), 32),
    };
    let remedy = advise(format!(
        "route {server}/{prefix} over {}",
        wanted.unwrap_or("a wired device")
    ));
    if is_other {
        return requirement.ruling(false, Severity::Blocker, have, remedy);
    }

    let is_wired = !client.is_wireless_or_tunnel;
    let have = if is_wired {
        have
    } else {
        have + ", which is wireless or a tunnel"
    };
    requirement.ruling(is_wired, Severity::Medium, have, remedy)
}

/// One end of the link.
pub(super) fn link(side: Side, host: &Environment) -> Vec<Check> {
    if host.is_loopback {
        return Vec::new();
    }

    let link = Requirement::new("link", side, "a known speed, full duplex");
    let mut checks = vec![link.check(|link| speed(link, host))];
    checks.extend(host.nic_errors.map(|errors| {
        Requirement::new("nic_errors", side, "0 since the host started")
            .check(|it| it.ruling(errors == 0, Severity::Medium, grouped(errors), doctor(host)))
    }));

    checks
}

fn doctor(host: &Environment) -> impl FnOnce(Match) -> Match {
    advise(format!(
        "find out why with `linerate doctor {}`",
        host.device.as_deref().unwrap_or("DEVICE")
    ))
}

fn speed(requirement: &Requirement<'_>, host: &Environment) -> Ruling {
    let Some(bps) = host.link_bps else {
        let remedy = advise("what the network allows is what TCP alone reaches, or --line-rate");
        return requirement.ruling(false, Severity::Info, "unknown speed", remedy);
    };
    let is_full_duplex = host.is_full_duplex != Some(false);
    let have = rate_name(bps as f64) + if is_full_duplex { "" } else { ", half duplex" };
    requirement.ruling(is_full_duplex, Severity::Medium, have, doctor(host))
}

/// A slower end is often one that fell back to a lower speed.
fn speeds(preflight: &Preflight) -> Option<Check> {
    let client = &preflight.client;
    let server = preflight.server.as_ref()?;
    let client_bps = client.link_bps?;
    let server_bps = server.link_bps?;
    let (side, slower) = if client_bps < server_bps {
        (Side::Client, client)
    } else {
        (Side::Server, server)
    };

    let at_client = rate_name(client_bps as f64);
    let at_server = rate_name(server_bps as f64);
    let have = format!("{at_client} at the client, {at_server} at the server");
    let is_met = client_bps == server_bps;
    let requirement = Requirement::new("link_speeds", side, "the same at both ends");

    Some(requirement.check(|it| it.ruling(is_met, Severity::Medium, have, doctor(slower))))
}

fn clock(error_ns: Option<u64>) -> Check {
    let known = |error_ns: u64| format!("known to {}", time_name(error_ns as f64));
    let have = error_ns.map_or_else(|| "not known".to_owned(), known);
    let is_near = error_ns.is_some_and(|error_ns| error_ns < CLOCK_ERROR_MAX_NS);
    let remedy =
        advise("a nearer address by --control; only the common time axis of the samples suffers");
    Requirement::new("clock", Side::Server, known(CLOCK_ERROR_MAX_NS))
        .check(|clock| clock.ruling(is_near, Severity::Medium, have, remedy))
}
