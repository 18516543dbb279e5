//! The path between the hosts: route, link, clocks.

use linerate_model::finding::Severity;
use linerate_model::http::units::{grouped, rate_name, time_name};
use linerate_model::http::{Check, Environment, Side};

use super::{Preflight, Requirement};
use crate::rule::Ruling;
use crate::rules::remedies;

/// Samples of the two hosts are put on one time axis; further apart they do not fit.
const CLOCK_ERROR_MAX_NS: u64 = 5_000_000;

pub(super) fn checks(preflight: &Preflight) -> Vec<Check> {
    let same_host = Requirement::new("same_host", Side::Client, "two hosts");
    let is_same_host = is_same_host(preflight);
    let mut checks = vec![same_host.check(self::same_host(&same_host, preflight, is_same_host))];
    if !is_same_host {
        checks.push(route(preflight));
        checks.extend(speeds(preflight));
    }
    checks.extend(preflight.server.iter().map(|_| clock(preflight.clock_error_ns)));
    checks
}

fn is_same_host(preflight: &Preflight) -> bool {
    let server = preflight.server_address;
    let is_own = server.is_some_and(|server| server.is_loopback() || Some(server) == preflight.client_address);
    is_own || preflight.client.is_loopback
}

fn same_host(requirement: &Requirement<'_>, preflight: &Preflight, is_same_host: bool) -> Ruling {
    let server = preflight.server.as_ref().and_then(|server| server.boot_id.as_ref());
    let is_same_kernel = server.is_some() && preflight.client.boot_id.as_ref() == server;
    requirement.unless(!is_same_host && !is_same_kernel, "two hosts")?;
    let (have, effect) =
        if is_same_host { ("one host", ", and no link can be full") } else { ("one host, two network namespaces", "") };
    let remedy = format!("run the server on another host: here both ends share the processors{effect}");
    Ok(requirement.not_met(Severity::Medium, have, vec![remedy]))
}

fn route(preflight: &Preflight) -> Check {
    let wanted = preflight.device.as_deref();
    let need = wanted.map_or_else(|| "a wired device".to_owned(), |device| format!("over {device}"));
    let requirement = Requirement::new("route", Side::Client, need);
    requirement.check(route_over(&requirement, preflight, wanted))
}

fn route_over(requirement: &Requirement<'_>, preflight: &Preflight, wanted: Option<&str>) -> Ruling {
    let client = &preflight.client;
    let device = requirement.read(client.device.as_deref())?;
    let have = format!("over {device}");
    let is_other = wanted.is_some_and(|wanted| wanted != device);
    requirement.unless(!is_other && !client.is_wireless_or_tunnel, &have)?;
    let (server, prefix) = match preflight.server_address {
        Some(address) => (address.to_string(), if address.is_ipv4() { 32 } else { 128 }),
        None => ("SERVER".to_owned(), 32),
    };
    let remedy = remedies::route(&server, prefix, wanted.unwrap_or("DEVICE"));
    Ok(if is_other {
        requirement.not_met(Severity::Blocker, have, remedy)
    } else {
        requirement.not_met(Severity::Medium, have + ", which is wireless or a tunnel", remedy)
    })
}

/// One end of the link.
pub(super) fn link(side: Side, host: &Environment) -> Vec<Check> {
    if host.is_loopback {
        return Vec::new();
    }
    let requirement = Requirement::new("link", side, "a known speed, full duplex");
    let mut checks = vec![requirement.check(speed(&requirement, host))];
    checks.extend(host.nic_errors.map(|errors| {
        let requirement = Requirement::new("nic_errors", side, "0 since the host started");
        let met = requirement.unless(errors == 0, &grouped(errors));
        requirement.check(met.map(|()| requirement.not_met(Severity::Medium, grouped(errors), doctor(host))))
    }));
    checks
}

fn doctor(host: &Environment) -> Vec<String> {
    vec![format!("linerate doctor {}", host.device.as_deref().unwrap_or("DEVICE"))]
}

fn speed(requirement: &Requirement<'_>, host: &Environment) -> Ruling {
    let Some(bps) = host.link_bps else {
        let remedy = "what the network allows cannot be computed; a full link is not recognised".to_owned();
        return Ok(requirement.not_met(Severity::Info, "unknown speed", vec![remedy]));
    };
    let speed = rate_name(bps as f64);
    requirement.unless(host.is_full_duplex != Some(false), &speed)?;
    Ok(requirement.not_met(Severity::Medium, speed + ", half duplex", doctor(host)))
}

/// A slower end is often one that fell back to a lower speed.
fn speeds(preflight: &Preflight) -> Option<Check> {
    let (client, server) = (&preflight.client, preflight.server.as_ref()?);
    let (client_bps, server_bps) = (client.link_bps?, server.link_bps?);
    let (side, slower) = if client_bps < server_bps { (Side::Client, client) } else { (Side::Server, server) };
    let requirement = Requirement::new("link_speeds", side, "the same at both ends");
    let (at_client, at_server) = (rate_name(client_bps as f64), rate_name(server_bps as f64));
    let have = format!("{at_client} at the client, {at_server} at the server");
    let met = requirement.unless(client_bps == server_bps, &have);
    Some(requirement.check(met.map(|()| requirement.not_met(Severity::Medium, have, doctor(slower)))))
}

fn clock(error_ns: Option<u64>) -> Check {
    let known = |error_ns: u64| format!("known to {}", time_name(error_ns as f64));
    let requirement = Requirement::new("clock", Side::Server, known(CLOCK_ERROR_MAX_NS));
    let have = error_ns.map_or_else(|| "not known".to_owned(), known);
    let is_near = error_ns.is_some_and(|error_ns| error_ns < CLOCK_ERROR_MAX_NS);
    let remedy = vec!["a nearer --control-url; only the common time axis of the samples suffers".to_owned()];
    let met = requirement.unless(is_near, &have);
    requirement.check(met.map(|()| requirement.not_met(Severity::Medium, have, remedy)))
}
