//! Settings with the runs made at each, and the outcome of an experiment.

use std::ops::{Index, IndexMut, RangeInclusive};

use linerate_model::stats::{self, Interval};
use linerate_model::sweep::RunMetrics;

use crate::plan::factor::Setting;
use crate::run::runner::Observation;

/// A setting and all runs made at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Point {
    /// The setting.
    pub setting: Setting,
    /// Its runs, in the order of time.
    pub runs: Vec<Observation>,
    /// Why runs at it failed.
    pub failures: Vec<String>,
}

impl Point {
    pub(crate) fn new(setting: Setting) -> Self {
        Self {
            setting,
            runs: Vec::new(),
            failures: Vec::new(),
        }
    }

    /// Values of its runs.
    pub fn values(&self) -> Vec<f64> {
        self.runs.iter().map(|run| run.value).collect()
    }

    /// The median of its runs; `None` when all failed.
    pub fn median(&self) -> Option<f64> {
        stats::median(&self.values())
    }

    /// Medians of the metrics of its runs, each over those that have it.
    pub fn medians(&self) -> RunMetrics {
        let median = |figure: fn(&RunMetrics) -> Option<f64>| {
            let runs = self.runs.iter();
            let values: Vec<f64> = runs.filter_map(|run| figure(&run.metrics)).collect();
            stats::median(&values)
        };

        RunMetrics {
            received_bps: median(|metrics| Some(metrics.received_bps)).unwrap_or(0.0),
            sent_bps: median(|metrics| metrics.sent_bps),
            cpu_client_percent: median(|metrics| metrics.cpu_client_percent),
            cpu_server_percent: median(|metrics| metrics.cpu_server_percent),
            retransmits: median(|metrics| metrics.retransmits),
            retransmits_per_s: median(|metrics| metrics.retransmits_per_s),
            rtt_us: median(|metrics| metrics.rtt_us),
            in_flight_share: median(|metrics| metrics.in_flight_share),
            window_bytes: median(|metrics| metrics.window_bytes),
            window_limited_share: median(|metrics| metrics.window_limited_share),
            buffer_limited_share: median(|metrics| metrics.buffer_limited_share),
            lost_percent: median(|metrics| metrics.lost_percent),
        }
    }
}

/// Position of a point among all [`Points`], which is not its place among the levels of a factor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PointId(usize);

/// The points of an experiment, one for each setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Points(Vec<Point>);

impl Points {
    pub(crate) const NONE: Self = Self(Vec::new());

    /// All points, in the order in which they were first run.
    pub fn iter(&self) -> std::slice::Iter<'_, Point> {
        self.0.iter()
    }

    pub(crate) fn ids(&self) -> impl Iterator<Item = PointId> {
        (0..self.0.len()).map(PointId)
    }

    /// The point of a setting; `None` before its first run.
    pub(crate) fn find(&self, setting: &Setting) -> Option<PointId> {
        let place = self.iter().position(|point| point.setting == *setting);
        place.map(PointId)
    }

    pub(crate) fn add(&mut self, setting: Setting) -> PointId {
        self.0.push(Point::new(setting));
        PointId(self.0.len() - 1)
    }
}

impl Index<PointId> for Points {
    type Output = Point;

    fn index(&self, PointId(place): PointId) -> &Point {
        &self.0[place]
    }
}

impl IndexMut<PointId> for Points {
    fn index_mut(&mut self, PointId(place): PointId) -> &mut Point {
        &mut self.0[place]
    }
}

/// All results of an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// All settings, in the order in which they were first run.
    pub points: Points,
    /// One per factor that was explored, in the plan's order. Of a factor that had to be explored
    /// again, because others had moved, what was found then.
    pub stages: Vec<Stage>,
    /// Place in `points` of the setting that all stages together advise; `None` without stages.
    pub leader: Option<PointId>,
    /// The answer.
    pub verdict: Verdict,
    /// Runs that were made, failed ones and the warm-up included.
    pub runs: u64,
    /// Late values of a setting over early ones where that can hardly be chance: the path or a host
    /// changed during the experiment.
    pub drift: Option<f64>,
    /// The time ran out before everything planned had been run.
    pub is_cut_short: bool,
    /// Why the experiment ended early, when it did for another reason than time.
    pub ended_by: Option<String>,
}

/// Finding about one factor, with the others held fixed.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Place of the factor in the plan.
    pub factor: usize,
    /// Places in [`Outcome::points`], by level.
    pub points: Vec<PointId>,
    /// Places in [`Outcome::points`] of levels at which every run failed.
    pub failed: Vec<PointId>,
    /// Place in [`Outcome::points`] of the highest (or lowest) median.
    pub best: PointId,
    /// Places in [`Stage::points`] of the neighbours of the best one that are not distinguishable
    /// from it or as good. Where what the system chooses is best, those of the ladder that are, or
    /// else the best one alone.
    pub plateau: RangeInclusive<usize>,
    /// Place in [`Outcome::points`] of what to use: the default, unless another level is known to
    /// be better by more than the margin, and then the least level of the plateau, or of choices as
    /// good as the best the one that burdens the path least.
    pub advised: PointId,
    /// It is the default.
    pub is_default: bool,
    /// Places in [`Outcome::points`] of levels whose medians differ from its own by no more than
    /// the margin.
    pub ties: Vec<PointId>,
    /// Most by which another level may be better with the wanted confidence, as a share of its
    /// value; `None` of too few runs.
    pub excess_max: Option<f64>,
    /// Confidence that no other level is better by more than twice the margin, 0 to 1.
    pub confidence: f64,
    /// Levels of the ladder that were not run, because doubling twice had no gain.
    pub spared: Vec<u64>,
}

/// The default may be left alone although another level may be better by this share.
const EXCESS_MAX_OF_DEFAULT: f64 = 0.25;
/// Another setting is advised only if no other one may be better by more than this share.
const EXCESS_MAX_OF_OTHERS: f64 = 0.1;

impl Stage {
    /// True if the runs allow an answer.
    pub fn is_settled(&self) -> bool {
        let allowed = if self.is_default {
            EXCESS_MAX_OF_DEFAULT
        } else {
            EXCESS_MAX_OF_OTHERS
        };
        self.excess_max.is_some_and(|excess| excess <= allowed)
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// The default, or the least setting that is better. How sure that is, [`Stage::excess_max`]
    /// has.
    Use {
        /// The advised setting.
        setting: Setting,
        /// Median of the runs that confirmed it.
        median: f64,
        /// Holds the true median with the same confidence.
        interval: Interval,
    },
    /// Every setting has the value 0: none does what is looked for.
    Worthless,
    /// The runs differ too much among themselves, or too few were made; with the reason.
    Inconclusive(String),
}
