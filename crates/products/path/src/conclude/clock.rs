//! Relation of two monotonic clocks, and what follows from it: delays of one direction and their
//! queues.
//!
//! A probe leaves this end at t1, arrives at t2, its reply leaves at t3 and arrives at t4; t2 and
//! t3 are of the other clock. No delay is negative, so that the offset θ of the other clock lies
//! between t3 - t4 and t2 - t1 of every probe. A clock that runs faster moves both bounds along a
//! line, whose slope is found on the lower hulls of both delays (Moon, Skelly and Towsley, INFOCOM
//! 1999): of all slopes the one with the bounds furthest apart, which is the one that contradicts
//! the probes least. In the middle of the examination the hulls themselves bound the offset,
//! whatever the slope. Half their distance is the error: no assumption is made on how the round
//! trip divides.

use linerate_model::path::{ClockEstimate, ClockMethod, Delay, ProbeSample};

use super::convex_hull::Hull;

/// Most by which a clock may differ from another in rate: the kernel corrects up to 500 ppm
/// (adjtimex(2)) at either end.
const SKEW_MAX: f64 = 1e-3;

/// By so much a stamp may be wrong on a host whose CPUs are busy: a delay that is more negative
/// contradicts the clocks.
const STAMP_ERROR_NS: u64 = 100_000;

/// Times beyond this, 36 years, are not times of a monotonic clock.
const TIME_MAX_NS: u64 = 1 << 60;

/// Facts about the two clocks beside the probes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ClockFacts {
    /// Both ends have the boot id of one kernel.
    pub is_same_boot: bool,
    /// Offset of the other monotonic clock and its error, in ns, by the time sources of both
    /// kernels: each end's distance of realtime and monotonic clock, and the sum of both `maxerror`
    /// (adjtimex(2)). Absent where a kernel is not synchronised.
    pub disciplined: Option<(i64, u64)>,
}

/// Relation of the other end's monotonic clock to this one's: a line with an error.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clock {
    method: ClockMethod,
    reference_ns: u64,
    offset_ns: i64,
    error_ns: u64,
    skew: f64,
    floor_up_ns: i64,
    floor_down_ns: i64,
    ignored: u64,
}

impl Clock {
    /// Compares the clocks by all probes of an examination. `None` without a reply that bears the
    /// other end's times.
    pub fn from_probes(samples: &[ProbeSample], facts: ClockFacts) -> Option<Self> {
        let all: Vec<Exchange> = samples.iter().filter_map(Exchange::of).collect();
        let kept = without_outliers(&all);
        let first = kept.first()?;
        let last = kept.last()?;
        let reference_ns = first.t1.midpoint(last.t1);
        // Hulls have floating-point heights, which are exact relative to the first reply.
        let origin_ns = first.out_ns();
        let bounds = Bounds::of(&kept, reference_ns, origin_ns);
        let replies = samples
            .iter()
            .filter(|sample| has_all_times(sample))
            .count();

        let exchange = Self {
            method: ClockMethod::Exchange,
            reference_ns,
            offset_ns: origin_ns.saturating_add(bounds.middle().round() as i64),
            // One more ns covers the rounding of the offset.
            error_ns: bounds.half_width().ceil() as u64 + 1,
            skew: bounds.skew,
            floor_up_ns: 0,
            floor_down_ns: 0,
            ignored: replies.saturating_sub(kept.len()) as u64,
        };
        Some(exchange.narrowed(facts).with_floors(&kept))
    }

    /// The estimate of a report. Its offset is that in the middle of the probes.
    pub fn estimate(&self) -> ClockEstimate {
        ClockEstimate {
            method: self.method,
            offset_ns: self.offset_ns,
            error_ns: self.error_ns,
            skew_ppb: (self.skew * 1e9).round() as i64,
        }
    }

    /// Offset of the other clock, in ns, at a time of this one.
    pub fn offset_at(&self, own_ns: u64) -> i64 {
        self.offset_ns.saturating_add(self.drift_at(own_ns))
    }

    /// The true offset differs by at most this, ns.
    pub fn error_ns(&self) -> u64 {
        self.error_ns
    }

    /// Replies that were not used: their times are impossible or contradict those of most others.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }

    /// Delays from this end to the other and back, each with its error. A lost probe has no
    /// direction and counts in neither.
    pub fn one_way(&self, samples: &[ProbeSample]) -> (Delay, Delay) {
        let with_error = |delays: Vec<i64>| {
            let mut delay = Delay::of(&delays, 0);
            delay.error_ns = Some(self.error_ns);
            delay
        };
        let (up, down) = self.delays(samples);
        (with_error(up), with_error(down))
    }

    /// Delays above the smallest of their direction in the whole examination (RFC 5481), from this
    /// end to the other and back. They depend on the skew but not on the offset.
    pub fn queues(&self, samples: &[ProbeSample]) -> (Delay, Delay) {
        let (up, down) = self.delays(samples);
        let above = |delays: Vec<i64>, floor_ns: i64| {
            let above: Vec<i64> = delays
                .into_iter()
                // The floor is that of the replies without outliers; another one may lie below it.
                .map(|ns| ns.saturating_sub(floor_ns).max(0))
                .collect();
            Delay::of(&above, 0)
        };
        (above(up, self.floor_up_ns), above(down, self.floor_down_ns))
    }

    /// Delays of one reply from this end to the other and back, in ns. `None` without all times,
    /// and where they contradict the bounds.
    pub fn one_way_of(&self, sample: &ProbeSample) -> Option<(i64, i64)> {
        let exchange = Exchange::of(sample)?;
        let least_ns =
            -i64::try_from(self.error_ns.saturating_add(STAMP_ERROR_NS)).unwrap_or(i64::MAX);
        let sent = self.offset_at(exchange.t1);
        let received = self.offset_at(exchange.t4);
        let up = exchange.out_ns().saturating_sub(sent);
        let down = exchange.back_ns().saturating_add(received);

        (up >= least_ns && down >= least_ns).then_some((up, down))
    }

    fn delays(&self, samples: &[ProbeSample]) -> (Vec<i64>, Vec<i64>) {
        samples
            .iter()
            .filter_map(|sample| self.one_way_of(sample))
            .unzip()
    }

    fn drift_at(&self, own_ns: u64) -> i64 {
        let passed_ns = i128::from(own_ns) - i128::from(self.reference_ns);
        (self.skew * passed_ns as f64).round() as i64
    }

    /// Uses what is known beside the probes where it does not contradict them.
    fn narrowed(self, facts: ClockFacts) -> Self {
        let contains = |offset_ns: i64, error_ns: u64| {
            offset_ns.abs_diff(self.offset_ns) <= self.error_ns.saturating_add(error_ns)
        };
        // Time namespaces of one kernel have clocks of their own.
        if facts.is_same_boot && contains(0, 0) {
            return Self {
                method: ClockMethod::OneClock,
                offset_ns: 0,
                error_ns: 0,
                skew: 0.0,
                ..self
            };
        }

        match facts.disciplined {
            Some((offset_ns, error_ns))
                if error_ns < self.error_ns && contains(offset_ns, error_ns) =>
            {
                Self {
                    method: ClockMethod::Disciplined,
                    offset_ns,
                    error_ns,
                    ..self
                }
            }
            _ => self,
        }
    }

    fn with_floors(self, kept: &[Exchange]) -> Self {
        let samples: Vec<ProbeSample> = kept.iter().map(|exchange| exchange.sample()).collect();
        let (up, down) = self.delays(&samples);
        let least = |delays: Vec<i64>| delays.into_iter().min().unwrap_or_default();
        Self {
            floor_up_ns: least(up),
            floor_down_ns: least(down),
            ..self
        }
    }
}

/// Four times of a reply, in an order that is possible.
#[derive(Debug, Clone, Copy)]
struct Exchange {
    t1: u64,
    t2: u64,
    t3: u64,
    t4: u64,
}

impl Exchange {
    /// `None` of a lost probe, of one without the other end's times, and of one whose times are
    /// impossible: not monotonic, or longer at the other end than away from this one.
    fn of(sample: &ProbeSample) -> Option<Self> {
        let t1 = sample.sent_ns;
        let t2 = sample.peer_received_ns?;
        let t3 = sample.peer_sent_ns?;
        let t4 = sample.received_ns?;
        let is_possible =
            [t1, t2, t3, t4].iter().all(|ns| *ns < TIME_MAX_NS) && t1 <= t4 && t2 <= t3;
        let away = t4.saturating_sub(t1);
        let inside = t3.saturating_sub(t2);
        // The other clock may run faster: its span may exceed this one's by the largest skew.
        let with_skew = away.saturating_add((away as f64 * SKEW_MAX) as u64 + 1);

        (is_possible && inside <= with_skew).then_some(Self { t1, t2, t3, t4 })
    }

    fn sample(&self) -> ProbeSample {
        ProbeSample {
            sent_ns: self.t1,
            peer_received_ns: Some(self.t2),
            peer_sent_ns: Some(self.t3),
            received_ns: Some(self.t4),
        }
    }

    /// t2 - t1: at least the offset.
    fn out_ns(&self) -> i64 {
        // Times are below `TIME_MAX_NS`, so that casts and differences are exact.
        self.t2 as i64 - self.t1 as i64
    }

    /// t4 - t3: at least the negative offset.
    fn back_ns(&self) -> i64 {
        self.t4 as i64 - self.t3 as i64
    }
}

/// True if the other end's times of a probe can be true. Those of one that was lost, or that bears
/// none, can.
pub(super) fn is_possible(sample: &ProbeSample) -> bool {
    !has_all_times(sample) || Exchange::of(sample).is_some()
}

fn has_all_times(sample: &ProbeSample) -> bool {
    sample.peer_received_ns.is_some()
        && sample.peer_sent_ns.is_some()
        && sample.received_ns.is_some()
}

/// Bounds of the offset at the reference, relative to the origin.
struct Bounds {
    low: f64,
    high: f64,
    skew: f64,
}

impl Bounds {
    fn of(kept: &[Exchange], reference_ns: u64, origin_ns: i64) -> Self {
        let x = |own_ns: u64| own_ns as i64 - reference_ns as i64;
        let out = Hull::lower(
            kept.iter()
                .map(|e| (x(e.t1), e.out_ns() - origin_ns))
                .collect(),
        );

        let back = Hull::lower(
            kept.iter()
                .map(|e| (x(e.t4), e.back_ns() + origin_ns))
                .collect(),
        );
        let skew = widest_slope(&out, &back);

        // θ is at most t2 - t1, and at least -(t4 - t3).
        Self {
            low: -height(&back),
            high: height(&out),
            skew,
        }
    }

    fn middle(&self) -> f64 {
        f64::midpoint(self.low, self.high)
    }

    fn half_width(&self) -> f64 {
        (self.high - self.low).abs() / 2.0
    }
}

/// Height of a hull at the reference; beside the hull that of its nearest corner with room for the
/// largest skew.
fn height(hull: &Hull) -> f64 {
    let beside = || {
        hull.nearest(0)
            .map(|(x, y)| y as f64 + x.unsigned_abs() as f64 * SKEW_MAX)
    };
    hull.height_at(0).or_else(beside).unwrap_or_default()
}

/// Slope at which the bounds lie furthest apart; the middle one where several do, 0 where there is
/// none within the limits. The distance is a concave function that is linear between the slopes of
/// the hulls' edges.
fn widest_slope(out: &Hull, back: &Hull) -> f64 {
    // The delays back bound the negative offset, whose slope has the other sign.
    let edges = out.slopes().chain(back.slopes().map(|slope| -slope));
    let mut candidates: Vec<f64> = edges.filter(|slope| slope.abs() < SKEW_MAX).collect();
    candidates.sort_unstable_by(f64::total_cmp);

    let candidates: Vec<f64> = [-SKEW_MAX]
        .into_iter()
        .chain(candidates)
        .chain([SKEW_MAX])
        .collect();
    let width = |slope: f64| out.line_at(slope, 0) + back.line_at(-slope, 0);
    let widths: Vec<f64> = candidates.iter().map(|slope| width(*slope)).collect();
    let steps: Vec<f64> = widths
        .iter()
        .zip(widths.iter().skip(1))
        .map(|(one, next)| next - one)
        .collect();

    // A concave function is at its top where it stops to grow.
    let first = steps.partition_point(|step| *step > 0.0);
    let last = steps.partition_point(|step| *step >= 0.0);
    // A width that still grows at a limit has its top beyond every possible skew.
    let is_inside = first > 0 && last < steps.len();

    match (candidates.get(first), candidates.get(last)) {
        (Some(first), Some(last)) if is_inside => f64::midpoint(*first, *last),
        _ => 0.0,
    }
}

/// The replies whose bounds hold the offset that most of them allow (Marzullo, 1984), with room for
/// the largest skew. The others bear times that are wrong.
fn without_outliers(all: &[Exchange]) -> Vec<Exchange> {
    let start_ns = all
        .iter()
        .map(|exchange| exchange.t1)
        .min()
        .unwrap_or_default();
    let bounds = |exchange: &Exchange| {
        let room = (exchange.t4.abs_diff(start_ns) as f64 * SKEW_MAX) as i64 + 2;
        let low = exchange.back_ns().saturating_neg().saturating_sub(room);
        (low, exchange.out_ns().saturating_add(room))
    };

    // Starts come before ends of the same value.
    let mut ends: Vec<(i64, bool)> = all
        .iter()
        .map(bounds)
        .flat_map(|(low, high)| [(low, false), (high, true)])
        .collect();
    ends.sort_unstable();
    let mut open = 0_usize;
    let mut most = 0_usize;
    let mut best = 0_i64;

    for (value, is_end) in ends {
        if is_end {
            open = open.saturating_sub(1);
        } else {
            open += 1;
        }

        if open > most {
            most = open;
            best = value;
        }
    }

    let holds = |exchange: &&Exchange| {
        let (low, high) = bounds(exchange);
        low <= best && best <= high
    };
    all.iter().filter(holds).copied().collect()
}

#[cfg(test)]
#[path = "clock_tests.rs"]
mod tests;
