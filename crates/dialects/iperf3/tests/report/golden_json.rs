//! The writers must make the recorded JSON of iperf3 of the events behind it: keys, order, types
//! and values.
//!
//! Not compared: `socket`, which is a file descriptor of the recorded process, and the last digits
//! of times, which iperf3 computes in single precision and takes from the first stream of all for
//! every sum.

use crate::support::{Recording, assert_same_text, captured_output, play, read, recorded};
use linerate_iperf3::report::{Options, Style, client_sink, peer_report};
use linerate_model::event::{Endpoint, Event, ServerOutput};
use serde_json::Value;

/// Where we differ on purpose: which files, why, and what iperf3 would have written without the
/// defect.
const DIFFERENCES: &[Difference] = &[
    Difference {
        files: &[
            "sig-SIGINT-client-json.c321-s321.server.json",
            "sig-SIGINT-server-json.c321-s321.client.json",
        ],
        reason: "the last interval is reported twice when the peer ends",
        edit: |document| {
            let intervals = document["intervals"].as_array_mut().expect("intervals");
            intervals.truncate(intervals.len() - 1);
        },
    },
    Difference {
        files: &["server-max-duration-json.c321-s321.server.json"],
        reason: "the rate of a refused test is not a target rate",
        edit: |document| {
            let start = document["start"].as_object_mut().expect("start");
            start.remove("target_bitrate");
        },
    },
];

struct Difference {
    files: &'static [&'static str],
    reason: &'static str,
    edit: fn(&mut Value),
}

const EVENTS: &str = "iperf3/events/json.jsonl";

#[test]
fn documents_are_those_of_iperf3() {
    let recordings = recorded(EVENTS, &[".json"]);
    assert!(recordings.len() > 30, "the fixtures are there");

    for Recording { name, tests, .. } in recordings {
        let expected = document(&name);
        let text = written(&tests[0].events, endpoint(&name), Style::Json);
        assert_same_document(&text, &expected, &name);
    }
}

#[test]
fn streams_of_events_are_those_of_iperf3() {
    let recordings = recorded(EVENTS, &[".jsonl"]);
    assert!(recordings.len() > 8, "the fixtures are there");

    for Recording { name, tests, .. } in recordings {
        let recorded_text = read(&name);
        let lines: Vec<Value> = recorded_text
            .lines()
            .take_while(|l| l.starts_with("{\""))
            .map(|l| serde_json::from_str(l).expect("JSON"))
            .collect();

        let style = Style::JsonStream {
            full_output: name.starts_with("jstream-full"),
        };
        let text = written(&tests[0].events, endpoint(&name), style);
        let mut written_lines = text.split_inclusive('\n');

        for line in &lines {
            let written = written_lines.next().unwrap_or_default();
            let event: Value = serde_json::from_str(written).expect("one object per line");
            let name = format!("{name}, {}", line["event"]);
            assert_same_values(&event, line, &name);
        }

        let rest: String = written_lines.collect();
        let recorded_rest: String = recorded_text
            .split_inclusive('\n')
            .skip(lines.len())
            .collect();
        if recorded_rest.is_empty() {
            assert_eq!(rest, "", "{name}");
        } else {
            assert_same_document(
                &rest,
                &serde_json::from_str(&recorded_rest).expect("JSON"),
                &name,
            );
        }
    }
}

#[test]
fn the_layout_is_that_of_cjson() {
    // A server's output passes through a client unchanged but for the layout, so it shows the
    // layout of every file.
    for Recording { name, .. } in recorded(EVENTS, &[".json"]) {
        let text = read(&name);
        let document: Value = serde_json::from_str(&text).expect("JSON");
        let is_ambiguous = text.matches("\n\t\t\"target_bitrate\"").count() > 1
            || text.matches("\n\t\"error\"").count() > 1;
        if is_ambiguous || document.get("server_output_json").is_some() {
            continue;
        }

        let (output, normal, _) = captured_output();
        let event = Event::PeerOutput(ServerOutput::Json(document.to_string()));
        play(
            &mut client_sink(options(Endpoint::Client, Style::Text), output),
            &[event],
        );

        let written = normal.text();
        let written = written
            .strip_prefix("\nServer JSON output:\n")
            .expect("a title");
        assert_same_text(written, &text, &name);
    }
}

#[test]
fn a_server_hands_its_report_to_the_client() {
    let (expected, events) = one("json-tcp.c321-s321.server.json");
    for style in [Style::Json, Style::JsonStream { full_output: false }] {
        let mut report = peer_report(options(Endpoint::Server, style))();
        play(&mut report, &events);
        let Some(ServerOutput::Json(text)) = report.collect() else {
            panic!("not JSON");
        };
        let report: Value = serde_json::from_str(&text).expect("JSON");
        assert_same_values(&report, &expected, &format!("{style:?}"));
    }
}

#[test]
fn raw_lines_stay_out_of_the_json() {
    let (expected, mut events) = one("json-tcp.c321-s321.client.json");
    let (output, normal, errors) = captured_output();
    let mut options = options(Endpoint::Client, Style::Json);
    options.verbose = true;
    options.debug = 1;
    events.insert(1, Event::Debug("a fact".into()));
    events.insert(1, Event::Warning("a warning".into()));
    play(&mut client_sink(options, output), &events);
    assert_same_document(&normal.text(), &expected, "with -V and -d");
    assert_eq!(
        errors.text(),
        "Control connection MSS 32768\nwarning: a warning\na fact\n"
    );
}

#[test]
fn every_listed_difference_is_one() {
    for difference in DIFFERENCES {
        for file in difference.files {
            let original: Value = serde_json::from_str(&read(file)).expect("JSON");
            assert_ne!(document(file), original, "{file}: {}", difference.reason);
        }
    }
}

fn options(endpoint: Endpoint, style: Style) -> Options {
    let mut options = Options {
        version: "iperf 3.21+".into(),
        system_info: "Linux testhost 6.18.0 #1 SMP PREEMPT_DYNAMIC x86_64".into(),
        ..Options::new(endpoint)
    };
    options.style = style;
    options
}

fn endpoint(name: &str) -> Endpoint {
    if name.contains(".server.") {
        Endpoint::Server
    } else {
        Endpoint::Client
    }
}

/// A recorded document without the defects we do not repeat. Of keys that occur twice the last
/// value stays, as with most parsers.
fn document(name: &str) -> Value {
    let mut document: Value = serde_json::from_str(&read(name)).expect("JSON");
    for difference in DIFFERENCES.iter().filter(|d| d.files.contains(&name)) {
        (difference.edit)(&mut document);
    }
    document
}

/// A recorded document and its events.
fn one(name: &str) -> (Value, Vec<Event>) {
    let [recording] = recorded(EVENTS, &[name])
        .try_into()
        .ok()
        .expect("one recording");
    let [test] = recording.tests.try_into().ok().expect("one test");
    (document(name), test.events)
}

fn written(events: &[Event], endpoint: Endpoint, style: Style) -> String {
    let (output, normal, errors) = captured_output();
    play(&mut client_sink(options(endpoint, style), output), events);
    assert_eq!(errors.text(), "", "errors are in the JSON");
    normal.text()
}

fn assert_same_document(text: &str, expected: &Value, name: &str) {
    assert!(
        text.ends_with("\n}\n"),
        "{name}: one document, one line end"
    );
    let document: Value = serde_json::from_str(text).unwrap_or_else(|e| panic!("{name}: {e}"));
    assert_same_values(&document, expected, name);
}

fn assert_same_values(actual: &Value, expected: &Value, name: &str) {
    let (actual, expected) = (flat(actual), flat(expected));
    for ((path, value), (expected_path, expected_value)) in actual.iter().zip(&expected) {
        assert_eq!(path, expected_path, "{name}: order of keys");
        assert!(
            is_same(path, value, expected_value),
            "{name}: {path} is {value}, not {expected_value}"
        );
    }

    assert_eq!(actual.len(), expected.len(), "{name}: number of values");
}

/// Every leaf with its path, in order; empty containers are leaves.
fn flat(value: &Value) -> Vec<(String, Value)> {
    let below = |key: String, value: &Value| -> Vec<(String, Value)> {
        flat(value)
            .into_iter()
            .map(|(path, leaf)| (format!("{key}.{path}"), leaf))
            .collect()
    };
    match value {
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .flat_map(|(key, value)| below(key.clone(), value))
            .collect(),
        Value::Array(items) if !items.is_empty() => items
            .iter()
            .enumerate()
            .flat_map(|(index, value)| below(index.to_string(), value))
            .collect(),
        leaf => vec![(String::new(), leaf.clone())],
    }
}

fn is_same(path: &str, actual: &Value, expected: &Value) -> bool {
    let is_ours = !path.contains("server_output");
    if is_ours && path.ends_with("socket.") {
        return actual.is_u64();
    }

    match (actual.as_f64(), expected.as_f64()) {
        (Some(actual_number), Some(expected_number)) if actual.is_f64() || expected.is_f64() => {
            let tolerance = match path {
                // In both directions at once iperf3 takes its own time for the sender's, also where
                // it receives.
                path if path.ends_with("receiver.seconds.") => 1e-2,
                // After a warm-up `end` less `start` is not `seconds`.
                path if path.ends_with("end.") => 2e-4,
                _ => 2e-5,
            };
            (actual_number - expected_number).abs() <= tolerance * expected_number.abs().max(1e-2)
        }
        _ => actual == expected,
    }
}
