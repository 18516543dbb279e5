//! Server statistics: each thread writes its own counters, other threads read them.

use std::sync::atomic::{AtomicU64, Ordering};

impl ThreadStats {
    /// Connections that are open now.
    pub fn open(&self) -> u64 {
        self.accepted.saturating_sub(self.closed)
    }
}

/// Statistics of a server since its start.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServerStats {
    /// Per thread, in the order of their start.
    pub threads: Vec<ThreadStats>,
}

/// Lists every counter once; statistics, counters, snapshot and sum are generated from it.
macro_rules! stats {
    ($($(#[$doc:meta])+ $name:ident,)+) => {
        /// Statistics of one thread since the start of the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct ThreadStats {
            $($(#[$doc])+ pub $name: u64,)+
        }

        /// Counters of one thread. On cache lines of their own, so that writing them costs nothing.
        #[derive(Debug, Default)]
        #[repr(align(128))]
        pub(crate) struct Counters {
            $(pub(crate) $name: Counter,)+
        }

        impl Counters {
            /// Current values; related counters may differ by one event.
            pub(crate) fn snapshot(&self) -> ThreadStats {
                ThreadStats { $($name: self.$name.get(),)+ }
            }
        }

        impl ServerStats {
            /// Sum over all threads.
            pub fn total(&self) -> ThreadStats {
                let sum = |of: fn(&ThreadStats) -> u64| self.threads.iter().map(of).sum();
                ThreadStats { $($name: sum(|thread| thread.$name),)+ }
            }
        }
    };
}

stats!(
    /// Connections accepted, without those rejected at the limit.
    accepted,
    /// Accepted connections that have closed.
    closed,
    /// Connections rejected with 503 at the limit.
    refused_at_limit,
    /// Connections closed because the access list excludes their address.
    refused_by_address,
    /// accept(2) failures for lack of a descriptor or memory.
    descriptors_exhausted,
    /// Requests with a complete header, valid or not.
    requests,
    /// Responses queued.
    responses,
    /// Responses with a status of 400 or above.
    error_responses,
    /// Bytes of the bodies of these responses.
    payload_bytes,
    /// Bytes sent, headers included.
    sent_bytes,
    /// Bytes received, headers included.
    received_bytes,
    /// Connections closed by the idle timeout.
    timed_out,
);

/// A counter with one writer.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    /// Adds without a locked instruction. Only the thread that owns the counter may call this:
    /// concurrent writers would lose counts.
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
    fn threads_are_summed() {
        let (first, second) = (Counters::default(), Counters::default());
        first.accepted.add(3);
        first.closed.add(1);
        second.accepted.add(2);
        second.sent_bytes.add(100);

        let stats = ServerStats {
            threads: vec![first.snapshot(), second.snapshot()],
        };
        let total = stats.total();
        assert_eq!(
            (total.accepted, total.closed, total.open(), total.sent_bytes),
            (5, 1, 4, 100)
        );
        assert_eq!(stats.threads[0].open(), 2);
    }
}
