//! Between two runs: both hosts come to rest.

use std::thread;
use std::time::{Duration, Instant};

use linerate_model::http::EndpointStats;

use super::target::TargetServer;
use crate::http::signals::Stop;
use crate::http::watch::{STEP, Watch};

/// How long both hosts are looked at to know whether they are at rest.
pub(crate) const REST_WINDOW: Duration = Duration::from_millis(200);

/// Waits at least `least`, then until both hosts are quiet. Returns whether they are.
pub(super) fn rest(least: Duration, target: &mut TargetServer, watch: &Watch, stop: &mut Stop) -> bool {
    let begun = Instant::now();
    let longest = (least * TIMEOUT_FACTOR).min(LONGEST);
    while begun.elapsed() < least {
        if stop.is_wanted() {
            return true;
        }
        thread::sleep(REST_WINDOW.min(least.saturating_sub(begun.elapsed())));
    }
    while begun.elapsed() < longest && !stop.is_wanted() {
        if are_quiet(target, watch) {
            return true;
        }
    }
    least.is_zero() || are_quiet(target, watch)
}

fn are_quiet(target: &mut TargetServer, watch: &Watch) -> bool {
    watch.begin(Some(target.address().ip()), STEP);
    let is_server_quiet = match &mut target.server {
        Some(side) => side.is_at_rest().unwrap_or(true),
        None => {
            thread::sleep(REST_WINDOW);
            true
        }
    };
    is_server_quiet && watch.end().is_none_or(|stats| is_quiet(&stats))
}

/// A host whose CPUs idle, whose test connections are gone, and whose old ones do not take the ports.
pub(crate) fn is_quiet(stats: &EndpointStats) -> bool {
    let is_idle = stats.cpu_busy.is_none_or(|busy| busy < BUSY_MAX);
    let is_empty = stats.connections.is_none_or(|open| open <= CONNECTIONS_MAX)
        && stats.accept_queue.is_none_or(|queue| queue.peak == 0);
    let has_ports = stats.ports.is_none_or(|ports| {
        let waiting = stats.time_wait.map_or(0, |waiting| waiting.peak);
        ports.limit.is_none_or(|limit| waiting * 4 <= limit)
    });
    is_idle && is_empty && has_ports
}

/// A longer pause would not help: something else keeps the hosts busy.
const LONGEST: Duration = Duration::from_secs(90);
const TIMEOUT_FACTOR: u32 = 10;
const BUSY_MAX: f64 = 0.10;
const CONNECTIONS_MAX: u64 = 8;
