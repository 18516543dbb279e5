//! Whole reports of paths, each compared with a text that a reviewer has read.

use linerate_document::expected::assert_expected_in;
use linerate_document::{Glyphs, record};
use linerate_model::finding::Diagnosis;
use linerate_model::measure::{MeasureName, of_path};
use linerate_model::path::{
    Delay, Dialect, FinishedPhase, LoadSample, LossByPlace, PathReport, PathState, PhaseKind,
    ProbeKind, SizeSignal, absent,
};
use linerate_model::record::{RunRecord, Way};
use serde_json::{Value, json};

use super::*;

const MS: i64 = 1_000_000;

/// Records of tests of a path alone.
const PRODUCT: record::ProductReport = record::ProductReport {
    diagnosis: linerate_doctor::report::short,
    ..RECORDS
};

/// All percentiles around a median, in ms.
fn delay(n: u64, lost: u64, p50: f64, p95: f64, p99: f64) -> Value {
    let ns = |ms: f64| (ms * MS as f64) as i64;
    json!({"n": n, "lost": lost, "min_ns": ns(p50 * 0.9), "mean_ns": ns(p50), "trimmed_mean_ns": ns(p50), "p50_ns": ns(p50),
        "p90_ns": ns(p50.midpoint(p95)), "p95_ns": ns(p95), "p99_ns": ns(p99), "max_ns": ns(p99 * 1.1)})
}

fn with(mut value: Value, more: Value) -> Value {
    if let (Value::Object(members), Value::Object(more)) = (&mut value, more) {
        members.extend(more);
    }
    value
}

fn load(kind: &str, rtt: &Value, added_ms: f64, more: Value) -> Value {
    let load = json!({"kind": kind, "confidence": "high", "deviations": ["native-echo"], "streams": 8, "rtt": rtt,
        "added_p50_ns": (added_ms * MS as f64) as i64});
    with(load, more)
}

fn datagrams(direction: &str, bps: f64, sent: u64) -> Value {
    let loss =
        json!({"sent": sent, "received": sent, "sender": 0, "network": 0, "nic": 0, "socket": 0});
    json!({"kind": "datagrams", "direction": direction, "sent_bps": bps, "received_bps": bps, "loss": loss,
        "reordered_share": 0.0, "reordering_extent": 0, "duplicate_share": 0.0, "longest_loss_burst": 0, "jitter_ns": 80_000})
}

/// A path of 100 and 20 Mbit/s with queues of 100 ms.
fn full() -> PathReport {
    let stream = json!({"stream": 0, "direction": "up", "bytes": 9_550_000, "local": "192.0.2.1:40000", "remote": "192.0.2.7:5201",
        "tcp": {"retransmits": 12, "snd_cwnd_bytes": 291_000, "rtt_us": 108_100, "rttvar_us": 900, "pmtu_bytes": 1500,
            "mss_bytes": 1448, "min_rtt_us": 12_400}, "congestion": "cubic"});
    let link = json!({"rate_bps": 941.5e6, "by": "link"});

    let phases = [
        load(
            "down",
            &delay(1589, 11, 112.0, 112.9, 113.6),
            99.6,
            json!({"down_bps": 95.5e6, "single_stream_bps": 94.8e6,
            "ceiling": link, "rpm": 517.2, "rpm_foreign": 530.4, "rpm_self": 504.0, "rpm_mean_rtt": 511.0,
            "tcp": delay(78, 2, 113.0, 114.0, 115.0), "tls": delay(78, 2, 113.6, 114.4, 115.2),
            "echo": delay(78, 2, 112.9, 114.0, 115.0), "in_band": delay(400, 0, 119.0, 121.0, 124.0),
            "queue_down": delay(1589, 11, 99.4, 100.2, 101.0), "queue_up": delay(1589, 11, 0.31, 0.4, 0.5),
            "cpu_cores": [0.31, 0.28], "down_retransmits": 40}),
        ),
        load(
            "up",
            &delay(1590, 10, 108.0, 110.2, 111.5),
            95.6,
            json!({"up_bps": 19.1e6, "single_stream_bps": 19.0e6,
            "ceiling": link, "rpm": 522.0, "rpm_foreign": 548.0, "rpm_self": 496.0, "up_retransmits": 12,
            "queue_up": delay(1590, 10, 95.3, 97.0, 98.0), "stream_info": [stream]}),
        ),
        load(
            "both",
            &delay(980, 20, 204.0, 214.7, 219.0),
            191.6,
            json!({"down_bps": 94.1e6, "up_bps": 18.7e6, "rpm": 283.0,
            "confidence": "medium"}),
        ),
    ];
    let report = json!({
        "schema": "linerate.path/1", "state": "complete", "profile": "default", "elapsed_ns": 27_000_000_000_u64,
        "bytes_sent": 36_000_000, "bytes_received": 157_000_000, "concurrent_max": 0, "resumed": 1,
        "target": {"host": "lab.example", "port": 5201, "address": "10.1.2.3", "family": "ipv4", "dialect": "native",
            "program": "linerate 0.9", "identity": "known", "fingerprint": "sha256:Q2f0cmVkYWN0ZWQ", "connect_ns": 12_300_000},
        "clock": {"method": "exchange", "offset_ns": -1_200_000, "error_ns": 6_100_000, "skew_ppb": 210},
        "size": {"up": {"mtu": 1500, "how": "unlimited"}, "down": {"mtu": 1500, "how": "unlimited"}},
        "marks": {"dscp": [["down", 46, 46], ["up", 46, 46]], "ecn": [["down", "kept"], ["up", "kept"]]},
        "idle": {"rtt": delay(400, 0, 12.4, 13.1, 14.0),
            "one_way_up": with(delay(400, 0, 6.1, 6.5, 6.9), json!({"error_ns": 6_100_000})),
            "one_way_down": with(delay(400, 0, 6.3, 6.6, 7.1), json!({"error_ns": 6_100_000})),
            "jitter_ns": 90_000, "rpm": 4810.0},
        "phases": phases,
        "datagrams": [datagrams("down", 47.8e6, 4121), datagrams("up", 9.6e6, 828)],
        "grade": {"letter": "C", "added_ns": 97_600_000, "probe": "udp"},
        "voice": {"idle_mos": 4.4, "loaded_mos": 4.3},
        "absent": {},
    });
    let mut report: PathReport = serde_json::from_value(report).expect("a report");
    for phase in &mut report.phases {
        let sample = |tenth: u64| {
            let bytes = |bps: Option<f64>| (bps.unwrap_or_default() / 80.0) as u64 * tenth;
            let (down_bytes, up_bytes) = (bytes(phase.down_bps), bytes(phase.up_bps));
            LoadSample {
                at_ns: tenth * 100_000_000,
                down_bytes,
                up_bytes,
                streams: 4,
            }
        };
        phase.series = (0..=80).map(sample).collect();
        phase.rtt_series = (0..160)
            .map(|at| (at * 50_000_000, (at % 40 != 7).then_some(110 * MS)))
            .collect();
    }

    report
}

/// Diagnosis of the queues of the path.
fn diagnosis() -> Diagnosis {
    let diagnosis = json!({
        "schema": "linerate.doctor/1",
        "hosts": ["client", "server"],
        "verdict": {"verdict": "path", "confidence": "high",
            "sentence": "the narrowest hop of the path sets the rate (PATH-09 on client test, \
                         server to client)"},
        "findings": [{"id": "PATH-09", "severity": "medium", "confidence": "high", "subject": "client test, server to client",
            "title": "A hop of the path sets the rate",
            "evidence": [{"fact": "run.0.received_bps", "value": "95500000", "threshold": "below both links"},
                {"fact": "run.0.rtt_us", "value": "112000", "threshold": "above the RTT without load"}],
            "explanation": "The rate is steady and both hosts are idle.", "remedy": [], "undo": [],
            "advice": "fq_codel or cake at 95 % of 95/19 Mbit/s on the router", "reference": "tc-fq_codel(8)"}],
        "ruled_out": [],
        "not_evaluated": [],
    });
    serde_json::from_value(diagnosis).expect("a diagnosis")
}

/// A record of one test.
fn record(report: &PathReport, diagnosis: Option<&Diagnosis>) -> RunRecord {
    let trial = json!({"no": 0, "state": "complete", "started_ns": 0, "elapsed_ns": report.elapsed_ns, "measures": of_path(report),
        "detail": {"path": report}});
    let record = json!({
        "schema": "linerate.run/1", "run_id": "01890a5d-ac96-774b-bcce-b302099a8057", "kind": "test", "state": "complete",
        "started_at": "2026-01-31T12:00:00.000Z", "started_unix_ms": 0, "elapsed_ns": report.elapsed_ns,
        "origin": {"tool": "linerate", "argv": ["linerate", "test", "lab.example"]}, "path": {"key": "", "spec_key": ""},
        "trials": [trial], "body": "test", "diagnosis": diagnosis,
    });
    serde_json::from_value(record).expect("a record")
}

/// Report of the same path with a server that is only iperf3.
fn against_iperf3() -> PathReport {
    let mut report = full();
    report.target.dialect = Dialect::Iperf3;
    report.target.program = Some("iperf3 3.12".to_owned());
    (
        report.target.fingerprint,
        report.clock,
        report.concurrent_max,
        report.resumed,
    ) = (None, None, None, 0);
    report.size.down = None;
    report.size.up.as_mut().expect("measured").how = SizeSignal::Reported;
    report.size.up.as_mut().expect("measured").mtu = 1400;

    let idle = report.idle.as_mut().expect("measured");
    (idle.one_way_up, idle.one_way_down, idle.rpm) = (None, None, None);

    for phase in &mut report.phases {
        (
            phase.rpm,
            phase.rpm_foreign,
            phase.rpm_self,
            phase.rpm_mean_rtt,
        ) = (None, None, None, None);
        (phase.tcp, phase.tls, phase.echo, phase.in_band) = (None, None, None, None);
        (phase.queue_up, phase.queue_down, phase.down_retransmits) = (None, None, None);
    }

    report.grade.as_mut().expect("graded").probe = ProbeKind::Icmp;
    let lacking = [
        absent::RESPONSIVENESS,
        absent::IN_BAND,
        absent::ONE_WAY_DELAY,
        absent::SERVER_RTT,
        absent::LOSS_BY_PLACE,
        absent::SERVER_FACTS,
        absent::MTU_DOWN,
        absent::UDP_TOKENS,
        absent::RESUME,
    ];

    let reason = "the server speaks iperf3 only".to_owned();
    report.absent = lacking
        .into_iter()
        .map(|what| (what.to_owned(), reason.clone()))
        .collect();
    report
}

/// Ended by the user within the load from the server.
fn interrupted() -> PathReport {
    let mut report = full();
    report.state = PathState::Partial;
    report.elapsed_ns = 6_200_000_000;
    report.phases.truncate(1);
    report.phases[0].confidence = linerate_model::path::Confidence::Low;
    report.datagrams.clear();
    (report.grade, report.voice) = (None, None);

    for phase in [PhaseKind::Up, PhaseKind::Both, PhaseKind::Datagrams] {
        report.absent.insert(
            phase.name().to_owned(),
            "the user ended the test".to_owned(),
        );
    }

    report
}

/// Rates and delays multiplied, with the grade of these delays.
fn scaled(rates: f64, delays: f64, letter: &str) -> PathReport {
    let mut report = full();
    let ns = |ns: &mut Option<i64>| *ns = ns.map(|ns| (ns as f64 * delays) as i64);

    let all = |delay: &mut Option<Delay>| {
        if let Some(delay) = delay {
            let all = [
                &mut delay.min_ns,
                &mut delay.p50_ns,
                &mut delay.p95_ns,
                &mut delay.p99_ns,
                &mut delay.max_ns,
            ];
            all.into_iter().for_each(ns);
        }
    };
    let bps = |bps: &mut Option<f64>| *bps = bps.map(|bps| bps * rates);
    let rpm = |rpm: &mut Option<f64>| *rpm = rpm.map(|rpm| rpm / delays);

    for phase in &mut report.phases {
        [
            &mut phase.down_bps,
            &mut phase.up_bps,
            &mut phase.single_stream_bps,
        ]
        .into_iter()
        .for_each(bps);
        [&mut phase.rpm, &mut phase.rpm_foreign, &mut phase.rpm_self]
            .into_iter()
            .for_each(rpm);
        [&mut phase.rtt, &mut phase.queue_up, &mut phase.queue_down]
            .into_iter()
            .for_each(all);
        ns(&mut phase.added_p50_ns);

        if let Some(ceiling) = &mut phase.ceiling {
            ceiling.rate_bps *= rates;
        }
    }

    for datagrams in &mut report.datagrams {
        datagrams.received_bps *= rates;
    }

    all(&mut report.idle.as_mut().expect("measured").rtt);
    let grade = report.grade.as_mut().expect("graded");
    (grade.letter, grade.added_ns) = (letter.to_owned(), (grade.added_ns as f64 * delays) as i64);
    report
}

#[test]
fn reports_are_those_that_were_reviewed() {
    let found = diagnosis();
    let mut lossy = full();
    let down = &mut lossy.datagrams[0];
    (
        down.loss.received,
        down.loss.network,
        down.loss.nic,
        down.loss.socket,
    ) = (4000, 90, Some(11), Some(20));
    down.loss.exact = vec!["sender".to_owned(), "socket".to_owned()];
    (
        down.reordered_share,
        down.reordering_extent,
        down.duplicate_share,
    ) = (0.001, Some(3), Some(0.0002));
    lossy.size.up.as_mut().expect("measured").how = SizeSignal::BlackHole;
    lossy.size.up.as_mut().expect("measured").mtu = 1400;
    lossy.marks.as_mut().expect("measured").dscp[0].2 = 0;
    lossy.concurrent_max = Some(2);

    let mut six = full();
    (six.target.host, six.target.address) = ("2001:db8::7".to_owned(), "2001:db8::7".to_owned());

    let rows = [
        ("full.txt", full(), Some(&found), false),
        ("verbose.txt", full(), Some(&found), true),
        ("iperf3.txt", against_iperf3(), None, false),
        ("interrupted.txt", interrupted(), None, false),
        ("huge.txt", scaled(1047.0, 0.0001, "A+"), None, false),
        ("tiny.txt", scaled(0.000_503, 10.0, "F"), None, false),
        ("lossy.txt", lossy, None, false),
        ("ipv6.txt", six, None, false),
    ];
    for (name, report, diagnosis, verbose) in rows {
        let shown = text(&report, diagnosis, verbose, Style::PLAIN);
        assert!(
            shown.lines().all(|line| line.chars().count() <= 120),
            "{shown}"
        );
        assert_expected_in(env!("CARGO_MANIFEST_DIR"), &format!("path/{name}"), &shown);
        fits_a_small_terminal(&report);
    }
}

/// Without a diagnosis, with a limit, and with more findings beside it.
fn fits_a_small_terminal(report: &PathReport) {
    let limit = diagnosis();
    let mut several = limit.clone();
    let first = several.findings[0].clone();
    several.findings[0].remedy = ["one", "two"].map(str::to_owned).to_vec();
    several
        .findings
        .extend(["server eth0", "client eth1"].map(|subject| {
            let mut finding = first.clone();
            (finding.id, finding.subject) = (format!("NIC on {subject}"), subject.to_owned());
            finding.title = "The ring of the interface overflows and can grow".to_owned();
            finding
        }));

    for diagnosis in [None, Some(&limit), Some(&several)] {
        let shown = text(report, diagnosis, false, Style::PLAIN);
        let count = shown.lines().count();
        assert!(count <= 15, "{count} lines: {shown}");
        assert!(
            shown.lines().all(|line| line.chars().count() <= 80),
            "{shown}"
        );
        for label in ["\nLimit  ", "\nDo  "] {
            assert_eq!(shown.contains(label), diagnosis.is_some(), "{shown}");
        }
        assert!(shown.contains("\nDetails  "), "{shown}");
    }
}

#[test]
fn a_report_without_any_result_says_so() {
    let empty = json!({
        "schema": "linerate.path/1", "state": "partial", "profile": "quick", "elapsed_ns": 900_000_000, "bytes_sent": 0,
        "bytes_received": 0, "resumed": 0,
        "target": {"host": "a", "port": 1, "address": "192.0.2.1", "family": "ipv4", "dialect": "native", "identity": "unproven"},
    });
    let report: PathReport = serde_json::from_value(empty).expect("a report");
    let shown = text(&report, None, true, Style::PLAIN);
    assert!(shown.starts_with("a:1  incomplete  no result\n"), "{shown}");
    assert!(!html(&record(&report, None)).contains("<svg"));
    assert_eq!(of_path(&report), []);
}

#[test]
fn a_page_has_the_answer_one_timeline_and_the_rest_folded() {
    let page = html(&record(&full(), Some(&diagnosis())));
    let parts = [
        "<p class=\"verdict\">The narrowest hop",
        ">95.5 <span class=\"unit\">Mbit/s</span>",
        "card badge poor",
        "<ol class=\"route\">",
        "<figcaption>Over time",
        "<figcaption>Latency",
        "<h2>Why</h2>",
        "<h2>Details</h2>",
        "<summary>Delays",
        "linerate test lab.example",
    ];
    let places = parts.map(|part| {
        page.find(part)
            .unwrap_or_else(|| panic!("no {part} in {page}"))
    });
    assert!(places.is_sorted(), "{places:?}");
    assert_eq!(page.matches("<svg").count(), 2 * 2);

    for label in ["down", "up", "both", "idle 12.4 ms"] {
        assert!(page.contains(&format!(">{label}</text>")), "{label}");
    }
    assert!(
        !page.contains("<script") && page.len() < 150_000,
        "{}",
        page.len()
    );
}

#[test]
fn json_is_valid_by_its_schema_and_is_read_back() {
    let schema = schemars::schema_for!(PathReport).to_value();
    let validator = jsonschema::validator_for(&schema).expect("a schema");

    for report in [full(), against_iperf3(), interrupted()] {
        let text = json(&report, None, &[]);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        let errors: Vec<String> = validator
            .iter_errors(&value)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new());
        assert_eq!(
            serde_json::from_str::<PathReport>(&text).expect("a report"),
            report
        );
    }
}

/// Everything that a server may choose.
#[test]
fn text_of_a_server_acts_neither_on_a_terminal_nor_on_a_page() {
    let evil = "<script>alert(1)</script>\u{1b}[2J\u{202e}\r\n& \"x\"\u{200b}";
    let mut report = against_iperf3();
    report.target.program = Some(evil.to_owned());
    report.target.fingerprint = Some(evil.to_owned());
    report.target.address = evil.to_owned();
    report.absent.insert(evil.to_owned(), evil.to_owned());
    report.grade.as_mut().expect("graded").letter = evil.to_owned();

    let phase = &mut report.phases[0];
    phase.deviations = vec![evil.to_owned()];
    phase.ceiling.as_mut().expect("known").by = evil.to_owned();

    let stream = linerate_model::path::StreamTotals {
        congestion: Some(evil.to_owned()),
        ..linerate_model::path::StreamTotals::default()
    };
    phase.stream_info = vec![stream];

    let coloured = Style {
        is_coloured: false,
        glyphs: Glyphs::Blocks,
        ..Style::PLAIN
    };
    let shown = text(&report, None, true, coloured);
    let page = html(&record(&report, None));

    for c in ['\u{1b}', '\u{202e}', '\u{200b}', '\r'] {
        assert!(!shown.contains(c) && !page.contains(c), "{c:?}");
    }

    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    let now = FinishedPhase::Failed {
        kind: PhaseKind::Down,
        reason: evil,
    };
    assert_eq!(finished_line(now, Style::PLAIN).lines().count(), 1);
}

/// A record is the same report in the frame of all records, and has no name of a host when it is
/// made anonymous.
#[test]
fn a_stored_test_is_shown_as_when_it_ended() {
    let report = full();
    let record = record(&report, None);
    let shown = record::text(std::slice::from_ref(&record), PRODUCT, Style::PLAIN);
    assert!(
        shown.starts_with("path test, profile default\n  19.1 Mbit/s up\n"),
        "{shown}"
    );
    assert_eq!(shown.matches("latency  ").count(), 1);

    let own = text(&report, None, false, Style::PLAIN);
    for line in own.lines().skip(1) {
        assert!(shown.contains(line), "{line}");
    }

    let page = record::html(
        std::slice::from_ref(&record),
        record::TimeRange::default(),
        PRODUCT,
    );
    assert!(page.contains("<figcaption>Over time") && !page.contains("No charts"));
    let anonymous = record::anonymized(&record);
    let shown = record::text(&[anonymous], PRODUCT, Style::PLAIN);

    for secret in ["lab.example", "10.1.2.3", "sha256:"] {
        assert!(!shown.contains(secret), "{secret}: {shown}");
    }
}

#[test]
fn measures_are_those_of_the_report() {
    let measures = of_path(&full());
    let value = |name, way| {
        measures
            .iter()
            .find(|m| (m.name, m.way) == (name, way))
            .map(|measure| measure.value)
    };

    use MeasureName as M;

    let rows = [
        (M::ReceivedBps, Way::Reverse, Some(95.5e6)),
        (M::ReceivedBps, Way::Forward, Some(19.1e6)),
        (M::ReceivedBps, Way::Sum, None),
        (M::BothReceivedBps, Way::Reverse, Some(94.1e6)),
        (M::BothReceivedBps, Way::Forward, Some(18.7e6)),
        (M::IdleRttP50Ns, Way::Sum, Some(12.4e6)),
        (M::LoadedRttP99Ns, Way::Reverse, Some(113.6e6)),
        (M::LoadedRttP99Ns, Way::Forward, Some(111.5e6)),
        (M::LoadedRttP99Ns, Way::Sum, Some(219e6)),
        (M::AddedRttNs, Way::Reverse, Some(99.6e6)),
        (M::ResponsivenessRpm, Way::Forward, Some(522.0)),
        // C is the third from below: F, D, C.
        (M::BufferbloatGrade, Way::Sum, Some(2.0)),
        (M::LoadedMos, Way::Sum, Some(4.3)),
        (M::LostShare, Way::Reverse, Some(0.0)),
        (M::ReorderedShare, Way::Forward, Some(0.0)),
        (M::JitterNs, Way::Forward, Some(80_000.0)),
        (M::JitterNs, Way::Sum, Some(90_000.0)),
        (M::Retransmits, Way::Forward, Some(12.0)),
        (M::Retransmits, Way::Reverse, Some(40.0)),
        (M::Retransmits, Way::Sum, None),
        (M::MtuBytes, Way::Forward, Some(1500.0)),
        (M::Confidence, Way::Sum, Some(1.0)),
        (M::Confidence, Way::Reverse, Some(2.0)),
        (M::ConcurrentTests, Way::Sum, Some(0.0)),
        (M::CpuServerCores, Way::Reverse, Some(0.28)),
        (M::OneWayP50Ns, Way::Forward, Some(6.1e6)),
    ];
    for (name, way, expected) in rows {
        assert_eq!(value(name, way), expected, "{name} {way:?}");
    }

    assert!(measures.is_sorted_by_key(|measure| (measure.name as usize, measure.way)));
}

#[test]
fn progress_is_one_line_that_fits_the_terminal() {
    let now = PhaseProgress {
        kind: PhaseKind::Down,
        number: 4,
        count: 7,
        elapsed_ns: 5_200_000_000,
        planned_ns: 8_000_000_000,
        rates_bps: vec![10e6, 50e6, 95.4e6, 95.4e6],
        rtts_ns: vec![12 * MS, 112 * MS],
        streams: 4,
    };
    let blocks = Style {
        glyphs: Glyphs::Blocks,
        ..Style::PLAIN
    };
    let whole = "down 4/7 [=======>  ] 3 s left   95.4 Mbit/s ▂▅██   RTT  112 ms ▂█   4 streams";
    assert_eq!(live(&now, blocks), whole);
    assert_eq!(
        live(
            &now,
            Style {
                columns: 30,
                ..blocks
            }
        )
        .chars()
        .count(),
        29
    );

    let first = PhaseProgress {
        rates_bps: Vec::new(),
        rtts_ns: Vec::new(),
        streams: 0,
        ..now
    };
    let first = PhaseProgress {
        kind: PhaseKind::Idle,
        elapsed_ns: 0,
        planned_ns: 0,
        ..first
    };
    assert_eq!(live(&first, Style::PLAIN), "idle 4/7 [>         ] 0 s left");
}

#[test]
fn a_finished_phase_is_one_line() {
    let report = full();
    let rows = [
        (
            FinishedPhase::Size(&report.size),
            "size: MTU 1500 bytes or more both ways",
        ),
        (
            FinishedPhase::Idle(report.idle.as_ref().expect("measured")),
            "idle: RTT p50 12.4 ms, 0 of 400 lost",
        ),
        (
            FinishedPhase::Load(&report.phases[2]),
            "both: 94.1 + 18.7 Mbit/s, RTT p50 204 ms (+192 ms), 283 RPM, 8 streams, confidence \
             medium",
        ),
        (
            FinishedPhase::Datagrams(&report.datagrams[1]),
            "up 9.60 Mbit/s: 0 of 828 lost, 0 reordered, jitter 80.0 us",
        ),
        (
            FinishedPhase::Failed {
                kind: PhaseKind::Up,
                reason: "connection reset",
            },
            "up: failed: connection reset",
        ),
    ];
    for (finished, line) in rows {
        assert_eq!(finished_line(finished, Style::PLAIN), format!("{line}\n"));
    }

    assert_eq!(
        announcement(230 << 20, 27.0),
        "at this rate up to 230 MiB in 0:27"
    );
}

/// A server of iperf3 counts at no place, and the client's host not for this test.
#[test]
fn loss_without_a_counter_has_no_place() {
    let mut report = full();
    report.datagrams[0].loss = LossByPlace {
        sent: 4121,
        received: 4000,
        network: 121,
        ..LossByPlace::default()
    };

    let short = text(&report, None, false, Style::PLAIN);
    assert!(
        short.contains("datagrams down: 121 of 4121 (2.94 %)\n"),
        "{short}"
    );
    let long = text(&report, None, true, Style::PLAIN);
    assert!(!long.contains("lost by place"), "{long}");
}
