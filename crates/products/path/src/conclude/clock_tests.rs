use fastrand::Rng;
use proptest::prelude::*;

use super::*;

const MS: i64 = 1_000_000;

/// A path with two clocks: the other one starts at `offset_ns` and runs faster by `skew_ppb`.
#[derive(Debug, Clone, Copy)]
struct Path {
    offset_ns: i64,
    skew_ppb: i64,
    up_ns: i64,
    down_ns: i64,
    queue_ns: u64,
}

impl Path {
    /// The other clock at a time of this one.
    fn peer_ns(&self, own_ns: i64) -> u64 {
        (own_ns + self.true_offset_ns(own_ns)) as u64
    }

    fn true_offset_ns(&self, own_ns: i64) -> i64 {
        self.offset_ns + own_ns * self.skew_ppb / 1_000_000_000
    }

    /// Probes every 5 ms, each way with a queue of its own.
    fn probes(&self, count: i64, seed: u64) -> Vec<ProbeSample> {
        let mut rng = Rng::with_seed(seed);
        let mut queue = || (self.queue_ns as f64 * rng.f64().powi(3)) as i64;
        let probe = |n: i64| {
            let sent = 1_000_000_000_000 + n * 5 * MS;
            let arrived = sent + self.up_ns + queue();
            let replied = arrived + 20_000;
            let received = replied + self.down_ns + queue();

            ProbeSample {
                sent_ns: sent as u64,
                peer_received_ns: Some(self.peer_ns(arrived)),
                peer_sent_ns: Some(self.peer_ns(replied)),
                received_ns: Some(received as u64),
            }
        };

        (0..count).map(probe).collect()
    }
}

const ASYMMETRIC: Path = Path {
    offset_ns: 1000 * 1000 * MS,
    skew_ppb: 20_000,
    up_ns: 5 * MS,
    down_ns: 45 * MS,
    queue_ns: 300_000,
};

fn contains(delay: &Delay, true_ns: i64) -> bool {
    let error = delay.error_ns.expect("an error") as i64;
    delay
        .p50_ns
        .is_some_and(|p50| (p50 - true_ns).abs() <= error)
}

#[test]
fn one_way_intervals_of_an_asymmetric_path_hold_both_delays() {
    let probes = ASYMMETRIC.probes(4000, 1);
    let clock = Clock::from_probes(&probes, ClockFacts::default()).expect("replies");
    let estimate = clock.estimate();
    assert_eq!(estimate.method, ClockMethod::Exchange);

    // Half of 50 ms; the queues are rarely below 10 µs.
    assert!(
        (25 * MS as u64..25 * MS as u64 + 20_000).contains(&estimate.error_ns),
        "{estimate:?}"
    );
    assert!((estimate.skew_ppb - 20_000).abs() < 1000, "{estimate:?}");
    let (up, down) = clock.one_way(&probes);
    assert!(
        contains(&up, 5 * MS) && contains(&down, 45 * MS),
        "{up:?} {down:?}"
    );

    let (queue_up, queue_down) = clock.queues(&probes);
    for queue in [queue_up, queue_down] {
        assert!(queue.p99_ns.is_some_and(|p99| p99 <= 320_000), "{queue:?}");
        assert!(queue.min_ns.is_some_and(|min| min < 1000), "{queue:?}");
    }
}

#[test]
fn a_queue_is_that_of_its_direction_and_above_the_smallest_of_all_phases() {
    let idle = ASYMMETRIC.probes(400, 2);
    let loaded_path = Path {
        down_ns: 145 * MS,
        ..ASYMMETRIC
    };
    let loaded = loaded_path.probes(400, 3);
    let all = [idle, loaded.clone()].concat();
    let clock = Clock::from_probes(&all, ClockFacts::default()).expect("replies");
    let (up, down) = clock.queues(&loaded);
    assert!(up.p50_ns.is_some_and(|p50| p50 < 300_000), "{up:?}");
    assert!(
        down.p50_ns
            .is_some_and(|p50| (p50 - 100 * MS).abs() < 300_000),
        "{down:?}"
    );
}

#[test]
fn one_kernel_has_one_clock_unless_the_probes_contradict() {
    let facts = ClockFacts {
        is_same_boot: true,
        disciplined: None,
    };
    let veth = Path {
        offset_ns: 0,
        skew_ppb: 0,
        up_ns: 20_000,
        down_ns: 30_000,
        queue_ns: 5000,
    };
    let clock = Clock::from_probes(&veth.probes(200, 4), facts).expect("replies");
    let expected = ClockEstimate {
        method: ClockMethod::OneClock,
        offset_ns: 0,
        error_ns: 0,
        skew_ppb: 0,
    };
    assert_eq!(clock.estimate(), expected);

    let (up, down) = clock.one_way(&veth.probes(200, 4));
    assert!(up.min_ns.is_some_and(|ns| (20_000..21_000).contains(&ns)));
    assert!(down.min_ns.is_some_and(|ns| (30_000..31_000).contains(&ns)));

    // A time namespace with a monotonic clock 1,000 s ahead.
    let namespace = Path {
        offset_ns: 1_000_000 * MS,
        ..veth
    };
    let clock = Clock::from_probes(&namespace.probes(200, 5), facts).expect("replies");
    assert_eq!(clock.estimate().method, ClockMethod::Exchange);
    assert!((clock.estimate().offset_ns - 1_000_000 * MS).unsigned_abs() <= clock.error_ns());
}

#[test]
fn disciplined_clocks_count_where_they_are_closer_and_agree() {
    let probes = ASYMMETRIC.probes(400, 6);
    let middle_ns = 1_000_000_000_000 + 399 * 5 * MS / 2;
    let truth = ASYMMETRIC.true_offset_ns(middle_ns);

    let with = |disciplined| {
        let facts = ClockFacts {
            is_same_boot: false,
            disciplined: Some(disciplined),
        };
        Clock::from_probes(&probes, facts)
            .expect("replies")
            .estimate()
    };
    let close = with((truth + 300_000, 500_000));
    assert_eq!(
        (close.method, close.offset_ns, close.error_ns),
        (ClockMethod::Disciplined, truth + 300_000, 500_000)
    );
    assert_eq!(
        with((truth, 90_000_000)).method,
        ClockMethod::Exchange,
        "further than the probes"
    );
    assert_eq!(
        with((truth + 200 * MS, 500_000)).method,
        ClockMethod::Exchange,
        "contradicts the probes"
    );
}

#[test]
fn impossible_and_contradicting_replies_are_ignored_and_counted() {
    let mut probes = ASYMMETRIC.probes(400, 7);
    // Left the other end before it arrived; longer there than away; a second off; lost.
    probes[10].peer_sent_ns = probes[10].peer_received_ns.map(|ns| ns - 1);
    probes[20].peer_sent_ns = probes[20].peer_received_ns.map(|ns| ns + 1_000_000_000);

    let early = |ns: Option<u64>| ns.map(|ns| ns - 1_000_000_000);
    probes[30].peer_received_ns = early(probes[30].peer_received_ns);
    probes[30].peer_sent_ns = early(probes[30].peer_sent_ns);
    probes[40].received_ns = None;

    let clock = Clock::from_probes(&probes, ClockFacts::default()).expect("replies");
    assert_eq!(clock.ignored(), 3);
    assert!(clock.error_ns() < 26 * MS as u64);
}

#[test]
fn without_times_of_the_other_end_there_is_no_clock() {
    let plain = ProbeSample {
        sent_ns: 1,
        peer_received_ns: None,
        peer_sent_ns: None,
        received_ns: Some(5),
    };
    assert_eq!(Clock::from_probes(&[plain], ClockFacts::default()), None);
    assert_eq!(Clock::from_probes(&[], ClockFacts::default()), None);
}

proptest! {
    #[test]
    fn the_true_offset_is_within_the_bounds(
        offset_ns in -900_000 * MS..900_000 * MS,
        skew_ppb in -100_000..100_000_i64,
        up_ns in 0..100 * MS,
        down_ns in 0..100 * MS,
        queue_ns in 0..200_000_000_u64,
        count in 1..600_i64,
        seed in any::<u64>(),
    ) {
        let path = Path { offset_ns, skew_ppb, up_ns, down_ns, queue_ns };
        let probes = path.probes(count, seed);
        let clock = Clock::from_probes(&probes, ClockFacts::default()).expect("replies");
        prop_assert_eq!(clock.ignored(), 0);
        let middle_ns = 1_000_000_000_000 + (count - 1) * 5 * MS / 2;
        let distance = (clock.offset_at(middle_ns as u64) - path.true_offset_ns(middle_ns)).unsigned_abs();
        // Whole ns of the times and of their drift.
        prop_assert!(distance <= clock.error_ns() + 3, "{distance} {clock:?}");
    }
}

proptest! {
    #[test]
    fn comparing_clocks_ends_for_arbitrary_times(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        crate::fuzzing::clock_bounds(&bytes);
    }
}
