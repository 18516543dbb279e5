//! Whether a host is at rest: nothing of an earlier test is left on it.

use std::time::Duration;

use linerate_model::http::EndpointStats;

/// How long both hosts are looked at to know whether they are at rest.
pub(super) const REST_WINDOW: Duration = Duration::from_millis(200);

/// A host whose CPUs idle, whose test connections are gone, and whose old ones do not take the ports.
pub(super) fn is_quiet(stats: &EndpointStats) -> bool {
    let is_idle = stats.cpu_busy.is_none_or(|busy| busy < BUSY_MAX);
    let is_empty = stats.connections.is_none_or(|open| open <= CONNECTIONS_MAX)
        && stats.accept_queue.is_none_or(|queue| queue.peak == 0);
    let has_ports = stats.ports.is_none_or(|ports| {
        let waiting = stats.time_wait.map_or(0, |waiting| waiting.peak);
        ports.limit.is_none_or(|limit| waiting * 4 <= limit)
    });
    is_idle && is_empty && has_ports
}

const BUSY_MAX: f64 = 0.10;
const CONNECTIONS_MAX: u64 = 8;
