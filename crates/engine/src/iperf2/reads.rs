//! What is seen in received TCP data: the sizes of reads, and the heads of bursts.

use std::sync::Arc;

use linerate_iperf2::burst::{Burst, BurstReader};
use linerate_model::TestSpec;
use linerate_model::details::ReadCounts;
use linerate_model::workload::Shape;
use linerate_sys::clock;

use crate::gauge::Gauge;
use crate::worker::Observer;

/// Sees every read of one stream.
pub(super) struct Reads {
    gauge: Arc<Gauge>,
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
}

impl Reads {
    /// `block_len` is what one read may take.
    pub(super) fn new(gauge: Arc<Gauge>, spec: &TestSpec, block_len: u32, is_framed: bool) -> Self {
        gauge.note(|readings| readings.reads = Some(ReadCounts::default()));
        Self {
            gauge,
            bin_bytes: (block_len as usize / 8).max(1),
            bursts: is_framed.then(|| Bursts {
                reader: BurstReader::new(),
                began_ns: None,
                has_delays: spec.workload.trip_times || matches!(spec.workload.shape, Shape::Isochronous(_)),
            }),
        }
    }

    fn look_for_bursts(&mut self, bytes: &[u8]) {
        let Some(bursts) = &mut self.bursts else { return };
        let now_ns = clock::monotonic_ns();
        let mut rest = bytes;
        while !rest.is_empty() {
            let began_ns = *bursts.began_ns.get_or_insert(now_ns);
            let Some(burst) = bursts.reader.read(&mut rest) else {
                continue;
            };
            bursts.began_ns = None;
            note(&self.gauge, &burst, now_ns.saturating_sub(began_ns), bursts.has_delays);
        }
    }
}

fn note(gauge: &Gauge, burst: &Burst, transfer_ns: u64, has_delays: bool) {
    let unix_ns = clock::unix_ns();
    let written_ns = burst.head.written.unix_ns();
    let delay_s = (i128::from(unix_ns) - i128::from(written_ns)) as f64 / 1e9;
    let (unix_s, transfer_s) = (unix_ns as f64 / 1e9, transfer_ns as f64 / 1e9);
    let (size, period_s) = (burst.head.size_bytes, f64::from(burst.head.period_us) / 1e6);
    gauge.note(|readings| {
        readings.burst_bytes += u64::from(size);
        readings.burst_transfer.add(transfer_s);
        readings.burst_periods_s += period_s;
        if has_delays {
            readings.one_way.add(delay_s);
            readings.sort_in(delay_s, unix_s);
        }
    });
}

impl Observer for Reads {
    fn saw(&mut self, bytes: &[u8]) {
        let bin = (bytes.len().saturating_sub(1) / self.bin_bytes).min(7);
        self.gauge.note(|readings| {
            let reads = readings.reads.get_or_insert_default();
            reads.calls += 1;
            if let Some(count) = reads.bins.get_mut(bin) {
                *count += 1;
            }
        });
        self.look_for_bursts(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_iperf2::Timestamp;
    use linerate_iperf2::burst::BurstHead;

    #[test]
    fn reads_are_sorted_by_size_and_bursts_are_timed() {
        let gauge = Arc::new(Gauge::default());
        let mut spec = TestSpec::default();
        spec.workload.trip_times = true;
        let mut reads = Reads::new(Arc::clone(&gauge), &spec, 800, true);
        let mut burst = vec![b'5'; 800];
        let head = BurstHead {
            written: Timestamp::from_unix_ns(clock::unix_ns() - 5_000_000),
            number: 1,
            size_bytes: 800,
            ..BurstHead::default()
        };
        head.write(&mut burst);
        reads.saw(&burst[..100]);
        reads.saw(&burst[100..]);
        let total = gauge.total();
        assert_eq!(total.reads.map(|r| r.bins), Some([1, 0, 0, 0, 0, 0, 1, 0]));
        let delay = total.one_way.expect("one burst");
        assert!(delay.count == 1 && delay.mean >= 0.005 && delay.mean < 1.0, "{delay:?}");
        assert_eq!(total.burst_mean_bytes, Some(800));
    }
}
