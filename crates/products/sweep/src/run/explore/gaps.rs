//! Where a ladder ends, and between which of its levels it is looked closer.

use linerate_model::stats;

use super::Experiment;
use crate::conclude::findings::PointId;
use crate::plan::factor::{Scale, Setting};

/// Neighbours on the ladder further apart than this are looked between even when both are as good.
const GAP_RATIO: f64 = 1.2;
/// Levels that are as good as a peak and further apart than this are no peak.
const PEAK_RATIO: f64 = 2.0;
/// A second peak within this share of the best level is examined as closely.
const PEAK_SHARE: f64 = 0.7;
const PEAKS_MAX: usize = 2;

impl Experiment<'_> {
    /// True if the last two of the levels that were climbed are no better than the best one before
    /// them, and values do not rise again. Only a range ends early: levels that were listed are all
    /// wanted.
    pub(super) fn brings_nothing(&self, factor: usize, climbed: &[Setting]) -> bool {
        if !matches!(self.plan.factors[factor].scale, Scale::Amount { .. }) {
            return false;
        }

        let with_result = |setting: &Setting| {
            let found = self.points.find(setting);
            found.filter(|at| !self.points[*at].runs.is_empty())
        };
        let mut row: Vec<PointId> = climbed.iter().filter_map(with_result).collect();
        // The system's choice is no amount, so it has no place on the ladder.
        row.drain(..self.unordered(factor, &row));

        // Below three amounts `before` is empty, and the ladder continues.
        let [before @ .., last_but_one, last] = row.as_slice() else {
            return false;
        };
        let best = before
            .iter()
            .copied()
            .max_by(|a, b| self.score(*a).total_cmp(&self.score(*b)));
        // A rise at the end can be the slope of a second peak further up.
        let is_rising = self.score(*last)
            > (1.0 + self.margin(*last, *last_but_one)) * self.score(*last_but_one);

        best.is_some_and(|best| {
            !is_rising && self.is_no_better(*last_but_one, best) && self.is_no_better(*last, best)
        })
    }

    /// True if it is known that a point is not better by more than twice the margin. Of few runs
    /// each pair must agree.
    fn is_no_better(&self, point: PointId, best: PointId) -> bool {
        let share = 1.0 / (1.0 + 2.0 * self.margin(point, best));
        let own = self.scores(best);
        let other = self.scores(point);
        let highest = other.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let is_above_all = own.iter().all(|value| *value >= share * highest);
        is_above_all || stats::confidence_as_good(&own, &other, share) >= self.plan.confidence
    }

    /// New levels where looking closer may find a better one, or less that is as good. None where
    /// the default is as good as the best: nothing is to be gained.
    pub(super) fn gaps(&self, factor: usize, base: &Setting) -> Vec<Setting> {
        let Some(stage) = self.stage(factor, base).filter(|stage| !stage.is_default) else {
            return Vec::new();
        };
        let mut row = stage.points;
        row.drain(..self.unordered(factor, &row));

        let level = |place: usize| self.points[row[place]].setting.level(factor);

        let gaps = self
            .peaks(&row)
            .into_iter()
            .flat_map(|peak| self.gaps_around(factor, &row, peak));
        let between = |(low, high): (usize, usize)| {
            self.plan.factors[factor].between(level(low), level(high))
        };
        let mut levels: Vec<u64> = gaps.filter_map(between).collect();
        levels.sort_unstable();
        // Two peaks can share a gap.
        levels.dedup();

        levels
            .into_iter()
            .map(|level| base.with(factor, level))
            .collect()
    }

    /// Places of the highest levels among their neighbours.
    fn peaks(&self, row: &[PointId]) -> Vec<usize> {
        let scores: Vec<f64> = row.iter().map(|at| self.score(*at)).collect();
        let is_peak = |place: &usize| {
            let is_above_left = *place == 0 || scores[place - 1] <= scores[*place];
            is_above_left
                && scores
                    .get(place + 1)
                    .is_none_or(|next| *next <= scores[*place])
        };
        let mut peaks: Vec<usize> = (0..row.len()).filter(is_peak).collect();
        peaks.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));

        let highest = peaks.first().map_or(0.0, |peak| scores[*peak]);
        peaks.retain(|peak| scores[*peak] >= PEAK_SHARE * highest);
        peaks.truncate(PEAKS_MAX);
        peaks
    }

    /// Neighbours between which to look: those at the lower edge of the levels that are as good as
    /// a peak, and where values fall above a narrow peak all that are near it.
    fn gaps_around(&self, factor: usize, row: &[PointId], peak: usize) -> Vec<(usize, usize)> {
        let level = |place: usize| self.points[row[place]].setting.level(factor) as f64;
        let is_tie = |place: usize| self.is_tie(row[place], row[peak]);
        let mut low = peak;
        let mut high = peak;
        while low > 0 && is_tie(low - 1) {
            low -= 1;
        }

        while high + 1 < row.len() && is_tie(high + 1) {
            high += 1;
        }

        let mut gaps = Vec::new();
        gaps.extend(low.checked_sub(1).map(|below| (below, low)));

        if high + 1 < row.len() && level(high) <= PEAK_RATIO * level(low) {
            let is_wide = |place: &usize| level(place + 1) > GAP_RATIO * level(*place);
            gaps.extend((low..high).filter(is_wide).map(|place| (place, place + 1)));
            gaps.push((high, high + 1));
        }

        gaps
    }
}
