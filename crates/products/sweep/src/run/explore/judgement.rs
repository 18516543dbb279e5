//! Which levels of a factor are as good as others, and which one is advised.

use linerate_model::stats;

use super::{CONTENDERS_MAX, Experiment};
use crate::conclude::findings::{PointId, Stage};
use crate::plan::factor::{SYSTEM_CHOICE, Scale, Setting};
use crate::run::runner::is_lighter;

/// An answer is sure when no other level is known to be better by more than this many tolerances:
/// runs cannot decide between levels whose difference is the tolerance itself.
const SURE_TOLERANCES: f64 = 2.0;

impl Experiment<'_> {
    /// Compared values: higher is better, and a share of it means the same for rates and costs.
    pub(super) fn scores(&self, point: PointId) -> Vec<f64> {
        let values = self.points[point].values();
        if self.plan.objective.is_higher_better() {
            return values;
        }

        // The reciprocal keeps ratios, so one tolerance holds for rates and costs. 0 has no
        // reciprocal, so the least normal number takes its place.
        let score = |value: f64| value.max(f64::MIN_POSITIVE).recip();
        values.into_iter().map(score).collect()
    }

    pub(super) fn score(&self, point: PointId) -> f64 {
        // A point without a result ranks below all others.
        stats::median(&self.scores(point)).unwrap_or(f64::NEG_INFINITY)
    }

    /// Difference between two points that is none: the tolerance, or what was in flight at the end
    /// of their runs.
    pub(super) fn margin(&self, point: PointId, other: PointId) -> f64 {
        // What is on the way belongs to a rate; a delay or a cost has no part of it.
        if !self.plan.objective.is_higher_better() {
            return self.plan.tolerance;
        }

        let in_flight = |at: PointId| self.points[at].medians().in_flight_share;
        [in_flight(point), in_flight(other)]
            .into_iter()
            .flatten()
            .fold(self.plan.tolerance, f64::max)
            .min(MARGIN_MAX)
    }

    /// The points of this factor with the others at `base`, by level; only those with a result.
    pub(super) fn row(&self, factor: usize, base: &Setting) -> Vec<PointId> {
        let mut row = self.tried(factor, base);
        row.retain(|at| !self.points[*at].runs.is_empty());
        row
    }

    pub(super) fn is_failed(&self, point: PointId) -> bool {
        self.points[point].runs.is_empty() && !self.points[point].failures.is_empty()
    }

    /// Points of a factor, with those that have no result.
    fn tried(&self, factor: usize, base: &Setting) -> Vec<PointId> {
        let level = |at: &PointId| self.points[*at].setting.level(factor);
        let is_tried = |at: &PointId| self.points[*at].setting == base.with(factor, level(at));
        let mut tried: Vec<PointId> = self.points.ids().filter(is_tried).collect();
        tried.sort_by_key(level);
        tried
    }

    /// Points at the start of a row that are outside the order of its levels.
    pub(super) fn unordered(&self, factor: usize, row: &[PointId]) -> usize {
        let is_amount = self.plan.factors[factor].is_amount();
        let is_first = row
            .first()
            .is_some_and(|at| self.points[*at].setting.level(factor) == SYSTEM_CHOICE);
        usize::from(is_amount && is_first)
    }

    pub(super) fn best(&self, factor: usize, base: &Setting) -> Option<PointId> {
        let row = self.row(factor, base);
        row.into_iter()
            .max_by(|a, b| self.score(*a).total_cmp(&self.score(*b)))
    }

    /// True if it is not known that a point is worse than another by more than their margin.
    fn may_be_as_good(&self, point: PointId, other: PointId) -> bool {
        let share = 1.0 - self.margin(point, other);
        stats::confidence_as_good(&self.scores(point), &self.scores(other), share)
            > 1.0 - self.plan.confidence
    }

    /// Most by which another point may be better; `None` of too few runs.
    fn excess_max(&self, point: PointId, other: PointId) -> Option<f64> {
        // Only levels that lose too much have the value 0; their ratio has no meaning.
        if self.score(other) <= 0.0 {
            return Some(0.0);
        }

        stats::excess_max(
            &self.scores(point),
            &self.scores(other),
            self.plan.confidence,
        )
    }

    /// The advised setting, and those that may be better by so much that it is open which one is;
    /// none when it is clear.
    pub(super) fn contenders(&self, factor: usize, base: &Setting) -> Vec<Setting> {
        let Some(stage) = self.stage(factor, base) else {
            return Vec::new();
        };
        let sure = |at: PointId| SURE_TOLERANCES * self.margin(stage.advised, at);
        let is_open = |at: &PointId| {
            // Too few runs leave it open.
            self.excess_max(stage.advised, *at)
                .is_none_or(|excess| excess > sure(*at))
        };

        let mut open: Vec<PointId> = stage
            .points
            .iter()
            .copied()
            .filter(|at| *at != stage.advised && is_open(at))
            .collect();
        if open.is_empty() {
            return Vec::new();
        }

        open.sort_by(|a, b| self.score(*b).total_cmp(&self.score(*a)));
        open.insert(0, stage.advised);
        open.into_iter()
            .take(CONTENDERS_MAX)
            .map(|at| self.points[at].setting.clone())
            .collect()
    }

    /// Finding about a factor so far; `None` when nothing is.
    pub(super) fn stage(&self, factor: usize, base: &Setting) -> Option<Stage> {
        let row = self.row(factor, base);
        let best = self.best(factor, base)?;
        let (first, last) = self.plateau(factor, &row, best)?;
        let advised = self.advise(factor, &row, best, (first, last));
        let others = || row.iter().copied().filter(|at| *at != advised);

        let ties: Vec<PointId> = others().filter(|at| self.is_tie(*at, advised)).collect();
        // One excess that is not known leaves the largest unknown.
        let excesses: Option<Vec<f64>> = others().map(|at| self.excess_max(advised, at)).collect();
        let confidence = others()
            .map(|at| self.confidence_in(advised, at))
            .fold(1.0, f64::min);

        let failed = self
            .tried(factor, base)
            .into_iter()
            .filter(|at| self.is_failed(*at))
            .collect();
        let ladder = self.ladder(factor, base).into_iter();
        // A second look may have run a level that the ladder spared.
        let spared =
            ladder.filter(|setting| self.spared.contains(setting) && !self.was_run(setting));

        Some(Stage {
            factor,
            failed,
            best,
            plateau: first..=last,
            advised,
            is_default: self.points[advised].setting.level(factor)
                == self.plan.factors[factor].default_level(),
            ties,
            excess_max: excesses.map(|excesses| excesses.into_iter().fold(0.0, f64::max)),
            confidence,
            spared: spared.map(|setting| setting.level(factor)).collect(),
            points: row,
        })
    }

    /// Places in the row of the neighbours of the best level that may be as good.
    fn plateau(&self, factor: usize, row: &[PointId], best: PointId) -> Option<(usize, usize)> {
        let top = row.iter().position(|at| *at == best)?;
        // Choices have no neighbours, so the best one is alone.
        if !self.plan.factors[factor].is_amount() {
            return Some((top, top));
        }

        let may_be = |place: usize| self.may_be_as_good(row[place], best);
        let ladder = self.unordered(factor, row);
        let mut first = top;
        let mut last = top;

        if top < ladder {
            // The system chose best; levels as good as its choice may still be neighbours of each
            // other.
            let peak = (ladder..row.len())
                .max_by(|a, b| self.score(row[*a]).total_cmp(&self.score(row[*b])));
            (first, last) = peak
                .filter(|place| may_be(*place))
                .map_or((top, top), |place| (place, place));
        }

        while first > ladder && may_be(first - 1) {
            first -= 1;
        }

        while first >= ladder && last + 1 < row.len() && may_be(last + 1) {
            last += 1;
        }

        Some((first, last))
    }

    /// The default where it may be as good as the best; otherwise of amounts the least level of the
    /// plateau, of choices the one that burdens the path least.
    fn advise(
        &self,
        factor: usize,
        row: &[PointId],
        best: PointId,
        plateau: (usize, usize),
    ) -> PointId {
        let plan = &self.plan.factors[factor];
        let is_default =
            |at: &&PointId| self.points[**at].setting.level(factor) == plan.default_level();
        // A change of a setting needs a gain that is known.
        if let Some(default) = row
            .iter()
            .find(is_default)
            .filter(|at| self.may_be_as_good(**at, best))
        {
            return *default;
        }

        // Choices have no least one, so the burden decides between equal ones.
        if let Scale::Choices(_) = plan.scale {
            let as_good = row
                .iter()
                .copied()
                .filter(|at| *at == best || self.is_tie(*at, best));
            let burden = |at: PointId| self.points[at].medians();
            let lightest = as_good.reduce(|light, next| {
                let is_lighter = is_lighter(&burden(next), &burden(light));
                if is_lighter { next } else { light }
            });
            return lightest.unwrap_or(best);
        }

        row.get(plateau.0).copied().unwrap_or(best)
    }

    /// True if the medians of two points differ by no more than their margin.
    pub(super) fn is_tie(&self, point: PointId, other: PointId) -> bool {
        let low = self.score(point).min(self.score(other));
        let high = self.score(point).max(self.score(other));
        low >= (1.0 - self.margin(point, other)) * high
    }

    /// Confidence that another point is not better by more than twice their margin.
    fn confidence_in(&self, point: PointId, other: PointId) -> f64 {
        let share = 1.0 - SURE_TOLERANCES * self.margin(point, other);
        stats::confidence_as_good(&self.scores(point), &self.scores(other), share)
    }
}

/// Runs of which more was in flight than this are compared all the same.
const MARGIN_MAX: f64 = 0.3;
