use std::time::Duration;

use linerate_model::path::{
    ClockMethod, ConcurrentProbes, Confidence, Delay, Dialect, EndpointPhase, Identity, LoadEnd,
    LoadOutcome, LoadSample, LoadWindow, PathSpec, PathState, PathTarget, PhaseSpec,
    PhaseTransport, ProbeKind, ProbeSample, SizeResult, SizeSignal, StreamTotals, SubflowRow,
};

use super::*;

const MS: u64 = 1_000_000;
const S: u64 = 1000 * MS;

/// The other end's clock is ahead by this.
const OFFSET_NS: u64 = 5000 * S;

fn target() -> PathTarget {
    let address = "2001:db8::7".parse().expect("an address");
    let mut target = PathTarget::new("lab.example", 5201, address, Dialect::Native);
    target.identity = Identity::Known;
    target
}

fn spec(kind: PhaseKind) -> PhaseSpec {
    PhaseSpec {
        kind,
        direction: None,
        transport: PhaseTransport::Tcp,
        streams_max: 16,
        probe_flows: 1,
        duration_max: Duration::from_secs(8),
        rate_bps: None,
        connections_per_s: None,
        datagram_bytes: 0,
        bytes_max: None,
        congestion: None,
        dscp: 0,
        raw: false,
        hops: false,
        transaction: None,
    }
}

fn phase(kind: PhaseKind, started_ns: u64) -> PhaseResult {
    PhaseResult {
        spec: spec(kind),
        started_ns,
        load: None,
        is_drained: None,
        local: EndpointPhase {
            elapsed_ns: 6 * S,
            cpu_ns: 3 * S,
            ..EndpointPhase::default()
        },
        remote: Some(EndpointPhase {
            elapsed_ns: 6 * S,
            ..EndpointPhase::default()
        }),
        udp: Vec::new(),
        udp_by_dscp: Vec::new(),
        foreign: ConcurrentProbes::default(),
        in_band: Vec::new(),
        size: Vec::new(),
        tos: Vec::new(),
        transactions: Vec::new(),
        refused: 0,
        absent: Vec::new(),
    }
}

fn probe(sent_ns: u64, up_ns: u64, down_ns: u64) -> ProbeSample {
    let arrived = sent_ns + up_ns;
    ProbeSample {
        sent_ns,
        peer_received_ns: Some(arrived + OFFSET_NS),
        peer_sent_ns: Some(arrived + OFFSET_NS + 10_000),
        received_ns: Some(arrived + 10_000 + down_ns),
    }
}

fn plain(sent_ns: u64, rtt_ns: u64) -> ProbeSample {
    ProbeSample {
        sent_ns,
        peer_received_ns: None,
        peer_sent_ns: None,
        received_ns: Some(sent_ns + rtt_ns),
    }
}

/// Bytes of a direction every 100 ms for 6 s; the first second has half the rate.
fn series(down_bps: u64, up_bps: u64) -> Vec<LoadSample> {
    let bytes = |bps: u64, tenth: u64| bps / 80 * tenth - bps / 160 * tenth.min(10);
    let sample = |tenth| LoadSample {
        at_ns: tenth * 100 * MS,
        down_bytes: bytes(down_bps, tenth),
        up_bytes: bytes(up_bps, tenth),
        streams: 4,
    };
    (1..=60).map(sample).collect()
}

fn outcome() -> LoadOutcome {
    LoadOutcome {
        confidence: Confidence::High,
        ended_by: LoadEnd::Stable,
        streams: 4,
        single: Some(LoadWindow {
            start_ns: 500 * MS,
            end_ns: 2 * S,
        }),
        window: LoadWindow {
            start_ns: 2 * S,
            end_ns: 6 * S,
        },
        deviations: Vec::new(),
    }
}

/// Idle: 6 ms each way.
fn idle_phase() -> PhaseResult {
    let mut idle = phase(PhaseKind::Idle, 100 * S);
    idle.udp = (0..400)
        .map(|n| probe(100 * S + n * 5 * MS, 6 * MS, 6 * MS))
        .collect();
    let round_trips: Vec<ProbeSample> = (0..10)
        .map(|n| plain(100 * S + n * 200 * MS, 12 * MS))
        .collect();
    idle.foreign = ConcurrentProbes {
        tcp: round_trips.clone(),
        tls: round_trips.clone(),
        echo: round_trips,
    };

    idle
}

/// Load of one direction that fills a queue of `queue_ms` in its direction after two seconds.
fn load_phase(kind: PhaseKind, started_ns: u64, queue_ms: u64) -> PhaseResult {
    let mut load = phase(kind, started_ns);
    let is_down = kind == PhaseKind::Down;
    let samples = if is_down {
        series(95_000_000, 0)
    } else {
        series(0, 19_000_000)
    };

    load.load = Some(outcome());
    load.local.load.clone_from(&samples);

    if let Some(remote) = &mut load.remote {
        remote.load = samples;
    }

    let queue = |at_ns: u64| if at_ns < 2 * S { 0 } else { queue_ms * MS };
    let ways = |at_ns: u64| {
        if is_down {
            (0, queue(at_ns))
        } else {
            (queue(at_ns), 0)
        }
    };
    load.udp = (0..1200)
        .map(|n| {
            let (up, down) = ways(n * 5 * MS);
            probe(started_ns + n * 5 * MS, 6 * MS + up, 6 * MS + down)
        })
        .collect();

    let rtts = |rtt_ms: u64| {
        (0..60)
            .map(|n| plain(started_ns + n * 100 * MS, rtt_ms * MS))
            .collect::<Vec<_>>()
    };
    load.foreign = ConcurrentProbes {
        tcp: rtts(20),
        tls: rtts(20),
        echo: rtts(20),
    };
    load.in_band = rtts(200);

    load
}

fn input(phases: Vec<PhaseResult>) -> ConcludeInput {
    let link = CeilingFacts {
        link_bps: Some(1e9),
        link_payload_share: 0.9415,
        ..CeilingFacts::default()
    };
    ConcludeInput {
        target: target(),
        spec: PathSpec::default(),
        state: PathState::Complete,
        elapsed_ns: 27 * S,
        resumed: 0,
        concurrent_max: Some(0),
        probe: ProbeKind::Udp,
        phases,
        ladders: Vec::new(),
        clock: ClockFacts::default(),
        ceiling_down: link,
        ceiling_up: link,
        absent: Vec::new(),
    }
}

fn usual() -> ConcludeInput {
    let down = load_phase(PhaseKind::Down, 200 * S, 100);
    let up = load_phase(PhaseKind::Up, 300 * S, 90);
    input(vec![idle_phase(), down, up])
}

fn load_of(report: &PathReport, kind: PhaseKind) -> &LoadPhase {
    report
        .phases
        .iter()
        .find(|phase| phase.kind == kind)
        .expect("a load")
}

fn is_near(found: Option<f64>, expected: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() <= 1e-3 * expected)
}

#[test]
fn rates_count_in_the_window_at_the_receiver() {
    let report = conclude(&usual());
    let down = load_of(&report, PhaseKind::Down);
    assert!(
        is_near(down.down_bps, 95e6) && down.up_bps.is_none(),
        "{:?}",
        down.down_bps
    );

    // Half a second at half the rate and one at the whole: (0.25 + 1) / 1.5 of 95 Mbit/s.
    assert!(
        is_near(down.single_stream_bps, 95e6 * 1.25 / 1.5),
        "{:?}",
        down.single_stream_bps
    );
    let up = load_of(&report, PhaseKind::Up);
    assert!(is_near(up.up_bps, 19e6) && up.down_bps.is_none());

    let ceiling = down.ceiling.as_ref().expect("a ceiling");
    assert_eq!(
        (ceiling.rate_bps.round(), ceiling.by.as_str()),
        (941_500_000.0, "link")
    );
    assert_eq!((down.confidence, down.streams), (Confidence::High, 4));
    assert_eq!(down.cpu_cores, Some((0.5, None)));

    // 95 Mbit/s for 5.5 s.
    assert_eq!(report.bytes_received, 65_312_500);
}

/// A receiver that waits for a lost segment hands over what arrived meanwhile at once.
#[test]
fn rate_of_a_window_that_starts_in_a_stall_is_what_the_path_carried() {
    let mut input = usual();
    let load = &mut input.phases[1];
    let start_ns = load.load.as_ref().expect("a load").window.start_ns;
    let stalled_ns = start_ns - 200 * MS..=start_ns + 100 * MS;
    let before = load
        .local
        .load
        .iter()
        .rfind(|sample| sample.at_ns < *stalled_ns.start())
        .expect("samples of the warm-up")
        .down_bytes;

    for sample in &mut load.local.load {
        if stalled_ns.contains(&sample.at_ns) {
            sample.down_bytes = before;
        }
    }

    let report = conclude(&input);
    let down_bps = load_of(&report, PhaseKind::Down).down_bps;
    assert!(is_near(down_bps, 95e6), "{down_bps:?}");
}

/// A server that never reads has what fits into its buffers.
#[test]
fn upload_that_stalls_before_the_window_has_no_rate() {
    let mut input = usual();
    let up = input.phases.iter_mut();
    let up = up
        .into_iter()
        .find(|phase| phase.spec.kind == PhaseKind::Up)
        .expect("an upload");
    let counted = up.remote.as_mut().expect("the server's counts");
    let early = counted.load.first().expect("samples").up_bytes.max(1);
    counted
        .load
        .iter_mut()
        .for_each(|sample| sample.up_bytes = early);

    let report = conclude(&input);
    assert_eq!(load_of(&report, PhaseKind::Up).up_bps, None);
    let reason = report.absent.get(names::GOODPUT).map(String::as_str);
    let expected = "no byte arrived in the part that counts";
    assert!(
        reason.is_some_and(|reason| reason.contains(expected)),
        "{:?}",
        report.absent
    );
}

#[test]
fn delays_count_in_the_window_and_queues_in_their_direction() {
    let report = conclude(&usual());
    let down = load_of(&report, PhaseKind::Down);
    let up = load_of(&report, PhaseKind::Up);
    assert_eq!(
        down.rtt.and_then(|rtt| rtt.min_ns),
        Some(112 * MS as i64),
        "the warm-up does not count"
    );
    assert_eq!(
        (down.added_p50_ns, up.added_p50_ns),
        (Some(100 * MS as i64), Some(90 * MS as i64))
    );

    let p50 = |delay: Option<Delay>| delay.and_then(|delay| delay.p50_ns).expect("a median");
    let near = |found: i64, ms: i64| (found - ms * MS as i64).abs() < 100_000;
    assert!(
        near(p50(down.queue_down), 100) && near(p50(down.queue_up), 0),
        "{down:?}"
    );
    assert!(
        near(p50(up.queue_up), 90) && near(p50(up.queue_down), 0),
        "{up:?}"
    );
    assert_eq!(down.rtt_series.first(), Some(&(0, Some(12 * MS as i64))));
}

#[test]
fn responsiveness_and_scores_follow() {
    let report = conclude(&usual());
    let down = load_of(&report, PhaseKind::Down);
    assert_eq!(
        (down.rpm, down.rpm_foreign, down.rpm_self),
        (Some(1650.0), Some(3000.0), Some(300.0))
    );
    assert!(is_near(down.rpm_mean_rtt, 545.45));
    assert_eq!(down.deviations, ["native-echo"]);

    let idle = report.idle.as_ref().expect("an idle phase");
    assert_eq!((idle.rpm, idle.jitter_ns), (Some(5000.0), Some(0)));
    let grade = report.grade.as_ref().expect("a grade");
    assert_eq!(
        (grade.letter.as_str(), grade.added_ns),
        ("C", 100 * MS as i64)
    );

    // 6 + 20 + 25 ms, and 56 + 20 + 25 ms: X = 0.0144, Idd = 0.
    let voice = report.voice.expect("scores");
    assert!(
        is_near(voice.idle_mos, 4.409) && is_near(voice.loaded_mos, 4.409),
        "{voice:?}"
    );
    assert!(report.absent.is_empty(), "{:?}", report.absent);
}

#[test]
fn clocks_are_compared_over_all_phases() {
    let clock = conclude(&usual()).clock.expect("a clock");
    assert_eq!(clock.method, ClockMethod::Exchange);
    assert!(
        clock.offset_ns.abs_diff(OFFSET_NS as i64) <= clock.error_ns && clock.error_ns < 6_100_000,
        "{clock:?}"
    );
}

#[test]
fn counts_of_the_server_above_what_was_sent_are_no_figure() {
    let mut input = usual();
    let up = &mut input.phases[2];
    let moved = StreamTotals {
        direction: Some(PathDirection::Up),
        bytes: 13_000_000,
        ..StreamTotals::default()
    };
    up.local.streams = vec![moved];

    let remote = up.remote.as_mut().expect("the other end");
    remote.load.last_mut().expect("samples").up_bytes = 14_000_000;
    let report = conclude(&input);
    assert_eq!(load_of(&report, PhaseKind::Up).up_bps, None);

    let reason = report.absent.get(names::GOODPUT).map(String::as_str);
    // This end's kernel confirms 19 Mbit/s for 5.5 s, 13,062,500 bytes.
    assert_eq!(
        reason,
        Some("up: implausible: 14000000 B received against 13062500 B sent")
    );
}

#[test]
fn subflows_are_those_of_the_senders_and_their_retransmissions_count() {
    let row = |stream: u32, retransmits| SubflowRow {
        stream,
        bytes: 1,
        share: 1.0,
        rtt_us: 1,
        retransmits,
        ..SubflowRow::default()
    };
    let mut input = usual();
    let both = &mut input.phases[2];
    both.spec.kind = PhaseKind::Both;

    let stream = |stream, direction| StreamTotals {
        stream,
        direction: Some(direction),
        ..StreamTotals::default()
    };
    let streams = vec![stream(0, PathDirection::Down), stream(1, PathDirection::Up)];
    (both.local.streams, both.local.subflows) =
        (streams.clone(), vec![row(0, 5), row(1, 6), row(1, 7)]);

    let remote = both.remote.as_mut().expect("the other end");
    (remote.streams, remote.subflows) = (streams, vec![row(0, 8), row(1, 9)]);
    let report = conclude(&input);
    let both = load_of(&report, PhaseKind::Both);
    let rows: Vec<_> = both
        .subflows
        .iter()
        .map(|row| (row.stream, row.retransmits))
        .collect();
    assert_eq!(rows, [(0, 8), (1, 6), (1, 7)]);
    assert_eq!(
        (both.down_retransmits, both.up_retransmits),
        (Some(8), Some(13))
    );
}

#[test]
fn rates_of_the_server_above_the_link_are_no_figure_unless_this_end_confirms_them() {
    let mut input = usual();
    input.ceiling_up.link_bps = Some(10e6);
    assert!(
        conclude(&input).absent.is_empty(),
        "this end's kernel confirms the rate"
    );
    input.phases[2].local.load.clear();

    let report = conclude(&input);
    assert_eq!(load_of(&report, PhaseKind::Up).up_bps, None);
    let reason = report.absent.get(names::GOODPUT).map(String::as_str);
    assert_eq!(
        reason,
        Some("up: implausible: 19.0 Mbit/s against a link of 10.0 Mbit/s")
    );
}

#[test]
fn replies_with_impossible_or_contradicting_times_are_ignored_and_counted() {
    let mut input = usual();
    let clean = conclude(&input);
    let down = &mut input.phases[1].udp;

    // Left before it arrived; longer at the other end than away; a second off.
    let (mut before, mut longer, mut off) = (down[700], down[701], down[702]);
    before.peer_sent_ns = before.peer_received_ns.map(|ns| ns - 1);
    longer.peer_sent_ns = longer.peer_received_ns.map(|ns| ns + S);
    off.peer_received_ns = off.peer_received_ns.map(|ns| ns - S);
    off.peer_sent_ns = off.peer_sent_ns.map(|ns| ns - S);
    down.extend([before, longer, off]);

    let report = conclude(&input);
    let reason = report.absent.get(names::PROBES).map(String::as_str);
    let expected = "3 replies are ignored: their times are impossible or contradict the others";
    assert_eq!(reason, Some(expected));

    let (found, expected) = (
        load_of(&report, PhaseKind::Down),
        load_of(&clean, PhaseKind::Down),
    );
    assert_eq!(
        (found.queue_up, found.queue_down),
        (expected.queue_up, expected.queue_down)
    );
    assert_eq!(
        found.rtt.map(|rtt| rtt.min_ns),
        expected.rtt.map(|rtt| rtt.min_ns)
    );
    assert_eq!(report.clock, clean.clock);
}

#[test]
fn a_stock_server_leaves_reasons_behind() {
    let mut input = usual();
    input.target.dialect = Dialect::Iperf3;
    input.probe = ProbeKind::Icmp;
    input.absent = vec![(
        names::ONE_WAY_DELAY.to_owned(),
        names::IPERF3_ONLY.to_owned(),
    )];

    for phase in &mut input.phases {
        phase.remote = None;
        phase.foreign = ConcurrentProbes::default();
        phase.in_band.clear();

        let rtts = phase
            .udp
            .iter()
            .map(|sample| plain(sample.sent_ns, sample.rtt_ns().unwrap_or_default() as u64));
        phase.udp = rtts.collect();
    }

    let report = conclude(&input);
    assert_eq!(
        report.absent.get(names::ONE_WAY_DELAY).map(String::as_str),
        Some(names::IPERF3_ONLY)
    );
    assert_eq!(
        report
            .grade
            .as_ref()
            .map(|grade| (grade.letter.as_str(), grade.probe)),
        Some(("C", ProbeKind::Icmp))
    );

    let up = load_of(&report, PhaseKind::Up);
    assert!(is_near(up.up_bps, 19e6) && up.deviations.contains(&"acknowledged-bytes".to_owned()));
    assert_eq!(
        report.absent.get(names::RESPONSIVENESS).map(String::as_str),
        Some("no complete probe over a new connection"),
        "of all phases"
    );
    assert!(report.clock.is_none() && report.voice.is_some());
}

#[test]
fn other_tests_and_failures_lower_confidence() {
    let mut input = usual();
    input.concurrent_max = Some(2);
    input.phases[1].local.notes = vec!["stream 3: connection reset by peer".to_owned()];

    let report = conclude(&input);
    let down = load_of(&report, PhaseKind::Down);
    assert_eq!(down.confidence, Confidence::Medium);
    assert!(
        ["concurrent-tests", "stream 3: connection reset by peer"]
            .iter()
            .all(|one| down.deviations.iter().any(|d| d == one))
    );
}

#[test]
fn datagrams_have_their_rate_with_headers_and_their_losses_by_place() {
    let mut paced = phase(PhaseKind::Datagrams, 400 * S);
    paced.spec = PhaseSpec {
        direction: Some(PathDirection::Up),
        datagram_bytes: 1400,
        ..paced.spec
    };
    paced.local = EndpointPhase {
        elapsed_ns: S,
        datagrams_sent: 800,
        qdisc_drops: Some(0),
        ..EndpointPhase::default()
    };

    let there = EndpointPhase {
        elapsed_ns: S,
        datagrams_received: 784,
        reordered: 98,
        socket_drops: Some(6),
        ..EndpointPhase::default()
    };
    paced.remote = Some(there);
    let report = conclude(&input(vec![paced.clone()]));
    let up = report.datagrams.first().expect("datagrams");

    // 1448 bytes of an IPv6 packet, 800 and 784 of them in a second.
    assert_eq!((up.sent_bps, up.received_bps), (9_267_200.0, 9_081_856.0));
    assert_eq!(
        (up.loss.network, up.loss.socket, up.reordered_share),
        (10, Some(6), 0.125)
    );
    paced
        .remote
        .as_mut()
        .expect("the other end")
        .datagrams_received = 801;

    let report = conclude(&input(vec![paced]));
    let reason = report.absent.get(names::DATAGRAMS).map(String::as_str);
    assert_eq!(
        reason,
        Some("up: implausible: 801 datagrams received against 800 sent")
    );
    assert!(report.datagrams.is_empty());
}

#[test]
fn sizes_marks_and_transactions_are_taken_over() {
    let mut size = phase(PhaseKind::Size, S);
    let mtu = |mtu| SizeResult {
        mtu,
        reported_by: None,
        how: SizeSignal::BlackHole,
    };
    size.size = vec![
        (PathDirection::Up, mtu(1400)),
        (PathDirection::Down, mtu(1500)),
    ];
    size.tos = vec![(PathDirection::Up, 184, 0), (PathDirection::Up, 2, 0)];

    let mut rr = phase(PhaseKind::Rr, 2 * S);
    rr.spec.streams_max = 1;
    rr.local.elapsed_ns = 2 * S;
    rr.local.cpu_ns = 20 * MS;
    rr.transactions = (0..1000).map(|n| plain(2 * S + n * 2 * MS, MS)).collect();

    let report = conclude(&input(vec![size, rr]));
    assert_eq!(
        (report.size.up, report.size.down),
        (Some(mtu(1400)), Some(mtu(1500)))
    );
    assert_eq!(
        report.marks.expect("marks").dscp,
        [(PathDirection::Up, 0, 0), (PathDirection::Up, 46, 0)]
    );

    let rr = report.transactions.first().expect("transactions");
    assert_eq!(
        (
            rr.per_s,
            rr.latency.p50_ns,
            rr.client_cpu_ns,
            rr.server_cpu_ns
        ),
        (500.0, Some(MS as i64), Some(20_000), None)
    );
}

/// Delays beside streams that carry nothing are not those of a load.
#[test]
fn load_without_a_byte_has_no_rate_grade_responsiveness_or_score() {
    let mut input = usual();
    for phase in &mut input.phases {
        let ends = [Some(&mut phase.local), phase.remote.as_mut()];
        for sample in ends.into_iter().flatten().flat_map(|end| &mut end.load) {
            (sample.down_bytes, sample.up_bytes) = (0, 0);
        }
    }

    let report = conclude(&input);
    for kind in [PhaseKind::Down, PhaseKind::Up] {
        let load = load_of(&report, kind);
        assert_eq!(
            (load.down_bps, load.up_bps, load.single_stream_bps, load.rpm),
            (None, None, None, None),
            "{load:?}"
        );
        assert!(
            load.rtt.is_none() && load.added_p50_ns.is_none() && load.rpm_foreign.is_none(),
            "{load:?}"
        );
    }

    assert_eq!(
        (
            report.grade,
            report.voice.and_then(|voice| voice.loaded_mos)
        ),
        (None, None)
    );
    assert_eq!(
        report.absent.get(names::GOODPUT).map(String::as_str),
        Some("no byte arrived")
    );
    assert_eq!(
        goodput_bps(&input.phases[1], PathDirection::Down),
        None,
        "no rate for the datagrams either"
    );
}

#[test]
fn nothing_measured_is_nothing_reported() {
    let report = conclude(&input(Vec::new()));
    assert!(
        report.phases.is_empty()
            && report.idle.is_none()
            && report.voice.is_none()
            && report.grade.is_none()
    );
    assert_eq!(
        (
            report.bytes_sent,
            report.bytes_received,
            report.absent.len()
        ),
        (0, 0, 0)
    );
}
