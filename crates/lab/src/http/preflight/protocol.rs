//! Inside TLS and in HTTP/2 a connection costs the generator much more than in plain text, so it may have fewer of them.

use linerate_model::http::{Check, CheckStatus, Side};

use super::{Preflight, not_passed, passed};
use crate::http::units::grouped;

/// Most connections of the generator inside TLS or in HTTP/2: more cost gigabytes.
const CONNECTIONS_MAX: u32 = 10_000;
/// Most requests at a time over all of them.
const SLOTS_MAX: u64 = 65_536;

/// Why the generator cannot have so many connections, each with so many requests at a time, inside TLS or in HTTP/2;
/// `None` where it can.
#[must_use]
pub fn too_many_connections(connections: u32, streams: u32) -> Option<String> {
    exceeds(connections, streams).then(|| {
        format!(
            "inside TLS and in HTTP/2 a connection takes tens of kilobytes: at most {}; {PLAIN}",
            limits()
        )
    })
}

pub(super) fn checks(preflight: &Preflight<'_>) -> Vec<Check> {
    if preflight.plan.is_plain_http1() {
        return Vec::new();
    }
    let streams = preflight.plan.protocol.streams;
    let each = if streams > 1 {
        format!(", {} streams on each", grouped(u64::from(streams)))
    } else {
        String::new()
    };
    let need = format!("{} connections{each}", grouped(preflight.connections()));
    let check = passed("protocol", Side::Client, format!("at most {}", limits()), need);
    let cells = preflight.cells_where(|key| exceeds(key.connections, streams));
    if cells.is_empty() {
        return vec![check];
    }
    let fewer = if streams > 1 {
        "fewer connections or streams in the plan"
    } else {
        "fewer connections in the plan"
    };
    let fix = vec![fewer.to_owned(), PLAIN.to_owned()];
    vec![Check {
        cells,
        ..not_passed(check, CheckStatus::Fail, fix)
    }]
}

fn exceeds(connections: u32, streams: u32) -> bool {
    connections > CONNECTIONS_MAX || u64::from(connections) * u64::from(streams) > SLOTS_MAX
}

fn limits() -> String {
    format!(
        "{} connections and {} streams together",
        grouped(u64::from(CONNECTIONS_MAX)),
        grouped(SLOTS_MAX)
    )
}

const PLAIN: &str = "HTTP/1.1 in plain text (http:// without --h2) holds more";
