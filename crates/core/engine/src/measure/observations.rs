//! Observations of a worker about its own work beside its counters: for verbose reports, never for
//! results of a test.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Observations on one stream, written by its worker alone.
#[derive(Default)]
pub(crate) struct Observations {
    /// Lateness of paced portions; only for streams with a rate.
    pub lateness: Option<Histogram>,
    zerocopy_calls: AtomicU64,
    copied_calls: AtomicU64,
}

impl Observations {
    pub(crate) fn new(paced: bool) -> Self {
        Self {
            lateness: paced.then(Histogram::default),
            ..Self::default()
        }
    }

    /// Worker only: a portion left this much after it was due.
    pub(crate) fn note_lateness(&self, ns: u64) {
        if let Some(lateness) = &self.lateness {
            lateness.record(ns);
        }
    }

    /// Worker only: zero-copy send calls that completed, and whether the kernel had copied them
    /// after all.
    pub(crate) fn note_completions(&self, calls: u32, copied: bool) {
        let counter = if copied {
            &self.copied_calls
        } else {
            &self.zerocopy_calls
        };
        counter.store(counter.load(Relaxed) + u64::from(calls), Relaxed);
    }

    /// Share of calls whose memory the kernel copied although it was lent, 0..=1; `None` when
    /// nothing came back.
    pub(crate) fn copied_share(&self) -> Option<f64> {
        let lent = self.zerocopy_calls.load(Relaxed);
        let copied = self.copied_calls.load(Relaxed);
        (lent + copied > 0).then(|| copied as f64 / (lent + copied) as f64)
    }
}

/// Durations in ns, in buckets that grow with the value: eight per power of two, so that a quantile
/// is at most an eighth too high. A record costs a few ns, memory is 2 KiB.
pub(crate) struct Histogram {
    buckets: Box<[AtomicU32]>,
}

const SUB_BITS: u32 = 3;
const BUCKETS: usize = 512;

impl Default for Histogram {
    fn default() -> Self {
        Self {
            buckets: (0..BUCKETS).map(|_| AtomicU32::new(0)).collect(),
        }
    }
}

impl Histogram {
    /// Worker only.
    pub(crate) fn record(&self, ns: u64) {
        let bucket = &self.buckets[index(ns)];
        bucket.store(bucket.load(Relaxed).saturating_add(1), Relaxed);
    }

    /// Adds the values of another one.
    pub(crate) fn add(&self, other: &Self) {
        for (own, other) in self.buckets.iter().zip(&other.buckets) {
            own.store(
                own.load(Relaxed).saturating_add(other.load(Relaxed)),
                Relaxed,
            );
        }
    }

    /// Number of values.
    pub(crate) fn count(&self) -> u64 {
        self.buckets
            .iter()
            .map(|b| u64::from(b.load(Relaxed)))
            .sum()
    }

    /// The value below or at which this share of the values lies, ns; `None` without values.
    pub(crate) fn quantile_ns(&self, share: f64) -> Option<u64> {
        let wanted = (self.count() as f64 * share).ceil().max(1.0) as u64;
        let mut seen = 0;
        self.buckets.iter().enumerate().find_map(|(i, bucket)| {
            seen += u64::from(bucket.load(Relaxed));
            (seen >= wanted).then(|| upper_bound_ns(i))
        })
    }
}

/// Values below 16 have a bucket of their own; above, the four leading bits choose.
fn index(ns: u64) -> usize {
    let octave = (u64::BITS - ns.leading_zeros()).saturating_sub(SUB_BITS + 1);
    let leading = (ns >> octave) as usize;
    ((octave as usize) << SUB_BITS) + leading
}

fn upper_bound_ns(index: usize) -> u64 {
    let octave = (index >> SUB_BITS).saturating_sub(1);
    let leading = index - (octave << SUB_BITS);
    (((leading as u64) + 1) << octave).wrapping_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_bucket_whose_bound_is_at_most_an_eighth_too_high() {
        for worker_loop in 0..64 {
            for offset in [0, 1, 2] {
                let ns = (1_u64 << worker_loop).wrapping_add(offset) - 1;
                let bound = upper_bound_ns(index(ns));
                assert!(index(ns) < BUCKETS);
                assert!(bound >= ns && bound - ns <= ns / 8, "{ns}: {bound}");
            }
        }
    }

    #[test]
    fn quantiles_count_values() {
        let histogram = Histogram::default();
        assert_eq!(histogram.quantile_ns(0.5), None);
        (1..=100).for_each(|ns| histogram.record(ns));
        assert_eq!(histogram.count(), 100);

        let [half, most, all] =
            [0.5, 0.99, 1.0].map(|share| histogram.quantile_ns(share).unwrap_or_default());
        assert!(
            (50..=55).contains(&half) && (99..=111).contains(&most) && (100..=112).contains(&all)
        );
    }

    #[test]
    fn the_share_of_copies_counts_calls() {
        let observations = Observations::new(false);
        assert_eq!(observations.copied_share(), None);
        observations.note_completions(3, true);
        observations.note_completions(1, false);
        assert_eq!(observations.copied_share(), Some(0.75));
    }
}
