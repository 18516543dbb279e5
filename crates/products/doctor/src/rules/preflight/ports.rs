//! Local ports of the client: the kernel's range, reserved ports, and those still in TIME_WAIT.

use std::ops::RangeInclusive;

use linerate_model::http::units::grouped;
use linerate_model::http::{Check, Environment, Peak, Ports, Side};

use super::plan::Preflight;
use super::requirement::Requirement;
use crate::rules::prelude::*;
use crate::rules::remedies::{MORE_PORTS, advise};

/// Ports the generator chooses from when it chooses.
const EXPLICIT: RangeInclusive<u16> = 1024..=65_535;
/// Share of a range that can be used before the search for a free port takes long.
const USABLE: f64 = 0.95;
/// TIME_WAIT may hold this share of the ports …
const TIME_WAIT_OF_PORTS: f64 = 0.1;
/// … and this share of the kernel's buckets for it.
const TIME_WAIT_OF_BUCKETS: f64 = 0.5;
/// Ports listed in a remedy.
const LISTED_MAX: usize = 64;

pub(super) fn checks(preflight: &Preflight) -> Vec<Check> {
    vec![range(preflight), reserved(preflight), time_wait(preflight)]
}

/// Pairs of a local address and a destination, each with all ports of its own.
fn pairs(preflight: &Preflight) -> u64 {
    u64::from(preflight.sources.max(1)) * u64::from(preflight.destinations.max(1))
}

fn range(preflight: &Preflight) -> Check {
    let need = preflight.connections().div_ceil(pairs(preflight));
    let need_text = format!(
        "{} ports for each pair of address and destination",
        grouped(need)
    );
    Requirement::new("ip_local_port_range", Side::Client, need_text)
        .check(|requirement| enough_ports(requirement, preflight, need))
}

fn enough_ports(requirement: &Requirement<'_>, preflight: &Preflight, need: u64) -> Ruling {
    let (low, high) = requirement.read(preflight.client.port_range)?;
    let reserved = reserved_list(&preflight.client).into_iter();
    let taken = reserved.filter(|port| (low..=high).contains(port)).count() as u64;
    // Both ends of `ip_local_port_range` are usable.
    let ports = (u64::from(high) + 1)
        .saturating_sub(u64::from(low))
        .saturating_sub(taken);
    let valid = (ports as f64 * USABLE) as u64;
    let have = format!("{low} to {high}, {} valid", grouped(valid));
    let is_met = need <= valid || preflight.ports == Ports::Explicit;

    if preflight.ports == Ports::Auto {
        let remedy = advise("the generator chooses ports itself where the kernel's do not suffice");
        return requirement.ruling(is_met, Severity::Info, have, remedy);
    }

    let pairs = pairs(preflight);
    let cells = preflight.cells_where(|key| u64::from(key.connections).div_ceil(pairs) > valid);
    let old = format!("{low} {high}");
    let ruling = requirement.ruling(is_met, Severity::Blocker, have, |found| {
        found
            .variable("net.ipv4.ip_local_port_range", Some(old), "1024 65535")
            .advice(MORE_PORTS)
    })?;

    Ok(ruling.subjects(cells))
}

/// Fails if connections may take a port that a program of this host listens on or will want.
fn reserved(preflight: &Preflight) -> Check {
    let client = &preflight.client;
    let used = match (preflight.ports, client.port_range) {
        (Ports::Auto | Ports::Kernel, Some((low, high))) => low..=high,
        _ => EXPLICIT,
    };
    let reserved = reserved_list(client);
    let mut open = client.listening_ports.clone();
    open.retain(|port| used.contains(port) && !reserved.contains(port));
    open.sort_unstable();
    open.dedup();

    let low = used.start();
    let high = used.end();
    let need = format!("no listening port in {low} to {high} that is not reserved");
    let words: Vec<String> = open.iter().take(LISTED_MAX).map(u16::to_string).collect();
    let listed = words.join(",");
    let own = client.reserved_ports.as_deref().map_or("", str::trim);
    let separator = if own.is_empty() { "" } else { "," };
    let list = format!("{own}{separator}{listed}");

    let have = if open.is_empty() {
        "none".to_owned()
    } else {
        listed
    };
    Requirement::new("ip_local_reserved_ports", Side::Client, need).check(|it| {
        it.ruling(open.is_empty(), Severity::Medium, have, |found| {
            found.variable(
                "net.ipv4.ip_local_reserved_ports",
                client.reserved_ports.as_deref(),
                &list,
            )
        })
    })
}

/// `8080,9000-9010` as ports.
fn reserved_list(host: &Environment) -> Vec<u16> {
    let words = host.reserved_ports.as_deref().unwrap_or("").split(',');
    words
        .filter_map(|word| {
            let (low, high) = word
                .trim()
                .split_once('-')
                .unwrap_or((word.trim(), word.trim()));
            Some(low.parse::<u16>().ok()?..=high.parse::<u16>().ok()?)
        })
        .flatten()
        .collect()
}

fn time_wait(preflight: &Preflight) -> Check {
    let client = &preflight.client;
    let ports = match (preflight.ports, client.port_range) {
        (Ports::Kernel, Some((low, high))) => u64::from(high.saturating_sub(low)) + 1,
        _ => EXPLICIT.len() as u64,
    };
    let of_ports = (ports * pairs(preflight)) as f64 * TIME_WAIT_OF_PORTS;
    let buckets = client.time_wait.and_then(|sockets| sockets.limit);
    let of_buckets = buckets.map(|buckets| (buckets as f64 * TIME_WAIT_OF_BUCKETS) as u64);
    let most = of_buckets.into_iter().fold(of_ports as u64, u64::min);

    Requirement::new(
        "time_wait",
        Side::Client,
        format!("at most {}", grouped(most)),
    )
    .check(|it| {
        let Peak { peak, .. } = it.read(client.time_wait)?;
        it.ruling(peak <= most, Severity::Medium, grouped(peak), |found| {
            let found = match client.timestamps {
                // TIME_WAIT is left early only by means of timestamps (RFC 6191).
                Some(0) => found,
                _ => found.variable("net.ipv4.tcp_tw_reuse", client.tw_reuse, "1"),
            };
            found.advice("wait 60 s, which the kernel fixes, or use --close rst, which leaves none")
        })
    })
}
