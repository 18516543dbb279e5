//! Trials against paths whose speed depends on the strategy in a known way.

use super::*;

const PAUSES: &[ReceiveWait] = &[
    ReceiveWait::Pause(100),
    ReceiveWait::Pause(10),
    ReceiveWait::Event,
];
const EVENT: &[ReceiveWait] = &[ReceiveWait::Event];
const WITH_SPIN: &[ReceiveWait] = &[
    ReceiveWait::Spin,
    ReceiveWait::Pause(10),
    ReceiveWait::Event,
];
const BOTH: Adjustable = Adjustable {
    blocks: BLOCKS,
    receive_waits: PAUSES,
};
/// Setting that trials begin with where sleeps are frequent.
const WITH_PAUSE: IoStrategy = IoStrategy {
    receive_wait: PRESUMED,
    ..INITIAL
};

fn pause_us(strategy: IoStrategy) -> u16 {
    match strategy.receive_wait {
        ReceiveWait::Pause(us) => us,
        ReceiveWait::Event | ReceiveWait::Spin => 0,
    }
}

impl LoadSample {
    /// The sample after one busy CPU moved `bytes`, with a wait every 50 µs.
    fn after(self, elapsed_ns: u64, bytes: u64) -> Self {
        Self {
            at_ns: self.at_ns + elapsed_ns,
            bytes: self.bytes + bytes,
            cpu_ns: self.cpu_ns + elapsed_ns,
            waits: self.waits + elapsed_ns / 50_000,
            ..self
        }
    }
}

/// Runs trials for `seconds` against a path whose bytes per ns and CPU ns per byte depend on the
/// strategy.
fn run(
    adjustable: &Adjustable,
    seed: u64,
    seconds: u64,
    noise: f64,
    path: impl Fn(IoStrategy) -> (f64, f64),
) -> StrategyTrials {
    let mut trials = StrategyTrials::new(adjustable, 1, 0, None, Sequence::new(seed))
        .expect("something is adjustable");
    let mut random = Sequence::new(seed.wrapping_add(77));

    let (mut now, mut strategy) = (LoadSample::default(), trials.current());
    while now.at_ns < seconds * 1_000_000_000 {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        // A sum of uniform numbers is close to a normal one; their standard deviation is 1.
        let normal: f64 = (0..12)
            .map(|_| (random.next() % 1_000_000) as f64 / 1e6)
            .sum::<f64>()
            - 6.0;

        let (bytes_per_ns, cpu_ns_per_byte) = path(strategy);
        let bytes = elapsed_ns as f64 * bytes_per_ns * (normal * noise).exp();
        let cpu_ns = now.cpu_ns + (bytes * cpu_ns_per_byte) as u64;
        now = LoadSample {
            cpu_ns,
            ..now.after(elapsed_ns, bytes as u64)
        };
        strategy = trials.advance(now);
    }

    trials
}

/// The first check of a worker that sleeps often.
fn first_check(trials: &mut StrategyTrials) -> (LoadSample, IoStrategy) {
    let elapsed_ns = trials.next_ns();
    let now = LoadSample::default().after(elapsed_ns, elapsed_ns * 5);
    (now, trials.advance(now))
}

fn plain_is_best(strategy: IoStrategy) -> (f64, f64) {
    let loss = if strategy.blocks_per_call > 1 {
        0.7
    } else {
        1.0
    } * if pause_us(strategy) > 0 { 0.6 } else { 1.0 };
    (5.0 * loss, 0.2)
}

fn long_pause_is_best(strategy: IoStrategy) -> (f64, f64) {
    (
        3.0 + f64::from(pause_us(strategy)) / 100.0
            + f64::from(strategy.blocks_per_call.min(8)) / 16.0,
        0.2,
    )
}

#[test]
fn best_strategy_is_found_within_seconds_on_a_noisy_machine() {
    for seed in 1..=20 {
        assert_eq!(
            run(&BOTH, seed, 6, 0.2, plain_is_best).current(),
            IoStrategy::PLAIN,
            "{seed}"
        );
        let found = run(&BOTH, seed, 4, 0.1, long_pause_is_best).current();
        assert_eq!(pause_us(found), 100, "{seed}");
    }
}

#[test]
fn cpu_time_decides_between_equal_rates() {
    let path = |strategy: IoStrategy| (2.0, if pause_us(strategy) == 10 { 0.15 } else { 0.3 });
    let pause = Adjustable {
        blocks: USUAL_BLOCKS,
        ..BOTH
    };
    assert_eq!(pause_us(run(&pause, 5, 3, 0.01, path).current()), 10);
}

#[test]
fn a_receiver_spins_only_where_that_is_faster() {
    let spin = Adjustable {
        blocks: USUAL_BLOCKS,
        receive_waits: WITH_SPIN,
    };
    let spins = |strategy: IoStrategy| strategy.receive_wait == ReceiveWait::Spin;
    let faster = |strategy| {
        if spins(strategy) {
            (5.5, 0.18)
        } else {
            (5.0, 0.14)
        }
    };
    assert!(spins(run(&spin, 5, 3, 0.01, faster).current()));

    let equal = |strategy| {
        if spins(strategy) {
            (5.0, 0.2)
        } else {
            (5.0, 0.14)
        }
    };
    assert_eq!(pause_us(run(&spin, 5, 3, 0.01, equal).current()), 10);
}

#[test]
fn trials_take_a_small_part_of_a_long_test() {
    let mut trials =
        StrategyTrials::new(&BOTH, 1, 0, None, Sequence::new(3)).expect("something is adjustable");
    let (mut now, mut in_trials_ns) = (LoadSample::default(), 0);
    while now.at_ns < 60_000_000_000 {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        if matches!(trials.state, State::Comparing(_)) {
            in_trials_ns += elapsed_ns;
        }

        now = now.after(elapsed_ns, elapsed_ns * 5);
        trials.advance(now);
    }

    assert!(trials.decided() > 4, "{}", trials.decided());
    assert!(in_trials_ns < 60_000_000_000 / 6, "{in_trials_ns}");
}

#[test]
fn challengers_cost_little_however_slow_they_are() {
    let slow = |strategy: IoStrategy| if strategy == WITH_PAUSE { 5.0 } else { 1.0 };
    let mut trials =
        StrategyTrials::new(&BOTH, 1, 0, None, Sequence::new(9)).expect("something is adjustable");
    let (mut now, mut strategy) = first_check(&mut trials);
    while now.at_ns < 10_000_000_000 {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        now = now.after(elapsed_ns, (elapsed_ns as f64 * slow(strategy)) as u64);
        strategy = trials.advance(now);
    }

    assert_eq!(trials.current(), WITH_PAUSE);
    assert!(trials.decided() > 4, "{}", trials.decided());
    let of_best = now.bytes as f64 / (now.at_ns as f64 * slow(WITH_PAUSE));
    assert!(of_best > 0.98, "{of_best}");
}

/// Wait of receivers after the first check, when a worker slept every `wait_ns`.
fn after_first_check(adjustable: &Adjustable, wait_ns: u64, polling_competes: bool) -> ReceiveWait {
    after_first_check_of(
        8 * LITTLE_PER_WAIT_BYTES,
        adjustable,
        wait_ns,
        polling_competes,
    )
}

/// The same, when this much arrived after each sleep.
fn after_first_check_of(
    bytes_per_wait: u64,
    adjustable: &Adjustable,
    wait_ns: u64,
    polling_competes: bool,
) -> ReceiveWait {
    let trials = StrategyTrials::new(adjustable, 64, 0, None, Sequence::new(4));
    let mut trials = trials.expect("something is adjustable");
    let at_ns = trials.next_ns();
    let waits = at_ns / wait_ns;
    let bytes = waits * bytes_per_wait;
    let sample = LoadSample {
        at_ns,
        bytes,
        cpu_ns: at_ns,
        waits,
        polling_competes,
        ..LoadSample::default()
    };

    trials.advance(sample).receive_wait
}

#[test]
fn frequent_sleeps_lead_to_a_short_pause_before_any_trial() {
    assert_eq!(after_first_check(&BOTH, 100_000, false), PRESUMED);
    assert_eq!(
        after_first_check(&BOTH, 1_000_000, false),
        ReceiveWait::Event,
        "a sleep each millisecond"
    );
    assert_eq!(
        after_first_check(&BOTH, 100_000, true),
        ReceiveWait::Event,
        "polls compete"
    );

    let without = Adjustable {
        receive_waits: EVENT,
        ..BOTH
    };
    assert_eq!(
        after_first_check(&without, 100_000, false),
        ReceiveWait::Event,
        "pauses are not adjustable"
    );
}

#[test]
fn frequent_sleeps_for_little_lead_to_a_long_pause_also_where_polls_compete() {
    for polling_competes in [false, true] {
        assert_eq!(
            after_first_check_of(320, &BOTH, 100_000, polling_competes),
            ReceiveWait::Pause(100)
        );
        assert_eq!(
            after_first_check_of(320, &BOTH, 1_000_000, polling_competes),
            ReceiveWait::Event
        );
    }

    let without = Adjustable {
        receive_waits: WITH_SPIN,
        ..BOTH
    };
    assert_eq!(
        after_first_check_of(320, &without, 100_000, false),
        ReceiveWait::Spin,
        "it is not a candidate"
    );
}

#[test]
fn receivers_that_may_spin_do_so_before_any_trial() {
    let spin = Adjustable {
        receive_waits: WITH_SPIN,
        ..BOTH
    };
    let wait = |wait_ns, is_one_cpu| after_first_check(&spin, wait_ns, is_one_cpu);
    assert_eq!(wait(100_000, false), ReceiveWait::Spin);
    assert_eq!(
        wait(1_000_000, false),
        ReceiveWait::Event,
        "a sleep each millisecond"
    );
    assert_eq!(wait(100_000, true), ReceiveWait::Event, "polls compete");
}

#[test]
fn the_first_trial_compares_spinning_with_a_pause() {
    let both = Adjustable {
        receive_waits: WITH_SPIN,
        ..BOTH
    };
    let mut trials =
        StrategyTrials::new(&both, 8, 0, None, Sequence::new(4)).expect("something is adjustable");
    let mut now = LoadSample::default();
    let challenger = loop {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        now = now.after(elapsed_ns, elapsed_ns * 5);
        trials.advance(now);

        if let State::Comparing(trial) = &trials.state {
            break trials.candidates[trial.challenger].io;
        }
    };

    let current = trials.current();
    assert_eq!(current.receive_wait, ReceiveWait::Spin);
    assert_eq!(
        challenger,
        IoStrategy {
            receive_wait: PRESUMED,
            ..current
        }
    );
}

#[test]
fn a_receiver_never_spins_where_polls_compete() {
    let spin = Adjustable {
        receive_waits: WITH_SPIN,
        ..BOTH
    };
    let trials = StrategyTrials::new(&spin, 2, 0, None, Sequence::new(4));
    let mut trials = trials.expect("something is adjustable");

    let mut now = LoadSample {
        polling_competes: true,
        ..LoadSample::default()
    };
    while now.at_ns < 10_000_000_000 {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        now = now.after(elapsed_ns, elapsed_ns * 5);
        assert_ne!(trials.advance(now).receive_wait, ReceiveWait::Spin);
    }

    assert!(trials.decided() > 4, "{}", trials.decided());
}

#[test]
fn streams_that_begin_late_in_the_first_check_pause_after_the_next() {
    let mut trials =
        StrategyTrials::new(&BOTH, 64, 0, None, Sequence::new(4)).expect("something is adjustable");
    let idle = LoadSample {
        at_ns: trials.next_ns(),
        ..LoadSample::default()
    };
    assert_eq!(trials.advance(idle), INITIAL);

    let elapsed_ns = trials.next_ns() - idle.at_ns;
    assert!(elapsed_ns < HOLD_NS);
    assert_eq!(
        trials.advance(idle.after(elapsed_ns, elapsed_ns * 5)),
        WITH_PAUSE
    );
}

#[test]
fn equal_strategies_are_not_exchanged_because_of_noise() {
    let changed =
        (1..=100).filter(|seed| run(&BOTH, *seed, 1, 0.3, |_| (5.0, 0.2)).current() != WITH_PAUSE);
    assert!(changed.count() < 30);
}

#[test]
fn many_streams_have_long_slots_and_short_tests_of_them_no_trials() {
    let trials = StrategyTrials::new(&BOTH, 1_000, 0, None, Sequence::new(2))
        .expect("something is adjustable");
    assert_eq!(trials.slot_ns, SLOT_MAX_NS);
    assert!(trials.trials_from_ns >= 2_000_000_000);
}

#[test]
fn no_trial_begins_that_could_not_come_to_a_decision_before_the_end() {
    const END_NS: u64 = 1_000_000_000;

    let has_compared = |streams, end_ns| {
        let mut trials = StrategyTrials::new(&BOTH, streams, 0, end_ns, Sequence::new(2))
            .expect("something is adjustable");
        let mut now = LoadSample::default();
        while now.at_ns < END_NS {
            let elapsed_ns = trials.next_ns() - now.at_ns;
            now = now.after(elapsed_ns, elapsed_ns * 5);
            trials.advance(now);

            if matches!(trials.state, State::Comparing(_)) {
                return true;
            }
        }

        false
    };
    assert!(has_compared(1, Some(END_NS)));
    assert!(!has_compared(64, Some(END_NS)));
    assert!(has_compared(64, None), "an amount decides the end");
}

#[test]
fn slow_path_is_left_alone() {
    // 100 Mbit/s, a hundredth of a CPU.
    let slow = run(&BOTH, 9, 5, 0.1, |_| (0.0125, 0.8));
    assert_eq!((slow.current(), slow.decided()), (INITIAL, 0));
}

#[test]
fn pause_ends_when_data_becomes_rare() {
    let mut trials = run(&BOTH, 4, 2, 0.05, long_pause_is_best);
    assert!(pause_us(trials.current()) > 0);

    let mut now = LoadSample {
        at_ns: trials.next_ns(),
        bytes: u64::MAX / 2,
        ..LoadSample::default()
    };
    // A trial that runs ends first, because nothing moves.
    for _ in 0..3 {
        now.at_ns = trials.next_ns();
        trials.advance(now);
    }

    assert_eq!(trials.current().receive_wait, ReceiveWait::Event);
}

/// Blocks per call after 10 s where long calls are a fifth faster, and each period with them has
/// this number of disturbed segments.
fn blocks_where_paced(segments: u64) -> u16 {
    let paced = Adjustable {
        blocks: BLOCKS_WHERE_PACED,
        receive_waits: EVENT,
    };
    let mut trials =
        StrategyTrials::new(&paced, 1, 0, None, Sequence::new(3)).expect("several candidates");
    assert_eq!(trials.current(), INITIAL);

    let (mut now, mut setting) = (LoadSample::default(), trials.current());
    while now.at_ns < 10_000_000_000 {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        let is_long = setting.blocks_per_call > ORDERLY_BLOCKS;
        now = now.after(elapsed_ns, elapsed_ns * if is_long { 6 } else { 5 });
        now.disturbed_segments += if is_long { segments } else { 0 };
        setting = trials.advance(now);
    }

    trials.current().blocks_per_call
}

#[test]
fn long_calls_of_a_paced_sender_may_not_disturb_the_order() {
    assert!(blocks_where_paced(0) > ORDERLY_BLOCKS);
    assert!(blocks_where_paced(100) <= ORDERLY_BLOCKS);
}

/// Setting in force after 10 s with this number of disturbed segments in each slot of a trial, and
/// trials that were decided. The challenger would win.
fn disturbed(segments: u64) -> (IoStrategy, u32) {
    let mut trials =
        StrategyTrials::new(&BOTH, 1, 0, None, Sequence::new(6)).expect("something is adjustable");
    let (mut now, _) = first_check(&mut trials);
    while now.at_ns < 10_000_000_000 {
        let elapsed_ns = trials.next_ns() - now.at_ns;
        let is_comparing = matches!(trials.state, State::Comparing(_));
        now = now.after(
            elapsed_ns,
            elapsed_ns
                * if trials.in_force() == WITH_PAUSE {
                    2
                } else {
                    5
                },
        );
        now.disturbed_segments += if is_comparing { segments } else { 0 };
        trials.advance(now);
    }

    (trials.current(), trials.decided())
}

#[test]
fn retransmissions_that_set_the_rate_end_a_trial_without_a_decision() {
    assert_eq!(disturbed(100), (WITH_PAUSE, 0));
}

#[test]
fn few_retransmissions_at_a_high_rate_do_not_prevent_decisions() {
    let (current, decided) = disturbed(2);
    assert!(
        current != WITH_PAUSE && decided > 4,
        "{current:?}, {decided}"
    );
}

#[test]
fn nothing_adjustable_needs_no_trials() {
    let none = Adjustable {
        blocks: USUAL_BLOCKS,
        receive_waits: EVENT,
    };
    assert!(StrategyTrials::new(&none, 1, 0, None, Sequence::new(1)).is_none());
}
