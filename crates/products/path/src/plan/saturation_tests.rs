use proptest::prelude::*;

use super::*;

const DEFAULT: LoadPlan = LoadPlan {
    direction: Some(PathDirection::Down),
    streams_start: 1,
    single: Duration::from_secs(2),
    streams_next: 4,
    streams_step: 4,
    streams_max: 16,
    is_growing_until_stable: false,
    interval: Duration::from_secs(1),
    duration_min: Duration::from_secs(5),
    duration_max: Duration::from_secs(8),
    bytes_max: None,
};

const MS: u64 = 1_000_000;

/// Result of a simulated load: end in ms, when streams were added, and the outcome.
struct Simulated {
    end_ms: u64,
    added: Vec<(u64, u32)>,
    outcome: LoadOutcome,
}

/// Runs a load whose rate in bit/s and round trip in ns depend on time in ms and streams.
fn simulate(
    plan: LoadPlan,
    rate_bps: impl Fn(u64, u32) -> f64,
    rtt_ns: impl Fn(u64) -> Option<i64>,
) -> Simulated {
    let mut load = Saturation::new(plan);
    let (mut streams, mut bytes, mut added) = (plan.streams_start, 0.0, Vec::new());

    for step in 1..10_000 {
        let at_ms = step * 100;
        bytes += rate_bps(at_ms, streams) / 80.0;

        let sample = LoadSample {
            at_ns: at_ms * MS,
            down_bytes: bytes as u64,
            up_bytes: 0,
            streams,
        };
        match load.sample(&sample, rtt_ns(at_ms)) {
            LoadDecision::Continue => {}
            LoadDecision::AddStreams(n) => {
                streams += n;
                added.push((at_ms, n));
            }
            LoadDecision::End => {
                return Simulated {
                    end_ms: at_ms,
                    added,
                    outcome: load.outcome(),
                };
            }
        }
    }

    panic!("the load does not end");
}

fn window(start_ms: u64, end_ms: u64) -> LoadWindow {
    LoadWindow {
        start_ns: start_ms * MS,
        end_ns: end_ms * MS,
    }
}

#[test]
fn a_steady_path_ends_when_four_averages_of_several_streams_are_stable() {
    let run = simulate(DEFAULT, |_, _| 95e6, |_| Some(20_000_000));
    assert_eq!(
        (run.end_ms, run.added.as_slice()),
        (6000, [(2000, 3)].as_slice())
    );
    assert_eq!(run.outcome.confidence, Confidence::High);
    assert_eq!(run.outcome.ended_by, LoadEnd::Stable);
    assert_eq!(run.outcome.single, Some(window(1000, 2000)));
    assert_eq!(run.outcome.window, window(2000, 6000));
    assert_eq!(run.outcome.streams, 4);
}

#[test]
fn streams_join_while_they_bring_more() {
    // 100 Mbit/s per stream up to 1 Gbit/s: 12 streams have a higher rate than 8, 16 not a higher
    // one than 12.
    let run = simulate(
        DEFAULT,
        |_, streams| (f64::from(streams) * 100e6).min(1e9),
        |_| Some(20_000_000),
    );
    let added: u32 = run.added.iter().map(|(_, n)| n).sum();
    assert_eq!(run.added.first(), Some(&(2000, 3)));
    assert!((11..=15).contains(&added), "{:?}", run.added);
    assert_eq!(
        (run.end_ms, run.outcome.confidence),
        (8000, Confidence::Medium)
    );
    assert_eq!(run.outcome.window, window(2000, 8000));
}

#[test]
fn a_rate_that_alternates_is_not_stable() {
    let run = simulate(
        DEFAULT,
        |ms, _| {
            if (ms / 2000).is_multiple_of(2) {
                100e6
            } else {
                10e6
            }
        },
        |_| Some(20_000_000),
    );
    assert_eq!((run.end_ms, run.outcome.ended_by), (8000, LoadEnd::Time));
    assert_eq!(run.outcome.confidence, Confidence::Medium);
}

#[test]
fn a_growing_queue_is_not_stable() {
    // The round trip grows by 20 % of its first value in each second.
    let run = simulate(
        DEFAULT,
        |_, _| 95e6,
        |ms| Some(20_000_000 + 20_000 * ms as i64),
    );
    assert_eq!(
        (run.end_ms, run.outcome.confidence),
        (8000, Confidence::Medium)
    );
}

#[test]
fn without_a_probe_responsiveness_cannot_be_stable() {
    let run = simulate(DEFAULT, |_, _| 95e6, |_| None);
    assert_eq!(
        (run.end_ms, run.outcome.confidence),
        (8000, Confidence::Medium)
    );
}

#[test]
fn window_of_a_load_of_two_seconds_is_neither_a_moment_nor_the_burst_of_joining_streams() {
    let short = LoadPlan {
        single: Duration::from_secs(1),
        duration_max: Duration::from_millis(2001),
        ..DEFAULT
    };
    // Streams that join at 1 s send their first windows at once.
    let rate_bps = |ms: u64, streams: u32| {
        if streams > 1 && ms <= 1100 {
            82e6
        } else {
            50e6
        }
    };
    let run = simulate(short, rate_bps, |_| Some(20_000_000));
    assert_eq!((run.end_ms, run.outcome.window), (2100, window(1200, 2100)));
}

#[test]
fn short_loads_have_low_confidence() {
    let quick = LoadPlan {
        single: Duration::from_secs(1),
        duration_max: Duration::from_secs(4),
        ..DEFAULT
    };
    let run = simulate(quick, |_, _| 95e6, |_| Some(20_000_000));
    assert_eq!(
        (run.end_ms, run.outcome.confidence),
        (4000, Confidence::Low)
    );
    assert_eq!(run.outcome.single, Some(window(500, 1000)));
    assert_eq!(run.outcome.window, window(2000, 4000));
}

#[test]
fn a_fixed_number_of_streams_stays() {
    let fixed = LoadPlan {
        streams_start: 3,
        single: Duration::ZERO,
        streams_next: 3,
        streams_step: 0,
        streams_max: 3,
        ..DEFAULT
    };
    let run = simulate(fixed, |ms, _| ms as f64 * 1e5, |_| Some(20_000_000));
    assert_eq!(
        (run.added.len(), run.outcome.streams, run.outcome.single),
        (0, 3, None)
    );
}

#[test]
fn the_budget_ends_a_load_and_marks_it() {
    // 12.5 MB per second: 30 MB are reached in the 25th sample.
    let run = simulate(
        LoadPlan {
            bytes_max: Some(30_000_000),
            ..DEFAULT
        },
        |_, _| 100e6,
        |_| Some(20_000_000),
    );
    assert_eq!((run.end_ms, run.outcome.ended_by), (2400, LoadEnd::Bytes));
    assert_eq!(
        (run.outcome.confidence, run.outcome.deviations),
        (Confidence::Low, vec!["max-bytes".to_owned()])
    );
}

#[test]
fn a_stream_that_fails_leaves_medium_confidence() {
    let mut load = Saturation::new(DEFAULT);
    for step in 1..=200_u64 {
        let streams = if step < 30 { 4 } else { 3 };
        let sample = LoadSample {
            at_ns: step * 100 * MS,
            down_bytes: step * 1_000_000,
            up_bytes: 0,
            streams,
        };
        if load.sample(&sample, Some(20_000_000)) == LoadDecision::End {
            break;
        }
    }

    let outcome = load.outcome();
    assert_eq!(
        (outcome.confidence, outcome.deviations),
        (Confidence::Medium, vec!["stream-lost".to_owned()])
    );
}

#[test]
fn the_draft_adds_one_stream_per_interval_until_the_rate_is_stable() {
    let draft = LoadPlan {
        single: Duration::ZERO,
        streams_next: 1,
        streams_step: 1,
        is_growing_until_stable: true,
        interval: Duration::from_secs(5),
        duration_min: Duration::from_secs(20),
        duration_max: Duration::from_secs(60),
        ..DEFAULT
    };
    let run = simulate(draft, |_, _| 95e6, |_| Some(20_000_000));
    assert_eq!(run.added, [(5000, 1), (10_000, 1), (15_000, 1)]);
    assert_eq!(
        (run.end_ms, run.outcome.confidence),
        (20_000, Confidence::High)
    );
}

#[test]
fn a_load_that_was_stopped_has_the_part_so_far() {
    let mut load = Saturation::new(DEFAULT);
    for step in 1..=55_u64 {
        let sample = LoadSample {
            at_ns: step * 100 * MS,
            down_bytes: step * 1_000_000,
            up_bytes: 0,
            streams: 1,
        };
        load.sample(&sample, None);
    }

    let outcome = load.outcome();
    assert_eq!(
        (outcome.ended_by, outcome.window),
        (LoadEnd::Stopped, window(2000, 5500))
    );
    assert_eq!(outcome.confidence, Confidence::Medium);
}

proptest! {
    #[test]
    fn a_load_ends_for_every_series(
        series in prop::collection::vec((any::<u64>(), any::<u64>(), any::<u64>(), any::<u32>(), any::<Option<i64>>()), 1..40),
        is_both in any::<bool>(),
        until_stable in any::<bool>(),
        interval_ms in 0..3000_u64,
    ) {
        let plan = LoadPlan {
            direction: (!is_both).then_some(PathDirection::Up),
            is_growing_until_stable: until_stable,
            interval: Duration::from_millis(interval_ms),
            ..DEFAULT
        };
        let mut load = Saturation::new(plan);
        let mut streams = plan.streams_start;
        let mut samples = series.iter().cycle();
        let is_ended = (0..1000).any(|_| {
            let Some(&(at_ns, down_bytes, up_bytes, streams_now, rtt_ns)) = samples.next() else { return true };
            let sample = LoadSample { at_ns, down_bytes, up_bytes, streams: streams_now };
            match load.sample(&sample, rtt_ns) {
                LoadDecision::AddStreams(n) => streams += n,
                LoadDecision::Continue => {}
                LoadDecision::End => return true,
            }
            false
        });
        prop_assert!(is_ended);
        prop_assert!(streams <= plan.streams_max && load.outcome().streams == streams);
        let window = load.outcome().window;
        prop_assert!(window.start_ns <= window.end_ns);
    }
}
