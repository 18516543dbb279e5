use linerate_model::measure::of_path;
use serde_json::json;

use super::*;

fn trial(no: u32, measures: &[(MeasureName, Way, f64)]) -> Trial {
    let measure = |(name, way, value): &(MeasureName, Way, f64)| Measure::new(*name, *way, *value);
    let mut trial = Trial::complete(1);
    trial.no = no;
    trial.repeat = no;
    trial.measures = measures.iter().map(measure).collect();
    trial
}

fn missed(expectations: &str, trials: &[Trial]) -> Vec<String> {
    let expectations: Expectations = expectations.parse().expect("well-formed");
    expectations
        .missed(&trials.iter().collect::<Vec<_>>())
        .into_iter()
        .map(|missed| missed.clause)
        .collect()
}

const RX: MeasureName = MeasureName::ReceivedBps;

#[test]
fn every_operator_and_unit_has_its_meaning() {
    let trials = [trial(
        0,
        &[
            (RX, Way::Forward, 900e6),
            (MeasureName::LatencyP99Ns, Way::Sum, 5e6),
            (MeasureName::LostShare, Way::Forward, 0.001),
            (MeasureName::Retransmits, Way::Forward, 10.0),
        ],
    )];
    let held = "rx>=900M,rx<=0.9G,rx=900000K,rx>899M,rx<901M,p99<=5ms,p99=5000us,p99>4999999ns,loss<=0.1%,loss=0.001";
    assert_eq!(missed(held, &trials), Vec::<String>::new());

    let broken = "rx>900M,rx<900M,rx>=901M,rx=1G,p99<5ms,loss<0.1%,retr<10,received_bps>0.9G";
    assert_eq!(missed(broken, &trials).join(","), broken);
}

#[test]
fn the_median_counts_or_with_all_every_trial() {
    let trials = [850e6, 950e6, 960e6].map(|rx| trial(1, &[(RX, Way::Forward, rx)]));
    assert_eq!(missed("rx>=900M", &trials), Vec::<String>::new());
    assert_eq!(missed("all:rx>=900M", &trials), ["all:rx>=900M"]);
    assert_eq!(missed("all:rx>=800M", &trials), Vec::<String>::new());
}

#[test]
fn without_a_direction_each_must_hold() {
    let trials = [trial(
        0,
        &[(RX, Way::Forward, 9e8), (RX, Way::Reverse, 1e8)],
    )];
    assert_eq!(missed("rx>=800M", &trials).len(), 1);
    for [up, down] in [["up", "down"], ["forward", "reverse"]] {
        let [up, down] = [up, down].map(|way| missed(&format!("rx.{way}>=800M"), &trials));
        assert_eq!((up.len(), down.len()), (0, 1));
    }

    let found = "rx>=800M"
        .parse::<Expectations>()
        .expect("well-formed")
        .missed(&[&trials[0]]);
    let line = "rx>=800M: down: 100 Mbit/s, 700 Mbit/s (87.5 %) below 800 Mbit/s";
    assert_eq!(found[0].to_string(), line);
}

#[test]
fn what_was_not_measured_is_missed_with_its_reason() {
    let expectations: Expectations = "p99<5ms".parse().expect("well-formed");
    let measured = trial(0, &[(RX, Way::Forward, 9e8)]);
    let found = expectations.missed(&[&measured]);
    assert_eq!(
        found[0].found,
        Found::Nothing("latency_p99_ns was not measured".to_owned())
    );

    let mut failed = measured;
    failed.state = RunState::Failed;
    failed.reason = Some("connection refused".to_owned());

    let found = expectations.missed(&[&failed]);
    assert_eq!(
        found[0].found,
        Found::Nothing("no complete trial: connection refused".to_owned())
    );
    assert_eq!(expectations.missed(&[]).len(), 1);
}

/// A path of 95.5 Mbit/s down and 19.1 Mbit/s up, without datagrams and without a 99th
/// percentile up.
fn path_trial() -> Trial {
    let delay = |p50: i64, p99: Option<i64>| json!({"n": 1400, "lost": 9, "p50_ns": p50, "p95_ns": p50, "p99_ns": p99});
    let load = |kind: &str, p99: Option<i64>, rpm: f64, more: serde_json::Value| {
        let mut phase = json!({"kind": kind, "confidence": "high", "streams": 4, "rtt": delay(112_000_000, p99),
            "added_p50_ns": 99_600_000, "rpm": rpm});
        phase
            .as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        phase
    };

    let report: PathReport = serde_json::from_value(json!({
        "schema": "linerate.path/1", "state": "complete", "profile": "default", "elapsed_ns": 27_000_000_000_u64,
        "bytes_sent": 1, "bytes_received": 2, "resumed": 0,
        "target": {"host": "lab.example", "port": 5201, "address": "192.0.2.7", "family": "ipv4", "dialect": "native",
            "identity": "known"},
        "size": {"up": {"mtu": 1400, "how": "reported"}, "down": {"mtu": 1500, "how": "unlimited"}},
        "idle": {"rtt": {"n": 200, "lost": 0, "p50_ns": 12_400_000}},
        "phases": [
            load("down", Some(113_600_000), 517.0, json!({"down_bps": 95.5e6})),
            load("up", None, 522.0, json!({"up_bps": 19.1e6, "up_retransmits": 12})),
            load("both", Some(219_000_000), 283.0, json!({"down_bps": 94.1e6, "up_bps": 18.7e6, "confidence": "medium"})),
        ],
        "grade": {"letter": "C", "added_ns": 97_600_000, "probe": "udp"},
        "voice": {"loaded_mos": 4.3},
        "absent": {"datagrams": "UDP is blocked"},
    }))
    .expect("a report");
    let mut trial = trial(0, &[]);
    trial.measures = of_path(&report);
    trial.detail = Some(Detail::Path(Box::new(report)));

    trial
}

#[test]
fn names_have_the_meaning_of_the_run_they_are_held_against() {
    let trials = [path_trial()];
    let held = "down>=95M,rx>=95M,up>19M,rx.forward<20M,both.down>94M,both.up<19M,idle.p50<=12.4ms,p50=112ms,p95>100ms,\
                down.p99<114ms,both.p99=219ms,added<100ms,grade<=C,grade>=D,grade>F,rpm>=500,rpm.down=517,rpm.up>=522RPM,\
                retr<=12,mos>=4.2,mtu>=1400,mtu.down=1500,confidence>=high,confidence.both=medium,all:rpm>500";
    assert_eq!(missed(held, &trials), Vec::<String>::new());

    let broken = "down>96M,rx>=900M,up>20M,grade>=B,grade=A+,rpm>=520,mtu>1400,confidence.both>medium,p50<5ms";
    let mut found = missed(broken, &trials);
    found.dedup();
    assert_eq!(found.join(","), broken);

    let http = [trial(0, &[(MeasureName::LatencyP99Ns, Way::Sum, 4e6)])];
    assert_eq!(missed("p99<5ms", &http), Vec::<String>::new());
    assert_eq!(missed("grade>=F", &http), ["grade>=F"]);
}

#[test]
fn a_limit_of_a_path_is_missed_in_the_words_of_a_path() {
    let trials = [path_trial()];
    for (limit, line) in [
        (
            "rx>=191M",
            "rx>=191M: 95.5 Mbit/s, 95.5 Mbit/s (50.0 %) below 191 Mbit/s",
        ),
        ("grade>=B", "grade>=B: C, below B"),
        (
            "confidence.both=high",
            "confidence.both=high: medium, below high",
        ),
        (
            "added<30ms",
            "added<30ms: up: 99.6 ms, 69.6 ms (232.0 %) above 30.0 ms",
        ),
        ("loss<1%", "loss<1%: lost_share is absent: UDP is blocked"),
        (
            "all:reorder<1%",
            "all:reorder<1%: reordered_share is absent: UDP is blocked",
        ),
        (
            "up.p99<30ms",
            "up.p99<30ms: loaded_rtt_p99_ns is absent: 9 of 1409 probes were lost, or they are \
             too few for this percentile",
        ),
        (
            "idle.p99<5ms",
            "idle.p99<5ms: idle_rtt_p99_ns is absent: 200 probes are too few for this \
             percentile",
        ),
        (
            "one_way_p50_ns<1s",
            "one_way_p50_ns<1s: one_way_p50_ns was not measured",
        ),
    ] {
        let limits: Expectations = limit.parse().expect("well-formed");
        let missed = limits.missed(&[&trials[0]]);
        assert_eq!(
            missed.first().map(ToString::to_string).as_deref(),
            Some(line)
        );
    }
}

#[test]
fn errors_point_at_the_character_and_name_what_is_near() {
    let rows = [
        ("foo>1", 0, "there is no measure \"foo\""),
        ("rx>=900M,retx<10", 9, "near it: retr"),
        ("rx>900X", 3, "unit \"X\""),
        ("p99<5", 4, "units of latency_p99_ns: ns, us"),
        ("rx", 2, "expected <"),
        ("rx>", 3, "expected a number"),
        ("rx>=-1", 4, "expected a number"),
        ("", 0, "expected <"),
        ("rx>1,", 5, "expected <"),
        ("rpm>=100,dwn>1M", 9, "near it: down"),
        ("down.p98<5ms", 0, "there is no measure \"down.p98\""),
        (
            "grade>=G",
            7,
            "expected one of F, D, C, B, A, A+, found \"G\"",
        ),
        ("confidence>=2", 12, "expected one of low, medium, high"),
        ("idle.p50<5", 9, "units of idle_rtt_p50_ns: ns, us"),
    ];
    for (text, at, reason) in rows {
        let error = text.parse::<Expectations>().expect_err(text);
        assert!(
            error.at == at && error.reason.contains(reason),
            "{text}: {error:?}"
        );
    }

    let error = "rx>900X"
        .parse::<Expectations>()
        .expect_err("wrong unit")
        .to_string();
    assert!(error.ends_with("\n  rx>900X\n     ^"), "{error}");

    let notes: Vec<String> = "rx>900,retr<10,rx>9M"
        .parse::<Expectations>()
        .expect("fine")
        .notes()
        .collect();
    assert_eq!(notes, ["rx>900: 900 bit/s"]);
}
