//! Numbers and times in the datagrams of a flow.

use std::sync::{Arc, Mutex};

use linerate_iperf2::wire::datagram::NumberWidth;
use linerate_iperf2::wire::frame::FrameWords;
use linerate_iperf2::wire::{DatagramHead, SequenceTracker, Timestamp, Version};
use linerate_model::metrics::{FrameCounts, HistogramKind};
use linerate_model::spread::Spread;
use linerate_sys::clock::{self, RealtimeOffset};

use super::frame_rows::{FrameDatagram, FrameRows};
use crate::data::worker::{DatagramKind, SequenceReader, SequenceWriter};
use crate::lock::lock;
use crate::measure::counters::StreamCounters;
use crate::measure::stream_stats::StreamStats;

/// Numbers datagrams and stamps them with the wall clock.
pub(super) struct HeadWriter {
    offset: RealtimeOffset,
}

impl HeadWriter {
    pub(super) fn new() -> Self {
        Self {
            offset: RealtimeOffset::read(),
        }
    }
}

impl SequenceWriter for HeadWriter {
    fn write(&mut self, datagram: &mut [u8], number: u64, now_ns: u64) {
        let head = DatagramHead {
            number: i64::try_from(number).unwrap_or(i64::MAX),
            sent: Timestamp::from_unix_ns(self.offset.unix_ns(now_ns)),
        };
        head.write(datagram);
    }
}

/// Counts of a receiver for the final report.
#[derive(Clone, Copy, Default)]
pub(super) struct FlowTotals {
    pub datagrams: u64,
    pub lost: u64,
    pub out_of_order: u64,
    pub mean_jitter_s: f64,
    pub last_arrival_ns: u64,
}

/// The verdict, shared with the thread that reports it.
pub(super) type SharedFlowTotals = Arc<Mutex<FlowTotals>>;

pub(super) fn read(flow_totals: &SharedFlowTotals) -> FlowTotals {
    *lock(flow_totals)
}

/// Follows the numbers of what arrives.
pub(super) struct HeadReader {
    tracker: SequenceTracker,
    width: NumberWidth,
    flow_totals: SharedFlowTotals,
    stats: Arc<StreamStats>,
    offset: RealtimeOffset,
    is_over: bool,
    last_arrival_ns: u64,
    /// Since the last call of `publish`.
    unpublished: Unpublished,
    frames: Option<Frames>,
    /// Where each frame is a row of the report.
    pub rows: Option<FrameRows>,
}

#[derive(Default)]
struct Unpublished {
    datagrams: u64,
    delays: Vec<f64>,
    frame_delays: Vec<f64>,
}

/// Follows the frames of an isochronous sender.
struct Frames {
    version: Version,
    /// Since the last call of `publish`.
    counts: FrameCounts,
    number: u32,
    received_bytes: u64,
    /// When the first datagram of this frame was written, by the sender's clock.
    written_ns: i64,
}

impl HeadReader {
    pub(super) fn new(
        width: NumberWidth,
        frames_of: Option<Version>,
        stats: Arc<StreamStats>,
    ) -> (Self, SharedFlowTotals) {
        let flow_totals = SharedFlowTotals::default();
        let reader = Self {
            tracker: SequenceTracker::default(),
            width,
            flow_totals: Arc::clone(&flow_totals),
            stats,
            offset: RealtimeOffset::read(),
            is_over: false,
            last_arrival_ns: 0,
            unpublished: Unpublished::default(),
            frames: frames_of.map(|version| Frames {
                version,
                counts: FrameCounts::default(),
                number: 0,
                received_bytes: 0,
                written_ns: 0,
            }),
            rows: None,
        };
        (reader, flow_totals)
    }

    fn take_row(&mut self, datagram: &[u8], arrival_ns: u64, transit_ns: i64) {
        let (Some(rows), Some(frames)) = (&mut self.rows, &self.frames) else {
            return;
        };
        let Some(words) = FrameWords::parse(datagram, frames.version) else {
            return;
        };
        let datagram = FrameDatagram {
            frame: words.number,
            period_us: words.period_us,
            is_last: words.is_last_of_frame(datagram.len()),
            bytes: datagram.len() as u64,
            arrival_ns,
            delay_s: transit_ns as f64 / 1e9,
        };
        rows.take(&datagram, &self.tracker);
    }
}

impl SequenceReader for HeadReader {
    fn take(&mut self, datagram: &[u8], arrival_ns: u64) -> DatagramKind {
        let head = DatagramHead::parse(datagram, self.width)
            .filter(|head| head.number != 0 && !self.is_over);
        let Some(head) = head else {
            return DatagramKind::Foreign;
        };
        let arrived_ns = i64::try_from(self.offset.unix_ns(arrival_ns)).unwrap_or(i64::MAX);
        let sent_ns = i64::try_from(head.sent.unix_ns()).unwrap_or(i64::MAX);
        let transit_ns = arrived_ns.saturating_sub(sent_ns);

        self.last_arrival_ns = arrival_ns;
        if let Some(frames) = &mut self.frames
            && let Some(delay_s) = frames.take(datagram, sent_ns, arrived_ns)
        {
            self.tracker.forget_transit();
            self.unpublished.frame_delays.extend(delay_s);
        }

        if !head.is_last() {
            self.take_row(datagram, arrival_ns, transit_ns);
        }

        self.tracker
            .on_datagram(head.number.saturating_abs(), transit_ns);
        self.unpublished.datagrams += 1;
        self.unpublished.delays.push(transit_ns as f64 / 1e9);

        if head.is_last() {
            self.is_over = true;
            if let Some(rows) = &mut self.rows {
                rows.finish(&self.tracker);
            }
            return DatagramKind::Last;
        }

        DatagramKind::Data
    }

    fn publish(&mut self, counters: &StreamCounters) {
        let t = &self.tracker;
        let jitter_s = if self.is_over {
            t.mean_jitter_s()
        } else {
            t.jitter_s()
        };
        counters.set_sequence(t.highest(), t.lost(), t.out_of_order(), jitter_s);
        *lock(&self.flow_totals) = FlowTotals {
            datagrams: t.highest(),
            lost: t.lost(),
            out_of_order: t.out_of_order(),
            mean_jitter_s: t.mean_jitter_s(),
            last_arrival_ns: self.last_arrival_ns,
        };

        let unpublished = &self.unpublished;
        let frames = self
            .frames
            .as_mut()
            .map(|frames| std::mem::take(&mut frames.counts));
        let unix_s = clock::unix_ns() as f64 / 1e9;

        self.stats.update(|samples| {
            *samples.datagrams_received.get_or_insert(0) += unpublished.datagrams;
            samples.reads.get_or_insert_default().calls += unpublished.datagrams;

            for delay_s in &unpublished.delays {
                samples.one_way.add(*delay_s);
                samples.add_to_histogram(HistogramKind::Datagrams, *delay_s, unix_s);
            }

            for delay_s in &unpublished.frame_delays {
                samples.frame_delay.add(*delay_s);
                samples.add_to_histogram(HistogramKind::Bursts, *delay_s, unix_s);
            }

            if let Some(frames) = frames {
                let counts = samples.frames.get_or_insert_default();
                counts.done += frames.done;
                counts.missed += frames.missed;
            }
        });
        self.unpublished.datagrams = 0;
        self.unpublished.delays.clear();
        self.unpublished.frame_delays.clear();
    }

    fn reset_jitter(&mut self) {
        self.tracker.forget_transit();
    }
}

impl Frames {
    /// `Some` when a frame has begun; with its delay when it was the end of one, too.
    fn take(&mut self, datagram: &[u8], sent_ns: i64, arrived_ns: i64) -> Option<Option<f64>> {
        let words = FrameWords::parse(datagram, self.version)?;
        let is_new = words.number != self.number;
        if is_new {
            let skipped = words.number.saturating_sub(self.number).saturating_sub(1);
            self.counts.missed += u64::from(if words.number > self.number {
                skipped
            } else {
                0
            });
            self.number = words.number;
            self.received_bytes = 0;
            self.written_ns = sent_ns;
        }

        self.received_bytes += datagram.len() as u64;
        let is_complete = words.left_bytes as usize <= datagram.len();
        self.counts.done += u64::from(is_complete);

        let delay_s = arrived_ns.saturating_sub(self.written_ns) as f64 / 1e9;
        (is_new || is_complete).then(|| is_complete.then_some(delay_s))
    }
}

/// The delays of a flow for its final report.
pub(super) fn transit_of(stats: &StreamStats) -> Option<Spread> {
    Some(stats.one_way()).filter(|spread| spread.count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(number: i64) -> [u8; 64] {
        let mut bytes = [b'7'; 64];
        DatagramHead {
            number,
            sent: Timestamp::from_unix_ns(clock::unix_ns()),
        }
        .write(&mut bytes);
        bytes
    }

    #[test]
    fn loss_order_and_copies_are_counted_apart_and_the_last_one_counts() {
        let stats = Arc::new(StreamStats::default());
        let (mut reader, flow_totals) =
            HeadReader::new(NumberWidth::Wide, None, Arc::clone(&stats));
        let counters = StreamCounters::default();
        let now_ns = clock::monotonic_ns();

        for number in [1, 2, 5, 4, 4, 6] {
            assert_eq!(reader.take(&datagram(number), now_ns), DatagramKind::Data);
        }

        assert_eq!(reader.take(&datagram(-8), now_ns), DatagramKind::Last);
        assert_eq!(
            reader.take(&datagram(-9), now_ns),
            DatagramKind::Foreign,
            "the flow has ended"
        );
        reader.publish(&counters);

        let seen = read(&flow_totals);
        assert_eq!((seen.datagrams, seen.lost, seen.out_of_order), (8, 2, 1));
        assert_eq!(stats.total().datagrams_received, Some(7));
    }
}
