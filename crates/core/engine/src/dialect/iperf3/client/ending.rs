//! The end of a test on the side that decides it: what is sent arrives, what was sent to this end
//! is read.

use linerate_sys::clock;

use crate::data::run::{Drain, TestRun};

/// State of the end.
pub(super) struct Ending {
    /// The server has stopped, and its streams are read to their end; then the results are handed
    /// in. Otherwise the senders have stopped, and the server has not acknowledged all they wrote;
    /// then the end of the test is announced.
    pub is_of_receivers: bool,
    drain: Drain,
    /// The last poll found nothing left. The worker may have taken the last bytes a moment before
    /// and not counted them yet, so a second poll confirms it.
    was_read: bool,
}

impl Ending {
    pub(super) fn drain_senders() -> Self {
        Self {
            is_of_receivers: false,
            drain: Drain::of_timed_senders(clock::monotonic_ns()),
            was_read: false,
        }
    }

    pub(super) fn drain_receivers() -> Self {
        Self {
            is_of_receivers: true,
            drain: Drain::of_closed_streams(clock::monotonic_ns()),
            was_read: false,
        }
    }

    /// When to poll again, monotonic ns.
    pub(super) fn poll_ns(&self) -> u64 {
        self.drain.poll_ns
    }

    /// Nothing is left to wait for.
    pub(super) fn is_over(&mut self, run: &TestRun) -> bool {
        let now_ns = clock::monotonic_ns();
        if !self.is_of_receivers {
            let bytes = u64::MAX - run.outstanding_bytes();
            return self.drain.is_over(now_ns, bytes);
        }
        if now_ns < self.drain.poll_ns {
            return false;
        }

        let is_over = self.drain.is_over(now_ns, run.received_bytes());
        let is_read = run.has_read_all_streams();
        let is_confirmed = std::mem::replace(&mut self.was_read, is_read) && is_read;
        is_over || is_confirmed
    }
}
