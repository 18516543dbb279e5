//! Time of the current iteration of the event loop.

use linerate_sys::clock::{monotonic_ns, unix_ns};

use super::connection_table::Ticks;

/// Read once per iteration.
#[derive(Debug)]
pub(super) struct Clock {
    started_ns: u64,
    now_ns: u64,
    next_second_ns: u64,
}

impl Clock {
    pub(super) fn new() -> Self {
        let now_ns = monotonic_ns();
        Self {
            started_ns: now_ns,
            now_ns,
            next_second_ns: now_ns,
        }
    }

    /// Reads the clock; the UNIX time in seconds when it has changed.
    pub(super) fn advance(&mut self) -> Option<u64> {
        self.now_ns = monotonic_ns();
        if self.now_ns < self.next_second_ns {
            return None;
        }

        // The `Date` field has a resolution of one second, so it is formatted once in each.
        let unix_ns = unix_ns();
        // Seconds of the wall clock do not begin with those of the monotonic clock.
        self.next_second_ns = self.now_ns + NS_PER_S - unix_ns % NS_PER_S;
        Some(unix_ns / NS_PER_S)
    }

    pub(super) fn now_ns(&self) -> u64 {
        self.now_ns
    }

    pub(super) fn ticks(&self) -> Ticks {
        // Saturates after 13 years.
        Ticks::try_from((self.now_ns - self.started_ns) / NS_PER_TICK).unwrap_or(Ticks::MAX)
    }
}

const NS_PER_S: u64 = 1_000_000_000;
/// A tenth of a second.
pub(super) const NS_PER_TICK: u64 = NS_PER_S / 10;
