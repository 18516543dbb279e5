//! Experiments on paths as users have them: what a level gains, what it costs in delay and
//! retransmissions, how much of a run is in flight at its end, and how much runs at one level
//! differ.

use std::time::Duration;

use fastrand::Rng;

use linerate_model::sweep::{Objective, RunMetrics};

use crate::{
    Factor, Observation, Outcome, Plan, Progress, RunError, Runner, SYSTEM_CHOICE, Scale, Setting,
    Stage, Verdict, explore,
};

/// A run of 3 s with 1 s of warm-up, and what it takes beside.
const RUN_TIME: Duration = Duration::from_millis(4500);

/// Result of a level on a path.
#[derive(Clone, Copy, Default)]
struct Response {
    mbps: f64,
    delay_ms: f64,
    retransmits_per_s: f64,
    in_flight_share: f64,
    /// Standard deviation of the rate of a run, as a share of it.
    noise: f64,
}

struct Path<S> {
    surface: S,
    rng: Rng,
    levels: Vec<u64>,
}

impl<S: Fn(u64) -> Response> Runner for Path<S> {
    fn run(&mut self, setting: &Setting) -> Result<Observation, RunError> {
        let level = setting.level(0);
        self.levels.push(level);
        let response = (self.surface)(level);

        // Nearly normal.
        let deviation = (0..12).map(|_| self.rng.f64()).sum::<f64>() - 6.0;
        let value = response.mbps * 1e6 * (1.0 + response.noise * deviation).max(0.01);
        let metrics = RunMetrics {
            rtt_us: Some(response.delay_ms * 1000.0),
            retransmits_per_s: Some(response.retransmits_per_s),
            in_flight_share: Some(response.in_flight_share),
            ..RunMetrics::default()
        };

        Ok(Observation { value, metrics })
    }

    fn run_time(&self) -> Duration {
        RUN_TIME
    }

    fn now(&self) -> Duration {
        RUN_TIME * u32::try_from(self.levels.len()).expect("few runs")
    }

    fn progress(&mut self, _: &Progress) {}
}

fn streams() -> Factor {
    Factor {
        name: "streams".to_owned(),
        scale: Scale::Amount {
            min: 1,
            max: 64,
            step: 1,
        },
        start: 1,
    }
}

fn choices(count: u64) -> Factor {
    Factor {
        name: "congestion".to_owned(),
        scale: Scale::Choices(count),
        start: count - 1,
    }
}

/// An experiment with its runs.
struct Explored {
    outcome: Outcome,
    levels: Vec<u64>,
}

impl Explored {
    fn new(factor: Factor, seed: u64, surface: impl Fn(u64) -> Response) -> Self {
        let plan = Plan {
            factors: vec![factor],
            objective: Objective::Throughput,
            repetitions: 3,
            seed,
            run_time: RUN_TIME,
            budget: Duration::from_secs(900),
            confidence: 0.95,
            tolerance: 0.03,
        };
        let mut path = Path {
            surface,
            rng: Rng::with_seed(seed),
            levels: Vec::new(),
        };
        let outcome = explore(&plan, &mut path);

        Self {
            outcome,
            levels: path.levels,
        }
    }

    /// The level that is advised; `None` without an answer.
    fn used(&self) -> Option<u64> {
        match &self.outcome.verdict {
            Verdict::Use { setting, .. } => Some(setting.level(0)),
            Verdict::Inconclusive(_) | Verdict::Worthless => None,
        }
    }

    fn stage(&self) -> &Stage {
        &self.outcome.stages[0]
    }

    fn ties(&self) -> Vec<u64> {
        self.stage()
            .ties
            .iter()
            .map(|at| self.outcome.points[*at].setting.level(0))
            .collect()
    }

    fn time(&self) -> Duration {
        RUN_TIME * u32::try_from(self.levels.len()).expect("few runs")
    }
}

const TWO_MINUTES: Duration = Duration::from_secs(120);

/// 40 Mbit/s behind a queue of 200 ms: one stream of BBR fills it, more fill the queue. What a
/// receiver counts grows by what was in flight, up to 7 %.
fn deep_queue(streams: u64) -> Response {
    let delay_ms = (6.0 * streams as f64).min(192.0);
    let in_flight_share = delay_ms / 3000.0;

    let retransmits_per_s = if streams > 4 {
        60.0 * streams as f64
    } else {
        0.0
    };
    Response {
        mbps: 38.2 * (1.0 + in_flight_share),
        delay_ms,
        retransmits_per_s,
        in_flight_share,
        noise: 0.004,
    }
}

#[test]
fn deep_queue_is_left_to_one_stream_in_two_minutes() {
    for seed in 0..50 {
        let explored = Explored::new(streams(), seed, deep_queue);
        assert_eq!(
            explored.used(),
            Some(1),
            "seed {seed}: {:?}",
            explored.outcome.verdict
        );
        assert!(
            explored.time() <= TWO_MINUTES,
            "seed {seed}: {} runs",
            explored.levels.len()
        );
        assert!(
            explored.levels.iter().all(|level| *level <= 4),
            "two doublings gained nothing: {:?}",
            explored.levels
        );
        assert_eq!(explored.ties(), [2, 4], "seed {seed}");
        assert_eq!(explored.stage().spared, [8, 16, 32, 64]);
    }
}

#[test]
fn difference_that_was_in_flight_is_none() {
    // 2 streams and more show 12 % more, of which 15 % of the run was in flight.
    let short_runs = |streams: u64| {
        let in_flight_share = if streams > 1 { 0.15 } else { 0.01 };
        Response {
            mbps: if streams > 1 { 44.8 } else { 40.0 },
            in_flight_share,
            noise: 0.003,
            ..Response::default()
        }
    };
    for seed in 0..20 {
        assert_eq!(
            Explored::new(streams(), seed, short_runs).used(),
            Some(1),
            "seed {seed}"
        );
    }
}

#[test]
fn window_limited_path_gets_the_least_number_of_streams_that_fills_it() {
    // 64 KiB at 40 ms are 13.1 Mbit/s per stream; the path carries 90 Mbit/s.
    let windowed = |streams: u64| Response {
        mbps: (13.1 * streams as f64).min(90.0),
        delay_ms: 40.0,
        in_flight_share: 0.0133,
        noise: 0.004,
        ..Response::default()
    };
    for seed in 0..50 {
        let explored = Explored::new(streams(), seed, windowed);
        assert_eq!(
            explored.used(),
            Some(7),
            "seed {seed}: {:?}",
            explored.outcome.verdict
        );
        assert!(
            !explored.levels.contains(&64),
            "more than doubling twice gave no gain"
        );
    }
}

#[test]
fn path_with_loss_gets_the_start_of_its_plateau() {
    // Each stream is held back by 1 % loss; 16 are as good as the path allows.
    let lossy = |streams: u64| Response {
        mbps: 92.0 * (streams as f64 / 15.0).min(1.0),
        retransmits_per_s: 10.0 * streams as f64,
        noise: 0.015,
        ..Response::default()
    };
    let mut answers = 0;

    for seed in 0..50 {
        let explored = Explored::new(streams(), seed, lossy);
        if let Some(streams) = explored.used() {
            answers += 1;
            assert!((14..=17).contains(&streams), "seed {seed}: {streams}");
            let first = explored.stage().points[*explored.stage().plateau.start()];
            assert_eq!(
                explored.stage().advised,
                first,
                "seed {seed}: the answer is where the plateau begins"
            );
        }
    }

    assert!(answers >= 45, "{answers} of 50");
}

#[test]
fn equal_congestion_controls_are_ties_of_the_one_in_use() {
    for seed in 0..100 {
        let equal = |level: u64| Response {
            mbps: 38.2 - 0.1 * level as f64,
            noise: 0.004,
            ..Response::default()
        };
        let explored = Explored::new(choices(3), seed, equal);
        assert_eq!(
            explored.used(),
            Some(2),
            "seed {seed}: {:?}",
            explored.outcome.verdict
        );
        assert_eq!(explored.ties(), [0, 1], "seed {seed}");
        assert!(
            explored.time() <= TWO_MINUTES,
            "seed {seed}: {} runs",
            explored.levels.len()
        );
    }
}

#[test]
fn noisy_equals_leave_the_default_and_do_not_take_long() {
    let (mut defaults, mut others) = (0, 0);
    for seed in 0..100 {
        let noisy = |_: u64| Response {
            mbps: 38.0,
            noise: 0.06,
            ..Response::default()
        };
        let explored = Explored::new(choices(3), seed, noisy);
        match explored.used() {
            Some(2) => defaults += 1,
            Some(_) => others += 1,
            None => {}
        }

        assert!(
            explored.levels.len() <= 45,
            "seed {seed}: {} runs",
            explored.levels.len()
        );
    }

    assert!(defaults >= 90, "{defaults} of 100 have an answer");
    assert!(others <= 5, "{others} of 100 leave the default for nothing");
}

#[test]
fn of_equal_choices_that_beat_the_default_the_one_with_the_shorter_queue_is_advised() {
    let surface = |level: u64| match level {
        0 => Response {
            mbps: 90.0,
            delay_ms: 180.0,
            retransmits_per_s: 300.0,
            noise: 0.004,
            ..Response::default()
        },
        1 => Response {
            mbps: 89.8,
            delay_ms: 22.0,
            noise: 0.004,
            ..Response::default()
        },
        _ => Response {
            mbps: 30.0,
            delay_ms: 20.0,
            noise: 0.004,
            ..Response::default()
        },
    };
    for seed in 0..20 {
        assert_eq!(
            Explored::new(choices(3), seed, surface).used(),
            Some(1),
            "seed {seed}"
        );
    }
}

#[test]
fn loss_at_every_rate_is_said_and_ends_the_ladder() {
    let rates = Factor {
        name: "rate".to_owned(),
        scale: Scale::Amount {
            min: 100,
            max: 12_800,
            step: 10,
        },
        start: 12_800,
    };
    let explored = Explored::new(rates, 1, |_| Response::default());
    assert_eq!(explored.outcome.verdict, Verdict::Worthless);
    assert_eq!(
        explored.levels[1..].iter().max(),
        Some(&400),
        "higher rates lose no less: {:?}",
        explored.levels
    );
}

#[test]
fn window_of_the_system_that_is_too_small_is_beaten_by_the_least_that_suffices() {
    let window = Factor {
        name: "window".to_owned(),
        scale: Scale::Amount {
            min: 65_536,
            max: 16 << 20,
            step: 1024,
        },
        start: SYSTEM_CHOICE,
    };
    // 500 Mbit/s at 20 ms are 1.25 MB; the system stays at 256 KiB.
    let surface = |level: u64| {
        let bytes = if level == SYSTEM_CHOICE {
            262_144
        } else {
            level
        };
        Response {
            mbps: (bytes as f64 * 8.0 / 20e3).min(500.0),
            delay_ms: 20.0,
            noise: 0.004,
            ..Response::default()
        }
    };

    for seed in 0..20 {
        let explored = Explored::new(window.clone(), seed, surface);
        let used = explored.used().unwrap_or_default();
        assert!(
            (1_190_000..1_320_000).contains(&used),
            "seed {seed}: {used}"
        );
        assert!(
            !explored.levels.contains(&(16 << 20)),
            "doubling twice gave no gain"
        );
    }
}

#[test]
fn doubling_that_loses_and_then_gains_is_followed() {
    // A dip at 8 and 16, and twice as much from 32 on.
    let dip = |streams: u64| {
        let mbps = match streams {
            0..=4 => 25.0 * streams as f64,
            5..=11 => 60.0,
            12..=22 => 90.0,
            _ => 200.0,
        };
        Response {
            mbps,
            noise: 0.004,
            ..Response::default()
        }
    };
    let explored = Explored::new(streams(), 1, dip);
    assert_eq!(explored.used(), Some(23), "{:?}", explored.levels);
}
