//! Between two runs: both hosts come to rest.

use std::thread;
use std::time::{Duration, Instant};

use super::target::TargetServer;
use crate::run::Stop;
use crate::run::idle_check::{REST_WINDOW, Rest, rest_of};
use crate::run::watch::{STEP, Watch};

/// Waits at least `least`, then until both hosts are quiet. Returns whether they are. No wait
/// without `least`.
pub(super) fn rest(
    least: Duration,
    target: &mut TargetServer,
    watch: &Watch,
    stop: &mut Stop,
) -> bool {
    let begun = Instant::now();
    while begun.elapsed() < least {
        if stop.is_wanted() {
            return true;
        }
        // In parts, so that a signal ends the wait.
        thread::sleep(REST_WINDOW.min(least.saturating_sub(begun.elapsed())));
    }

    while !least.is_zero() && !stop.is_wanted() {
        let longest = match rest_of_both(target, watch) {
            Rest::Quiet => return true,
            Rest::Busy => least + BUSY_TIMEOUT,
            Rest::Connections => (least * TIMEOUT_FACTOR).min(LONGEST),
        };
        if begun.elapsed() >= longest {
            return false;
        }
    }

    true
}

fn rest_of_both(target: &mut TargetServer, watch: &Watch) -> Rest {
    watch.begin(Some(target.address().ip()), STEP);
    let server = match &mut target.server {
        Some(side) => side.rest().unwrap_or(Rest::Quiet),
        None => {
            thread::sleep(REST_WINDOW);
            Rest::Quiet
        }
    };
    watch
        .end()
        .map_or(Rest::Quiet, |stats| rest_of(&stats))
        .max(server)
}

/// Work of an earlier run is done after the least pause; what still keeps CPUs busy are other
/// programs, which continue.
const BUSY_TIMEOUT: Duration = Duration::from_millis(500);
/// Sockets in TIME_WAIT take a minute.
const LONGEST: Duration = Duration::from_secs(90);
const TIMEOUT_FACTOR: u32 = 10;
