//! Observations of received TCP data: the sizes of reads, and the heads of bursts.

use std::sync::Arc;

use linerate_iperf2::wire::burst::{BurstHead, BurstReader};
use linerate_model::TestSpec;
use linerate_model::metrics::{HistogramKind, ReadCounts};
use linerate_model::workload::Shape;
use linerate_sys::clock;

use super::received_bursts::{BurstQueue, ReceivedBurst};
use crate::data::worker::ReadObserver;
use crate::measure::stream_stats::StreamStats;

/// Sees every read of one stream.
pub(super) struct ReadWatcher {
    stats: Arc<StreamStats>,
    /// Width of a bin of read sizes in bytes.
    bin_bytes: usize,
    bursts: Option<Bursts>,
}

struct Bursts {
    reader: BurstReader,
    /// Bytes of the burst that is arriving are there since this time.
    began_ns: Option<u64>,
    /// The sender's clock can be compared with ours.
    has_delays: bool,
    /// Bursts begin when the sender writes them.
    begin_at_sender: bool,
    /// Reads of the burst that is arriving.
    reads: ReadCounts,
    /// Where each burst is a row of the report.
    queue: Option<Arc<BurstQueue>>,
}

impl ReadWatcher {
    /// `block_len` is what one read may take.
    pub(super) fn new(
        stats: Arc<StreamStats>,
        spec: &TestSpec,
        block_len: u32,
        is_framed: bool,
        queue: Option<Arc<BurstQueue>>,
    ) -> Self {
        stats.update(|samples| samples.reads = Some(ReadCounts::default()));
        Self {
            stats,
            bin_bytes: (block_len as usize / 8).max(1),
            bursts: is_framed.then(|| Bursts {
                reader: BurstReader::default(),
                began_ns: None,
                has_delays: spec.workload.trip_times
                    || matches!(spec.workload.shape, Shape::Isochronous(_)),
                begin_at_sender: spec.workload.trip_times,
                reads: ReadCounts::default(),
                queue,
            }),
        }
    }

    fn look_for_bursts(&mut self, bytes: &[u8]) {
        let Some(bursts) = &mut self.bursts else {
            return;
        };
        let now_ns = clock::monotonic_ns();

        let mut rest = bytes;
        while !rest.is_empty() {
            let began_ns = *bursts.began_ns.get_or_insert(now_ns);
            let Some(head) = bursts.reader.read(&mut rest) else {
                continue;
            };
            bursts.began_ns = None;
            bursts.note(&self.stats, &head, began_ns, now_ns);
        }
    }
}

impl Bursts {
    fn note(&mut self, stats: &StreamStats, head: &BurstHead, first_read_ns: u64, now_ns: u64) {
        let unix_ns = clock::unix_ns();
        let delay_ns = i128::from(unix_ns) - i128::from(head.written.unix_ns());
        let began_ns = if self.begin_at_sender {
            // Clocks that disagree by more than the delay make it negative.
            now_ns.saturating_sub(u64::try_from(delay_ns).unwrap_or_default())
        } else {
            first_read_ns
        };

        let reads = std::mem::take(&mut self.reads);
        let arrived = ReceivedBurst {
            began_ns,
            ended_ns: now_ns,
            bytes: head.size_bytes.into(),
            period_s: f64::from(head.period_us) / 1e6,
            reads,
            frame: None,
        };

        if let Some(queue) = &self.queue {
            queue.push(arrived);
        }

        let delay_s = self.has_delays.then_some(delay_ns as f64 / 1e9);
        add(stats, &arrived, delay_s, unix_ns as f64 / 1e9);
    }
}

/// Adds a burst to what the stream has measured.
fn add(stats: &StreamStats, burst: &ReceivedBurst, delay_s: Option<f64>, unix_s: f64) {
    let transfer_s = burst.ended_ns.saturating_sub(burst.began_ns) as f64 / 1e9;
    stats.update(|samples| {
        samples.burst_bytes += burst.bytes;
        samples.burst_transfer.add(transfer_s);
        samples.burst_periods_s += burst.period_s;

        if let Some(delay_s) = delay_s {
            samples.one_way.add(delay_s);
            samples.add_to_histogram(HistogramKind::Bursts, delay_s, unix_s);
        }
    });
}

impl ReadObserver for ReadWatcher {
    fn observe(&mut self, bytes: &[u8]) {
        let bin = (bytes.len().saturating_sub(1) / self.bin_bytes).min(7);
        self.stats
            .update(|samples| count_read(samples.reads.get_or_insert_default(), bin));

        if let Some(bursts) = &mut self.bursts {
            count_read(&mut bursts.reads, bin);
        }

        self.look_for_bursts(bytes);
    }
}

fn count_read(reads: &mut ReadCounts, bin: usize) {
    reads.calls += 1;
    if let Some(count) = reads.bins.get_mut(bin) {
        *count += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_iperf2::wire::Timestamp;
    use linerate_iperf2::wire::burst::BurstHead;

    #[test]
    fn reads_are_sorted_by_size_and_bursts_are_timed() {
        let stats = Arc::new(StreamStats::default());
        let mut spec = TestSpec::default();
        spec.workload.trip_times = true;

        let mut reads = ReadWatcher::new(Arc::clone(&stats), &spec, 800, true, None);
        let mut burst = vec![b'5'; 800];

        let head = BurstHead {
            written: Timestamp::from_unix_ns(clock::unix_ns() - 5_000_000),
            number: 1,
            size_bytes: 800,
            ..BurstHead::default()
        };
        head.write(&mut burst);
        reads.observe(&burst[..100]);
        reads.observe(&burst[100..]);

        let total = stats.total();
        assert_eq!(total.reads.map(|r| r.bins), Some([1, 0, 0, 0, 0, 0, 1, 0]));
        let delay = total.one_way.expect("one burst");
        assert!(
            delay.count == 1 && delay.mean >= 0.005 && delay.mean < 1.0,
            "{delay:?}"
        );
        assert_eq!(total.burst_mean_bytes, Some(800));
    }
}
