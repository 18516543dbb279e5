//! Decides what to run next.

mod second_look;

use std::time::Duration;

use fastrand::Rng;

use crate::factor::{SYSTEM_CHOICE, Scale};
use crate::findings::{Outcome, Point, Stage, Verdict};
use crate::plan::{Better, Plan, REFINEMENTS};
use crate::runner::{Observation, Progress, RunError, Runner};
use crate::setting::Setting;
use crate::stats::{self, Interval};

/// Runs a plan: one factor after the other, each from a coarse ladder to the levels around the best ones, the others held
/// at what was found for them so far. Within a ladder every round runs every level once, in an order of its own, so that
/// a path that changes with time treats all levels alike.
///
/// The best level of a factor may change with those that are explored after it. So when all have an answer, each is looked
/// at once more with the others at theirs. That is not repeated: factors that still move each other are left where
/// the second look found them.
pub fn explore<R: Runner>(plan: &Plan, runner: &mut R) -> Outcome<R::Metrics> {
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
            base = experiment.points[stage.advised].setting.clone();
            stages.push(stage);
            if experiment.is_over() {
                break;
            }
        }
        let is_open =
            stages.len() < plan.factors.len() || stages.iter().any(|stage| stage.confidence < plan.confidence);
        if !is_open && !experiment.is_over() {
            // If it ends early, the earlier result holds, or the unfinished stage has too few runs.
            let _ = experiment.look_again(&mut stages, &mut base);
        }
        if !is_open && stages.iter().all(|stage| stage.confidence >= plan.confidence) {
            confirmed = experiment.confirm(&base);
        }
    }
    experiment.into_outcome(stages, base, confirmed)
}

/// No more runs: the time is up, or the runner wants no more.
struct Over;

/// Times that settings of which it is open which one is best get more runs. Each is a chance to be wrong.
const EXTRA_BLOCKS: u32 = 5;
/// Runs of each setting at a time; fewer can hardly tell two settings apart.
const EXTRA_REPETITIONS_MIN: u32 = 3;
/// Settings that get more runs at once.
const CONTENDERS_MAX: usize = 4;
/// Neighbours on the ladder further apart than this are looked between even when both are as good.
const GAP_RATIO: f64 = 1.2;
/// A second peak within this share of the best level is looked at as closely.
const PEAK_SHARE: f64 = 0.7;
const PEAKS_MAX: usize = 2;
/// Failed runs in a row that end the experiment; of a setting without any result, that end its runs.
const FAILURES_MAX: usize = 3;

struct Experiment<'a, R: Runner> {
    plan: &'a Plan,
    runner: &'a mut R,
    rng: Rng,
    points: Vec<Point<R::Metrics>>,
    started: Duration,
    runs: u64,
    planned: u64,
    has_result: bool,
    failures_in_a_row: usize,
    is_cut_short: bool,
    ended_by: Option<String>,
    drift: Option<f64>,
}

impl<'a, R: Runner> Experiment<'a, R> {
    fn new(plan: &'a Plan, runner: &'a mut R) -> Self {
        Self {
            rng: Rng::with_seed(plan.seed),
            started: runner.now(),
            planned: plan.estimate().runs,
            plan,
            runner,
            points: Vec::new(),
            runs: 0,
            has_result: false,
            failures_in_a_row: 0,
            is_cut_short: false,
            ended_by: None,
            drift: None,
        }
    }

    fn is_over(&self) -> bool {
        self.is_cut_short || self.ended_by.is_some()
    }

    fn explore_factor(&mut self, factor: usize, base: &Setting) -> Result<(), Over> {
        let is_first_ladder = self.points.is_empty();
        let coarse: Vec<Setting> =
            self.plan.factors[factor].coarse().iter().map(|level| base.with(factor, *level)).collect();
        self.measure(&coarse, self.plan.repetitions)?;
        if is_first_ladder {
            self.drift = self.drift_of(&coarse);
        }
        for _ in 0..REFINEMENTS {
            let mut settings = self.gaps(factor, base);
            if settings.is_empty() {
                break;
            }
            // Beside the new ones, so that they are compared with what it does now.
            settings.extend(self.best(factor, base).map(|best| self.points[best].setting.clone()));
            self.measure(&settings, self.plan.repetitions)?;
        }
        for _ in 0..EXTRA_BLOCKS {
            let contenders = self.contenders(factor, base);
            if contenders.is_empty() {
                break;
            }
            self.measure(&contenders, self.plan.repetitions.max(EXTRA_REPETITIONS_MIN))?;
        }
        Ok(())
    }

    /// Every setting once per round, each round in an order of its own.
    fn measure(&mut self, settings: &[Setting], rounds: u32) -> Result<(), Over> {
        let planned = self.runs + settings.len() as u64 * u64::from(rounds);
        self.planned = self.planned.max(planned);
        for _ in 0..rounds {
            let mut order = settings.to_vec();
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

    fn run(&mut self, setting: &Setting) -> Result<Result<Observation<R::Metrics>, RunError>, Over> {
        if self.ended_by.is_some() {
            return Err(Over);
        }
        let elapsed = self.runner.now().saturating_sub(self.started);
        if elapsed + self.plan.run_time > self.plan.budget {
            self.is_cut_short = true;
            return Err(Over);
        }
        let left = self
            .plan
            .run_time
            .saturating_mul(u32::try_from(self.planned - self.runs.min(self.planned)).unwrap_or(u32::MAX));
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
        let is_known = self.points.iter().any(|point| point.setting == *setting && !point.runs.is_empty());
        self.failures_in_a_row = match outcome {
            Ok(_) => 0,
            Err(_) if is_known || !self.has_result => self.failures_in_a_row + 1,
            Err(_) => self.failures_in_a_row,
        };
        match outcome {
            Err(RunError::Over(reason)) => self.ended_by = Some(reason),
            Err(RunError::Failed(reason)) if self.failures_in_a_row >= FAILURES_MAX => self.ended_by = Some(reason),
            outcome => return Ok(outcome),
        }
        Err(Over)
    }

    fn point(&mut self, setting: &Setting) -> usize {
        let known = self.points.iter().position(|point| point.setting == *setting);
        known.unwrap_or_else(|| {
            self.points.push(Point::new(setting.clone()));
            self.points.len() - 1
        })
    }

    /// What is compared: higher is better, and a share of it means the same for rates and costs.
    fn scores(&self, point: usize) -> Vec<f64> {
        let values = self.points[point].values();
        match self.plan.better {
            Better::Higher => values,
            Better::Lower => values.into_iter().map(|value| value.max(f64::MIN_POSITIVE).recip()).collect(),
        }
    }

    fn score(&self, point: usize) -> f64 {
        stats::median(&self.scores(point)).unwrap_or(f64::NEG_INFINITY)
    }

    /// The points of this factor with the others at `base`, by level; only those with a result.
    fn row(&self, factor: usize, base: &Setting) -> Vec<usize> {
        let mut row = self.tried(factor, base);
        row.retain(|at| !self.points[*at].runs.is_empty());
        row
    }

    fn is_failed(&self, point: usize) -> bool {
        self.points[point].runs.is_empty() && !self.points[point].failures.is_empty()
    }

    /// The same with those that have no result.
    fn tried(&self, factor: usize, base: &Setting) -> Vec<usize> {
        let level = |at: &usize| self.points[*at].setting.level(factor);
        let is_tried = |at: &usize| self.points[*at].setting == base.with(factor, level(at));
        let mut tried: Vec<usize> = (0..self.points.len()).filter(is_tried).collect();
        tried.sort_by_key(level);
        tried
    }

    /// Points at the start of a row that are outside the order of its levels.
    fn unordered(&self, factor: usize, row: &[usize]) -> usize {
        let is_amount = self.plan.factors[factor].is_amount();
        let is_first = row.first().is_some_and(|at| self.points[*at].setting.level(factor) == SYSTEM_CHOICE);
        usize::from(is_amount && is_first)
    }

    fn best(&self, factor: usize, base: &Setting) -> Option<usize> {
        let row = self.row(factor, base);
        row.into_iter().max_by(|a, b| self.score(*a).total_cmp(&self.score(*b)))
    }

    /// New levels beside the peaks: where looking closer may find a better one.
    fn gaps(&self, factor: usize, base: &Setting) -> Vec<Setting> {
        let mut row = self.row(factor, base);
        row.drain(..self.unordered(factor, &row));
        let scores: Vec<f64> = row.iter().map(|at| self.score(*at)).collect();
        let level = |place: usize| self.points[row[place]].setting.level(factor);
        let mut peaks: Vec<usize> = (0..row.len())
            .filter(|i| {
                (*i == 0 || scores[i - 1] <= scores[*i]) && scores.get(i + 1).is_none_or(|next| *next <= scores[*i])
            })
            .collect();
        peaks.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let highest = peaks.first().map_or(0.0, |peak| scores[*peak]);
        let mut levels: Vec<u64> = peaks
            .iter()
            .filter(|peak| scores[**peak] >= PEAK_SHARE * highest)
            .take(PEAKS_MAX)
            .flat_map(|peak| {
                [peak.checked_sub(1), Some(*peak), peak.checked_add(1).filter(|next| *next < row.len())]
                    .map(|side| (*peak, side))
            })
            .filter_map(|(peak, side)| {
                let side = side.filter(|side| *side != peak)?;
                let (low, high) = (level(peak.min(side)), level(peak.max(side)));
                let is_wide = high as f64 > GAP_RATIO * low as f64;
                let is_worse = scores[side] < (1.0 - self.plan.tolerance) * scores[peak];
                (is_wide || is_worse).then(|| self.plan.factors[factor].between(low, high))?
            })
            .collect();
        levels.sort_unstable();
        levels.dedup();
        levels.into_iter().map(|level| base.with(factor, level)).collect()
    }

    /// The advised setting and those it is not known to be as good as; none when it is known of all.
    fn contenders(&self, factor: usize, base: &Setting) -> Vec<Setting> {
        let Some(stage) = self.stage(factor, base) else {
            return Vec::new();
        };
        let is_open = |at: &usize| self.as_good(stage.advised, *at) < self.plan.confidence;
        let mut open: Vec<usize> =
            stage.points.iter().copied().filter(|at| *at != stage.advised && is_open(at)).collect();
        if open.is_empty() {
            return Vec::new();
        }
        open.sort_by(|a, b| self.score(*b).total_cmp(&self.score(*a)));
        open.insert(0, stage.advised);
        open.into_iter().take(CONTENDERS_MAX).map(|at| self.points[at].setting.clone()).collect()
    }

    /// Confidence that a point is as good as another within the tolerance.
    fn as_good(&self, point: usize, other: usize) -> f64 {
        stats::confidence_as_good(&self.scores(point), &self.scores(other), 1.0 - self.plan.tolerance)
    }

    /// What is known about a factor now; `None` when nothing is.
    fn stage(&self, factor: usize, base: &Setting) -> Option<Stage> {
        let row = self.row(factor, base);
        let best = self.best(factor, base)?;
        let top = row.iter().position(|at| *at == best)?;
        let as_good = |place: usize| self.as_good(row[place], best);
        let (mut first, mut last) = (top, top);
        let may_be = |place: usize| as_good(place) > 1.0 - self.plan.confidence;
        let candidates = match self.plan.factors[factor].scale {
            Scale::Amount { .. } | Scale::List(_) => {
                let ladder = self.unordered(factor, &row);
                if top < ladder {
                    // The system chose best; levels as good as its choice may still be neighbours of each other.
                    let peak = (ladder..row.len()).max_by(|a, b| self.score(row[*a]).total_cmp(&self.score(row[*b])));
                    (first, last) = peak.filter(|place| may_be(*place)).map_or((top, top), |place| (place, place));
                }
                while first > ladder && may_be(first - 1) {
                    first -= 1;
                }
                while first >= ladder && last + 1 < row.len() && may_be(last + 1) {
                    last += 1;
                }
                (0..ladder).chain(first..=last).collect::<Vec<_>>()
            }
            // Choices have no order; what is used now is left alone unless another one is better.
            Scale::Choices(_) => {
                let start = self.plan.factors[factor].start;
                let is_start = |place: &usize| self.points[row[*place]].setting.level(factor) == start;
                (0..row.len()).filter(is_start).collect()
            }
        };
        // The default needs no proof: another level must be known to be better.
        let default = match self.plan.factors[factor].is_amount() {
            true => Some(0),
            false => candidates.first().copied(),
        };
        let advised = default
            .filter(|place| may_be(*place))
            .or_else(|| candidates.into_iter().find(|place| as_good(*place) >= self.plan.confidence))
            .map_or(best, |place| row[place]);
        let confidence = self.confidence_in(advised, &row);
        let mut failed = self.tried(factor, base);
        failed.retain(|at| self.is_failed(*at));
        Some(Stage { factor, points: row, failed, best, plateau: first..=last, advised, confidence })
    }

    /// Confidence that a point is as good as each of others: the least of them, because none may be better.
    fn confidence_in(&self, point: usize, others: &[usize]) -> f64 {
        let others = others.iter().filter(|at| **at != point).map(|at| self.as_good(point, *at));
        others.fold(1.0, f64::min)
    }

    /// Runs the answer again. Earlier runs are why it was chosen, so that their median is too good: median and interval
    /// are those of the new runs alone.
    fn confirm(&mut self, base: &Setting) -> Option<(f64, Interval)> {
        let leader = self.point(base);
        let earlier = self.points[leader].runs.len();
        // Fewer runs than planned give no interval.
        let _ = self.measure(std::slice::from_ref(base), u32::try_from(self.plan.runs_min()).unwrap_or(u32::MAX));
        let values = &self.points[leader].values()[earlier..];
        stats::median(values).zip(stats::median_interval(values, self.plan.confidence))
    }

    /// Last round over first, when nearly all settings moved the same way by more than the tolerance.
    fn drift_of(&self, settings: &[Setting]) -> Option<f64> {
        let ratios: Vec<f64> = self
            .points
            .iter()
            .filter(|point| settings.contains(&point.setting) && point.runs.len() >= 2)
            .filter_map(|point| Some(point.runs.last()?.value / point.runs.first()?.value))
            .collect();
        let ratio = stats::median(&ratios)?;
        let same_way = ratios.iter().filter(|one| (**one > 1.0) == (ratio > 1.0)).count();
        let is_chance = chance_of_as_many(same_way, ratios.len()) > 1.0 - self.plan.confidence;
        ((ratio - 1.0).abs() > self.plan.tolerance && !is_chance).then_some(ratio)
    }

    fn into_outcome(
        self,
        stages: Vec<Stage>,
        base: Setting,
        confirmed: Option<(f64, Interval)>,
    ) -> Outcome<R::Metrics> {
        let leader = self.points.iter().position(|point| point.setting == base);
        let verdict = self.verdict(&stages, base, confirmed);
        Outcome {
            leader: leader.filter(|_| !stages.is_empty()),
            points: self.points,
            stages,
            verdict,
            runs: self.runs,
            drift: self.drift,
            is_cut_short: self.is_cut_short,
            ended_by: self.ended_by,
        }
    }

    fn verdict(&self, stages: &[Stage], base: Setting, confirmed: Option<(f64, Interval)>) -> Verdict {
        let open = stages.iter().find(|stage| stage.confidence < self.plan.confidence);
        let is_too_short = |stage: &&Stage| {
            let ladder = self.plan.factors[stage.factor].coarse().len();
            stage.points.len() + stage.failed.len() < ladder
        };
        let is_ended = open.is_some() && self.is_over();
        if is_ended || stages.len() < self.plan.factors.len() || stages.iter().any(|stage| is_too_short(&stage)) {
            return Verdict::Inconclusive("too few runs were made to compare the settings".to_owned());
        }
        match (open, confirmed) {
            (None, Some((median, interval))) => Verdict::Use { setting: base, median, interval },
            (None, None) => Verdict::Inconclusive(format!(
                "no confidence with fewer than {} runs of the best setting after it was found",
                self.plan.runs_min()
            )),
            (Some(stage), _) => Verdict::Inconclusive(format!(
                "runs at one level of {} differ more than its best levels do: {:.0} % confidence that the best is as good \
                 as every other, {:.0} % is required",
                self.plan.factors[stage.factor].name,
                stage.confidence * 100.0,
                self.plan.confidence * 100.0
            )),
        }
    }
}

/// How likely at least `count` of `n` fair coins fall the same way as most do (sign test, both sides).
fn chance_of_as_many(count: usize, n: usize) -> f64 {
    let all = 2_f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    let mut ways = 1.0;
    let mut at_least = 0.0;
    for k in 0..=n {
        if k >= count {
            at_least += ways;
        }
        ways = ways * (n - k) as f64 / (k + 1) as f64;
    }
    (2.0 * at_least / all).min(1.0)
}
