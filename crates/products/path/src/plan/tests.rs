use proptest::prelude::*;

use super::*;

fn kinds(plan: &PlannedTest) -> Vec<PhaseKind> {
    plan.phases.iter().map(|phase| phase.spec.kind).collect()
}

fn spec(profile: Profile) -> PathSpec {
    PathSpec {
        profile,
        ..PathSpec::default()
    }
}

#[test]
fn profiles_have_their_phases_and_times() {
    use PhaseKind as K;

    let full = vec![
        K::Size,
        K::Idle,
        K::Down,
        K::Up,
        K::Both,
        K::Datagrams,
        K::Datagrams,
    ];
    // Sums by hand: 1 + 1 + 4 + 4; 1 + 1 + 2 + 8 + 8 + 5 + 1 + 1; 1 + 2 + 5 + 20 + 20 + 12 + 5 + 5;
    // 1 + 2 + 60 + 60.
    let table = [
        (Profile::Quick, vec![K::Idle, K::Down, K::Up], 10),
        (Profile::Default, full.clone(), 27),
        (Profile::Thorough, full, 70),
        (Profile::Draft09, vec![K::Idle, K::Down, K::Up], 123),
    ];
    for (profile, expected, seconds) in table {
        let plan = plan(&spec(profile), Dialect::Native);
        assert_eq!(
            (kinds(&plan), plan.estimate_s),
            (expected, seconds),
            "{profile:?}"
        );
        assert!(plan.absent.is_empty(), "{profile:?}");
    }
}

#[test]
fn loads_start_with_one_stream_and_both_directions_with_several() {
    let plan = plan(&PathSpec::default(), Dialect::Native);
    let load = |kind| {
        plan.phases
            .iter()
            .find(|phase| phase.spec.kind == kind)
            .and_then(|phase| phase.load)
    };
    let down = load(PhaseKind::Down).expect("a load");
    assert_eq!(
        (
            down.streams_start,
            down.streams_next,
            down.streams_step,
            down.streams_max
        ),
        (1, 4, 4, 16)
    );
    assert_eq!(
        (down.single, down.duration_min),
        (Duration::from_secs(2), Duration::from_secs(5))
    );

    let both = load(PhaseKind::Both).expect("a load");
    assert_eq!(
        (both.streams_start, both.single, both.direction),
        (4, Duration::ZERO, None)
    );
}

#[test]
fn the_draft_starts_with_one_stream_and_adds_one() {
    let plan = plan(&spec(Profile::Draft09), Dialect::Native);
    let load = plan
        .phases
        .iter()
        .find_map(|phase| phase.load)
        .expect("a load");
    assert_eq!(
        (load.streams_start, load.streams_step, load.streams_max),
        (1, 1, 16)
    );
    assert_eq!(
        (load.interval, load.duration_max),
        (Duration::from_secs(5), Duration::from_secs(60))
    );
    assert!(load.is_growing_until_stable && load.single.is_zero());
}

#[test]
fn a_length_scales_all_loads() {
    let wanted = PathSpec {
        load: Some(Duration::from_secs(16)),
        ..PathSpec::default()
    };
    let plan = plan(&wanted, Dialect::Native);
    let seconds: Vec<u64> = plan
        .phases
        .iter()
        .map(|phase| phase.spec.duration_max.as_secs())
        .collect();
    assert_eq!(seconds, [1, 2, 16, 16, 10, 1, 1]);
}

#[test]
fn phases_are_chosen_by_name() {
    use PhaseKind as K;

    let wanted = PathSpec {
        only: vec![K::Rr, K::Idle],
        request_bytes: 64,
        ..PathSpec::default()
    };

    let chosen = plan(&wanted, Dialect::Native);
    assert_eq!(kinds(&chosen), [K::Idle, K::Rr]);
    let transaction = TransactionSpec {
        request_bytes: 64,
        response_bytes: 1,
    };

    assert_eq!(
        chosen
            .phases
            .last()
            .and_then(|phase| phase.spec.transaction),
        Some(transaction)
    );
    let wanted = PathSpec {
        skip: vec![K::Both, K::Size],
        ..PathSpec::default()
    };
    assert_eq!(
        kinds(&plan(&wanted, Dialect::Native)),
        [K::Idle, K::Down, K::Up, K::Datagrams, K::Datagrams]
    );
}

#[test]
fn what_the_server_cannot_do_has_a_reason() {
    let wanted = PathSpec {
        only: vec![PhaseKind::Size, PhaseKind::Down, PhaseKind::Rr],
        ..PathSpec::default()
    };
    let stock = plan(&wanted, Dialect::Iperf3);
    assert_eq!(kinds(&stock), [PhaseKind::Down]);
    assert_eq!(
        stock.absent,
        ["size", "rr"].map(|name| (name.to_owned(), IPERF3_ONLY.to_owned()))
    );
}

#[test]
fn datagrams_have_half_the_rate_found_or_the_one_asked_for() {
    let only = |rate_bps| PathSpec {
        only: vec![PhaseKind::Datagrams],
        rate_bps,
        ..PathSpec::default()
    };
    let half = plan(&only(None), Dialect::Native);
    let rates = half
        .phases
        .iter()
        .map(|phase| phase.datagram_rate_bps(Some(95e6), Some(19e6), 1448));
    assert_eq!(
        rates.collect::<Vec<_>>(),
        [Some(47_500_000), Some(9_500_000)]
    );
    assert_eq!(
        half.phases[0].datagram_rate_bps(None, Some(19e6), 1448),
        None
    );

    let fixed = plan(&only(Some(5_000_000)), Dialect::Native);
    assert!(
        fixed
            .phases
            .iter()
            .all(|phase| phase.spec.rate_bps == Some(5_000_000))
    );
}

#[test]
fn the_budget_is_shared_by_direction_and_time() {
    // 8 s down, 8 s up, 5 s both ways, 1 s each way at half the rate: 16, 16, 20, 1 and 1 of 54
    // parts.
    let spec = PathSpec {
        bytes_max: Some(54_000_000),
        ..PathSpec::default()
    };
    let plan = plan(&spec, Dialect::Native);
    let parts: Vec<Option<u64>> = plan
        .phases
        .iter()
        .map(|phase| phase.spec.bytes_max)
        .collect();

    let megabytes = |n: u64| Some(n * 1_000_000);
    let expected = [
        None,
        None,
        megabytes(16),
        megabytes(16),
        megabytes(10),
        megabytes(1),
        megabytes(1),
    ];
    assert_eq!(parts, expected);
}

proptest! {
    #[test]
    fn parts_of_the_budget_do_not_exceed_it(bytes_max in any::<u64>(), profile in 0..4_usize, only in any::<u16>()) {
        let profile = [Profile::Quick, Profile::Default, Profile::Thorough, Profile::Draft09][profile];
        let only = PhaseKind::ALL.into_iter().enumerate().filter(|(at, _)| only >> at & 1 == 1).map(|(_, kind)| kind);
        let mut spec = spec(profile);
        spec.only = only.collect();
        spec.bytes_max = Some(bytes_max);
        let plan = plan(&spec, Dialect::Native);
        let parts = plan.phases.iter().map(|phase| {
            let ways = if phase.spec.kind == PhaseKind::Both { 2 } else { 1 };
            phase.spec.bytes_max.map_or(0, |bytes| ways * bytes)
        });
        prop_assert!(parts.map(u128::from).sum::<u128>() <= u128::from(bytes_max));
    }
}

#[test]
fn loads_of_a_slow_path_are_shortened_to_the_time_that_is_left() {
    let plan = plan(&PathSpec::default(), Dialect::Native);
    let from = |kind| {
        plan.phases
            .iter()
            .position(|phase| phase.spec.kind == kind)
            .expect("a phase")
    };

    let seconds = Duration::from_secs;
    let load = |kind, left, overrun| {
        load_within(&plan.phases[from(kind)..], left, overrun).map(|load| load.duration_max)
    };
    assert_eq!(
        load(PhaseKind::Both, seconds(12), seconds(0)),
        Some(seconds(5))
    );

    // 5 s of both and 2 s of datagrams, and 2 s for what is left in queues.
    assert_eq!(
        load(PhaseKind::Both, seconds(8), seconds(1)),
        Some(seconds(4))
    );
    assert_eq!(
        load(PhaseKind::Both, seconds(1), seconds(3)),
        Some(Duration::from_millis(2_500))
    );
    assert_eq!(load(PhaseKind::Idle, seconds(1), seconds(3)), None);
    assert!(plan.time_max() <= seconds(30), "{:?}", plan.time_max());
}
