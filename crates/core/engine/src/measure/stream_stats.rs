//! Metrics of a stream beyond bytes: sizes of reads, delays, frames, round trips.
//!
//! One instance per stream, written by its worker once per call or batch and read by the sampler.
//! Both hold the lock for a few additions, so that it is practically never contended.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use linerate_model::metrics::{
    Distribution, FrameCounts, Histogram, HistogramKind, ReadCounts, RoundTrips, StreamMetrics,
    WriteCounts,
};
use linerate_model::spread::Spread;
use linerate_model::workload::HistogramSpec;
use linerate_sys::clock::as_ns;

use crate::lock::lock;
use crate::measure::counters::{Counts, StreamCounters};

/// Samples of one stream, since the last interval ended and since it began.
#[derive(Default)]
pub(crate) struct StreamStats {
    both: Mutex<IntervalAndTotal>,
}

#[derive(Default)]
struct IntervalAndTotal {
    interval: Samples,
    total: Samples,
    interval_ends: Option<IntervalEnds>,
    /// The interval that has ended and is not reported yet: what was measured and counted in it.
    ended: Option<(Samples, Counts)>,
}

/// When intervals end, on the monotonic clock.
#[derive(Clone, Copy)]
struct IntervalEnds {
    next_ns: u64,
    interval_ns: u64,
}

/// Samples of reads. `None` and empty series were not measured.
#[derive(Clone, Default)]
pub(crate) struct Samples {
    pub reads: Option<ReadCounts>,
    pub writes: Option<WriteCounts>,
    pub datagrams_received: Option<u64>,
    /// One-way delays in s.
    pub one_way: Spread,
    pub burst_bytes: u64,
    /// Times in s from the first byte of a burst to the last, and the sum of the periods between
    /// bursts.
    pub burst_transfer: Spread,
    pub burst_periods_s: f64,
    pub write_times: Spread,
    pub round_trips: Spread,
    pub out: Spread,
    pub back: Spread,
    pub asymmetry: Spread,
    pub sent_bytes: u64,
    pub received_bytes: u64,
    pub frames: Option<FrameCounts>,
    pub frame_delay: Spread,
    pub bins: Vec<HistogramBins>,
}

/// Counts per bin of a histogram that is being filled.
#[derive(Clone)]
pub(crate) struct HistogramBins {
    kind: HistogramKind,
    spec: HistogramSpec,
    counts: BTreeMap<u32, u64>,
    below: u64,
    beyond: u64,
    largest: Option<(f64, f64)>,
}

impl StreamStats {
    /// With distributions, reported in this order.
    pub(crate) fn with_histograms(kinds: &[HistogramKind], spec: Option<HistogramSpec>) -> Self {
        let stats = Self::default();
        let bins = |spec| {
            kinds
                .iter()
                .map(|kind| HistogramBins::new(*kind, spec))
                .collect()
        };
        stats.update(|samples| samples.bins = spec.map(bins).unwrap_or_default());
        stats
    }

    /// Adds to what was measured; `change` is applied to the interval and to the total.
    pub(crate) fn update(&self, change: impl Fn(&mut Samples)) {
        let mut both = lock(&self.both);
        change(&mut both.interval);
        change(&mut both.total);
    }

    /// Intervals end every `interval` after `start_ns`, so that
    /// [`StreamStats::end_interval_before`] knows where.
    pub(crate) fn set_interval_ends(&self, start_ns: u64, interval: Duration) {
        let interval_ns = as_ns(interval).max(1);
        lock(&self.both).interval_ends = Some(IntervalEnds {
            next_ns: start_ns.saturating_add(interval_ns),
            interval_ns,
        });
    }

    /// Counts from here on began at `now_ns`: if an interval ended before and the sampler
    /// has not come yet, its readings are put aside. The sampler comes late by the time it takes to
    /// wake up, in which a burst ends.
    pub(crate) fn end_interval_before(&self, now_ns: u64, counters: &StreamCounters) {
        let mut both = lock(&self.both);
        let has_ended = both
            .interval_ends
            .is_some_and(|interval_ends| interval_ends.next_ns <= now_ns);
        if has_ended && both.ended.is_none() {
            let fresh = both.interval.emptied();
            both.ended = Some((
                std::mem::replace(&mut both.interval, fresh),
                counters.read(),
            ));
        }
    }

    /// Metrics since the last call, and the counts up to the end of that interval
    /// if the worker has gone on since.
    pub(crate) fn take_interval(&self, now_ns: u64) -> (StreamMetrics, Option<Counts>) {
        let mut both = lock(&self.both);
        if let Some(interval_ends) = &mut both.interval_ends
            && interval_ends.next_ns <= now_ns
        {
            let passed = (now_ns - interval_ends.next_ns) / interval_ends.interval_ns + 1;
            interval_ends.next_ns = interval_ends
                .next_ns
                .saturating_add(passed.saturating_mul(interval_ends.interval_ns));
        }

        if let Some((samples, counts)) = both.ended.take() {
            return (samples.measured(false), Some(counts));
        }

        let fresh = both.interval.emptied();
        (
            std::mem::replace(&mut both.interval, fresh).measured(false),
            None,
        )
    }

    /// Metrics since the stream began.
    pub(crate) fn total(&self) -> StreamMetrics {
        lock(&self.both).total.clone().measured(true)
    }

    /// The one-way delays of the whole stream.
    pub(crate) fn one_way(&self) -> Spread {
        lock(&self.both).total.one_way
    }
}

impl Samples {
    /// The same with nothing measured.
    fn emptied(&self) -> Self {
        Self {
            reads: self.reads.map(|_| ReadCounts::default()),
            writes: self.writes.map(|_| WriteCounts::default()),
            datagrams_received: self.datagrams_received.map(|_| 0),
            frames: self.frames.map(|_| FrameCounts::default()),
            bins: self
                .bins
                .iter()
                .map(|bins| HistogramBins::new(bins.kind, bins.spec))
                .collect(),
            ..Self::default()
        }
    }

    /// Adds one value to a distribution, in s, seen at `unix_s`.
    pub(crate) fn add_to_histogram(&mut self, kind: HistogramKind, value_s: f64, unix_s: f64) {
        if let Some(bins) = self.bins.iter_mut().find(|bins| bins.kind == kind) {
            bins.add(value_s, unix_s);
        }
    }

    fn measured(self, is_total: bool) -> StreamMetrics {
        let burst_mean_bytes = self
            .burst_bytes
            .checked_div(self.one_way.count.max(self.burst_transfer.count));
        let round_trips = (self.round_trips.count > 0 || self.sent_bytes > 0).then(|| RoundTrips {
            round_trip: distribution(&self.round_trips),
            out: known(&self.out),
            back: known(&self.back),
            asymmetry: known(&self.asymmetry),
            sent_bytes: self.sent_bytes,
            received_bytes: self.received_bytes,
        });

        StreamMetrics {
            writes: self.writes,
            reads: self.reads,
            datagrams_received: self.datagrams_received,
            one_way: known(&self.one_way),
            burst_mean_bytes,
            burst_transfer: known(&self.burst_transfer),
            burst_duty_cycle: (self.burst_periods_s > 0.0)
                .then(|| self.burst_transfer.sum() / self.burst_periods_s),
            write_times: known(&self.write_times),
            round_trips,
            frames: self.frames,
            frame_delay: known(&self.frame_delay),
            histograms: self
                .bins
                .into_iter()
                .filter(|bins| is_total || !bins.counts.is_empty())
                .map(HistogramBins::histogram)
                .collect(),
            ..StreamMetrics::default()
        }
    }
}

fn known(spread: &Spread) -> Option<Distribution> {
    (spread.count > 0).then(|| distribution(spread))
}

/// A series as reports show it.
pub(crate) fn distribution(spread: &Spread) -> Distribution {
    Distribution {
        count: spread.count,
        mean: spread.mean,
        min: spread.min,
        max: spread.max,
        deviation: spread.deviation(),
    }
}

/// Percentage in the middle that is always named.
const THREE_SIGMA_PERCENT: f64 = 99.7;

impl HistogramBins {
    fn new(kind: HistogramKind, spec: HistogramSpec) -> Self {
        Self {
            kind,
            spec,
            counts: BTreeMap::new(),
            below: 0,
            beyond: 0,
            largest: None,
        }
    }

    fn add(&mut self, value_s: f64, unix_s: f64) {
        if self.largest.is_none_or(|(largest, _)| value_s > largest) {
            self.largest = Some((value_s, unix_s));
        }

        let bin = (value_s * 1e6 / f64::from(self.spec.bin_width_us.max(1))).floor() + 1.0;
        if bin < 1.0 {
            self.below += 1;
        } else if bin > f64::from(self.spec.bins) {
            self.beyond += 1;
        } else {
            *self.counts.entry(bin as u32).or_default() += 1;
        }
    }

    fn histogram(self) -> Histogram {
        let low = self.spec.lower_percent;
        let high = self.spec.upper_percent;
        let percentiles =
            [low, high, THREE_SIGMA_PERCENT].map(|percent| (percent, self.bin_of(percent)));

        Histogram {
            kind: self.kind,
            bin_width_us: self.spec.bin_width_us,
            outliers: self.outliers(),
            bins: self.counts.into_iter().collect(),
            percentiles,
            below: self.below,
            beyond: self.beyond,
            largest: self.largest,
        }
    }

    /// The first bin that together with those before it holds this share.
    fn bin_of(&self, percent: f64) -> u32 {
        let all: u64 = self.counts.values().sum();
        let mut seen = 0;

        for (bin, count) in &self.counts {
            seen += count;
            if seen as f64 * 100.0 >= percent * all as f64 {
                return *bin;
            }
        }

        0
    }

    /// Values three times further out than the middle eight tenths are wide.
    fn outliers(&self) -> u64 {
        let low = self.bin_of(10.0);
        let high = self.bin_of(90.0);
        let fence = high.saturating_add(3 * (high - low.min(high)));
        self.counts
            .range(fence.saturating_add(1)..)
            .map(|(_, count)| count)
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interval_starts_empty_and_total_continues() {
        let stats = StreamStats::default();
        stats.update(|r| r.reads.get_or_insert_default().calls += 2);
        assert_eq!(stats.take_interval(1).0.reads.map(|r| r.calls), Some(2));
        assert_eq!(
            stats.take_interval(2).0.reads.map(|r| r.calls),
            Some(0),
            "measured, and nothing came"
        );
        stats.update(|r| r.reads.get_or_insert_default().calls += 3);
        assert_eq!(stats.total().reads.map(|r| r.calls), Some(5));
        assert_eq!(stats.total().one_way, None);
    }

    #[test]
    fn what_begins_behind_the_end_of_an_interval_belongs_to_the_next() {
        let (stats, counters) = (StreamStats::default(), StreamCounters::default());
        stats.set_interval_ends(1000, Duration::from_nanos(100));

        let move_one = |now_ns| {
            stats.end_interval_before(now_ns, &counters);
            counters.add(10, 0);
            stats.update(|r| r.reads.get_or_insert_default().calls += 1);
        };
        move_one(1000);
        move_one(1099);
        move_one(1100);

        let (first, counts) = stats.take_interval(1107);
        assert_eq!(
            (first.reads.map(|r| r.calls), counts.map(|c| c.bytes)),
            (Some(2), Some(20))
        );
        move_one(1150);

        let (second, counts) = stats.take_interval(1203);
        assert_eq!((second.reads.map(|r| r.calls), counts), (Some(2), None));
    }

    #[test]
    fn values_are_sorted_into_bins() {
        let spec = HistogramSpec::new(100, 10);
        let stats = StreamStats::with_histograms(
            &[HistogramKind::Datagrams, HistogramKind::Bursts],
            Some(spec),
        );

        for us in [0, 99, 100, 150, 999, 1000, 5000] {
            stats.update(|r| r.add_to_histogram(HistogramKind::Bursts, f64::from(us) / 1e6, 7.0));
        }

        stats.update(|r| r.add_to_histogram(HistogramKind::Bursts, -1.0, 7.0));
        stats.update(|r| r.add_to_histogram(HistogramKind::Writes, 1.0, 7.0));
        let total = stats.total();
        let [datagrams, histogram] = total.histograms.as_slice() else {
            panic!("two")
        };
        assert!(datagrams.bins.is_empty());
        assert_eq!(histogram.bins, [(1, 2), (2, 2), (10, 1)]);
        assert_eq!((histogram.below, histogram.beyond), (1, 2));
        assert_eq!(histogram.percentiles.map(|(_, bin)| bin), [1, 10, 10]);
        assert_eq!(histogram.largest, Some((0.005, 7.0)));
    }
}
