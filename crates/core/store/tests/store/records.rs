//! Records for tests.

use std::collections::BTreeMap;

use linerate_model::measure::MeasureName;
use linerate_model::record::{
    Body, HostPart, Measure, RunId, RunKind, RunRecord, RunState, Series, SeriesOf, Times, Trial,
    Way,
};

/// A test of `trials` trials with all parts that have tables of their own.
pub(crate) fn run(number: u64, trials: u32) -> RunRecord {
    let started_unix_ms = 1_700_000_000_000 + number * 60_000;
    let [.., a, b, c, d] = number.to_be_bytes();
    let mut record = RunRecord::new(
        RunId::new(started_unix_ms, [0, 1, 2, 3, 4, 5, a, b, c, d]),
        RunKind::Test,
        Body::Test,
        "2023-11-14T22:13:20.000Z".to_owned(),
        started_unix_ms,
    );
    record.state = RunState::Complete;
    record.title = Some(format!("run {number}"));
    record.elapsed_ns = u64::from(trials) * 10_000_000_000;
    record.origin.tool = "linerate".to_owned();
    record.origin.argv = vec!["test".to_owned()];
    record.path.key = format!("path{}", number % 7);
    record.path.spec_key = "spec".to_owned();
    record.path.client = Some("alpha".to_owned());
    record.path.server = Some(format!("server{}", number % 7));
    record.path.addresses = vec!["192.0.2.1".to_owned(), "192.0.2.2".to_owned()];
    record.hosts = vec![host("client", number), host("server", number)];
    record.trials = (0..trials).map(|no| trial(no, number)).collect();
    record.notes = vec!["the clock was set back".to_owned()];
    record.labels = BTreeMap::from([("site".to_owned(), format!("s{}", number % 3))]);

    record
}

/// The run without trials, before its end.
pub(crate) fn begun(run: &RunRecord) -> RunRecord {
    let mut record = run.clone();
    record.state = RunState::Running;
    record.trials = Vec::new();
    record.elapsed_ns = 0;
    record
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
    let mut part = HostPart::new(role, format!("{role}.example"));
    part.snapshot = Some(serde_json::from_value(snapshot).expect("a snapshot"));

    part
}

pub(crate) fn trial(no: u32, number: u64) -> Trial {
    let measure = |name, value| {
        let mut figure = Measure::new(name, Way::Forward, value);
        figure.n = Some(10);
        figure
    };
    let ends: Vec<u64> = (1..=10)
        .map(|second| second * 1_000_000_000 + second * 7919 % 1000)
        .collect();

    let series = |name: &str, of: SeriesOf, scale: f64| {
        Series::new(
            name,
            of,
            Way::Forward,
            Times::Ends {
                t0_ns: 0,
                ends_ns: ends.clone(),
            },
            (0..10)
                .map(|at| (at != 3).then_some(f64::from(at) * scale))
                .collect(),
        )
    };
    let mut trial = Trial::complete(10_000_000_000);
    trial.no = no;
    trial.repeat = no;
    trial.factors = BTreeMap::from([("streams".to_owned(), "4".to_owned())]);
    trial.started_ns = u64::from(no) * 10_000_000_000;
    trial.flags = vec!["unsteady".to_owned()];
    trial.measures = vec![
        measure(
            MeasureName::ReceivedBps,
            1e9 + f64::from(no) + number as f64,
        ),
        measure(MeasureName::Retransmits, 3.0),
    ];
    trial.series = vec![
        series("bytes", SeriesOf::Stream(1), 125e6),
        series("rtt_us", SeriesOf::Stream(1), 0.37),
        series("cpu", SeriesOf::Host("client".to_owned()), 0.5),
    ];

    trial
}
