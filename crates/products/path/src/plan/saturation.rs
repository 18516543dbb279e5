//! Steering of a load: streams join it while they raise the rate, and it ends when rate and
//! responsiveness are stable.
//!
//! The method is that of draft-ietf-ippm-responsiveness-09 (moving averages over MAD intervals,
//! stable within SDT), with one stream first, whose rate is a figure of its own.

use std::time::Duration;

use linerate_model::path::{
    Confidence, LoadControl, LoadDecision, LoadEnd, LoadOutcome, LoadSample, LoadWindow,
    PathDirection,
};
use linerate_model::spread::Spread;

/// Intervals of a moving average, and moving averages that are compared
/// (draft-ietf-ippm-responsiveness-09: MAD).
pub(super) const MOVING_AVERAGES: usize = 4;

/// Largest standard deviation of the last moving averages in relation to the newest that counts as
/// stable (SDT).
pub(super) const STABLE_SHARE: f64 = 0.05;

/// Growth of the moving average of the rate from which more streams join.
const GROWTH_SHARE: f64 = 0.05;

/// Start of the part of a load that counts where it did not become stable.
const WARM_UP: Duration = Duration::from_secs(2);
/// Time in which streams that join a load send their first windows at once.
const JOIN: Duration = Duration::from_millis(200);

/// Time between two samples.
const SAMPLE_PERIOD: Duration = Duration::from_millis(100);

/// Below this length a load says little about a path.
const RELIABLE_MIN: Duration = Duration::from_secs(5);

/// Parameters that steer a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoadPlan {
    /// Direction whose rate is watched; `None` for the sum of both.
    pub direction: Option<PathDirection>,
    /// Streams per direction at the start.
    pub streams_start: u32,
    /// For so long there is one stream; zero without such a part.
    pub single: Duration,
    /// Streams per direction after the part with one stream.
    pub streams_next: u32,
    /// Streams per direction that join at a time; 0 keeps their number.
    pub streams_step: u32,
    /// Most streams per direction.
    pub streams_max: u32,
    /// Streams join in every interval until the rate is stable, not only while it grows.
    pub is_growing_until_stable: bool,
    /// Length of an interval (ID).
    pub interval: Duration,
    /// The load does not end as stable before.
    pub duration_min: Duration,
    /// The load ends.
    pub duration_max: Duration,
    /// Most bytes per direction.
    pub bytes_max: Option<u64>,
}

impl LoadPlan {
    /// The same with this number of streams from its begin to its end.
    pub(crate) fn fixed(self, streams: u32) -> Self {
        Self {
            streams_start: streams,
            single: Duration::ZERO,
            streams_next: streams,
            streams_step: 0,
            streams_max: streams,
            is_growing_until_stable: false,
            ..self
        }
    }
}

/// A load that is being steered: pure, fed with samples. It ends for every series of samples.
#[derive(Debug, Clone)]
pub struct Saturation {
    plan: LoadPlan,
    samples: u64,
    now_ns: u64,
    streams: u32,
    streams_seen: u32,
    interval_end_ns: u64,
    interval_start: LoadSample,
    round_trips: Spread,
    rate: MovingAverage,
    responsiveness: MovingAverage,
    intervals: usize,
    is_stream_lost: bool,
    single_end_ns: Option<u64>,
    ended: Option<LoadEnd>,
}

impl Saturation {
    /// A load at its start, with [`LoadPlan::streams_start`] streams.
    pub fn new(plan: LoadPlan) -> Self {
        Self {
            samples: 0,
            now_ns: 0,
            streams: plan.streams_start,
            streams_seen: 0,
            interval_end_ns: ns(plan.interval).max(1),
            interval_start: LoadSample::default(),
            round_trips: Spread::default(),
            rate: MovingAverage::default(),
            responsiveness: MovingAverage::default(),
            intervals: 0,
            is_stream_lost: false,
            single_end_ns: None,
            ended: None,
            plan,
        }
    }

    /// Outcome of the load so far; after its end, of all of it.
    pub fn outcome(&self) -> LoadOutcome {
        let ended_by = self.ended.unwrap_or(LoadEnd::Stopped);
        let differences = [
            (ended_by == LoadEnd::Bytes, "max-bytes"),
            (self.is_stream_lost, "stream-lost"),
            (ended_by == LoadEnd::Stopped, "interrupted"),
        ];

        LoadOutcome {
            confidence: self.confidence(ended_by),
            ended_by,
            streams: self.streams,
            single: self.single(),
            window: self.window(ended_by),
            deviations: differences
                .iter()
                .filter(|(is_so, _)| *is_so)
                .map(|(_, name)| (*name).to_owned())
                .collect(),
        }
    }

    fn confidence(&self, ended_by: LoadEnd) -> Confidence {
        // draft-09: fewer intervals than MAD give low confidence.
        let is_short = self.now_ns < ns(RELIABLE_MIN) || self.intervals < MOVING_AVERAGES;
        match ended_by {
            _ if is_short => Confidence::Low,
            LoadEnd::Stable if !self.is_stream_lost => Confidence::High,
            // A load may be stable before its least time has passed, or in its last interval.
            LoadEnd::Time | LoadEnd::Bytes if self.is_stable() && !self.is_stream_lost => {
                Confidence::High
            }
            _ => Confidence::Medium,
        }
    }

    fn single(&self) -> Option<LoadWindow> {
        let planned = ns(self.plan.single).min(self.now_ns);
        let end_ns = self.single_end_ns.unwrap_or(planned);
        // What waited behind a segment that slow start lost arrives at once, faster than the path
        // is.
        let start_ns = planned / 2;
        (planned > 0 && end_ns > start_ns).then_some(LoadWindow { start_ns, end_ns })
    }

    fn window(&self, ended_by: LoadEnd) -> LoadWindow {
        let end_ns = self.now_ns;
        let stable_ns = ns(self.plan.interval).saturating_mul(MOVING_AVERAGES as u64);
        let start_ns = match ended_by {
            // These are the intervals whose moving averages were stable.
            LoadEnd::Stable => end_ns.saturating_sub(stable_ns),
            _ if end_ns >= 2 * ns(WARM_UP) => ns(WARM_UP),
            _ => self.short_window_start_ns(end_ns),
        };

        LoadWindow { start_ns, end_ns }
    }

    /// Start of the window of a load that is shorter than twice its warm-up: its later half,
    /// without the single stream and the first windows of the streams that join it, where half of
    /// that is left.
    fn short_window_start_ns(&self, end_ns: u64) -> u64 {
        // Of a load of 2 s a warm-up of 2 s left 2 ms, whose rate was 0.1 to 78 Mbit/s at 50.
        let half_ns = end_ns / 2;
        let joined_ns = self
            .single_end_ns
            .map_or(0, |single_ns| single_ns.saturating_add(ns(JOIN)));
        if joined_ns <= end_ns / 4 * 3 {
            half_ns.max(joined_ns)
        } else {
            half_ns
        }
    }

    fn is_stable(&self) -> bool {
        self.rate.is_stable() && self.responsiveness.is_stable()
    }

    fn take(&mut self, sample: &LoadSample, newest_rtt_ns: Option<i64>) {
        self.samples += 1;
        self.now_ns = self.now_ns.max(sample.at_ns);

        if let Some(rtt_ns) = newest_rtt_ns.filter(|ns| *ns > 0) {
            self.round_trips.add(rtt_ns as f64);
        }

        // The draft ends a test that loses a connection; here the others continue, with less
        // confidence.
        self.is_stream_lost |= sample.streams < self.streams_seen;
        self.streams_seen = self.streams_seen.max(sample.streams);
    }

    fn end(&self, sample: &LoadSample) -> Option<LoadEnd> {
        let is_over = |bytes: u64| self.plan.bytes_max.is_some_and(|max| bytes >= max);
        // A clock that stands still must not keep a load running.
        // Twice the samples of a clock that runs, and some more for a short load.
        let samples_max = 2 * (ns(self.plan.duration_max) / ns(SAMPLE_PERIOD)) + 20;
        if is_over(sample.down_bytes) || is_over(sample.up_bytes) {
            return Some(LoadEnd::Bytes);
        }

        (self.now_ns >= ns(self.plan.duration_max) || self.samples > samples_max)
            .then_some(LoadEnd::Time)
    }

    fn bytes(&self, sample: &LoadSample) -> u64 {
        match self.plan.direction {
            Some(PathDirection::Down) => sample.down_bytes,
            Some(PathDirection::Up) => sample.up_bytes,
            None => sample.down_bytes.saturating_add(sample.up_bytes),
        }
    }

    /// An interval ends with this sample.
    fn close_interval(&mut self, sample: &LoadSample) {
        let seconds =
            linerate_model::units::ns_to_s(self.now_ns.saturating_sub(self.interval_start.at_ns));
        let bytes = self
            .bytes(sample)
            .saturating_sub(self.bytes(&self.interval_start));
        self.rate
            .add(linerate_model::units::rate_bps(bytes, seconds));

        // An interval without a reply has no responsiveness, which is not one of 0.
        if self.round_trips.count > 0 {
            self.responsiveness
                .add(NS_PER_MINUTE / self.round_trips.mean);
        }

        self.round_trips = Spread::default();
        self.intervals += 1;
        self.interval_start = LoadSample {
            at_ns: self.now_ns,
            ..*sample
        };

        let interval_ns = ns(self.plan.interval).max(1);
        // After a late sample the next interval ends on the grid, not a whole interval later.
        let passed = (self.now_ns / interval_ns).saturating_add(1);
        self.interval_end_ns = passed.saturating_mul(interval_ns);
    }

    /// Streams that join after an interval.
    fn growth(&self) -> u32 {
        let room = self.plan.streams_max.saturating_sub(self.streams);
        if self.is_single() && self.now_ns < ns(self.plan.single) {
            return 0;
        }
        if self.is_single() {
            return self
                .plan
                .streams_next
                .saturating_sub(self.streams)
                .min(room);
        }

        // The draft adds flows until the rate is stable; otherwise they join while that raises it.
        let is_growing = if self.plan.is_growing_until_stable {
            !self.rate.is_stable()
        } else {
            self.rate.has_grown()
        };
        if is_growing {
            self.plan.streams_step.min(room)
        } else {
            0
        }
    }

    fn is_single(&self) -> bool {
        !self.plan.single.is_zero() && self.single_end_ns.is_none()
    }
}

impl LoadControl for Saturation {
    fn first_streams(&self) -> u32 {
        self.plan.streams_start.max(1)
    }

    fn sample(&mut self, sample: &LoadSample, newest_rtt_ns: Option<i64>) -> LoadDecision {
        if self.ended.is_some() {
            return LoadDecision::End;
        }

        self.take(sample, newest_rtt_ns);
        self.ended = self.end(sample);
        let is_interval_over = self.now_ns >= self.interval_end_ns;
        // An interval that ends together with the load counts as well.
        if is_interval_over {
            self.close_interval(sample);
        }

        if self.ended.is_some() {
            return LoadDecision::End;
        }

        let added = if is_interval_over { self.growth() } else { 0 };
        if is_interval_over && self.is_single() && self.now_ns >= ns(self.plan.single) {
            self.single_end_ns = Some(self.now_ns);
            // Rates of one stream and of several are not of one series.
            self.rate.restart();
            self.responsiveness.restart();
        }

        // Streams that join change the rate: it is judged after an interval without growth.
        if added > 0 {
            self.streams += added;
            return LoadDecision::AddStreams(added);
        }

        if is_interval_over
            && self.now_ns >= ns(self.plan.duration_min)
            && self.is_stable()
            && !self.is_single()
        {
            self.ended = Some(LoadEnd::Stable);
            return LoadDecision::End;
        }

        LoadDecision::Continue
    }
}

const NS_PER_MINUTE: f64 = 60e9;

/// Values of intervals, and the means of the last MAD of them.
#[derive(Debug, Clone, Default)]
struct MovingAverage {
    values: Vec<f64>,
    means: Vec<f64>,
    before: Option<f64>,
}

impl MovingAverage {
    fn add(&mut self, value: f64) {
        push_bounded(&mut self.values, value);
        let mean = self.values.iter().sum::<f64>() / self.values.len() as f64;
        push_bounded(&mut self.means, mean);
    }

    /// Begins another series, whose first mean is compared with the last of this one.
    fn restart(&mut self) {
        *self = Self {
            before: self.means.last().copied(),
            ..Self::default()
        };
    }

    /// The deviation of the last MAD means is small in relation to the newest.
    fn is_stable(&self) -> bool {
        let mut spread = Spread::default();
        self.means.iter().for_each(|mean| spread.add(*mean));
        self.means.len() == MOVING_AVERAGES
            // A load that moves nothing does not deviate, and is not stable.
            && spread.last > 0.0
            && spread.deviation() <= STABLE_SHARE * spread.last
    }

    fn has_grown(&self) -> bool {
        let (before, newest) = match self.means.as_slice() {
            [.., before, newest] => (Some(*before), *newest),
            [newest] => (self.before, *newest),
            [] => (None, 0.0),
        };
        newest > 0.0 && before.is_some_and(|before| newest >= before * (1.0 + GROWTH_SHARE))
    }
}

fn push_bounded(values: &mut Vec<f64>, value: f64) {
    if values.len() == MOVING_AVERAGES {
        values.remove(0);
    }
    values.push(value);
}

fn ns(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
#[path = "saturation_tests.rs"]
mod tests;
