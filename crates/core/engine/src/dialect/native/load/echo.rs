//! Echoes within the streams of a load: how long a request of an application waits behind the
//! load's own data.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use linerate_model::path::ProbeSample;

use crate::dialect::native::probe_budget::{ECHOES, ProbeBudget};
use crate::lock::lock;

/// Round trips of one phase, from the streams of all workers, and how many streams take turns.
#[derive(Default)]
pub(crate) struct EchoSamples {
    samples: Mutex<Vec<ProbeSample>>,
    streams: AtomicU64,
    budget: Arc<ProbeBudget>,
}

/// Between two echoes of all streams together, where the load is fast enough.
const PERIOD_NS: u64 = 20_000_000;
/// Most samples that are kept of a phase.
const SAMPLES_MAX: usize = 1_000_000;
/// A reply to a request that is older is not one of ours.
const AGE_MAX_NS: u64 = 600_000_000_000;

impl EchoSamples {
    /// Without samples. `budget` bounds the echoes.
    pub(crate) fn new(budget: Arc<ProbeBudget>) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// A reply arrived. The stamp is that of the request; one that cannot be ours is ignored.
    fn add(&self, sent_ns: u64, received_ns: u64) {
        if sent_ns == 0 || received_ns < sent_ns || received_ns - sent_ns > AGE_MAX_NS {
            return;
        }

        let mut samples = lock(&self.samples);
        if samples.len() < SAMPLES_MAX {
            let received_ns = Some(received_ns);
            samples.push(ProbeSample {
                sent_ns,
                peer_received_ns: None,
                peer_sent_ns: None,
                received_ns,
            });
        }
    }

    /// Takes all samples.
    pub(crate) fn take(&self) -> Vec<ProbeSample> {
        std::mem::take(&mut lock(&self.samples))
    }
}

/// Requests of one stream, one outstanding at a time. Time has slots of 20 ms, longer ones beside a
/// slow load, which belong to the streams in turn: all streams together request at most 50 echoes
/// per second, however many there are.
pub(crate) struct EchoSchedule {
    samples: Arc<EchoSamples>,
    /// Streams that were there before.
    place: u64,
    next_ns: u64,
    is_outstanding: bool,
}

impl EchoSchedule {
    /// State of a stream that joins the others at `now_ns` of the monotonic clock.
    pub(crate) fn new(samples: Arc<EchoSamples>, now_ns: u64) -> Self {
        let place = samples.streams.fetch_add(1, Ordering::Relaxed);
        let mut schedule = Self {
            samples,
            place,
            next_ns: 0,
            is_outstanding: false,
        };
        schedule.next_ns = schedule.slot_after_ns(now_ns);

        schedule
    }

    /// True if a request is to leave now.
    pub(super) fn is_due(&mut self, now_ns: u64) -> bool {
        if self.is_outstanding || now_ns < self.next_ns {
            return false;
        }

        // Requests that a busy worker missed are not made up for.
        self.next_ns = self.slot_after_ns(now_ns);
        self.is_outstanding = true;
        true
    }

    /// Start of the next slot of this stream.
    fn slot_after_ns(&self, now_ns: u64) -> u64 {
        let streams = self.samples.streams.load(Ordering::Relaxed).max(1);
        let period_ns = self.samples.budget.period_ns(PERIOD_NS, ECHOES, 1);
        let next = now_ns / period_ns + 1;
        let wait = (self.place % streams + streams - next % streams) % streams;
        next.saturating_add(wait).saturating_mul(period_ns)
    }

    /// A reply to the request with this stamp arrived.
    pub(super) fn on_reply(&mut self, stamp_ns: u64, now_ns: u64) {
        if self.is_outstanding {
            self.is_outstanding = false;
            self.samples.add(stamp_ns, now_ns);
        }
    }
}

impl Drop for EchoSchedule {
    fn drop(&mut self) {
        self.samples.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn one_request_is_outstanding_and_missed_ones_are_left_out() {
        let samples = Arc::new(EchoSamples::default());
        let mut schedule = EchoSchedule::new(Arc::clone(&samples), 1);
        assert!(!schedule.is_due(20 * MS - 1));
        assert!(schedule.is_due(20 * MS));
        assert!(!schedule.is_due(40 * MS), "the reply is missing");
        schedule.on_reply(20 * MS, 65 * MS);
        assert!(schedule.is_due(67 * MS));
        schedule.on_reply(67 * MS, 68 * MS);
        assert!(!schedule.is_due(79 * MS), "the slots stay where they are");
        assert!(schedule.is_due(80 * MS));

        let rtts: Vec<_> = samples.take().iter().map(ProbeSample::rtt_ns).collect();
        assert_eq!(rtts, [Some(45_000_000), Some(1_000_000)]);
    }

    #[test]
    fn all_streams_together_request_fifty_echoes_per_second() {
        for count in [1_usize, 3, 16] {
            let samples = Arc::new(EchoSamples::default());
            let mut streams: Vec<_> = (0..count)
                .map(|_| EchoSchedule::new(Arc::clone(&samples), 0))
                .collect();
            let mut requests = vec![0_usize; count];

            for now_ms in 0..24_000 {
                for (stream, requests) in streams.iter_mut().zip(&mut requests) {
                    if stream.is_due(now_ms * MS) {
                        stream.on_reply(now_ms * MS, now_ms * MS);
                        *requests += 1;
                    }
                }
            }

            let all: usize = requests.iter().sum();
            assert!(all.abs_diff(1200) <= 2 * count, "{count} streams: {all}");
            assert!(
                requests
                    .iter()
                    .all(|requests| requests.abs_diff(1200 / count) <= 2),
                "{requests:?}"
            );
        }
    }

    #[test]
    fn reply_without_request_or_with_an_impossible_stamp_is_ignored() {
        let samples = Arc::new(EchoSamples::default());
        let mut schedule = EchoSchedule::new(Arc::clone(&samples), 0);
        schedule.on_reply(5, 10);
        assert!(schedule.is_due(20 * MS));
        schedule.on_reply(40 * MS, 30 * MS);
        assert!(samples.take().is_empty());
    }
}
