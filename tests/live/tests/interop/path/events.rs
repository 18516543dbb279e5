//! Goal: programs follow a test while it runs, and get every single probe. Method: lines and
//! samples of short tests.

use linerate_interop::{NativeHost, TIMEOUT};
use serde_json::Value;

fn of_kind<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["event"] == kind)
        .collect()
}

#[test]
fn lines_of_json_follow_a_test_from_its_start_to_its_verdict() {
    let host = NativeHost::here();
    let service = host.serve(&[]);
    let target = format!("127.0.0.1:{}", service.port);

    let words = [
        "--only",
        "idle,down",
        "--time",
        "3",
        "--jsonl",
        "--expect",
        "down>=1T",
    ];
    let test = NativeHost::here().test(&target, &words);

    // The first interval arrives while the load still runs.
    test.wait_for_stdout("\"interval\"", 1);
    assert!(!test.stdout().contains("\"verdict\""), "{}", test.stdout());
    let finished = test.finish();
    finished.expect_code(5);

    let lines = finished.stdout.lines();
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).expect("one object per line"))
        .collect();
    let first = events.first().expect("events");
    assert_eq!(
        (&first["event"], &first["schema"]),
        (&"started".into(), &"linerate.event/1".into())
    );
    assert_eq!(first["target"]["host"], "127.0.0.1");
    assert_eq!(first["spec"]["only"], serde_json::json!(["idle", "down"]));

    let intervals = of_kind(&events, "interval");
    assert!(intervals.len() >= 2, "{finished:?}");

    for pair in intervals.windows(2) {
        assert_eq!(pair[0]["end_ns"], pair[1]["start_ns"]);
    }

    assert!(intervals.iter().all(|interval| {
        interval["received_bps"]
            .as_f64()
            .is_some_and(|bps| bps > 0.0)
    }));
    let phases = of_kind(&events, "phase");
    assert!(
        phases[0]["idle"]["rtt"].is_object() && phases[1]["load"]["kind"] == "down",
        "{finished:?}"
    );

    let trials = of_kind(&events, "trial");
    assert_eq!(trials[0]["report"]["schema"], "linerate.path/1");
    let verdict = events.last().expect("events");
    assert_eq!(
        (&verdict["event"], &verdict["exit_code"]),
        (&"verdict".into(), &5.into())
    );
    assert_eq!(
        verdict["missed"].as_array().map(Vec::len),
        Some(1),
        "{verdict}"
    );
    assert!(
        verdict["diagnosis"]["verdict"]["sentence"].is_string(),
        "{verdict}"
    );
}

#[test]
fn samples_are_the_probes_of_the_report_one_by_one() {
    let host = NativeHost::here();
    let service = host.serve(&[]);
    let target = format!("127.0.0.1:{}", service.port);
    let report =
        NativeHost::here().report(&target, &["--only", "idle,rr", "--time", "1", "--samples"]);
    let samples = report["samples"].as_array().expect("samples");
    let series = |kind: &str| {
        let found = samples.iter().find(|series| series["kind"] == kind);
        found.unwrap_or_else(|| panic!("no series {kind}: {samples:?}"))
    };
    let column = |kind: &str, name: &str| series(kind)[name].as_array().map_or(0, Vec::len) as u64;
    let rtt = &report["idle"]["rtt"];
    let probes = rtt["n"].as_u64().expect("a number") + rtt["lost"].as_u64().expect("a number");

    for name in ["sent_ns", "rtt_ns", "up_ns", "down_ns"] {
        assert_eq!(column("probe", name), probes, "{name}");
    }

    let lowest = series("probe")["rtt_ns"]
        .as_array()
        .expect("round trips")
        .iter()
        .filter_map(Value::as_i64)
        .min();
    assert_eq!(lowest, rtt["min_ns"].as_i64());
    assert!(
        column("tcp_handshake", "rtt_ns") > 0 && column("transaction", "rtt_ns") > 0,
        "{samples:?}"
    );

    let plain = NativeHost::here().report(&target, &["--only", "idle"]);
    assert!(plain["samples"].is_null());
    let refused = NativeHost::here()
        .test(&target, &["--samples"])
        .finish_within(TIMEOUT);
    refused.expect_code(2).expect_stderr("--json");
}
