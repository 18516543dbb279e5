//! Rule 2: a limit of the server's host or program.

use linerate_model::http::units::percent;
use linerate_model::http::{CellFacts, EndpointFacts, ErrorClass, ErrorCount, ErrorCounts};

use super::client::FDS_FULL;
use super::condition::{Condition, any, at_least, happened};
use super::ends::fullness;
use crate::rules::prelude::*;
use crate::rules::remedies::{LONGER_BACKLOG, descriptors, untracked};

/// Connections may be lost, or refused by the server, for this share of what ended.
const REFUSED_MAX: f64 = 0.001;
/// A table of connection tracking is full from here on: the last entries come and go.
const CONNTRACK_FULL: f64 = 0.99;
const LOST: [ErrorClass; 4] = [
    ErrorClass::ResetBeforeAnswer,
    ErrorClass::ResetMidAnswer,
    ErrorClass::ResetIdle,
    ErrorClass::Eof,
];

pub(super) fn limit(facts: &CellFacts) -> Ruling {
    let mut found = refused(facts);
    if let Some(server) = &facts.server {
        found.extend(overflowed(server));
        found.extend(full(facts, server));
    }
    any(found)
}

/// The server rejects connections because it has too many.
pub(super) fn refused_connections(facts: &CellFacts) -> Ruling {
    let is_503 = |text: &String| text.starts_with("status 503");
    let entry = facts
        .errors
        .iter()
        .find(|(class, error)| *class == ErrorClass::Status5xx && error.texts.iter().any(is_503));
    let share = facts.error_share(&[ErrorClass::Status5xx]);

    // A refused connection is one of few, a refused request one of many.
    // 48 refused connections beside 55,000 answers are fewer than one in a thousand.
    let is_unasked = |error: &ErrorCount| {
        error
            .texts
            .iter()
            .any(|text| text == ErrorCounts::UNASKED_503)
    };
    let (_, error) = entry
        .filter(|(_, error)| share > REFUSED_MAX || is_unasked(error))
        .or_clear("no connection was refused with 503")?;
    let what = if is_unasked(error) {
        "connections that the server refused with 503"
    } else {
        "requests that the server refused with 503"
    };

    let advice = format!(
        "the server is at its limit of connections or requests: `linerate http serve --max-conns \
         N` with more than {} (nginx: worker_connections)",
        facts.key.connections
    );
    any(happened(what, Some(error.count))
        .map(|condition| (condition, advice))
        .into_iter()
        .collect())
}

fn refused(facts: &CellFacts) -> Vec<(Condition, String)> {
    let kinds = [
        (
            &LOST[..],
            "reset or closed by the server",
            "check its keep-alive limits, its crashes and its log",
        ),
        (
            &[ErrorClass::Status5xx][..],
            "answered with 5xx",
            "check the server's limits and its log",
        ),
    ];
    let kinds = kinds
        .into_iter()
        .map(|(classes, what, advice)| (facts.error_share(classes), what, advice));
    kinds
        .filter(|(share, ..)| *share > REFUSED_MAX)
        .map(|(share, what, advice)| {
            let text = format!(
                "{} {what}, more than {}",
                percent(share),
                percent(REFUSED_MAX)
            );
            (Condition::certain(text), advice.to_owned())
        })
        .collect()
}

/// Counters of the kernel that stay constant on a host with room.
fn overflowed(server: &EndpointFacts) -> Vec<(Condition, String)> {
    let queue = format!("raise net.core.somaxconn and {LONGER_BACKLOG}; or a slower --ramp");
    let memory = "fewer connections, or more net.ipv4.tcp_mem on the server".to_owned();
    let counters = [
        ("ListenOverflows", server.listen_overflows, queue.clone()),
        ("ListenDrops", server.listen_drops, queue),
        ("TCPMemoryPressures", server.tcp_memory_pressures, memory),
    ];
    let counters = counters.into_iter();

    counters
        .filter_map(|(name, growth, advice)| {
            Some((happened(&format!("{name} at the server"), growth)?, advice))
        })
        .collect()
}

fn full(facts: &CellFacts, server: &EndpointFacts) -> Vec<(Condition, String)> {
    let descriptors = descriptors(u64::from(facts.key.connections).saturating_mul(2));
    let limits = [
        (
            "descriptors of the server as a share of its limit",
            server.fds,
            FDS_FULL,
            descriptors,
        ),
        (
            "connection tracking of the server as a share of its table",
            server.conntrack,
            CONNTRACK_FULL,
            format!(
                "raise net.netfilter.nf_conntrack_max, or {}",
                untracked(facts.port)
            ),
        ),
    ];
    let limits = limits.into_iter();

    limits
        .filter_map(|(what, peak, threshold, advice)| {
            Some((at_least(what, fullness(peak), threshold)?, advice))
        })
        .collect()
}
