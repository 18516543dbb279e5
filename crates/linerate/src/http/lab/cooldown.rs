//! Between two runs: both hosts come to rest.

use std::thread;
use std::time::{Duration, Instant};

use super::target::TargetServer;
use crate::http::rest::{REST_WINDOW, is_quiet};
use crate::http::signals::Stop;
use crate::http::watch::{STEP, Watch};

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

/// A longer pause would not help: something else keeps the hosts busy.
const LONGEST: Duration = Duration::from_secs(90);
const TIMEOUT_FACTOR: u32 = 10;
