//! Bytes that all tests of a server have moved.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use linerate_model::service::{
    ClientProgress, Outcome, Progress, TestFacts, TestRecord, TransportTotal,
};
use linerate_model::{Failure, StreamRole, Summary, Transport, measure};

use crate::data::run::TestRun;

/// Payload bytes of one test.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ByteTotals {
    pub received_bytes: u64,
    pub sent_bytes: u64,
}

impl ByteTotals {
    pub(crate) fn of(run: &TestRun) -> Self {
        let received_bytes = run.received_bytes();
        Self {
            received_bytes,
            sent_bytes: run.total_bytes().saturating_sub(received_bytes),
        }
    }
}

/// Follows the running tests.
pub(crate) struct ServerStats {
    running: BTreeMap<u64, Running>,
    /// In the order of [`TRANSPORTS`].
    totals: [ByteTotals; 3],
    started: u64,
    since: Instant,
}

struct Running {
    facts: TestFacts,
    /// Most tests that ran beside this one.
    concurrent_max: u32,
    counted: ByteTotals,
    since_last: ByteTotals,
}

const TRANSPORTS: [Transport; 3] = [Transport::Tcp, Transport::Udp, Transport::Sctp];

impl ServerStats {
    pub(crate) fn new(now: Instant) -> Self {
        Self {
            running: BTreeMap::new(),
            totals: [ByteTotals::default(); 3],
            started: 0,
            since: now,
        }
    }

    /// Registers a started test; sets its number and the number of concurrent tests.
    pub(crate) fn start(&mut self, id: u64, now: Instant, mut facts: TestFacts) -> TestFacts {
        if self.running.is_empty() {
            self.since = now;
        }

        self.started += 1;
        facts.number = self.started;
        facts.running_beside = u32::try_from(self.running.len()).unwrap_or(u32::MAX);

        // Kept per test, since the record names the most tests that ran beside it at any time.
        for other in self.running.values_mut() {
            other.concurrent_max = other.concurrent_max.max(facts.running_beside);
        }

        let entry = Running {
            facts: facts.clone(),
            concurrent_max: facts.running_beside,
            counted: ByteTotals::default(),
            since_last: ByteTotals::default(),
        };
        self.running.insert(id, entry);
        facts
    }

    /// Records the bytes a test has moved in total.
    pub(crate) fn update(&mut self, id: u64, moved: ByteTotals) {
        let Some(entry) = self.running.get_mut(&id) else {
            return;
        };
        let received_bytes = moved
            .received_bytes
            .saturating_sub(entry.counted.received_bytes);
        let sent_bytes = moved.sent_bytes.saturating_sub(entry.counted.sent_bytes);

        // Sessions report cumulative totals; the difference is what is new since the last call.
        entry.counted = moved;
        let position = TRANSPORTS.iter().position(|t| *t == entry.facts.transport);
        let total = position.and_then(|p| self.totals.get_mut(p));
        for sum in [Some(&mut entry.since_last), total].into_iter().flatten() {
            sum.received_bytes = sum.received_bytes.saturating_add(received_bytes);
            sum.sent_bytes = sum.sent_bytes.saturating_add(sent_bytes);
        }
    }

    /// Most tests of any dialect that have run beside this one.
    pub(crate) fn concurrent_max(&self, id: u64) -> u32 {
        self.running
            .get(&id)
            .map_or(0, |entry| entry.concurrent_max)
    }

    /// Ends a test; its facts, if it had begun.
    pub(crate) fn end(&mut self, id: u64) -> Option<TestFacts> {
        self.running.remove(&id).map(|entry| entry.facts)
    }

    /// Tests that run, by the numbers of their sessions.
    pub(crate) fn ids(&self) -> impl Iterator<Item = u64> {
        self.running.keys().copied()
    }

    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Events since the last call.
    pub(crate) fn progress(&mut self, now: Instant) -> Progress {
        let elapsed: Duration = now.saturating_duration_since(self.since);
        self.since = now;
        let mut streams = 0_u32;
        let mut clients = Vec::with_capacity(self.running.len());

        for entry in self.running.values_mut() {
            let moved = std::mem::take(&mut entry.since_last);
            streams = streams.saturating_add(entry.facts.streams);
            clients.push(ClientProgress {
                number: entry.facts.number,
                peer: entry.facts.peer,
                received_bytes: moved.received_bytes,
                sent_bytes: moved.sent_bytes,
            });
        }

        clients.sort_by_key(|c| c.number);
        let total = |(transport, moved): (&Transport, &ByteTotals)| TransportTotal {
            transport: *transport,
            received_bytes: moved.received_bytes,
            sent_bytes: moved.sent_bytes,
        };

        Progress {
            tests: u32::try_from(clients.len()).unwrap_or(u32::MAX),
            streams,
            elapsed,
            clients,
            totals: TRANSPORTS.iter().zip(&self.totals).map(total).collect(),
            ..Progress::default()
        }
    }
}

/// The log record of a test that has ended.
pub(crate) fn record(
    facts: TestFacts,
    cookie: String,
    summary: Option<&Summary>,
    outcome: &Result<(), Failure>,
    ran_beside_max: u32,
) -> TestRecord {
    let counted = |role| {
        summary
            .and_then(|summary| measure::counted_here(summary, role))
            .unwrap_or_default()
    };
    let received = counted(StreamRole::Receiver);
    let sent = counted(StreamRole::Sender);

    TestRecord {
        facts,
        cookie,
        received_bytes: received.bytes,
        sent_bytes: sent.bytes,
        duration_ns: received.duration_ns.max(sent.duration_ns),
        outcome: match outcome {
            Ok(()) => Outcome::Complete,
            Err(failure) => Outcome::Partial {
                reason: failure.message.clone(),
            },
        },
        ran_beside_max,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::Direction;

    fn facts(port: u16, transport: Transport) -> TestFacts {
        TestFacts::new(
            ([192, 0, 2, 1], port).into(),
            transport,
            Direction::Forward,
            2,
        )
    }

    fn moved(received_bytes: u64, sent_bytes: u64) -> ByteTotals {
        ByteTotals {
            received_bytes,
            sent_bytes,
        }
    }

    #[test]
    fn every_byte_is_counted_once_and_stays_when_its_test_is_over() {
        let now = Instant::now();
        let mut stats = ServerStats::new(now);
        assert_eq!(stats.start(7, now, facts(1, Transport::Tcp)).number, 1);
        stats.start(9, now, facts(2, Transport::Udp));
        stats.update(7, moved(100, 0));
        stats.update(9, moved(0, 10));

        let progress = stats.progress(now + Duration::from_secs(1));
        assert_eq!(
            (progress.tests, progress.streams, progress.elapsed.as_secs()),
            (2, 4, 1)
        );
        stats.update(7, moved(150, 0));
        assert_eq!(stats.end(7).map(|f| f.number), Some(1));
        assert_eq!(stats.end(7), None);

        let progress = stats.progress(now + Duration::from_secs(2));
        assert_eq!(progress.clients.len(), 1);

        let totals: Vec<_> = progress
            .totals
            .iter()
            .map(|t| (t.received_bytes, t.sent_bytes))
            .collect();
        assert_eq!(totals, [(150, 0), (0, 10), (0, 0)]);
    }

    #[test]
    fn every_test_keeps_its_maximum_of_concurrent_tests() {
        let now = Instant::now();
        let mut stats = ServerStats::new(now);
        let beside = |stats: &mut ServerStats, id| {
            stats
                .start(id, now, facts(1, Transport::Tcp))
                .running_beside
        };
        assert_eq!(
            [7, 8, 9].map(|id| beside(&mut stats, id)),
            [0, 1, 2],
            "those that run already"
        );
        stats.end(8);
        assert_eq!(beside(&mut stats, 10), 2);
        stats.end(9);
        assert_eq!([7, 8, 10].map(|id| stats.concurrent_max(id)), [2, 0, 2]);
    }
}
