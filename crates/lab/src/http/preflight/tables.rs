//! What every connection takes of a host's memory: an entry of connection tracking, kernel memory, buffers.

use linerate_model::http::{CellKey, Check, CheckStatus, Environment, Phase, Side};

use super::{Preflight, not_passed, passed, unknown};
use crate::http::fixes;
use crate::http::units::{bytes_name, grouped};

/// Entries for each connection: those that are ending stay a while.
const TRACKED_PER_CONNECTION: f64 = 1.2;
/// Memory of the kernel for an open connection.
const KERNEL_BYTES: u64 = 4096;
/// Memory of a program for an open connection; ours need less, others more.
const USER_BYTES: u64 = 1024;
/// The same inside TLS or in HTTP/2, whose connections own their buffers: ours take 25 to 42 KB at either end.
const USER_BYTES_HYPER: u64 = 48 * 1024;
/// Most of a body that waits in a socket: the usual upper end of `net.ipv4.tcp_wmem`.
const BUFFER_BYTES_MAX: u64 = 4 << 20;
/// Share of the available memory a plan may take.
const MEMORY_SHARE: f64 = 0.5;
const PAGE_BYTES: u64 = 4096;

pub(super) fn checks(preflight: &Preflight<'_>, side: Side, host: &Environment) -> Vec<Check> {
    vec![
        conntrack(preflight, side, host),
        memory(preflight, side, host),
        socket_memory(preflight, side, host),
    ]
}

fn conntrack(preflight: &Preflight<'_>, side: Side, host: &Environment) -> Check {
    const ID: &str = "conntrack";
    let entries = |connections: u64| (connections as f64 * TRACKED_PER_CONNECTION) as u64;
    let need = entries(preflight.connections());
    let need_text = format!("{} free entries", grouped(need));
    let Some(table) = host.conntrack else {
        return passed(ID, side, "not active", need_text);
    };
    let Some(limit) = table.limit else {
        return unknown(ID, side, need_text);
    };
    let free = limit.saturating_sub(table.peak);
    let check = passed(
        ID,
        side,
        format!("{} of {} in use", grouped(table.peak), grouped(limit)),
        need_text,
    );
    if free >= need {
        return check;
    }
    Check {
        cells: preflight.cells_where(|key| entries(u64::from(key.connections)) > free),
        ..not_passed(check, CheckStatus::Fail, fixes::conntrack(side, preflight.path.port))
    }
}

/// Bytes of a cell in sockets: the kernel's own, and the bodies of connections that are all busy.
fn socket_bytes(key: &CellKey) -> u64 {
    let body = match key.phase {
        Phase::Idle | Phase::LowRate | Phase::Baseline => 0,
        Phase::Payload | Phase::Matrix | Phase::Active => key.payload_bytes.min(BUFFER_BYTES_MAX),
    };
    u64::from(key.connections).saturating_mul(KERNEL_BYTES + body)
}

fn largest(preflight: &Preflight<'_>, of: impl Fn(&CellKey) -> u64) -> u64 {
    preflight.cells.iter().map(of).max().unwrap_or(0)
}

fn memory(preflight: &Preflight<'_>, side: Side, host: &Environment) -> Check {
    const ID: &str = "memory";
    let user_bytes = if preflight.plan.is_plain_http1() {
        USER_BYTES
    } else {
        USER_BYTES_HYPER
    };
    let bytes = |key: &CellKey| socket_bytes(key).saturating_add(u64::from(key.connections) * user_bytes);
    let need = largest(preflight, bytes);
    let need_text = format!("{}, at most half of it", bytes_name(need as f64));
    let Some(available) = host.memory_available_bytes else {
        return unknown(ID, side, need_text);
    };
    let most = (available as f64 * MEMORY_SHARE) as u64;
    let check = passed(
        ID,
        side,
        format!("{} available", bytes_name(available as f64)),
        need_text,
    );
    if need <= most {
        return check;
    }
    Check {
        cells: preflight.cells_where(|key| bytes(key) > most),
        ..not_passed(
            check,
            CheckStatus::Fail,
            vec!["fewer connections or smaller payloads in the plan".to_owned()],
        )
    }
}

/// Above the second value of `tcp_mem` the kernel saves memory, which slows all connections down.
fn socket_memory(preflight: &Preflight<'_>, side: Side, host: &Environment) -> Check {
    const ID: &str = "tcp_mem";
    let pages = |key: &CellKey| socket_bytes(key).div_ceil(PAGE_BYTES);
    let need = largest(preflight, socket_bytes).div_ceil(PAGE_BYTES);
    let need_text = format!("{} pages before the kernel saves memory", grouped(need));
    let Some([_, pressure, _]) = host.tcp_mem_pages else {
        return unknown(ID, side, need_text);
    };
    let check = passed(ID, side, format!("{} pages", grouped(pressure)), need_text);
    if need <= pressure {
        return check;
    }
    Check {
        cells: preflight.cells_where(|key| pages(key) > pressure),
        ..not_passed(check, CheckStatus::Warn, fixes::socket_memory(need.saturating_mul(2)))
    }
}
