//! Counts and samples of the datagrams that arrived.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

use linerate_model::path::EndpointPhase;
use linerate_native::wire::datagram::{
    DatagramHead, DatagramType, Feedback, FlowId, HEAD_LEN, ReceivedSequence,
};
use linerate_sys::{clock, udp};

use super::samples::{VALUES_MAX, distribution};
use crate::data::worker::{DatagramKind, SequenceReader};
use crate::lock::lock;
use crate::measure::counters::StreamCounters;

/// Arrivals of one flow.
#[derive(Debug, Default)]
pub(super) struct Received {
    sequence: ReceivedSequence,
    bytes: u64,
    jitter_ns: Option<f64>,
    first_arrival_ns: Option<u64>,
    last: Option<Arrival>,
    gaps_ns: Vec<i64>,
    train: u64,
    longest_train: u64,
    transit_min_ns: Option<i64>,
    /// Largest since the last report.
    transit_max_ns: Option<i64>,
}

#[derive(Debug, Clone, Copy)]
struct Arrival {
    arrived_ns: u64,
    transit_ns: i64,
}

/// Datagrams that arrive closer than this part of their distance are a train.
const TRAIN_SHARE: u64 = 10;

impl Received {
    fn take(&mut self, head: &DatagramHead, bytes: u64, arrived_ns: u64, gap_ns: Option<u64>) {
        self.sequence.on_datagram(head.sequence);
        self.bytes += bytes;
        // The two clocks have different zeros, which the difference of two transit times does not
        // contain.
        let transit_ns = (arrived_ns as i64).wrapping_sub(head.stamp as i64);
        self.transit_min_ns = Some(
            self.transit_min_ns
                .map_or(transit_ns, |min| min.min(transit_ns)),
        );
        self.transit_max_ns = Some(
            self.transit_max_ns
                .map_or(transit_ns, |max| max.max(transit_ns)),
        );

        if let Some(last) = self.last {
            let difference_ns = transit_ns.wrapping_sub(last.transit_ns).unsigned_abs() as f64;
            let jitter_ns = self.jitter_ns.unwrap_or(0.0);
            self.jitter_ns = Some(jitter_ns + (difference_ns - jitter_ns) / 16.0);
            self.note_gap(arrived_ns.saturating_sub(last.arrived_ns), gap_ns);
        }

        self.first_arrival_ns.get_or_insert(arrived_ns);
        self.last = Some(Arrival {
            arrived_ns,
            transit_ns,
        });
    }

    fn note_gap(&mut self, gap_ns: u64, planned_ns: Option<u64>) {
        if self.gaps_ns.len() < VALUES_MAX {
            self.gaps_ns.push(i64::try_from(gap_ns).unwrap_or(i64::MAX));
        }

        let is_close = planned_ns.is_some_and(|planned_ns| gap_ns <= planned_ns / TRAIN_SHARE);
        self.train = if is_close { self.train + 1 } else { 1 };
        self.longest_train = self.longest_train.max(self.train);
    }

    /// The counters of a report, and when the last datagram among them arrived; the delays since
    /// the last report end with it. Bytes and time are those of the kernel, whenever this end
    /// comes to read them.
    pub(super) fn report(&mut self) -> (Option<u64>, Feedback) {
        let received = self.sequence.distinct();
        let highest = self.sequence.highest();
        let missing = highest.map_or(0, |highest| (highest + 1).saturating_sub(received));

        let range_ns = self
            .transit_max_ns
            .take()
            .zip(self.transit_min_ns)
            .map(|(max, min)| max.wrapping_sub(min));
        let feedback = Feedback {
            received,
            highest: highest.unwrap_or_default(),
            bytes: self.bytes,
            // One that arrives late is no longer missing, and reordered instead.
            errors: missing.saturating_add(self.sequence.reordered()),
            delay_range_ns: range_ns
                .and_then(|ns| u64::try_from(ns).ok())
                .unwrap_or_default(),
            rate_bps: 0,
        };
        (self.last.map(|last| last.arrived_ns), feedback)
    }

    /// Datagrams that arrived in all, and the time that they took: that from the first to the last
    /// and a mean gap more, since `n` datagrams have `n - 1` gaps. Without that gap a rate is above
    /// the sender's.
    pub(super) fn fill(self, phase: &mut EndpointPhase) {
        let datagrams = self.sequence.distinct();
        if let (Some(first_ns), Some(last)) = (self.first_arrival_ns, self.last)
            && let Some(gap_ns) = last
                .arrived_ns
                .saturating_sub(first_ns)
                .checked_div(datagrams.saturating_sub(1))
            && gap_ns > 0
        {
            phase.elapsed_ns = last.arrived_ns - first_ns + gap_ns;
        }

        phase.datagrams_received = datagrams;
        phase.reordered = self.sequence.reordered();
        phase.reordering_extent = self.sequence.extent();
        phase.duplicates = self.sequence.duplicates();
        phase.longest_loss_burst = self.sequence.longest_loss_burst(None);
        phase.jitter_ns = self.jitter_ns.map(|jitter_ns| jitter_ns as u64);
        phase.gaps = distribution(&self.gaps_ns);
        phase.longest_train = (self.longest_train > 0).then_some(self.longest_train);
    }
}

/// Reads the heads of a flow.
pub(super) struct HeadReader {
    pub id: FlowId,
    /// Planned distance of two datagrams.
    pub gap_ns: Option<u64>,
    pub received: Arc<Mutex<Received>>,
    pub reporter: Option<FeedbackSender>,
}

impl SequenceReader for HeadReader {
    fn take(&mut self, datagram: &[u8], arrival_ns: u64) -> DatagramKind {
        match DatagramHead::decode(datagram) {
            Some(head) if (head.datagram_type, head.id()) == (DatagramType::Data, self.id) => {
                let mut received = lock(&self.received);
                received.take(&head, datagram.len() as u64, arrival_ns, self.gap_ns);

                if let Some(reporter) = &mut self.reporter {
                    reporter.report_if_due(&mut received);
                }
                DatagramKind::Data
            }
            _ => DatagramKind::Foreign,
        }
    }

    fn publish(&mut self, counters: &StreamCounters) {
        let received = lock(&self.received);
        counters.set_packets(received.sequence.distinct());
    }

    fn reset_jitter(&mut self) {}
}

/// Sends numbered feedback on the socket of a flow.
pub(super) struct FeedbackSender {
    fd: Arc<OwnedFd>,
    id: FlowId,
    sent: u64,
    next_ns: u64,
}

/// Between two reports of a receiver.
pub(super) const FEEDBACK_NS: u64 = 50_000_000;

impl FeedbackSender {
    pub(super) fn new(fd: Arc<OwnedFd>, id: FlowId) -> Self {
        Self {
            fd,
            id,
            sent: 0,
            next_ns: 0,
        }
    }

    fn report_if_due(&mut self, received: &mut Received) {
        let now_ns = clock::monotonic_ns();
        if now_ns >= self.next_ns {
            self.next_ns = now_ns + FEEDBACK_NS;
            let (arrived_ns, report) = received.report();
            self.send(arrived_ns.unwrap_or(now_ns), &report);
        }
    }

    pub(super) fn send(&mut self, stamp_ns: u64, feedback: &Feedback) {
        let mut datagram = [0; HEAD_LEN + 48];
        self.id
            .head(DatagramType::Feedback, self.sent, stamp_ns)
            .encode_into(&mut datagram);
        self.sent += 1;
        feedback.encode_into(&mut datagram);

        // The next one replaces one that is lost.
        let _ = udp::send(&*self.fd, &datagram);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(received: &mut Received, sequence: u64, stamp: u64, arrived_ns: u64) {
        let head = FlowId { flow: 1, tag: 2 }.head(DatagramType::Data, sequence, stamp);
        received.take(&head, 100, arrived_ns, Some(1000));
    }

    #[test]
    fn report_counts_errors_and_the_delays_since_the_one_before() {
        let mut received = Received::default();
        for (sequence, stamp, arrived_ns) in [
            (0, 1000, 9000),
            (1, 2000, 10_500),
            (4, 5000, 13_000),
            (3, 4000, 13_100),
        ] {
            arrive(&mut received, sequence, stamp, arrived_ns);
        }

        let (arrived_ns, report) = received.report();
        assert_eq!(arrived_ns, Some(13_100));

        // 2 is missing, 3 came behind 4; delays of 8,000, 8,500, 8,000 and 9,100 ns.
        let found = (
            report.received,
            report.highest,
            report.bytes,
            report.errors,
            report.delay_range_ns,
        );
        assert_eq!(found, (4, 4, 400, 2, 1100));
        arrive(&mut received, 5, 6000, 14_200);

        let (_, report) = received.report();
        assert_eq!((report.errors, report.delay_range_ns), (2, 200));
        assert_eq!(received.report().1.delay_range_ns, 0);
    }

    #[test]
    fn time_of_what_arrived_has_a_gap_for_each_datagram() {
        let mut received = Received::default();
        let mut phase = EndpointPhase {
            elapsed_ns: 99,
            ..EndpointPhase::default()
        };
        (0..11).for_each(|n| arrive(&mut received, n, n * 1000, 5000 + n * 1000));
        received.fill(&mut phase);
        assert_eq!(
            (
                phase.elapsed_ns,
                phase.datagrams_received,
                phase.longest_train
            ),
            (11_000, 11, Some(1))
        );

        let mut phase = EndpointPhase {
            elapsed_ns: 99,
            ..EndpointPhase::default()
        };
        Received::default().fill(&mut phase);
        assert_eq!(phase.elapsed_ns, 99);
    }
}
