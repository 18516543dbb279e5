//! What a server has done so far. Every thread writes figures of its own; whoever wants to know reads them.

use std::sync::atomic::{AtomicU64, Ordering};

/// Figures of one thread, since the start of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct ThreadFigures {
    /// Connections taken, those that were refused at the limit not counted.
    pub accepted: u64,
    /// Connections of these that have ended.
    pub closed: u64,
    /// Connections answered 503, because there were too many.
    pub refused_at_limit: u64,
    /// Connections closed without an answer, because their address is not served.
    pub refused_by_address: u64,
    /// Times the system had no descriptor for a connection.
    pub descriptors_exhausted: u64,
    /// Requests whose head was read, valid or not.
    pub requests: u64,
    /// Answers begun.
    pub responses: u64,
    /// Answers with a status of 400 or above.
    pub error_responses: u64,
    /// Bytes of the bodies of answers begun.
    pub payload_bytes: u64,
    /// Bytes written to sockets, heads included.
    pub sent_bytes: u64,
    /// Bytes read from sockets, heads included.
    pub received_bytes: u64,
    /// Connections closed because they made no progress.
    pub timed_out: u64,
}

impl ThreadFigures {
    /// Connections that are open now.
    #[must_use]
    pub fn open(&self) -> u64 {
        self.accepted.saturating_sub(self.closed)
    }
}

/// Figures of a server, since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Figures {
    /// Thread by thread, in the order they were started.
    pub threads: Vec<ThreadFigures>,
}

/// Names every figure once; the counters and the sums are made from it.
macro_rules! figures {
    ($($name:ident),+ $(,)?) => {
        /// Figures one thread writes and others read. A cache line pair of its own, so that writing costs nothing.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Counters {
            /// What stands there now; figures that belong together may be an event apart.
            pub(crate) fn snapshot(&self) -> ThreadFigures {
                ThreadFigures { $($name: self.$name.get(),)+ }
            }
        }

        impl Figures {
            /// All threads together.
            #[must_use]
            pub fn total(&self) -> ThreadFigures {
                let sum = |of: fn(&ThreadFigures) -> u64| self.threads.iter().map(of).sum();
                ThreadFigures { $($name: sum(|thread| thread.$name),)+ }
            }
        }
    };
}

figures!(
    accepted,
    closed,
    refused_at_limit,
    refused_by_address,
    descriptors_exhausted,
    requests,
    responses,
    error_responses,
    payload_bytes,
    sent_bytes,
    received_bytes,
    timed_out,
);

/// A number with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Counts. Only the thread that owns the counter may call this: two writers would lose counts, and paying for
    /// their exclusion is what this avoids.
    pub(crate) fn add(&self, amount: u64) {
        let value = self.0.load(Ordering::Relaxed).wrapping_add(amount);
        self.0.store(value, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_add_up() {
        let (first, second) = (Counters::default(), Counters::default());
        first.accepted.add(3);
        first.closed.add(1);
        second.accepted.add(2);
        second.sent_bytes.add(100);
        let figures = Figures {
            threads: vec![first.snapshot(), second.snapshot()],
        };
        let total = figures.total();
        assert_eq!(
            (total.accepted, total.closed, total.open(), total.sent_bytes),
            (5, 1, 4, 100)
        );
        assert_eq!(figures.threads[0].open(), 2);
    }
}
