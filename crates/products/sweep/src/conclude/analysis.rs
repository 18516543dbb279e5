//! From the results of an experiment to the contents of a report. Every figure of a report is
//! computed here, once.

use std::time::Duration;

use linerate_model::stats;
use linerate_model::sweep::{
    Cost, Degradation, FactorResult, FailedLevel, Hosts, Leader, Level, PlannedFactor, PlateauSide,
    Provenance, Reason, ReasonRules, Recommendation, RunMetrics, SettingFacts, SettingLevels,
    Sweep, SweepPlan,
};
use linerate_model::words::joined;

use crate::conclude::findings::{Outcome, Point, PointId, Stage, Verdict};
use crate::conclude::metrics::Run;
use crate::plan::experiment::{Estimate, Plan};
use crate::plan::factor::{SYSTEM_CHOICE, Setting};
use crate::plan::space::{SettingSpace, label};
use crate::run::runner::is_lighter;
use crate::spec::{LOSS_PERCENT_MAX, SweepSpec};

/// Runs at a level before a difference is called a fall.
const RUNS_MIN: usize = 2;

/// Facts of the runs beside their values.
#[derive(Debug, Default)]
pub struct RunLog {
    /// In the order of time.
    pub runs: Vec<Run>,
    /// A run of the CPU objective had the CPU time of the client alone.
    pub is_client_cpu_only: bool,
    /// Cores and placement of the hosts.
    pub hosts: Hosts,
    /// When the runs were made, and between which hosts.
    pub provenance: Provenance,
    /// Time of all runs.
    pub elapsed: Duration,
    /// Measured part of the last runs in seconds.
    pub run_time_s: u32,
}

/// The result of a sweep, with the reasons that the rules give.
pub fn sweep(
    spec: &SweepSpec,
    space: &SettingSpace<'_>,
    plan: &Plan,
    estimate: Estimate,
    outcome: &Outcome,
    log: &RunLog,
    rules: ReasonRules,
) -> Sweep {
    // Commands and lengths are those of the last runs.
    let run = SweepSpec {
        time_s: log.run_time_s.max(spec.time_s),
        ..spec.clone()
    };
    let view = View {
        spec,
        run: &run,
        space,
        plan,
        outcome,
        hosts: log.hosts,
        rules,
    };
    Sweep {
        plan: view.plan(),
        estimate: Cost::new(estimate.runs, estimate.time.as_secs_f64()),
        cost: Cost::new(outcome.runs, log.elapsed.as_secs_f64()),
        answer: view.answer(),
        provenance: log.provenance.clone(),
        is_client_cpu_only: log.is_client_cpu_only,
        client_cores: log.hosts.client_cores,
        server_cores: log.hosts.server_cores,
        factors: outcome
            .stages
            .iter()
            .map(|stage| view.factor(stage))
            .collect(),
        in_flight_share: view.in_flight_share(),
        run_time_s: Some(run.time_s).filter(|time_s| *time_s > spec.time_s),
        drift_ratio: outcome.drift,
        is_cut_short: outcome.is_cut_short,
        ended_by: outcome.ended_by.clone(),
    }
}

struct View<'a> {
    spec: &'a SweepSpec,
    /// The specification with the length of the last runs.
    run: &'a SweepSpec,
    space: &'a SettingSpace<'a>,
    plan: &'a Plan,
    outcome: &'a Outcome,
    hosts: Hosts,
    rules: ReasonRules,
}

impl View<'_> {
    fn plan(&self) -> SweepPlan {
        let spec = self.spec;
        let planned = self.space.planned.iter();
        SweepPlan {
            host: spec.host.clone(),
            port: spec.port.first,
            objective: spec.objective,
            is_udp: spec.is_udp,
            is_reverse: spec.is_reverse,
            factors: planned
                .map(|one| PlannedFactor {
                    name: one.name.to_owned(),
                    levels: one.levels_text(),
                })
                .collect(),
            seed: spec.seed,
            repetitions: spec.repetitions,
            time_s: spec.time_s,
            omit_s: spec.omit_s,
            budget_ns: u64::try_from(spec.budget.as_nanos()).unwrap_or(u64::MAX),
            confidence: self.plan.confidence,
            tolerance: self.plan.tolerance,
        }
    }

    fn answer(&self) -> Recommendation {
        let leader = || self.outcome.leader.map(|at| &self.outcome.points[at]);
        match &self.outcome.verdict {
            Verdict::Use {
                setting,
                median,
                interval,
            } => {
                let metrics = leader().map(Point::medians).unwrap_or_default();
                Recommendation::Use {
                    leader: self.leader(setting, *median, metrics),
                    interval: *interval,
                }
            }
            Verdict::Worthless => Recommendation::Unmet {
                reason: self.unmet(),
            },
            Verdict::Inconclusive(reason) => Recommendation::Inconclusive {
                reason: reason.clone(),
                leader: leader().and_then(|point| {
                    Some(self.leader(&point.setting, point.median()?, point.medians()))
                }),
            },
        }
    }

    fn leader(&self, setting: &Setting, value: f64, metrics: RunMetrics) -> Leader {
        let names = self
            .space
            .planned
            .iter()
            .map(|factor| factor.name.to_owned());
        let levels: SettingLevels = names.zip(self.space.labels(setting)).collect();
        Leader {
            setting: levels,
            value,
            metrics,
            command: self.space.test_settings(setting).command(self.run),
        }
    }

    /// Only runs that lose too much have the value 0.
    fn unmet(&self) -> String {
        let lost = |point: &&Point| point.medians().lost_percent.unwrap_or(100.0);
        let points = self
            .outcome
            .points
            .iter()
            .filter(|point| !point.runs.is_empty());
        let least = points.min_by(|a, b| lost(a).total_cmp(&lost(b)));
        let at_least = least.map_or_else(String::new, |point| {
            format!(
                ": the least is {:.2} % with {}",
                lost(&point),
                self.space.words(&point.setting)
            )
        });

        let names = self.outcome.stages.iter().map(|stage| self.tried(stage));
        format!(
            "no {} has less than {LOSS_PERCENT_MAX} % loss{at_least}",
            joined(names, ", no ")
        )
    }

    /// `rate from 10M to 40M`
    fn tried(&self, stage: &Stage) -> String {
        let factor = &self.space.planned[stage.factor];
        let labels = stage
            .points
            .iter()
            .map(|at| label(factor, self.outcome.points[*at].setting.level(stage.factor)));
        let labels: Vec<String> = labels.collect();
        match labels.as_slice() {
            [first, .., last] => format!("{} from {first} to {last}", factor.name),
            labels => format!("{} {}", factor.name, labels.join(", ")),
        }
    }

    fn in_flight_share(&self) -> Option<f64> {
        self.outcome.points[self.outcome.leader?]
            .medians()
            .in_flight_share
    }

    fn factor(&self, stage: &Stage) -> FactorResult {
        let levels: Vec<Level> = stage
            .points
            .iter()
            .map(|at| self.level(stage, *at))
            .collect();
        let place = |at: PointId| {
            stage
                .points
                .iter()
                .position(|known| *known == at)
                // `best` and `advised` are among the points of their stage.
                .unwrap_or(0)
        };
        let best = place(stage.best);
        let advised = place(stage.advised);
        let name = self.space.planned[stage.factor].name;

        // The advised rate limits itself; what limits the path is seen at the highest.
        let limited = if name == "rate" {
            *stage.plateau.end()
        } else {
            advised
        };
        let mut factor = FactorResult {
            name: name.to_owned(),
            is_amount: self.plan.factors[stage.factor].is_amount(),
            plateau: stage.plateau.clone(),
            advised,
            is_default: self.space.is_default(stage.factor, levels[advised].level),
            ties: stage.ties.iter().map(|at| place(*at)).collect(),
            lighter: self.lighter(stage).map(place),
            excess_max: stage.excess_max,
            spared: stage
                .spared
                .iter()
                .map(|level| label(&self.space.planned[stage.factor], *level))
                .collect(),
            confidence: stage.confidence,
            failed: stage
                .failed
                .iter()
                .map(|at| self.failed(stage, *at))
                .collect(),
            limited,
            limits: (self.rules)(None, &self.setting_facts(stage, limited), &self.hosts),
            levels,
            best,
            degradations: Vec::new(),
        };

        if factor.is_amount {
            factor.degradations = self.degradations(stage, &factor);
        }

        factor
    }

    /// The level that burdens the path least among those that tie with the advised one, where that
    /// is clearly less.
    fn lighter(&self, stage: &Stage) -> Option<PointId> {
        let burden = |at: PointId| self.outcome.points[at].medians();
        // The advised level is the first, so it stays where no other is clearly lighter.
        let lightest = std::iter::once(stage.advised)
            .chain(stage.ties.iter().copied())
            .reduce(|light, next| {
                if is_lighter(&burden(next), &burden(light)) {
                    next
                } else {
                    light
                }
            });
        lightest.filter(|at| *at != stage.advised)
    }

    fn failed(&self, stage: &Stage, at: PointId) -> FailedLevel {
        let point = &self.outcome.points[at];
        let level = label(
            &self.space.planned[stage.factor],
            point.setting.level(stage.factor),
        );
        FailedLevel {
            level,
            runs: point.failures.len(),
            error: point.failures.first().cloned().unwrap_or_default(),
        }
    }

    fn level(&self, stage: &Stage, at: PointId) -> Level {
        let point = &self.outcome.points[at];
        let level = point.setting.level(stage.factor);

        Level {
            label: label(&self.space.planned[stage.factor], level),
            level,
            median: point.median().unwrap_or(0.0),
            range: stats::range(&point.values()),
            runs: point.runs.len(),
            failures: point.failures.clone(),
            metrics: point.medians(),
        }
    }

    /// The worst level on each side of the plateau, where it is clearly worse.
    fn degradations(&self, stage: &Stage, factor: &FactorResult) -> Vec<Degradation> {
        // The system's choice is no amount, so it lies outside the order of the ladder.
        let ladder = factor
            .levels
            .iter()
            .take_while(|level| level.level == SYSTEM_CHOICE)
            .count();
        let first = *factor.plateau.start();
        let last = *factor.plateau.end();
        let sides = if first < ladder {
            vec![(
                PlateauSide::Elsewhere,
                factor.best,
                ladder..factor.levels.len(),
            )]
        } else {
            vec![
                (PlateauSide::Below, first, ladder..first),
                (PlateauSide::Above, last, last + 1..factor.levels.len()),
            ]
        };

        let best = factor.levels[factor.best].median;
        if factor.levels[factor.best].runs < RUNS_MIN {
            return Vec::new();
        }

        sides
            .into_iter()
            .filter_map(|(side, edge, places)| {
                let worst = places
                    .filter(|place| factor.levels[*place].runs >= RUNS_MIN)
                    .max_by(|a, b| {
                        self.loss(best, factor, *a)
                            .total_cmp(&self.loss(best, factor, *b))
                    })?;
                (self.loss(best, factor, worst) > self.plan.tolerance).then(|| {
                    // Positive for a delay or a cost, which rise where they get worse.
                    let change_percent = (factor.levels[worst].median / best - 1.0) * 100.0;
                    Degradation {
                        side,
                        edge,
                        worst,
                        change_percent,
                        reasons: self.reasons(stage, factor.best, worst),
                    }
                })
            })
            .collect()
    }

    /// Loss of a level against the best, as a share of the better one.
    fn loss(&self, best: f64, factor: &FactorResult, place: usize) -> f64 {
        let here = factor.levels[place].median;
        if self.plan.objective.is_higher_better() {
            1.0 - here / best
        } else {
            1.0 - best / here
        }
    }

    fn reasons(&self, stage: &Stage, best: usize, worst: usize) -> Vec<Reason> {
        let best = self.setting_facts(stage, best);
        (self.rules)(Some(&best), &self.setting_facts(stage, worst), &self.hosts)
    }

    fn setting_facts(&self, stage: &Stage, place: usize) -> SettingFacts {
        let point = &self.outcome.points[stage.points[place]];
        let choice = self.space.test_settings(&point.setting);

        SettingFacts {
            streams: choice.streams.unwrap_or(1),
            requested_window_bytes: choice.window_bytes,
            stream_rate_bps: choice.rate_bps,
            metrics: point.medians(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::space::HostChoices;
    use crate::spec::example;
    use crate::spec::grammar::{Levels, SweptFactor};
    use crate::{Observation, Progress, RunError, Runner, explore};

    /// A path on which a level has the surface's value, in no time.
    struct Surface {
        rate_bps: fn(u64) -> f64,
        runs: u32,
    }

    impl Runner for Surface {
        fn run(&mut self, setting: &Setting) -> Result<Observation, RunError> {
            self.runs += 1;
            let value = (self.rate_bps)(setting.level(0)) * (1.0 + f64::from(self.runs % 3) * 1e-4);
            let metrics = RunMetrics {
                received_bps: value,
                sent_bps: Some(value),
                cpu_client_percent: Some(30.0),
                cpu_server_percent: Some(30.0),
                retransmits: Some(0.0),
                rtt_us: Some(1000.0),
                ..RunMetrics::default()
            };

            Ok(Observation { value, metrics })
        }

        fn run_time(&self) -> Duration {
            Duration::from_secs(1)
        }

        fn now(&self) -> Duration {
            Duration::from_secs(self.runs.into())
        }

        fn progress(&mut self, _: &Progress) {}
    }

    fn swept(
        name: &'static str,
        low: u64,
        high: u64,
        rate_bps: fn(u64) -> f64,
        budget_s: u64,
    ) -> Sweep {
        let levels = Levels::Range(low, high);
        let spec = SweepSpec {
            time_s: 1,
            omit_s: 0,
            budget: Duration::from_secs(budget_s),
            ..example(vec![SweptFactor { name, levels }])
        };
        let space = SettingSpace::new(&spec, &HostChoices::default()).expect("a range");
        let plan = Plan {
            run_time: Duration::from_secs(1),
            ..spec.plan(&space)
        };
        let mut runner = Surface { rate_bps, runs: 0 };
        let outcome = explore(&plan, &mut runner);

        sweep(
            &spec,
            &space,
            &plan,
            plan.estimate(),
            &outcome,
            &RunLog::default(),
            linerate_doctor::sweep_reasons,
        )
    }

    #[test]
    fn a_peak_falls_on_both_sides_of_its_plateau() {
        // Rises to 10 and falls by a fiftieth of that with every further stream.
        let peak = |n: u64| {
            1e9 * if n <= 10 {
                n as f64
            } else {
                (12.0 - 0.2 * n as f64).max(1.6)
            }
        };
        let sweep = swept("streams", 1, 64, peak, 3600);
        let Recommendation::Use { leader, .. } = &sweep.answer else {
            panic!("{:?}", sweep.answer);
        };
        assert_eq!(leader.setting["streams"], "10");
        assert_eq!(leader.command, "iperf3 -c h -t 1 -P 10");

        let factor = &sweep.factors[0];
        let label = |place: usize| factor.levels[place].label.as_str();
        let fall = |fall: &Degradation| {
            (
                fall.side,
                label(fall.edge),
                label(fall.worst),
                fall.change_percent.round(),
            )
        };
        let falls: Vec<_> = factor.degradations.iter().map(fall).collect();
        let expected = [
            (PlateauSide::Below, "10", "1", -90.0),
            (PlateauSide::Above, "11", "64", -84.0),
        ];
        assert_eq!(falls, expected);
    }

    #[test]
    fn what_is_flat_falls_nowhere() {
        let sweep = swept("streams", 1, 16, |_| 94e6, 3600);
        assert_eq!(sweep.factors[0].degradations, []);
        assert_eq!(
            sweep.factors[0].plateau,
            0..=sweep.factors[0].levels.len() - 1
        );
    }

    #[test]
    fn windows_below_the_product_are_named_whether_or_not_others_are_as_good_as_the_systems() {
        // 1 Gbit/s at 1 ms: 125,000 bytes.
        let carried = |window: u64| {
            if window == 0 {
                1e9
            } else {
                (window as f64 * 8000.0).min(1e9)
            }
        };
        for (high, side) in [
            (1 << 20, PlateauSide::Below),
            (65_536, PlateauSide::Elsewhere),
        ] {
            let sweep = swept("window", 16_384, high, carried, 3600);
            assert!(
                matches!(&sweep.answer, Recommendation::Use { leader, .. } if leader.setting["window"] == "auto"),
                "{high}"
            );
            let fall = &sweep.factors[0].degradations[0];
            assert_eq!(
                (fall.side, sweep.factors[0].levels[fall.worst].level),
                (side, 16_384)
            );
            assert_eq!(
                fall.reasons[0].window.map(|window| window.window_bytes),
                Some(16_384)
            );
        }
    }

    #[test]
    fn one_run_each_is_no_fall() {
        let sweep = swept("streams", 1, 4, |n| 1e9 / n as f64, 4);
        let has_leader = |sweep: &Sweep| match &sweep.answer {
            Recommendation::Inconclusive { leader, .. } => Some(leader.is_some()),
            _ => None,
        };
        assert_eq!(has_leader(&sweep), Some(true));
        assert_eq!(sweep.factors[0].degradations, []);
        assert_eq!(has_leader(&swept("streams", 1, 4, |_| 1e9, 0)), Some(false));
    }
}
