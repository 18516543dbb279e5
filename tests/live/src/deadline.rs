//! Waiting for something that happens outside this process.

use std::thread;
use std::time::{Duration, Instant};

/// Time that a test waits before it calls a program hung. Generous, because a busy machine is not a
/// defect.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The kernel offers no notification for most of what tests wait for (a listener, an exit, a line
/// of output of another process), so the question is asked again in this rhythm.
const RHYTHM: Duration = Duration::from_millis(2);

/// Asks until there is an answer; `None` when `limit` has passed without one.
pub fn wait_for<T>(limit: Duration, mut question: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + limit;
    loop {
        if let Some(response) = question() {
            return Some(response);
        }
        if Instant::now() >= end {
            return None;
        }

        thread::sleep(RHYTHM);
    }
}

/// Asks until it is so; `false` when `limit` has passed before.
pub fn wait_until(limit: Duration, mut condition: impl FnMut() -> bool) -> bool {
    wait_for(limit, || condition().then_some(())).is_some()
}
