//! Frames of a UDP flow that are reported one by one.

use std::sync::Arc;

use linerate_iperf2::wire::SequenceTracker;
use linerate_model::UdpInterval;
use linerate_model::metrics::ReadCounts;
use linerate_model::spread::Spread;

use super::received_bursts::{BurstQueue, ReceivedBurst, UdpFrame};

/// Cuts a flow into frames. What is lost between two frames counts with the later one.
pub(super) struct FrameRows {
    queue: Arc<BurstQueue>,
    current: Option<Current>,
    /// Datagrams sent, lost and late at the end of the frame before.
    reported: [u64; 3],
}

/// The frame that is arriving.
struct Current {
    number: u32,
    burst: ReceivedBurst,
    delays: Spread,
    first_delay_s: f64,
    is_complete: bool,
}

/// One datagram of a frame.
pub(super) struct FrameDatagram {
    /// Number of its frame.
    pub frame: u32,
    /// Time between two frames.
    pub period_us: u32,
    /// It is the last of its frame.
    pub is_last: bool,
    pub bytes: u64,
    pub arrival_ns: u64,
    pub delay_s: f64,
}

impl FrameRows {
    pub(super) fn new(queue: Arc<BurstQueue>) -> Self {
        Self {
            queue,
            current: None,
            reported: [0; 3],
        }
    }

    /// Takes a datagram that `tracker` does not know yet.
    pub(super) fn take(&mut self, datagram: &FrameDatagram, tracker: &SequenceTracker) {
        if self
            .current
            .as_ref()
            .is_some_and(|frame| frame.number != datagram.frame)
        {
            self.finish(tracker);
        }

        let current = self.current.get_or_insert_with(|| Current {
            number: datagram.frame,
            burst: ReceivedBurst {
                began_ns: datagram.arrival_ns,
                ended_ns: datagram.arrival_ns,
                bytes: 0,
                period_s: f64::from(datagram.period_us) / 1e6,
                reads: ReadCounts::default(),
                frame: None,
            },
            delays: Spread::default(),
            first_delay_s: datagram.delay_s,
            is_complete: false,
        });
        current.delays.add(datagram.delay_s);
        current.is_complete |= datagram.is_last;

        let burst = &mut current.burst;
        burst.ended_ns = datagram.arrival_ns;
        burst.bytes = burst.bytes.saturating_add(datagram.bytes);
        burst.reads.calls += 1;
    }

    /// The frame that is arriving has ended.
    pub(super) fn finish(&mut self, tracker: &SequenceTracker) {
        let Some(Current {
            mut burst,
            delays,
            first_delay_s,
            is_complete,
            ..
        }) = self.current.take()
        else {
            return;
        };
        let now = [tracker.highest(), tracker.lost(), tracker.out_of_order()];
        let since = |at: usize| now[at].saturating_sub(self.reported[at]);

        // A datagram that was lost may arrive in a later frame.
        let lost = now[1] as i64 - self.reported[1] as i64;
        let datagrams = UdpInterval::new(since(0), lost, since(2), tracker.jitter_s());
        burst.frame = Some(UdpFrame {
            datagrams,
            delays,
            first_delay_s,
            is_complete,
        });
        self.reported = now;
        self.queue.push(burst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_cut_into_frames_that_count_what_was_lost() {
        let queue = Arc::new(BurstQueue::default());
        let mut rows = FrameRows::new(Arc::clone(&queue));
        let mut tracker = SequenceTracker::default();

        for (number, frame, is_last) in [(1, 1, false), (2, 1, true), (4, 2, true), (5, 3, false)] {
            let datagram = FrameDatagram {
                frame,
                period_us: 1000,
                is_last,
                bytes: 100,
                arrival_ns: number * 1000,
                delay_s: 0.001,
            };
            rows.take(&datagram, &tracker);
            tracker.on_datagram(number as i64, 0);
        }

        rows.finish(&tracker);
        let seen: Vec<_> = queue
            .take()
            .iter()
            .filter_map(|burst| Some((burst.bytes, burst.frame?)))
            .map(|(bytes, frame)| {
                (
                    bytes,
                    frame.datagrams.packets,
                    frame.datagrams.lost,
                    frame.is_complete,
                )
            })
            .collect();
        assert_eq!(
            seen,
            [(200, 2, 0, true), (100, 2, 1, true), (100, 1, 0, false)]
        );
    }
}
