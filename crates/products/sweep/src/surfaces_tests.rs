//! Experiments on surfaces whose shape is known.

use std::cell::Cell;
use std::time::Duration;

use fastrand::Rng;

use linerate_model::sweep::{Objective, RunMetrics};

use crate::{
    Factor, Observation, Outcome, Plan, Point, Progress, RunError, Runner, SYSTEM_CHOICE, Scale,
    Setting, Verdict, explore,
};

const RUN_TIME: Duration = Duration::from_secs(10);

/// A path on which every run takes the planned time and has the surface's value, with noise and
/// drift.
struct Path<S> {
    surface: S,
    noise: f64,
    drift_per_run: f64,
    rng: Rng,
    runs: u32,
    order: Vec<Setting>,
    promised: Vec<Duration>,
}

impl<S: Fn(&Setting) -> Result<f64, RunError>> Runner for Path<S> {
    fn run(&mut self, setting: &Setting) -> Result<Observation, RunError> {
        self.runs += 1;
        self.order.push(setting.clone());
        let value = (self.surface)(setting)?;

        // Nearly normal, with this standard deviation.
        let deviation = (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0;
        let drift = 1.0 + self.drift_per_run * f64::from(self.runs);
        Ok(Observation {
            value: value * drift * (1.0 + self.noise * deviation),
            metrics: RunMetrics::default(),
        })
    }

    fn run_time(&self) -> Duration {
        RUN_TIME
    }

    fn now(&self) -> Duration {
        RUN_TIME * self.runs
    }

    fn progress(&mut self, progress: &Progress) {
        self.promised.push(progress.left);
    }
}

fn path_of<S: Fn(&Setting) -> Result<f64, RunError>>(surface: S, noise: f64, seed: u64) -> Path<S> {
    Path {
        surface,
        noise,
        drift_per_run: 0.0,
        rng: Rng::with_seed(seed),
        runs: 0,
        order: Vec::new(),
        promised: Vec::new(),
    }
}

fn path<S: Fn(u64) -> f64>(
    surface: S,
    noise: f64,
    seed: u64,
) -> Path<impl Fn(&Setting) -> Result<f64, RunError>> {
    path_of(
        move |setting: &Setting| Ok(surface(setting.level(0))),
        noise,
        seed,
    )
}

fn amount(name: &str, min: u64, max: u64, step: u64, start: u64) -> Factor {
    Factor {
        name: name.to_owned(),
        scale: Scale::Amount { min, max, step },
        start,
    }
}

fn streams() -> Factor {
    amount("streams", 1, 64, 1, 1)
}

fn plan() -> Plan {
    Plan {
        factors: vec![streams()],
        objective: Objective::Throughput,
        repetitions: 3,
        seed: 1,
        run_time: RUN_TIME,
        budget: Duration::from_secs(36_000),
        confidence: 0.95,
        tolerance: 0.03,
    }
}

/// 33 at one stream, 288 at ten, 163 at twenty, and less and less beyond.
fn reported(streams: u64) -> f64 {
    let n = streams as f64;
    if n <= 10.0 {
        33.0 + (288.0 - 33.0) * (n - 1.0) / 9.0
    } else {
        (288.0 + (163.0 - 288.0) * (n - 10.0) / 10.0).max(120.0)
    }
}

fn best_level(outcome: &Outcome) -> u64 {
    outcome.points[outcome.stages[0].best].setting.level(0)
}

#[test]
fn the_reported_optimum_is_found_in_a_third_of_the_grid() {
    for seed in 0..20 {
        let mut path = path(reported, 0.01, seed);
        let outcome = explore(&plan(), &mut path);
        assert_eq!(*used(&outcome), Setting(vec![10]), "seed {seed}");
        let grid = 64 * 3;
        assert!(path.runs * 3 <= grid, "{} of {grid} runs", path.runs);
    }
}

#[test]
fn a_peak_between_equal_neighbours_is_found() {
    let cusp = |n: u64| 100.0 - 12.0 * (n as f64 - 10.0).abs();
    for seed in 0..10 {
        let outcome = explore(&plan(), &mut path(cusp, 0.003, seed));
        assert_eq!(best_level(&outcome), 10, "seed {seed}");
    }
}

#[test]
fn both_of_two_peaks_are_explored() {
    // A broad peak at 3, and a higher one at 24 of which the ladder sees only the shoulders.
    let two = |n: u64| {
        let bump = |at: f64, width: f64, height: f64| {
            height * (-((n as f64 / at).ln() / width).powi(2)).exp()
        };
        10.0 + bump(3.0, 0.7, 100.0) + bump(24.0, 0.6, 125.0)
    };
    for seed in 0..10 {
        let outcome = explore(&plan(), &mut path(two, 0.005, seed));
        let level = best_level(&outcome);
        assert!(two(level) >= 0.97 * two(24), "{level}");
    }
}

/// With noise an answer is still one, or there is none: of many experiments no more are wrong than
/// was promised.
#[test]
fn noise_makes_answers_rarer_and_not_wrong() {
    for noise in [0.05, 0.15, 0.4] {
        let (mut answers, mut wrong) = (0, 0);
        for seed in 0..30 {
            let plan = Plan { seed, ..plan() };
            let outcome = explore(&plan, &mut path(reported, noise, 1000 + seed));
            if let Verdict::Use { setting, .. } = outcome.verdict {
                answers += 1;
                // As good as the best within the tolerance, and what one run more would not
                // distinguish.
                wrong +=
                    u32::from(reported(setting.level(0)) < (1.0 - plan.tolerance - 0.05) * 288.0);
            }
        }

        assert!(
            f64::from(wrong) <= 0.1 * 30.0,
            "noise {noise}: {wrong} of {answers} answers are wrong"
        );
        assert!(noise < 0.4 || answers < 30, "noise {noise}: always sure");
    }
}

#[test]
fn lower_cost_is_better() {
    let plan = Plan {
        objective: Objective::Latency,
        ..plan()
    };
    let outcome = explore(&plan, &mut path(|n| 1000.0 / reported(n), 0.01, 3));
    assert_eq!(*used(&outcome), Setting(vec![10]));
}

#[test]
fn no_run_is_started_that_would_exceed_the_budget() {
    for runs in [0_u32, 1, 7, 30] {
        let plan = Plan {
            budget: RUN_TIME * runs,
            ..plan()
        };
        let mut path = path(reported, 0.01, 2);
        let outcome = explore(&plan, &mut path);

        assert!(path.runs <= runs, "{} of {runs}", path.runs);
        assert!(outcome.is_cut_short);
        assert!(path.promised.iter().all(|left| *left <= plan.budget));
        assert!(!plan.estimate().fits);

        if runs < 8 {
            assert!(
                matches!(outcome.verdict, Verdict::Inconclusive(_)),
                "{:?}",
                outcome.verdict
            );
        }
    }
}

#[test]
fn the_estimate_is_near_what_it_takes() {
    let mut path = path(reported, 0.01, 9);
    let estimate = plan().estimate();
    explore(&plan(), &mut path);
    assert!(estimate.fits);

    let runs = u64::from(path.runs);
    assert!(
        runs <= estimate.runs && runs * 2 >= estimate.runs,
        "{runs} of {}",
        estimate.runs
    );
}

#[test]
fn the_order_is_seeded_and_mixed() {
    let order = |seed| {
        let mut path = path(reported, 0.01, 4);
        explore(&Plan { seed, ..plan() }, &mut path);
        path.order
    };
    assert_eq!(order(1), order(1));
    assert_ne!(order(1), order(2));

    let first = order(1);
    assert_ne!(
        first[1..8],
        first[8..15],
        "every round has an order of its own"
    );
}

#[test]
fn a_path_that_changes_is_noticed_and_one_that_does_not_is_not() {
    let mut changing = path(reported, 0.005, 6);
    changing.drift_per_run = -0.01;
    let drift = explore(&plan(), &mut changing)
        .drift
        .expect("the path loses a percent per run");
    assert!((0.6..0.95).contains(&drift), "{drift}");
    assert_eq!(explore(&plan(), &mut path(reported, 0.005, 6)).drift, None);
}

#[test]
fn failed_runs_are_left_out_and_many_of_them_end_it() {
    let refused = |setting: &Setting| match setting.level(0) {
        32 => Err(RunError::Failed("refused".to_owned())),
        streams => Ok(reported(streams)),
    };
    let outcome = explore(&plan(), &mut path_of(refused, 0.01, 8));
    assert_eq!(best_level(&outcome), 10);

    let is_refused = |point: &&Point| point.setting.level(0) == 32;
    let refused = outcome
        .points
        .iter()
        .find(is_refused)
        .expect("it was tried");
    assert_eq!((refused.runs.len(), refused.failures.len()), (0, 3));
    assert_eq!(refused.median(), None);

    let dead = |_: &Setting| Err(RunError::Failed("connection refused".to_owned()));
    let mut dead = path_of(dead, 0.0, 0);
    let outcome = explore(&plan(), &mut dead);
    assert_eq!(outcome.ended_by.as_deref(), Some("connection refused"));
    assert!(dead.runs <= 3);
    assert!(matches!(outcome.verdict, Verdict::Inconclusive(_)));
}

#[test]
fn no_run_is_made_after_the_one_that_ends_it() {
    let made = Cell::new(0);
    let gone = |_: &Setting| {
        made.set(made.get() + 1);
        if made.get() < 3 {
            Ok(50.0)
        } else {
            Err(RunError::Over("no route to host".to_owned()))
        }
    };
    let outcome = explore(&plan(), &mut path_of(gone, 0.0, 0));
    assert_eq!(
        (made.get(), outcome.ended_by.as_deref()),
        (3, Some("no route to host"))
    );
}

#[test]
fn factors_are_explored_one_after_the_other() {
    let congestion = Factor {
        name: "congestion".to_owned(),
        scale: Scale::Choices(3),
        start: 0,
    };
    let plan = Plan {
        factors: vec![streams(), congestion],
        ..plan()
    };
    let both = |setting: &Setting| {
        Ok(reported(setting.level(0)) * [1.0, 1.3, 0.8][setting.level(1) as usize])
    };
    let outcome = explore(&plan, &mut path_of(both, 0.01, 1));
    assert_eq!(*used(&outcome), Setting(vec![10, 1]));
    assert_eq!(outcome.stages.len(), 2);

    // Equal choices: what is used already stays.
    let equal = Plan {
        factors: vec![Factor {
            start: 2,
            ..plan.factors[1].clone()
        }],
        ..plan
    };
    let outcome = explore(&equal, &mut path(|_| 50.0, 0.003, 2));
    assert_eq!(*used(&outcome), Setting(vec![2]));
}

const MIB: u64 = 1 << 20;

fn streams_and_window() -> Plan {
    let window = amount("window", 65_536, 16 * MIB, 1024, SYSTEM_CHOICE);
    Plan {
        factors: vec![streams(), window],
        ..plan()
    }
}

fn path_of_two(
    surface: fn(u64, u64) -> f64,
    noise: f64,
    seed: u64,
) -> Path<impl Fn(&Setting) -> Result<f64, RunError>> {
    path_of(
        move |setting: &Setting| Ok(surface(setting.level(0), setting.level(1))),
        noise,
        seed,
    )
}

fn used(outcome: &Outcome) -> &Setting {
    match &outcome.verdict {
        Verdict::Use { setting, .. } => setting,
        Verdict::Inconclusive(reason) => panic!("{reason}"),
        Verdict::Worthless => panic!("every setting has the value 0"),
    }
}

/// With the window of the system it takes 32 streams to come far; with larger ones, best of 1 MiB,
/// more than 8 are in each other's way.
fn dependent(streams: u64, window: u64) -> f64 {
    let octaves_off = |level: u64, best: u64| (level as f64 / best as f64).log2().abs();
    let (wanted, share) = match window {
        SYSTEM_CHOICE => (32, 0.3),
        _ => (8, 1.0 - 0.2 * octaves_off(window, MIB)),
    };
    940.0 * share * (1.0 - 0.3 * octaves_off(streams, wanted)).max(0.05)
}

#[test]
fn a_best_level_that_moved_with_another_factor_is_found() {
    for seed in 0..10 {
        let plan = Plan {
            seed,
            ..streams_and_window()
        };
        let mut path = path_of_two(dependent, 0.003, seed);
        let outcome = explore(&plan, &mut path);
        let setting = used(&outcome);
        let value = dependent(setting.level(0), setting.level(1));
        assert!(
            setting.level(0) == 8 && value >= 0.95 * 940.0,
            "seed {seed}: {setting:?}"
        );

        let leader = &outcome.points[outcome.leader.expect("there are stages")];
        assert_eq!(leader.setting, *setting);
        let lowest = &outcome.points[outcome.stages[0].points[0]];
        assert!(
            lowest.setting.level(0) == 1 && lowest.setting.level(1) > 0,
            "the whole ladder is new"
        );

        let (runs, estimate) = (u64::from(path.runs), plan.estimate());
        let most = estimate.runs_if_dependent;
        assert!(runs <= most, "{runs} of {most}");
    }
}

#[test]
fn factors_that_do_not_depend_on_each_other_cost_a_look_more() {
    let independent = |streams: u64, window: u64| {
        let bytes = if window == SYSTEM_CHOICE {
            65_536
        } else {
            window
        };
        reported(streams) * (bytes as f64 / MIB as f64).min(1.0).sqrt()
    };
    for seed in 0..10 {
        let plan = streams_and_window();
        let mut path = path_of_two(independent, 0.005, seed);
        let outcome = explore(&plan, &mut path);
        let setting = used(&outcome);
        assert_eq!(setting.level(0), 10);
        assert!(
            u64::from(path.runs) <= plan.estimate().runs,
            "{}",
            path.runs
        );

        let with_window = path
            .order
            .iter()
            .filter(|one| one.level(1) == setting.level(1) && one.level(0) != 10);
        let mut levels: Vec<u64> = with_window.map(|one| one.level(0)).collect();
        levels.sort_unstable();
        levels.dedup();
        assert_eq!(levels, [8, 16], "the neighbours and no others");
    }
}

#[test]
fn of_several_flat_factors_the_least_levels_are_advised_and_of_noisy_ones_none() {
    let plan = streams_and_window();
    let mut path = path_of_two(|_, _| 94.1, 0.004, 5);
    let outcome = explore(&plan, &mut path);
    assert_eq!(*used(&outcome), Setting(vec![1, SYSTEM_CHOICE]));

    for stage in &outcome.stages {
        assert_eq!(
            *stage.plateau.end(),
            stage.points.len() - 1,
            "all of it is a plateau"
        );
    }

    assert_eq!(*outcome.stages[0].plateau.start(), 0);
    assert!(u64::from(path.runs) <= plan.estimate().runs);

    for seed in 0..5 {
        let mut noisy = path_of_two(|_, _| 100.0, 0.3, seed);
        let outcome = explore(
            &Plan {
                seed,
                ..plan.clone()
            },
            &mut noisy,
        );
        assert!(
            matches!(outcome.verdict, Verdict::Inconclusive(_)),
            "{:?}",
            outcome.verdict
        );
    }
}

/// Whenever the time runs out, no level is advised that a later run has beaten.
#[test]
fn a_second_look_that_is_cut_short_advises_nothing_that_was_beaten() {
    let plan = streams_and_window();
    let mut whole = path_of_two(dependent, 0.003, 3);
    explore(&plan, &mut whole);

    for runs in (0..whole.runs).step_by(3) {
        let plan = Plan {
            budget: RUN_TIME * runs,
            ..plan.clone()
        };
        let mut path = path_of_two(dependent, 0.003, 3);
        let outcome = explore(&plan, &mut path);
        assert!(
            path.runs <= runs && outcome.is_cut_short,
            "{} of {runs}",
            path.runs
        );

        if let Verdict::Use { setting, .. } = &outcome.verdict {
            let seen: Vec<f64> = outcome
                .points
                .iter()
                .filter(|point| point.runs.len() >= 3)
                .filter_map(Point::median)
                .collect();
            let best = seen.into_iter().fold(0.0, f64::max);
            let used = dependent(setting.level(0), setting.level(1));
            assert!(
                used >= 0.95 * best,
                "{runs} runs: {setting:?} has {used}, another {best}"
            );
        }
    }
}

#[test]
fn what_the_system_chooses_is_left_alone_unless_something_is_better() {
    let windows = |surface: fn(u64) -> f64| {
        let plan = Plan {
            factors: vec![amount("window", 4096, MIB, 4096, SYSTEM_CHOICE)],
            ..plan()
        };
        explore(&plan, &mut path(surface, 0.004, 3))
    };
    // It fills the path; so do windows from 256 KiB on.
    let chosen_well = windows(|level| {
        if level == 0 {
            940.0
        } else {
            (level as f64 / 278.0).min(940.0)
        }
    });
    assert_eq!(*used(&chosen_well), Setting(vec![0]));

    let stage = &chosen_well.stages[0];
    let level = |place: &usize| chosen_well.points[stage.points[*place]].setting.level(0);
    assert!(level(stage.plateau.start()) >= 250_000, "{stage:?}");
    assert_eq!(level(stage.plateau.end()), 1 << 20);

    // It keeps to 64 KiB.
    let chosen_badly =
        windows(|level| (if level == 0 { 65_536.0 } else { level as f64 } / 278.0).min(940.0));
    let setting = used(&chosen_badly);
    assert!(
        (253_952..=278_528).contains(&setting.level(0)),
        "{setting:?}"
    );

    let stage = &chosen_badly.stages[0];
    assert!(*stage.plateau.start() > 0, "{stage:?}");
}

/// The runs that chose a setting are those in which it was lucky; its interval must be true all the
/// same.
#[test]
fn intervals_of_answers_hold_the_true_value_after_the_choice() {
    let saturating = |streams: u64| (40.0 * streams as f64).min(100.0);

    type Noisy = (fn(u64) -> f64, f64);

    let rows: [Noisy; 5] = [
        (|_| 100.0, 0.01),
        (|_| 100.0, 0.03),
        (reported, 0.03),
        (saturating, 0.02),
        (saturating, 0.04),
    ];
    let (mut answers, mut held) = (0, 0);

    for (surface, noise) in rows {
        let mut defaults = 0;
        for seed in 0..60 {
            let outcome = explore(
                &Plan { seed, ..plan() },
                &mut path(surface, noise, 1000 + seed),
            );
            if let Verdict::Use {
                setting, interval, ..
            } = &outcome.verdict
            {
                let truth = surface(setting.level(0));
                answers += 1;
                defaults += u32::from(setting.level(0) == 1);
                held += u32::from(interval.low <= truth && truth <= interval.high);
            }
        }

        assert!(
            noise > 0.01 || defaults == 60,
            "nothing matters: {defaults} of 60 keep the default"
        );
    }

    assert!(
        answers > 150 && f64::from(held) >= 0.93 * f64::from(answers),
        "{held} of {answers}"
    );
}

#[test]
fn levels_that_always_fail_do_not_end_it_and_are_listed() {
    let bounded = |setting: &Setting| match setting.level(0) {
        streams @ 1..=4 => Ok(streams as f64),
        _ => Err(RunError::Failed("too many streams".to_owned())),
    };
    for seed in 0..20 {
        let outcome = explore(&Plan { seed, ..plan() }, &mut path_of(bounded, 0.003, seed));
        assert_eq!(*used(&outcome), Setting(vec![4]), "seed {seed}");

        let failed: Vec<u64> = outcome.stages[0]
            .failed
            .iter()
            .map(|at| outcome.points[*at].setting.level(0))
            .collect();
        assert_eq!(failed, [8, 16, 32, 64]);
    }
}

#[test]
fn listed_levels_are_run_and_no_others() {
    let listed = Factor {
        scale: Scale::List(vec![1, 4, 16]),
        ..streams()
    };
    let mut path = path(reported, 0.003, 1);

    let outcome = explore(
        &Plan {
            factors: vec![listed],
            ..plan()
        },
        &mut path,
    );
    assert_eq!(*used(&outcome), Setting(vec![16]));
    assert_eq!(outcome.points.iter().len(), 3);

    let estimate = Plan {
        factors: vec![Factor {
            scale: Scale::List(vec![1, 4, 16]),
            ..streams()
        }],
        ..plan()
    }
    .estimate();
    assert_eq!(u64::from(path.runs), estimate.runs);
}
