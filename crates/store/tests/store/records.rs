//! Records for tests.

use std::collections::BTreeMap;

use linerate_model::measure::MeasureName;
use linerate_model::record::{
    Body, HostPart, Measure, Origin, RUN_SCHEMA, RunId, RunKind, RunPath, RunRecord, RunState, Series, SeriesOf, Times,
    Trial, Way,
};

/// A test of `trials` trials with all parts that have tables of their own.
pub(crate) fn run(number: u64, trials: u32) -> RunRecord {
    let started_unix_ms = 1_700_000_000_000 + number * 60_000;
    let [.., a, b, c, d] = number.to_be_bytes();
    RunRecord {
        schema: RUN_SCHEMA.to_owned(),
        run_id: RunId::new(started_unix_ms, [0, 1, 2, 3, 4, 5, a, b, c, d]),
        kind: RunKind::Test,
        state: RunState::Complete,
        reason: None,
        title: Some(format!("run {number}")),
        started_at: "2023-11-14T22:13:20.000Z".to_owned(),
        started_unix_ms,
        elapsed_ns: u64::from(trials) * 10_000_000_000,
        origin: Origin { tool: "linerate".to_owned(), argv: vec!["test".to_owned()], ..Origin::default() },
        path: RunPath {
            key: format!("path{}", number % 7),
            spec_key: "spec".to_owned(),
            client: Some("alpha".to_owned()),
            server: Some(format!("server{}", number % 7)),
            addresses: vec!["192.0.2.1".to_owned(), "192.0.2.2".to_owned()],
        },
        hosts: vec![host("client", number), host("server", number)],
        trials: (0..trials).map(|no| trial(no, number)).collect(),
        body: Body::Test,
        diagnosis: None,
        notes: vec!["the clock was set back".to_owned()],
        labels: BTreeMap::from([("site".to_owned(), format!("s{}", number % 3))]),
        links: Default::default(),
    }
}

/// The run without trials, before its end.
pub(crate) fn begun(run: &RunRecord) -> RunRecord {
    RunRecord { state: RunState::Running, trials: Vec::new(), elapsed_ns: 0, ..run.clone() }
}

fn host(role: &str, number: u64) -> HostPart {
    let snapshot = serde_json::json!({
        "schema": "linerate.snapshot/1", "host": role, "source": "live",
        "facts": {
            "nic.eth0.ring.rx.cur": {"v": 512, "u": "descriptors", "src": "ethtool-nl:RINGS_GET"},
            "nic.eth0.ring.tx.cur": {"absent": "unsupported-by-driver", "src": "ethtool-nl:RINGS_GET"},
            "load.now": {"v": number, "src": "/proc/loadavg"},
        },
        "counters": {},
    });
    HostPart {
        role: role.to_owned(),
        name: format!("{role}.example"),
        host_key: None,
        facts_key: None,
        snapshot: Some(serde_json::from_value(snapshot).expect("a snapshot")),
        is_same_host: false,
    }
}

pub(crate) fn trial(no: u32, number: u64) -> Trial {
    let measure = |name, value| Measure { name, way: Way::Forward, value, n: Some(10), is_lower_bound: false };
    let ends: Vec<u64> = (1..=10).map(|second| second * 1_000_000_000 + second * 7919 % 1000).collect();
    let series = |name: &str, of: SeriesOf, scale: f64| Series {
        name: name.to_owned(),
        of,
        way: Way::Forward,
        times: Times::Ends { t0_ns: 0, ends_ns: ends.clone() },
        values: (0..10).map(|at| (at != 3).then_some(f64::from(at) * scale)).collect(),
        is_thinned: false,
    };
    Trial {
        no,
        repeat: no,
        factors: BTreeMap::from([("streams".to_owned(), "4".to_owned())]),
        is_warm_up: false,
        state: RunState::Complete,
        reason: None,
        started_ns: u64::from(no) * 10_000_000_000,
        elapsed_ns: 10_000_000_000,
        flags: vec!["unsteady".to_owned()],
        measures: vec![
            measure(MeasureName::ReceivedBps, 1e9 + f64::from(no) + number as f64),
            measure(MeasureName::Retransmits, 3.0),
        ],
        series: vec![
            series("bytes", SeriesOf::Stream(1), 125e6),
            series("rtt_us", SeriesOf::Stream(1), 0.37),
            series("cpu", SeriesOf::Host("client".to_owned()), 0.5),
        ],
        detail: None,
    }
}
