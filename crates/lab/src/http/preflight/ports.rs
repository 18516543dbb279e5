//! Local ports of the client: the kernel's range, reserved ports, and those still in TIME_WAIT.

use std::net::IpAddr;
use std::ops::RangeInclusive;

use linerate_model::http::{Check, CheckStatus, Environment, Peak, Side};

use super::{Preflight, not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::plan::Ports;
use crate::http::units::grouped;

/// Ports the generator chooses from when it chooses.
const EXPLICIT: RangeInclusive<u16> = 1024..=65_535;
/// Share of a range that can be used before the search for a free port takes long.
const USABLE: f64 = 0.95;
/// TIME_WAIT may hold this share of the ports …
const TIME_WAIT_OF_PORTS: f64 = 0.1;
/// … and this share of the kernel's buckets for it.
const TIME_WAIT_OF_BUCKETS: f64 = 0.5;
/// Ports listed in a fix.
const LISTED_MAX: usize = 64;

pub(super) fn checks(preflight: &Preflight<'_>) -> Vec<Check> {
    vec![range(preflight), reserved(preflight), time_wait(preflight)]
}

/// Pairs of a local address and a destination, each with all ports of its own.
fn pairs(preflight: &Preflight<'_>) -> u64 {
    let sources = preflight.plan.source.addresses.len().max(1) as u64;
    sources * u64::from(preflight.path.destinations.max(1))
}

fn range(preflight: &Preflight<'_>) -> Check {
    const ID: &str = "ip_local_port_range";
    let pairs = pairs(preflight);
    let tuples = preflight.connections().div_ceil(pairs);
    let need = format!("{} ports for each pair of address and destination", grouped(tuples));
    let Some((low, high)) = preflight.client.port_range else {
        return unknown(ID, Side::Client, need);
    };
    let reserved = reserved_list(preflight.client).into_iter();
    let taken = reserved.filter(|port| (low..=high).contains(port)).count() as u64;
    let ports = (u64::from(high) + 1)
        .saturating_sub(u64::from(low))
        .saturating_sub(taken);
    let valid = (ports as f64 * USABLE) as u64;
    let check = passed(
        ID,
        Side::Client,
        format!("{low} to {high}, {} valid", grouped(valid)),
        need,
    );
    match preflight.plan.source.ports {
        _ if tuples <= valid => check,
        Ports::Explicit => check,
        Ports::Auto => {
            let fix = vec!["the generator chooses ports itself where the kernel's do not suffice".to_owned()];
            not_passed(check, CheckStatus::Info, fix)
        }
        Ports::Kernel => Check {
            cells: preflight.cells_where(|key| u64::from(key.connections).div_ceil(pairs) > valid),
            ..not_passed(check, CheckStatus::Fail, more_ports(preflight))
        },
    }
}

fn more_ports(preflight: &Preflight<'_>) -> Vec<String> {
    let address = match preflight.path.client {
        // The next address of the same network, as an example that may be free.
        Some(IpAddr::V4(address)) => {
            let [a, b, c, d] = address.octets();
            format!("{a}.{b}.{c}.{}/24", if d < 254 { d + 1 } else { d - 1 })
        }
        _ => "ADDRESS/PREFIX".to_owned(),
    };
    fixes::local_ports(&address, preflight.client.device.as_deref().unwrap_or("DEVICE"))
}

/// Whether connections may take a port that a program of this host listens on or will want.
fn reserved(preflight: &Preflight<'_>) -> Check {
    let used = match (preflight.plan.source.ports, preflight.client.port_range) {
        (Ports::Explicit, _) => EXPLICIT,
        (_, Some((low, high))) => low..=high,
        (_, None) => EXPLICIT,
    };
    let reserved = reserved_list(preflight.client);
    let mut open: Vec<u16> = preflight.client.listening_ports.clone();
    open.retain(|port| used.contains(port) && !reserved.contains(port));
    open.sort_unstable();
    open.dedup();
    let need = format!(
        "no listening port in {} to {} that is not reserved",
        used.start(),
        used.end()
    );
    let check = passed("ip_local_reserved_ports", Side::Client, "none", need);
    if open.is_empty() {
        return check;
    }
    let have = list(&open);
    let own = preflight.client.reserved_ports.as_deref().map_or("", str::trim);
    let all = if own.is_empty() {
        have.clone()
    } else {
        format!("{own},{have}")
    };
    Check {
        have,
        ..not_passed(check, CheckStatus::Warn, fixes::reserved_ports(&all))
    }
}

fn list(ports: &[u16]) -> String {
    let words: Vec<String> = ports.iter().take(LISTED_MAX).map(u16::to_string).collect();
    words.join(",")
}

/// `8080,9000-9010` as ports.
fn reserved_list(host: &Environment) -> Vec<u16> {
    let words = host.reserved_ports.as_deref().unwrap_or("").split(',');
    words
        .filter_map(|word| {
            let (low, high) = word.trim().split_once('-').unwrap_or((word.trim(), word.trim()));
            Some(low.parse::<u16>().ok()?..=high.parse::<u16>().ok()?)
        })
        .flatten()
        .collect()
}

fn time_wait(preflight: &Preflight<'_>) -> Check {
    const ID: &str = "time_wait";
    let ports = match (preflight.plan.source.ports, preflight.client.port_range) {
        (Ports::Kernel, Some((low, high))) => u64::from(high.saturating_sub(low)) + 1,
        _ => EXPLICIT.len() as u64,
    };
    let capacity = ports * pairs(preflight);
    let most = (capacity as f64 * TIME_WAIT_OF_PORTS) as u64;
    let Some(Peak { peak, limit }) = preflight.client.time_wait else {
        return unknown(ID, Side::Client, format!("at most {}", grouped(most)));
    };
    let most = limit.map_or(most, |buckets| most.min((buckets as f64 * TIME_WAIT_OF_BUCKETS) as u64));
    let check = passed(ID, Side::Client, grouped(peak), format!("at most {}", grouped(most)));
    if peak <= most {
        return check;
    }
    not_passed(check, CheckStatus::Warn, fixes::time_wait())
}
