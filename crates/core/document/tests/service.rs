//! Goal: logs and metrics of a server report its events in forms programs can read. Method: a list
//! of events.

#[path = "support/recorded_reports.rs"]
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use linerate_document::service::{
    Format, Level, LogOptions, Metrics, ProcessMetrics, RecordMetrics, counted, log_reporter,
};
use linerate_model::service::{
    ClientProgress, HandshakeCause, Outcome, Progress, RefusalReason, TestFacts, TestRecord,
    TransportTotal,
};
use linerate_model::{Direction, ServerEvent, Transport};
use support::captured_output;

fn peer() -> SocketAddr {
    ([192, 0, 2, 7], 40_001).into()
}

fn facts() -> TestFacts {
    let mut facts = TestFacts::new(peer(), Transport::Udp, Direction::Reverse, 4);
    facts.number = 3;
    facts.user = Some("mario\n".to_owned());
    facts.running_beside = 2;
    facts
}

fn record(outcome: Outcome) -> TestRecord {
    TestRecord {
        facts: facts(),
        cookie: "abc".to_owned(),
        received_bytes: 0,
        sent_bytes: 1_250_000_000,
        duration_ns: 10_000_000_000,
        outcome,
        ran_beside_max: 5,
    }
}

fn progress() -> Progress {
    Progress {
        tests: 2,
        streams: 5,
        elapsed: Duration::from_secs(1),
        clients: vec![ClientProgress {
            number: 3,
            peer: peer(),
            received_bytes: 0,
            sent_bytes: 125_000_000,
        }],
        totals: vec![TransportTotal {
            transport: Transport::Udp,
            received_bytes: 7,
            sent_bytes: 125_000_000,
        }],
        ..Progress::default()
    }
}

fn events() -> Vec<ServerEvent> {
    let reason = "the client has terminated".to_owned();
    vec![
        ServerEvent::Listening {
            address: ([0, 0, 0, 0], 5201).into(),
        },
        ServerEvent::TestStarted(facts()),
        ServerEvent::Progress(progress()),
        ServerEvent::TestEnded(record(Outcome::Complete)),
        ServerEvent::TestStarted(facts()),
        ServerEvent::TestEnded(record(Outcome::Partial { reason })),
        ServerEvent::Refused {
            peer: peer(),
            reason: RefusalReason::AddressTests,
        },
        ServerEvent::LoginFailed {
            peer: peer(),
            cause: "clock_skew",
            explanation: "clock skew: the client's clock differs by -31 s".to_owned(),
        },
        ServerEvent::HandshakeFailed {
            peer: peer(),
            cause: HandshakeCause::Cookie,
            explanation: "timed out".to_owned(),
        },
        ServerEvent::Stopping {
            signal_text: "Terminated(15)".to_owned(),
        },
    ]
}

fn logged(level: Level, format: Format) -> String {
    logged_events(level, format, &events())
}

fn logged_events(level: Level, format: Format, events: &[ServerEvent]) -> String {
    let (output, log, _) = captured_output();
    let options = LogOptions {
        level,
        format,
        progress_interval: Duration::from_secs(1),
    };
    let mut reporter = log_reporter(options, output);
    events.iter().for_each(|event| reporter.server_event(event));

    log.text()
}

#[test]
fn one_test_and_one_stream_are_written_in_the_singular() {
    let mut started = facts();
    started.streams = 1;
    let mut progress = progress();
    (progress.tests, progress.streams) = (1, 1);

    let events = [
        ServerEvent::TestStarted(started),
        ServerEvent::Progress(progress),
    ];
    let text = logged_events(Level::Info, Format::Text, &events);
    assert!(text.contains("UDP down, 1 stream, user"), "{text}");
    assert!(text.contains("1 test with 1 stream running: "), "{text}");
}

#[test]
fn every_event_is_one_line_for_people() {
    let text = logged(Level::Info, Format::Text);
    let sentences: Vec<&str> = text
        .lines()
        .map(|line| line.split_once(' ').expect("a time").1)
        .collect();
    let description = "192.0.2.7 port 40001, UDP down, 4 streams, user mario\u{fffd}";

    assert_eq!(
        sentences,
        [
            "info  listening on 0.0.0.0:5201".to_owned(),
            format!("info  test 3 started: {description}"),
            "info  2 tests with 5 streams running: 0.00 bit/s received, 1.00 Gbit/s sent".to_owned(),
            format!(
                "info  test 3 finished: {description}, 10.00 s, 1.16 GiB sent (1.00 Gbit/s), up to \
                 5 other tests at the same time"
            ),
            format!("info  test 3 started: {description}"),
            format!(
                "warn  test 3 ended early: {description}, 10.00 s, 1.16 GiB sent (1.00 \
                 Gbit/s), up to 5 other tests at the same time; partial result: the client has \
                 terminated"
            ),
            "warn  192.0.2.7 port 40001 refused: its address runs as many tests as one address may".to_owned(),
            "warn  login from 192.0.2.7 port 40001 refused: clock skew: the client's clock differs \
             by -31 s".to_owned(),
            "info  192.0.2.7 port 40001 started no test: timed out".to_owned(),
            "info  stopping: Terminated(15)".to_owned(),
        ]
    );
}

#[test]
fn levels_decide_what_is_written() {
    let lines = |level| logged(level, Format::Text).lines().count();
    assert_eq!(
        [Level::Error, Level::Warn, Level::Info, Level::Debug].map(lines),
        [0, 3, 10, 11]
    );
}

#[test]
fn json_lines_carry_numbers_as_numbers() {
    let text = logged(Level::Info, Format::Json);
    let lines: Vec<serde_json::Value> = text
        .lines()
        .map(|l| serde_json::from_str(l).expect("JSON"))
        .collect();
    assert_eq!(lines.len(), 10);

    let ended = &lines[5];
    assert_eq!(ended["event"], "test_ended");
    assert_eq!(ended["outcome"], "partial");
    assert_eq!(
        (ended["sent_bytes"].as_u64(), ended["seconds"].as_f64()),
        (Some(1_250_000_000), Some(10.0))
    );
    assert_eq!(ended["user"], "mario\n");
    assert!(
        lines
            .iter()
            .all(|l| l["time"].is_string() && l["level"].is_string() && l["message"].is_string())
    );
}

#[test]
fn a_flood_of_refusals_does_not_fill_the_log() {
    let refusals = vec![
        ServerEvent::Refused {
            peer: peer(),
            reason: RefusalReason::Busy
        };
        100_000
    ];
    assert!(
        logged_events(Level::Debug, Format::Text, &refusals)
            .lines()
            .count()
            < 100
    );
}

#[test]
fn metrics_follow_the_conventions_of_prometheus() {
    let metrics = Arc::new(Metrics::default());
    let (silent, ..) = captured_output();

    let options = LogOptions {
        level: Level::Error,
        format: Format::Text,
        progress_interval: Duration::from_secs(1),
    };
    let mut reporter = counted(log_reporter(options, silent), Arc::clone(&metrics));
    events()
        .iter()
        .for_each(|event| reporter.server_event(event));
    reporter.server_event(&ServerEvent::TestStarted(facts()));

    let process = ProcessMetrics {
        cpu_seconds: 1.5,
        open_fds: Some(9),
        ..ProcessMetrics::default()
    };
    let records = RecordMetrics {
        stored: 812,
        lost: 2,
        waiting: 3,
        store_bytes: None,
    };
    let page = metrics.exposition("1.2.3", &process, Some(&records));

    for line in [
        "linerate_build_info{version=\"1.2.3\"} 1",
        "linerate_running_tests 1",
        "linerate_running_streams 4",
        "linerate_tests_started_total{protocol=\"udp\",direction=\"reverse\"} 3",
        "linerate_tests_finished_total{protocol=\"udp\",direction=\"reverse\",outcome=\"complete\"} 1",
        "linerate_tests_finished_total{protocol=\"udp\",direction=\"reverse\",outcome=\"partial\"} \
         1",
        "linerate_tests_refused_total{reason=\"address_tests\"} 1",
        "linerate_logins_failed_total{cause=\"clock_skew\"} 1",
        "linerate_handshake_failures_total{cause=\"cookie\"} 1",
        "linerate_bytes_total{direction=\"received\",protocol=\"udp\"} 7",
        "linerate_bytes_total{direction=\"sent\",protocol=\"udp\"} 125000000",
        "linerate_test_goodput_bytes_per_second_bucket{protocol=\"udp\",le=\"37500000\"} 0",
        "linerate_test_goodput_bytes_per_second_bucket{protocol=\"udp\",le=\"125000000\"} 2",
        "linerate_test_goodput_bytes_per_second_bucket{protocol=\"udp\",le=\"+Inf\"} 2",
        "linerate_test_goodput_bytes_per_second_count{protocol=\"udp\"} 2",
        "linerate_records_total 812",
        "linerate_records_lost_total 2",
        "linerate_queue_tests 3",
        "process_cpu_seconds_total 1.5",
        "process_open_fds 9",
    ] {
        assert!(page.lines().any(|l| l == line), "{line}\n{page}");
    }

    assert!(
        !page.contains("process_threads") && !page.contains("store_bytes"),
        "what is not known has no line"
    );
    check_format(&page);
}

/// Every sample belongs to the family announced last, counters end in `_total`, and no family comes
/// twice.
fn check_format(page: &str) {
    let mut families = std::collections::BTreeSet::new();
    let mut family = "";

    for line in page.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("name and type");
            assert!(families.insert(name), "{name} comes twice");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            family = name;
        } else if !line.starts_with("# HELP ") {
            assert!(line.starts_with(family), "{line} is not of {family}");
            let value = line.rsplit(' ').next().expect("a value");
            assert!(value.parse::<f64>().is_ok(), "{line}");
        }
    }
}
