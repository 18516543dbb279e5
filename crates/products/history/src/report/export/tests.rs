//! Goal: other programs read the values of a record. Method: the same runs in every form, compared
//! with reviewed texts, which `make live SUITE=exporters` gives to the programs they are for.

use std::collections::BTreeMap;
use std::time::Duration;

use linerate_document::pretty_json;
use linerate_model::Transport;
use linerate_model::finding::Diagnosis;
use linerate_model::measure::MeasureName::{self, *};
use linerate_model::record::{
    Body, Detail, Measure, RunId, RunKind, RunRecord, RunState, Series, SeriesOf, TestDetail,
    Times, Trial, Way,
};
use serde_json::json;

use super::{csv, markdown, otlp, prometheus};
use crate::report::assert_expected;

fn trial(no: u32, transport: Option<Transport>, measures: &[(MeasureName, Way, f64)]) -> Trial {
    let measure = |(name, way, value): &(MeasureName, Way, f64)| Measure::new(*name, *way, *value);
    let mut trial = Trial::complete(10_000_000_000);
    trial.no = no;
    trial.repeat = no;
    trial.factors = BTreeMap::new();
    trial.started_ns = u64::from(no) * 11_000_000_000;
    trial.measures = measures.iter().map(measure).collect();
    trial.detail = transport.map(|transport| Detail::Test(Box::new(detail(transport))));

    trial
}

fn detail(transport: Transport) -> TestDetail {
    let mut detail = TestDetail::default();
    detail.header.peer_host = "192.0.2.7".to_owned();
    detail.header.peer_port = 5201;
    detail.header.cookie = "c".repeat(36);
    detail.header.spec.transport = transport;
    detail.header.interval = Some(Duration::from_secs(1));
    detail
}

fn run(
    number: u8,
    kind: RunKind,
    path: (&str, &str),
    title: &str,
    trials: Vec<Trial>,
) -> RunRecord {
    let started_unix_ms = 1_780_000_000_000 + u64::from(number) * 300_000;
    let mut record = RunRecord::new(
        RunId::new(started_unix_ms, [number; 10]),
        kind,
        Body::Test,
        format!("2026-05-28T20:{:02}:40.000Z", 26 + 5 * number),
        started_unix_ms,
    );
    record.state = RunState::Complete;
    record.title = Some(title.to_owned());
    record.elapsed_ns = 21_000_000_000;
    record.path.key = format!("{}-{}", path.0, path.1);
    record.path.spec_key = "3fa9c1d200".to_owned();
    record.path.client = Some(path.0.to_owned());
    record.path.server = Some(path.1.to_owned());
    record.trials = trials;
    record.labels = BTreeMap::new();

    record
}

fn diagnosis() -> Diagnosis {
    let finding = json!({
        "id": "NIC-01", "severity": "high", "confidence": "high", "subject": "a.example eth0", "title": "t", "evidence": [],
        "explanation": "e", "remedy": [], "undo": [], "reference": "r",
    });
    let diagnosis = json!({
        "schema": "linerate.doctor/1", "hosts": [], "verdict": { "verdict": "unknown", "sentence": "s", "confidence": "low" },
        "findings": [finding], "ruled_out": [], "not_evaluated": [],
    });
    serde_json::from_value(diagnosis).expect("a diagnosis")
}

/// Two runs of one path, a run that failed after one that did not, a load, a run with loss, and a
/// sweep with hostile names.
fn runs() -> Vec<RunRecord> {
    let tcp = Some(Transport::Tcp);
    let rates = |no, bps| {
        trial(
            no,
            tcp,
            &[
                (ReceivedBps, Way::Forward, bps),
                (Retransmits, Way::Forward, 3.0),
                (RttMeanNs, Way::Forward, 1.25e6),
            ],
        )
    };
    let mut with_series = rates(0, 941.5e6);
    with_series.series = vec![
        Series::new(
            "bytes",
            SeriesOf::Stream(5),
            Way::Forward,
            Times::Grid {
                t0_ns: 0,
                step_ns: 1_000_000_000,
            },
            vec![Some(117_000_000.0), None],
        ),
        Series::new(
            "rtt_us",
            SeriesOf::Host("client, \"a\"".to_owned()),
            Way::Sum,
            Times::Ends {
                t0_ns: 5,
                ends_ns: vec![10, 30],
            },
            vec![Some(1.5), Some(2.0)],
        ),
    ];

    let mut warm_up = rates(2, 1e6);
    warm_up.is_warm_up = true;
    let path = ("a.example", "192.0.2.7");
    let udp_path = ("a.example", "2001:db8::7");

    let udp = [
        (ReceivedBps, Way::Reverse, 1e8),
        (LostShare, Way::Reverse, 0.0125),
        (JitterNs, Way::Reverse, 25_000.0),
    ];
    let lossy = trial(0, Some(Transport::Udp), &udp);

    let load = [
        (OkPerS, Way::Sum, 12_345.5),
        (PayloadBytesPerS, Way::Sum, 12_641_792.0),
        (LatencyP50Ns, Way::Sum, 800_000.0),
        (LatencyP99Ns, Way::Sum, 2_500_000.0),
    ];
    let mut diagnosed = run(
        1,
        RunKind::Test,
        path,
        "uplink",
        vec![with_series, rates(1, 939.5e6), warm_up],
    );
    diagnosed.diagnosis = Some(Box::new(diagnosis()));

    let mut swept = rates(0, 1e9);
    swept.factors = BTreeMap::from([("=cmd".to_owned(), "a,\"b\"".to_owned())]);
    let mut failed = run(3, RunKind::Test, udp_path, "calls", vec![]);
    failed.state = RunState::Failed;
    failed.reason = Some("unable to connect to server: Connection refused".to_owned());

    vec![
        run(0, RunKind::Test, path, "uplink", vec![rates(0, 1e6)]),
        diagnosed,
        run(
            2,
            RunKind::Test,
            udp_path,
            "calls",
            vec![trial(0, Some(Transport::Udp), &udp)],
        ),
        failed,
        run(
            4,
            RunKind::HttpLoad,
            path,
            "load",
            vec![trial(0, None, &load)],
        ),
        run(6, RunKind::Test, path, "frames", vec![lossy]),
        run(
            5,
            RunKind::Sweep,
            ("<b>", "x|y"),
            "\"quoted\" \\ \u{202e}\n[a](b) @all",
            vec![swept],
        ),
    ]
}

#[test]
fn every_form_is_as_reviewed() {
    let runs = runs();
    assert_expected("export/results.prom", &prometheus::exposition(&runs));
    assert_expected("export/measures.csv", &csv::measures(&runs));
    assert_expected("export/series.csv", &csv::series(&runs));
    assert_expected(
        "export/metrics.otlp.json",
        &pretty_json(&otlp::metrics(&runs)),
    );
    assert_expected(
        "export/traces.otlp.json",
        &pretty_json(&otlp::traces(&runs)),
    );
    assert_expected("export/runs.md", &markdown::document(&runs));
}

#[test]
fn failed_run_removes_the_values_of_the_one_before() {
    let mut runs = runs();
    let of_udp = |text: &str| {
        text.lines()
            .filter(|line| line.contains("name=\"calls\""))
            .count()
    };

    let after = prometheus::exposition(&runs);
    assert_eq!(of_udp(&after), 3, "success, time and duration: {after}");
    assert!(after.contains("linerate_test_success{client=\"a.example\",server=\"2001:db8::7\",protocol=\"udp\",name=\"calls\",spec=\"3fa9c1d2\"} 0\n"));
    runs.remove(3);
    assert_eq!(
        of_udp(&prometheus::exposition(&runs)),
        8,
        "and its values and the states of a change"
    );
}

#[test]
fn label_sets_are_bounded_and_the_others_are_added_up() {
    let one = |number: u32| {
        let mut one = run(1, RunKind::Test, ("a", &number.to_string()), "", vec![]);
        one.started_unix_ms += u64::from(number);
        one.trials = vec![trial(
            0,
            Some(Transport::Tcp),
            &[(ReceivedBps, Way::Forward, 8e6)],
        )];
        one
    };
    let runs: Vec<RunRecord> = (0..1010).map(one).collect();
    let text = prometheus::exposition(&runs);
    assert_eq!(
        text.matches("linerate_test_goodput_bytes_per_second{")
            .count(),
        prometheus::LABEL_SETS_MAX + 1
    );
    assert!(
        text.contains(
            "server=\"*\",protocol=\"tcp\",name=\"*\",spec=\"*\",direction=\"forward\"} 10000000\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("server=\"1009\"") && !text.contains("server=\"9\""),
        "the newest keep their labels"
    );
}

#[test]
fn documents_have_a_limit_and_name_what_is_missing() {
    let many: Vec<RunRecord> = runs().into_iter().cycle().take(3000).collect();
    let text = markdown::document(&many);
    assert!(
        text.len() <= markdown::DOCUMENT_BYTES_MAX
            && text.len() > markdown::DOCUMENT_BYTES_MAX - 1500
    );
    assert!(
        text.trim_end()
            .ends_with("more runs not shown: the limit of this document is reached.")
    );
}

#[test]
fn change_for_the_worse_is_a_state() {
    let one = |number: u32| {
        let mut one = run(1, RunKind::Test, ("a", "b"), "", vec![]);
        one.started_unix_ms += u64::from(number);

        let bps = f64::from(if number < 25 {
            1000 + number
        } else {
            900 + number
        }) * 1e5;
        one.trials = vec![trial(
            0,
            Some(Transport::Tcp),
            &[(ReceivedBps, Way::Forward, bps)],
        )];
        one
    };
    let worse = |runs: u32| {
        let text = prometheus::exposition(&(0..runs).map(one).collect::<Vec<_>>());
        let line = text
            .lines()
            .find(|line| line.contains("state=\"worse\""))
            .expect("a state")
            .to_owned();
        line.ends_with(" 1")
    };
    assert!(!worse(25) && !worse(28) && worse(30) && worse(40));
}

#[test]
fn cells_of_a_fleet_are_paths_of_their_own_and_one_without_a_result_has_no_value() {
    let round = |number: u8, cells: &[(&str, &str, f64)]| {
        let cell = |(no, (source, sink, bps)): (u32, &(&str, &str, f64))| {
            let mut cell = trial(no, None, &[(ReceivedBps, Way::Forward, *bps)]);
            for (name, level) in [("source", *source), ("sink", *sink), ("path", "lab")] {
                cell.factors.insert(name.to_owned(), level.to_owned());
            }
            cell
        };
        let trials = (0..).zip(cells).map(cell).collect();
        run(number, RunKind::Fleet, ("control", "lab"), "mesh", trials)
    };
    let rounds = [
        round(1, &[("h1", "h2", 8e8), ("h2", "h1", 4e8)]),
        round(2, &[("h1", "h2", 1.6e8)]),
    ];
    let page = prometheus::exposition(&rounds);
    let of = |name: &str, client: &str| {
        let mut lines = page.lines();
        let line = lines.find(|line| line.starts_with(name) && line.contains(client));
        line.and_then(|line| Some(line.rsplit_once(' ')?.1.to_owned()))
    };

    let [one, other] = ["client=\"h1\",server=\"h2\"", "client=\"h2\",server=\"h1\""];
    let goodput = "linerate_test_goodput_bytes_per_second";
    assert_eq!(of(goodput, one).as_deref(), Some("20000000"), "{page}");
    assert_eq!(of(goodput, other), None, "{page}");
    let success = "linerate_test_success";
    assert_eq!(of(success, one).as_deref(), Some("1"), "{page}");
    assert_eq!(of(success, other).as_deref(), Some("0"), "{page}");
    assert_eq!(
        of(success, "client=\"control\",server=\"lab\"").as_deref(),
        Some("1"),
        "{page}"
    );
}
