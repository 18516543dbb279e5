//! Memory of a host that every connection takes: an entry of connection tracking, kernel memory,
//! buffers.

use linerate_model::http::units::{bytes_name, grouped};
use linerate_model::http::{CellKey, Check, Environment, Phase, Side};

use super::plan::Preflight;
use super::requirement::Requirement;
use crate::rules::prelude::*;
use crate::rules::remedies::{advise, untracked};

/// Entries for each connection: those that are ending stay a while.
const TRACKED_PER_CONNECTION: f64 = 1.2;
/// Memory of the kernel for an open connection.
const KERNEL_BYTES: u64 = 4096;
/// Memory of a program for an open connection; ours need less, others more.
const USER_BYTES: u64 = 1024;
/// Memory of a program for an open connection inside TLS or in HTTP/2, whose connections own their
/// buffers: ours take 25 to 42 KB at either end.
const USER_BYTES_HYPER: u64 = 48 * 1024;
/// Most of a body that waits in a socket: the usual upper end of `net.ipv4.tcp_wmem`.
const BUFFER_BYTES_MAX: u64 = 4 << 20;
/// Share of the available memory a plan may take.
const MEMORY_SHARE: f64 = 0.5;
const PAGE_BYTES: u64 = 4096;
/// Entries that are enough for every plan of usual size.
const CONNTRACK_USUAL: u64 = 1_048_576;

pub(super) fn checks(preflight: &Preflight, side: Side, host: &Environment) -> [Check; 3] {
    let entries = tracked(preflight.connections());
    let bytes = preflight.largest(|key| bytes(preflight, key));
    let pages = preflight.largest(socket_bytes).div_ceil(PAGE_BYTES);
    let memory_need = format!("{}, at most half of it", bytes_name(bytes as f64));
    let pages_need = format!("{} pages before the kernel saves memory", grouped(pages));

    [
        Requirement::new(
            "conntrack",
            side,
            format!("{} free entries", grouped(entries)),
        )
        .check(|requirement| conntrack(requirement, preflight, host)),
        Requirement::new("memory", side, memory_need)
            .check(|requirement| memory(requirement, preflight, host, bytes)),
        Requirement::new("tcp_mem", side, pages_need)
            .check(|requirement| socket_memory(requirement, preflight, host, pages)),
    ]
}

fn tracked(connections: u64) -> u64 {
    (connections as f64 * TRACKED_PER_CONNECTION) as u64
}

fn conntrack(requirement: &Requirement<'_>, preflight: &Preflight, host: &Environment) -> Ruling {
    let table = host.conntrack.or_clear("not active")?;
    let limit = requirement.read(table.limit)?;
    // A limit that was lowered can be below the peak.
    let free = limit.saturating_sub(table.peak);
    let have = format!("{} of {} in use", grouped(table.peak), grouped(limit));
    let is_met = free >= tracked(preflight.connections());
    let cells = preflight.cells_where(|key| tracked(u64::from(key.connections)) > free);
    let least = table
        .peak
        .saturating_add(tracked(preflight.connections()))
        .max(CONNTRACK_USUAL);
    let ruling = requirement.ruling(is_met, Severity::Blocker, have, |found| {
        let advice = format!("or {}", untracked(preflight.port));
        found
            .raise_variable("net.netfilter.nf_conntrack_max", Some(limit), least)
            .advice(advice)
    })?;

    Ok(ruling.subjects(cells))
}

/// Bytes of a cell in sockets: the kernel's own, and the bodies of connections that are all busy.
fn socket_bytes(key: &CellKey) -> u64 {
    let body = match key.phase {
        Phase::Idle | Phase::LowRate => 0,
        _ => key.payload_bytes.min(BUFFER_BYTES_MAX),
    };
    u64::from(key.connections).saturating_mul(KERNEL_BYTES + body)
}

/// Bytes of a cell in sockets and in a program.
fn bytes(preflight: &Preflight, key: &CellKey) -> u64 {
    let user_bytes = if preflight.is_plain_http1 {
        USER_BYTES
    } else {
        USER_BYTES_HYPER
    };
    socket_bytes(key).saturating_add(u64::from(key.connections) * user_bytes)
}

fn memory(
    requirement: &Requirement<'_>,
    preflight: &Preflight,
    host: &Environment,
    need: u64,
) -> Ruling {
    let available = requirement.read(host.memory_available_bytes)?;
    let most = (available as f64 * MEMORY_SHARE) as u64;
    let have = format!("{} available", bytes_name(available as f64));
    let cells = preflight.cells_where(|key| bytes(preflight, key) > most);
    let remedy = advise("fewer connections or smaller payloads in the plan");

    Ok(requirement
        .ruling(need <= most, Severity::Blocker, have, remedy)?
        .subjects(cells))
}

/// Above the second value of `tcp_mem` the kernel saves memory, which slows all connections down.
fn socket_memory(
    requirement: &Requirement<'_>,
    preflight: &Preflight,
    host: &Environment,
    need: u64,
) -> Ruling {
    let old = requirement.read(host.tcp_mem_pages)?;
    let [_, pressure, _] = old;
    let have = format!("{} pages", grouped(pressure));
    let cells = preflight.cells_where(|key| socket_bytes(key).div_ceil(PAGE_BYTES) > pressure);

    let ruling = requirement.ruling(need <= pressure, Severity::Medium, have, |found| {
        let more = need.saturating_mul(2);
        let words = |[low, pressure, high]: [u64; 3]| format!("{low} {pressure} {high}");
        // The kernel's own proportions of the three values: 3/4, 1 and 3/2 of the second.
        let new = [more / 4 * 3, more, more.saturating_add(more / 2)];
        found.variable("net.ipv4.tcp_mem", Some(words(old)), &words(new))
    })?;
    Ok(ruling.subjects(cells))
}
