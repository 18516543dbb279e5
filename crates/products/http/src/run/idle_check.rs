//! Check that a host is at rest: nothing of an earlier test is left on it.

use std::time::Duration;

use linerate_model::http::EndpointStats;

/// Duration of the sample that decides whether both hosts are at rest.
pub(super) const REST_WINDOW: Duration = Duration::from_millis(200);

/// Remains of an earlier test on a host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rest {
    /// Nothing: its CPUs idle, its test connections are gone, and the old ones do not take the
    /// ports.
    Quiet,
    /// Its CPUs are busy, which other programs may cause.
    Busy,
    /// Connections or ports.
    Connections,
}

pub(super) fn rest_of(stats: &EndpointStats) -> Rest {
    // What the host cannot read delays no run.
    let is_idle = stats.cpu_busy.is_none_or(|busy| busy < BUSY_MAX);
    let is_empty = stats.connections.is_none_or(|open| open <= CONNECTIONS_MAX)
        && stats.accept_queue.is_none_or(|queue| queue.peak == 0);

    let has_ports = stats.ports.is_none_or(|ports| {
        let waiting = stats.time_wait.map_or(0, |waiting| waiting.peak);
        ports.limit.is_none_or(|limit| waiting * 4 <= limit)
    });
    match (is_empty && has_ports, is_idle) {
        (false, _) => Rest::Connections,
        (true, false) => Rest::Busy,
        (true, true) => Rest::Quiet,
    }
}

const BUSY_MAX: f64 = 0.10;
const CONNECTIONS_MAX: u64 = 8;
