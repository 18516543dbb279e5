//! Bursts and frames that have arrived, each of which is a row of its own in the report.

use std::sync::Mutex;

use linerate_model::UdpInterval;
use linerate_model::metrics::{FrameCounts, ReadCounts, StreamMetrics};
use linerate_model::spread::Spread;

use crate::lock::lock;
use crate::measure::stream_stats::distribution;

/// One burst or frame, complete.
#[derive(Clone, Copy)]
pub(super) struct ReceivedBurst {
    /// First byte, or when the sender wrote it if the clocks agree; monotonic clock.
    pub began_ns: u64,
    /// Last byte, same clock.
    pub ended_ns: u64,
    pub bytes: u64,
    /// Time from one burst to the next in s, 0 if the sender does not name it.
    pub period_s: f64,
    pub reads: ReadCounts,
    /// State of frames over UDP only.
    pub frame: Option<UdpFrame>,
}

/// A frame over UDP.
#[derive(Clone, Copy)]
pub(super) struct UdpFrame {
    pub datagrams: UdpInterval,
    /// One-way delays of the datagrams in s.
    pub delays: Spread,
    /// One-way delay of the first of them in s.
    pub first_delay_s: f64,
    /// Its last datagram has arrived.
    pub is_complete: bool,
}

impl ReceivedBurst {
    /// Columns of a row beyond times and bytes.
    pub(super) fn measured(&self) -> StreamMetrics {
        let transfer_s = self.ended_ns.saturating_sub(self.began_ns) as f64 / 1e9;
        let mut transfer = Spread::default();
        transfer.add(transfer_s);

        let mut measured = StreamMetrics {
            reads: Some(self.reads),
            burst_mean_bytes: Some(self.bytes),
            burst_transfer: Some(distribution(&transfer)),
            burst_duty_cycle: (self.period_s > 0.0).then(|| transfer_s / self.period_s),
            ..StreamMetrics::default()
        };

        if let Some(frame) = &self.frame {
            frame.complete(&mut measured, transfer_s);
        }

        measured
    }
}

impl UdpFrame {
    fn complete(&self, measured: &mut StreamMetrics, transfer_s: f64) {
        let mut delay = Spread::default();
        delay.add(self.first_delay_s + transfer_s);
        measured.one_way = Some(distribution(&self.delays));
        measured.datagrams_received = Some(self.delays.count);
        measured.frame_delay = Some(distribution(&delay));

        let frames = FrameCounts {
            done: u64::from(self.is_complete),
            ..FrameCounts::default()
        };
        measured.frames = Some(frames);
    }
}

/// Bursts of one stream that are not reported yet: filled by its worker, emptied by the thread that
/// reports.
#[derive(Default)]
pub(super) struct BurstQueue(Mutex<Queued>);

#[derive(Default)]
struct Queued {
    bursts: Vec<ReceivedBurst>,
    left_out: u64,
}

/// Bursts that wait at most. A sender of short bursts at full rate fills the memory and the log of
/// no receiver.
const QUEUED_MAX: usize = 256;

impl BurstQueue {
    pub(super) fn push(&self, burst: ReceivedBurst) {
        let mut queued = lock(&self.0);
        if queued.bursts.len() < QUEUED_MAX {
            queued.bursts.push(burst);
        } else {
            queued.left_out += 1;
        }
    }

    /// The bursts since the last call.
    pub(super) fn take(&self) -> Vec<ReceivedBurst> {
        std::mem::take(&mut lock(&self.0).bursts)
    }

    /// Bursts that found the queue full; they are in the totals only.
    pub(super) fn left_out(&self) -> u64 {
        lock(&self.0).left_out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_counts_what_it_leaves_out() {
        let queue = BurstQueue::default();
        let burst = ReceivedBurst {
            began_ns: 1_000_000,
            ended_ns: 3_000_000,
            bytes: 100,
            period_s: 0.02,
            reads: ReadCounts::default(),
            frame: None,
        };
        (0..QUEUED_MAX + 3).for_each(|_| queue.push(burst));
        assert_eq!((queue.take().len(), queue.left_out()), (QUEUED_MAX, 3));
        assert!(queue.take().is_empty());

        let measured = burst.measured();
        assert_eq!(measured.burst_duty_cycle, Some(0.1));
        assert_eq!(measured.burst_transfer.map(|times| times.mean), Some(0.002));
    }
}
