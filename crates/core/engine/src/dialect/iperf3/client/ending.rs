//! The end of a test on the side that decides it: what is sent arrives, what was sent to this end
//! is read.

use linerate_sys::clock;

use crate::data::run::{ReceiverDrain, SenderDrain, TestRun};

/// State of the end.
pub(super) enum Ending {
    /// The senders have stopped; the server has not acknowledged all they wrote. Then the end of
    /// the test is announced.
    Senders(SenderDrain),
    /// The server has stopped; its streams are read to their end. Then the results are handed in.
    Receivers {
        drain: ReceiverDrain,
        /// The last poll found nothing left. The worker may have taken the last bytes a moment
        /// before and not counted them yet, so a second poll confirms it.
        was_read: bool,
    },
}

impl Ending {
    pub(super) fn drain_senders() -> Self {
        Self::Senders(SenderDrain::timed(clock::monotonic_ns()))
    }

    pub(super) fn drain_receivers() -> Self {
        Self::Receivers {
            drain: ReceiverDrain::of_closed_streams(clock::monotonic_ns()),
            was_read: false,
        }
    }

    /// When to poll again, monotonic ns.
    pub(super) fn poll_ns(&self) -> u64 {
        match self {
            Self::Senders(drain) => drain.poll_ns(),
            Self::Receivers { drain, .. } => drain.poll_ns(),
        }
    }

    /// Nothing is left to wait for.
    pub(super) fn is_over(&mut self, run: &TestRun) -> bool {
        let now_ns = clock::monotonic_ns();
        match self {
            Self::Senders(drain) => drain.is_over(now_ns, run.outstanding_bytes()),
            Self::Receivers { drain, .. } if now_ns < drain.poll_ns() => false,
            Self::Receivers { drain, was_read } => {
                let is_over = drain.is_over(now_ns, run.received_bytes());
                let is_read = run.has_read_all_streams();
                let is_confirmed = std::mem::replace(was_read, is_read) && is_read;
                is_over || is_confirmed
            }
        }
    }
}
