//! Offsets, uncertainty, drift and lead.

use super::*;

/// An exchange over a path with these delays, with an agent whose clock is ahead by `offset_ns`.
fn exchange(c1_ns: u64, there_ns: u64, back_ns: u64, offset_ns: u64) -> Exchange {
    let a2_ns = c1_ns + there_ns + offset_ns;
    let a3_ns = a2_ns + 1_000;
    Exchange {
        c1_ns,
        a2_ns,
        a3_ns,
        c4_ns: c1_ns + there_ns + 1_000 + back_ns,
    }
}

#[test]
fn the_exchange_with_the_least_round_trip_decides() {
    let mut clock = Estimator::default();
    assert_eq!(clock.estimate(0), None);
    assert!(clock.needs_refresh(0, 10 * MS_NS));

    for (there_ns, back_ns) in [(900_000, 100_000), (50_000, 50_000), (100_000, 700_000)] {
        assert!(clock.add(exchange(SECOND_NS, there_ns, back_ns, 7_000_000)));
    }

    let estimate = clock
        .estimate(SECOND_NS + 101_000)
        .expect("exchanges are there");
    assert_eq!(
        (estimate.offset_ns, estimate.uncertainty_ns),
        (7_000_000, 50_000)
    );
    assert_eq!(clock.rtt_p99_ns(), Some(1_000_000));
    assert!(!clock.needs_refresh(SECOND_NS, 10 * MS_NS) && clock.needs_refresh(SECOND_NS, 100_000));
}

#[test]
fn uncertainty_grows_with_age_and_old_exchanges_are_not_used() {
    let mut clock = Estimator::default();
    clock.add(exchange(0, 50_000, 50_000, 5));
    let at_ns = 101_000;
    let aged = clock
        .estimate(at_ns + 20 * SECOND_NS)
        .map(|estimate| estimate.uncertainty_ns);
    assert_eq!(aged, Some(50_000 + 2_000_000), "100 ppm of 20 s are 2 ms");
    assert!(clock.estimate(at_ns + AGE_MAX_NS).is_some());
    assert_eq!(clock.estimate(at_ns + AGE_MAX_NS + 1), None);
}

#[test]
fn two_estimates_thirty_seconds_apart_give_the_drift() {
    let mut clock = Estimator::default();
    // 20 ppm: 1 ms in 50 s.
    clock.add(exchange(0, 50_000, 50_000, 1_000_000));
    clock.add(exchange(50 * SECOND_NS, 40_000, 40_000, 2_000_000));

    let later_ns = 60 * SECOND_NS;
    let estimate = clock.estimate(later_ns).expect("an exchange is there");
    assert!(
        (estimate.offset_ns - 2_200_000).abs() < 5_000,
        "{estimate:?}"
    );
    assert!(
        estimate.uncertainty_ns < 70_000,
        "less than 100 ppm of 10 s: {estimate:?}"
    );
}

#[test]
fn impossible_readings_are_refused() {
    let right = exchange(SECOND_NS, 50_000, 50_000, 5);
    let mut clock = Estimator::default();

    for wrong in [
        Exchange { c4_ns: 0, ..right },
        Exchange {
            a3_ns: right.a2_ns - 1,
            ..right
        },
        Exchange {
            a3_ns: right.a2_ns + SECOND_NS,
            ..right
        },
        Exchange {
            a2_ns: u64::MAX,
            a3_ns: u64::MAX,
            ..right
        },
        Exchange {
            c4_ns: right.c1_ns + 2 * SECOND_NS,
            ..right
        },
    ] {
        assert!(!clock.add(wrong), "{wrong:?}");
    }

    assert_eq!(clock.estimate(SECOND_NS), None);
}

#[test]
fn exchanges_are_bounded() {
    let mut clock = Estimator::default();
    (0..1_000).for_each(|i| assert!(clock.add(exchange(i * MS_NS, 50_000, 50_000, 5))));
    assert_eq!(clock.samples.len(), EXCHANGES_MAX);
}

#[test]
fn lead_has_a_floor_and_a_ceiling() {
    assert_eq!(lead_ns(100_000, 50_000, 100_000), LEAD_MIN_NS);
    assert_eq!(lead_ns(100 * MS_NS, 10 * MS_NS, 20 * MS_NS), 400 * MS_NS);
    assert_eq!(lead_ns(u64::MAX, u64::MAX, u64::MAX), LEAD_MAX_NS);
}
