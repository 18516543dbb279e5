//! Factors are examined once more where others have moved since.

use super::{Experiment, Over};
use crate::conclude::findings::{PointId, Stage};
use crate::plan::factor::{SYSTEM_CHOICE, Scale, Setting};

/// Choices that came closest to the best one: where the best may have gone.
const RIVALS: usize = 2;

impl Experiment<'_> {
    /// Goes over the factors once. Those whose best level has no neighbours that were run with the
    /// others as they are now get them; where one of these is better, or less and as good, the
    /// factor is explored again.
    pub(super) fn look_again(
        &mut self,
        stages: &mut [Stage],
        base: &mut Setting,
    ) -> Result<(), Over> {
        for stage in stages {
            let mut settings = self.unseen_neighbours(stage, base);
            if settings.is_empty() {
                continue;
            }

            // Beside the neighbours, so that all are compared under the path of this moment.
            settings.push(base.clone());
            let looked = self.measure(&settings, self.plan.repetitions);

            if self
                .advised(stage.factor, base)
                .is_none_or(|advised| advised == *base)
            {
                looked?;
                continue;
            }

            let explored = looked.and_then(|()| self.explore_factor(stage.factor, base));
            // Even when the time ran out: what was advised is known to be beaten.
            if let Some(found) = self.stage(stage.factor, base) {
                *base = self.points[found.advised].setting.clone();
                *stage = found;
            }

            explored?;
        }

        Ok(())
    }

    fn advised(&self, factor: usize, base: &Setting) -> Option<Setting> {
        let stage = self.stage(factor, base)?;
        Some(self.points[stage.advised].setting.clone())
    }

    /// Neighbours of the best level: of an amount the levels of the ladder below and above, and the
    /// system's choice or else the best level beside it; of choices the next best ones. Only those
    /// that were not run yet.
    fn unseen_neighbours(&self, stage: &Stage, base: &Setting) -> Vec<Setting> {
        let factor = &self.plan.factors[stage.factor];
        let own = base.level(stage.factor);
        let mut levels = match factor.scale {
            Scale::Choices(_) => self.best_others(stage, own, RIVALS),
            Scale::Amount { .. } | Scale::List(_) if own == SYSTEM_CHOICE => {
                self.best_others(stage, own, 1)
            }
            Scale::Amount { .. } | Scale::List(_) => {
                let ladder = factor.coarse();
                let below = ladder.iter().rev().find(|level| **level < own);
                let above = ladder.iter().find(|level| **level > own);
                let system = ladder.first().filter(|level| **level == SYSTEM_CHOICE);

                [system, below, above]
                    .into_iter()
                    .flatten()
                    .copied()
                    .collect()
            }
        };
        // The level below the least amount is the system's choice, where the ladder has it.
        levels.dedup();

        let settings = levels
            .into_iter()
            .map(|level| base.with(stage.factor, level));
        settings.filter(|setting| !self.was_run(setting)).collect()
    }

    /// The levels with the best results but for one.
    fn best_others(&self, stage: &Stage, own: u64, count: usize) -> Vec<u64> {
        let level = |at: &PointId| self.points[*at].setting.level(stage.factor);
        let mut others: Vec<PointId> = stage
            .points
            .iter()
            .copied()
            .filter(|at| level(at) != own)
            .collect();
        others.sort_by(|a, b| self.score(*b).total_cmp(&self.score(*a)));

        others.iter().take(count).map(level).collect()
    }

    pub(super) fn was_run(&self, setting: &Setting) -> bool {
        let known = self.points.find(setting);
        known.is_some_and(|at| !self.points[at].runs.is_empty())
    }
}
