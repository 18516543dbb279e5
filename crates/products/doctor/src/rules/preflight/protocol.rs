//! Inside TLS and in HTTP/2 a connection costs the generator much more than in plain text, so it
//! may have fewer of them.

use linerate_model::finding::Severity;
use linerate_model::http::units::grouped;
use linerate_model::http::{Check, Side};

use super::plan::Preflight;
use super::requirement::Requirement;
use crate::rules::remedies::advise;

/// Most connections of the generator inside TLS or in HTTP/2: more cost gigabytes.
const CONNECTIONS_MAX: u32 = 10_000;
/// Most requests at a time over all of them.
const SLOTS_MAX: u64 = 65_536;

const PLAIN: &str = "HTTP/1.1 in plain text (http:// without --h2) holds more";

/// Why the generator cannot have this number of connections, each with this number of requests at a
/// time, inside TLS or in HTTP/2; `None` where it can.
pub fn too_many_connections(connections: u32, streams: u32) -> Option<String> {
    exceeds(connections, streams).then(|| {
        format!(
            "inside TLS and in HTTP/2 a connection takes tens of kilobytes: at most {}; {PLAIN}",
            limits()
        )
    })
}

pub(super) fn check(preflight: &Preflight) -> Option<Check> {
    if preflight.is_plain_http1 {
        return None;
    }

    let streams = preflight.streams;
    let (each, fewer) = if streams > 1 {
        let each = format!(", {} streams on each", grouped(u64::from(streams)));
        (each, "fewer connections or streams in the plan")
    } else {
        (String::new(), "fewer connections in the plan")
    };
    let need = format!("{} connections{each}", grouped(preflight.connections()));
    let have = format!("at most {}", limits());
    let cells = preflight.cells_where(|key| exceeds(key.connections, streams));
    let remedy = advise(format!("{fewer}; {PLAIN}"));
    let requirement = Requirement::new("protocol", Side::Client, need);

    Some(requirement.check(|it| {
        Ok(it
            .ruling(cells.is_empty(), Severity::Blocker, have, remedy)?
            .subjects(cells))
    }))
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
