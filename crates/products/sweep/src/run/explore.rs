//! Decides what to run next.

mod gaps;
mod judgement;
mod second_look;

use std::time::Duration;

use fastrand::Rng;
use linerate_model::stats::{self, Interval};

use crate::conclude::findings::{Outcome, Point, PointId, Points, Stage, Verdict};
use crate::plan::experiment::{Plan, REFINEMENTS};
use crate::plan::factor::Setting;
use crate::run::runner::{Observation, Progress, RunError, Runner};

/// Runs a plan: one factor after the other, each from a coarse ladder to the levels around the best
/// ones, the others held at what was found for them so far. The ladder of a range ends where
/// doubling twice has no gain. Settings that are compared run in rounds, each in an order of its
/// own, so that a path that changes with time treats them alike.
///
/// The answer is the default of each factor, unless another level is known to be better by more
/// than the tolerance and by more than what was in flight; then it is the least level that is as
/// good as the best.
///
/// The best level of a factor may change with those that are explored after it. So when all have an
/// answer, each is examined once more with the others at theirs. That is not repeated: factors
/// that still move each other are left where the second look found them.
pub fn explore(plan: &Plan, runner: &mut dyn Runner) -> Outcome {
    let mut experiment = Experiment::new(plan, runner);
    let mut base = Setting(plan.factors.iter().map(|factor| factor.start).collect());
    let mut stages = Vec::new();
    let mut confirmed = None;

    // The first run meets cold caches, an idle clock and a fresh route; it is not counted.
    if experiment.run(&base).is_ok() {
        for factor in 0..plan.factors.len() {
            // Runs made before the time ran out still count.
            let _ = experiment.explore_factor(factor, &base);
            let Some(stage) = experiment.stage(factor, &base) else {
                break;
            };
            // Later factors are explored at this level, because the answer is one setting of all.
            base = experiment.points[stage.advised].setting.clone();
            stages.push(stage);

            if experiment.is_over() {
                break;
            }
        }

        let is_settled = stages.len() == plan.factors.len() && stages.iter().all(Stage::is_settled);
        if is_settled && !experiment.is_over() {
            // If it ends early, the earlier result holds, or the unfinished stage has too few runs.
            let _ = experiment.look_again(&mut stages, &mut base);
        }

        if is_settled && stages.iter().all(Stage::is_settled) {
            confirmed = experiment.confirm(&base);
        }
    }

    experiment.into_outcome(stages, base, confirmed)
}

/// No more runs: the time is up, or the runner wants no more.
struct Over;

/// Times that settings of which it is open which one is best get more runs. Each is a chance to be
/// wrong.
const EXTRA_BLOCKS: u32 = 3;
/// Runs of each setting at a time; fewer can hardly tell two settings apart.
const EXTRA_REPETITIONS_MIN: u32 = 3;
/// Settings that get more runs at once.
const CONTENDERS_MAX: usize = 4;
/// Failed runs in a row that end the experiment; of a setting without any result, that end its
/// runs.
const FAILURES_MAX: usize = 3;

struct Experiment<'a> {
    plan: &'a Plan,
    runner: &'a mut dyn Runner,
    rng: Rng,
    points: Points,
    /// Settings of ladders that ended before them.
    spared: Vec<Setting>,
    started: Duration,
    runs: u64,
    planned: u64,
    has_result: bool,
    failures_in_a_row: usize,
    is_cut_short: bool,
    ended_by: Option<String>,
}

impl<'a> Experiment<'a> {
    fn new(plan: &'a Plan, runner: &'a mut dyn Runner) -> Self {
        Self {
            rng: Rng::with_seed(plan.seed),
            started: runner.now(),
            planned: plan.estimate().runs,
            plan,
            runner,
            points: Points::NONE,
            spared: Vec::new(),
            runs: 0,
            has_result: false,
            failures_in_a_row: 0,
            is_cut_short: false,
            ended_by: None,
        }
    }

    fn is_over(&self) -> bool {
        self.is_cut_short || self.ended_by.is_some()
    }

    fn explore_factor(&mut self, factor: usize, base: &Setting) -> Result<(), Over> {
        self.climb(factor, base)?;
        for _ in 0..EXTRA_BLOCKS {
            self.refine(factor, base)?;
            let contenders = self.contenders(factor, base);
            if contenders.is_empty() {
                break;
            }

            self.measure(
                &contenders,
                self.plan.repetitions.max(EXTRA_REPETITIONS_MIN),
            )?;
        }

        Ok(())
    }

    /// Levels between those of the ladder.
    fn refine(&mut self, factor: usize, base: &Setting) -> Result<(), Over> {
        for _ in 0..REFINEMENTS {
            let mut settings = self.gaps(factor, base);
            if settings.is_empty() {
                break;
            }

            // Beside the new ones, so that they are compared with what it does now.
            settings.extend(
                self.best(factor, base)
                    .map(|best| self.points[best].setting.clone()),
            );
            self.measure(&settings, self.plan.repetitions)?;
        }

        Ok(())
    }

    /// The ladder, from below, until doubling has no gain.
    fn climb(&mut self, factor: usize, base: &Setting) -> Result<(), Over> {
        let ladder = self.ladder(factor, base);
        let (first, rest) = ladder.split_at(
            self.plan.factors[factor]
                .levels_before_stop()
                .min(ladder.len()),
        );
        self.measure(first, self.plan.repetitions)?;

        for (place, setting) in rest.iter().enumerate() {
            // A sweep over a path of 40 Mbit/s took 8 minutes with the whole ladder, and takes one
            // now (docs/decisions/028-sweep-statistics.md).
            if self.brings_nothing(factor, &ladder[..first.len() + place]) {
                let spared = &rest[place..];
                let runs = spared.len() as u64 * u64::from(self.plan.repetitions);
                self.planned = self.planned.saturating_sub(runs).max(self.runs);
                self.spared.extend_from_slice(spared);
                break;
            }

            self.measure(std::slice::from_ref(setting), self.plan.repetitions)?;
        }

        Ok(())
    }

    fn ladder(&self, factor: usize, base: &Setting) -> Vec<Setting> {
        self.plan.factors[factor]
            .coarse()
            .iter()
            .map(|level| base.with(factor, *level))
            .collect()
    }

    /// Every setting once per round, each round in an order of its own.
    fn measure(&mut self, settings: &[Setting], rounds: u32) -> Result<(), Over> {
        let planned = self.runs + settings.len() as u64 * u64::from(rounds);
        self.planned = self.planned.max(planned);

        for _ in 0..rounds {
            let mut order = settings.to_vec();
            // A path that changes with time then treats all settings alike.
            self.rng.shuffle(&mut order);

            for setting in order {
                let at = self.point(&setting);
                if self.is_failed(at) && self.points[at].failures.len() >= FAILURES_MAX {
                    continue;
                }

                match self.run(&setting)? {
                    Ok(observation) => self.points[at].runs.push(observation),
                    Err(error) => self.points[at].failures.push(error.to_string()),
                }
            }
        }

        Ok(())
    }

    fn run(&mut self, setting: &Setting) -> Result<Result<Observation, RunError>, Over> {
        // A confirmation after the end of the path would wait for one more connection.
        if self.ended_by.is_some() {
            return Err(Over);
        }

        let elapsed = self.runner.now().saturating_sub(self.started);
        let run_time = self.runner.run_time();
        if elapsed + run_time > self.plan.budget {
            self.is_cut_short = true;
            return Err(Over);
        }

        let runs_left = u32::try_from(self.planned.saturating_sub(self.runs)).unwrap_or(u32::MAX);
        let left = run_time.saturating_mul(runs_left);
        self.runner.progress(&Progress {
            setting: setting.clone(),
            runs_done: self.runs,
            runs_planned: self.planned,
            left: left.min(self.plan.budget.saturating_sub(elapsed)),
        });
        self.runs += 1;

        let outcome = self.runner.run(setting);
        self.has_result |= outcome.is_ok();
        // A setting that never had a result may be one that this host or the server refuses.
        let is_known = self.was_run(setting);
        self.failures_in_a_row = match outcome {
            Ok(_) => 0,
            // Before the first result the path or the server may be at fault.
            Err(_) if is_known || !self.has_result => self.failures_in_a_row + 1,
            Err(_) => self.failures_in_a_row,
        };

        match outcome {
            Err(RunError::Over(reason)) => self.ended_by = Some(reason),
            Err(RunError::Failed(reason)) if self.failures_in_a_row >= FAILURES_MAX => {
                self.ended_by = Some(reason);
            }
            outcome => return Ok(outcome),
        }

        Err(Over)
    }

    fn point(&mut self, setting: &Setting) -> PointId {
        let known = self.points.find(setting);
        known.unwrap_or_else(|| self.points.add(setting.clone()))
    }

    /// Median and interval of the answer. Earlier runs of a setting that was chosen among others
    /// are why it was chosen, so that their median is too good: those of new runs alone count. The
    /// default was not chosen, so all its runs count.
    fn confirm(&mut self, base: &Setting) -> Option<(f64, Interval)> {
        let leader = self.point(base);
        let is_default = self
            .plan
            .factors
            .iter()
            .zip(&base.0)
            .all(|(factor, level)| factor.default_level() == *level);
        let earlier = if is_default {
            0
        } else {
            self.points[leader].runs.len()
        };
        let known = self.points[leader].runs.len() - earlier;
        // The exact interval of a median needs six runs for 95 % (1 - 2 / 2⁶).
        let missing = self.plan.runs_min().saturating_sub(known);

        // Fewer runs than planned give no interval.
        let _ = self.measure(
            std::slice::from_ref(base),
            u32::try_from(missing).unwrap_or(u32::MAX),
        );
        let values = &self.points[leader].values()[earlier..];
        stats::median(values).zip(stats::median_interval(values, self.plan.confidence))
    }

    /// The path or a host changed: values of one setting over time, where all settings moved the
    /// same way by more than the tolerance and chance hardly explains it.
    fn drift(&self) -> Option<f64> {
        let samples: Vec<Vec<f64>> = self.points.iter().map(Point::values).collect();
        let most = samples
            .iter()
            .max_by_key(|values| values.len())
            .filter(|values| values.len() >= 3)?;
        // The middle value of an odd number belongs to neither half.
        let first = &most[..most.len() / 2];
        let last = &most[most.len().div_ceil(2)..];
        let ratio = stats::median(last)? / stats::median(first)?;
        // Values of all settings count: rounds treat them alike, so a change of the path moves them
        // all.
        let is_chance = stats::trend_p(&samples) > 1.0 - self.plan.confidence;

        (ratio.is_finite() && (ratio - 1.0).abs() > self.plan.tolerance && !is_chance)
            .then_some(ratio)
    }

    fn into_outcome(
        self,
        stages: Vec<Stage>,
        base: Setting,
        confirmed: Option<(f64, Interval)>,
    ) -> Outcome {
        let leader = self.points.find(&base);
        let verdict = self.verdict(&stages, base, confirmed);
        let drift = self.drift();
        Outcome {
            leader: leader.filter(|_| !stages.is_empty()),
            points: self.points,
            stages,
            verdict,
            runs: self.runs,
            drift,
            is_cut_short: self.is_cut_short,
            ended_by: self.ended_by,
        }
    }

    fn verdict(
        &self,
        stages: &[Stage],
        base: Setting,
        confirmed: Option<(f64, Interval)>,
    ) -> Verdict {
        let open = stages.iter().find(|stage| !stage.is_settled());
        let is_too_short = |stage: &Stage| {
            let ladder = self.plan.factors[stage.factor].coarse().len();
            stage.points.len() + stage.failed.len() + stage.spared.len() < ladder
        };
        let is_ended = open.is_some() && self.is_over();
        if is_ended || stages.len() < self.plan.factors.len() || stages.iter().any(is_too_short) {
            return Verdict::Inconclusive(
                "too few runs were made to compare the settings".to_owned(),
            );
        }

        match (open, confirmed) {
            (None, Some((median, _))) if median <= 0.0 => Verdict::Worthless,
            (None, Some((median, interval))) => Verdict::Use {
                setting: base,
                median,
                interval,
            },
            (None, None) => Verdict::Inconclusive(format!(
                "no confidence with fewer than {} runs of the best setting after it was found",
                self.plan.runs_min()
            )),
            (Some(stage), _) => Verdict::Inconclusive(match stage.excess_max {
                Some(excess) => format!(
                    "runs at one level of {} differ too much: another level may be up to {:.0} % \
                     better than the best so far",
                    self.plan.factors[stage.factor].name,
                    excess * 100.0
                ),
                None => "too few runs were made to compare the settings".to_owned(),
            }),
        }
    }
}
