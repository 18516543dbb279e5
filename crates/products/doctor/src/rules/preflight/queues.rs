//! Queues of the server: connections that wait to be accepted, and those that are being opened.
//!
//! They warn and do not fail: a queue that overflows is something an experiment may want to see.

use linerate_model::http::units::grouped;
use linerate_model::http::{Check, Environment, Side};

use super::plan::Preflight;
use super::requirement::{Requirement, at_least};
use crate::rules::prelude::*;
use crate::rules::remedies::LONGER_BACKLOG;

/// A server may be busy with other work for this long while connections arrive.
const BUSY_S: f64 = 0.5;
/// From this ramp on the queue of half-open connections matters.
const FAST_RAMP_PER_S: u32 = 2000;
const SYN_BACKLOG_MIN: u64 = 4096;
/// Longer than any ramp fills.
const QUEUE_LONG: u64 = 65_535;

pub(super) fn checks(preflight: &Preflight, server: &Environment) -> [Check; 2] {
    let need = queued(preflight, preflight.connections());
    let syn_need = format!(
        "at least {} above {FAST_RAMP_PER_S} connections per second",
        grouped(SYN_BACKLOG_MIN)
    );
    [
        at_least("backlog", Side::Server, need).check(|queue| {
            // The kernel takes the lesser of the program's backlog and `somaxconn`.
            let backlog = queue.read(server.backlog.into_iter().chain(server.somaxconn).min())?;
            let cells = preflight
                .cells_where(|key| queued(preflight, u64::from(key.connections)) > backlog);

            let remedy = |found: Match| {
                found
                    .raise_variable("net.core.somaxconn", server.somaxconn, QUEUE_LONG)
                    .advice(LONGER_BACKLOG)
            };
            Ok(queue
                .ruling(backlog >= need, Severity::Medium, grouped(backlog), remedy)?
                .subjects(cells))
        }),
        Requirement::new("tcp_max_syn_backlog", Side::Server, syn_need).check(|queue| {
            let backlog = queue.read(server.max_syn_backlog)?;
            let is_slow = preflight
                .ramp_per_s
                .is_some_and(|rate| rate <= FAST_RAMP_PER_S);
            let is_met = backlog >= SYN_BACKLOG_MIN || is_slow;
            queue.ruling(is_met, Severity::Medium, grouped(backlog), |found| {
                found.variable(
                    "net.ipv4.tcp_max_syn_backlog",
                    Some(backlog),
                    &QUEUE_LONG.to_string(),
                )
            })
        }),
    ]
}

/// Connections that arrive while the server is busy.
fn queued(preflight: &Preflight, connections: u64) -> u64 {
    let of_ramp = |rate: u32| connections.min((f64::from(rate) * BUSY_S) as u64);
    preflight.ramp_per_s.map_or(connections, of_ramp)
}
