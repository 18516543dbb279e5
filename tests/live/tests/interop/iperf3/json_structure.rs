//! The JSON report beside the original's: the same keys with the same types in the same order.

use std::collections::BTreeSet;

use linerate_interop::{Pair, Program, Report, difference, each_case, original, ours, run_pair};
use serde_json::Value;

const CASES: [&str; 14] = [
    "-t 1 -b 20M",
    "-t 1 -b 20M -R",
    "-t 1 -b 20M --bidir",
    "-t 1 -b 20M -P 2",
    "-t 1 -b 20M -w 256K -M 1000",
    "-t 1 -b 20M -O 1",
    "-t 1 -b 20M -T title --extra-data words",
    "-t 1 -b 20M --get-server-output",
    "-t 1 -u -l 1400 -b 5M",
    "-t 1 -u -l 1400 -b 5M -R",
    "-t 1 -u -l 1400 -b 5M --bidir",
    "-t 1 -u -l 1400 -b 5M -P 2",
    "-n 4M -b 20M",
    "-t 1 -b 20M -Z --dscp af11",
];

/// Where a key may differ from 3.12, by the end of its path. We write what 3.21 writes.
const KNOWN: [(&str, &str); 11] = [
    ("start/fq_rate", "added in 3.13"),
    ("start/test_start/bidir", "added in 3.13"),
    ("start/test_start/fqrate", "added in 3.13"),
    ("start/test_start/interval", "added in 3.17"),
    ("start/test_start/gso", "added in 3.21"),
    ("start/test_start/gro", "added in 3.21"),
    ("start/timestamp/timemillisecs", "added in 3.20"),
    ("/reorder", "added in 3.20"),
    (
        "start/sock_bufsize",
        "once instead of once per stream since 3.14, and elsewhere",
    ),
    (
        "start/sndbuf_actual",
        "once instead of once per stream since 3.14, and elsewhere",
    ),
    (
        "start/rcvbuf_actual",
        "once instead of once per stream since 3.14, and elsewhere",
    ),
];

/// A server of 3.13 and later repeats this key; ours writes it once.
const ONCE: &str = "start/target_bitrate";

#[test]
fn keys_types_and_order_are_the_originals() {
    each_case(&CASES, |options| {
        let (expected, found) = (run(original(), options), run(ours(), options));
        for (end, expected, found) in [
            ("client", &expected.client.stdout, &found.client.stdout),
            ("server", &expected.server.stdout, &found.server.stdout),
        ] {
            let (expected, found) = (structure(expected), structure(found));
            if let Some(rows) = difference(&expected, &found) {
                panic!("{end} of {options}:\n{rows}\nknown and allowed: {KNOWN:#?}");
            }
        }
    });
}

/// The buffers move within `start` from version to version, so the order says nothing about them;
/// they must be there.
#[test]
fn moved_keys_are_still_there() {
    let pair = run(ours(), "-n 1M");
    for end in [&pair.client, &pair.server] {
        let report = Report::parse(&end.stdout);
        for key in ["sock_bufsize", "sndbuf_actual", "rcvbuf_actual"] {
            assert!(report.number(&format!("/start/{key}")) >= 0.0, "{key}");
        }
    }
}

fn run(program: &Program, options: &str) -> Pair {
    let options: Vec<_> = options.split_whitespace().chain(["-J"]).collect();
    let pair = run_pair((program, &["-J"]), (program, &options));
    pair.client.expect_clean();
    pair.server.expect_clean();
    pair
}

/// One line per key: path and type, in the order of first appearance. Elements of an array count as
/// one.
fn structure(report: &str) -> String {
    let mut lines = Vec::new();
    collect("", &Report::parse(report).root, &mut lines);
    let mut seen = BTreeSet::new();
    lines.retain(|line| is_compared(line) && seen.insert(line.clone()));
    lines.join("\n")
}

fn is_compared(line: &str) -> bool {
    let path = line.split(':').next().unwrap_or(line);
    !path.ends_with(ONCE) && !KNOWN.iter().any(|(end, _)| path.ends_with(end))
}

fn collect(path: &str, value: &Value, lines: &mut Vec<String>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    lines.push(format!("{path}: {kind}"));

    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| collect(&format!("{path}/{key}"), value, lines)),
        Value::Array(list) => list
            .iter()
            .for_each(|value| collect(&format!("{path}/[]"), value, lines)),
        _ => {}
    }
}
