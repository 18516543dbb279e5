//! `liblinerate.so`: programs in C and Python.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_interop::{Finished, Process, free_port};
use serde_json::Value;

use super::{Compiled, SLOW, library, valgrind};

fn so() -> PathBuf {
    library("liblinerate_capi.so")
}

fn compiled() -> Compiled {
    // The soname is what `make libs` installs; this build has the other name.
    Compiled::new(include_str!("liblinerate.c"), &so())
}

/// The program, whose library is found by the name that it was linked with.
fn command(program: &Compiled) -> Command {
    let mut command = Command::new(program.path());
    command.env("LD_LIBRARY_PATH", program.folder());
    command
}

fn run(program: &Compiled, what: &str) -> Finished {
    let mut command = command(program);
    command.args([what, &free_port().to_string()]);
    let finished = Process::start(command).finish();
    finished.expect_clean();
    finished
}

/// Output of the program about one end: result, number, events, intervals, ends; error; report.
#[derive(Debug)]
struct End {
    numbers: Vec<i64>,
    error: String,
    report: Value,
}

fn ends(text: &str) -> Vec<End> {
    let mut rest = text;
    let mut ends = Vec::new();

    while let Some((first, tail)) = rest.split_once('\n') {
        let numbers = first
            .split(' ')
            .map_while(|number| number.parse().ok())
            .collect();
        let (error, tail) = tail.split_once('\n').unwrap_or((tail, ""));
        let mut documents = serde_json::Deserializer::from_str(tail).into_iter::<Value>();
        let Some(Ok(report)) = documents.next() else {
            break;
        };
        let length = documents.byte_offset();

        ends.push(End {
            numbers,
            error: error.to_owned(),
            report,
        });
        rest = tail[length..].trim_start();
    }

    ends
}

#[test]
fn a_c_program_runs_both_ends_with_events_and_reports() {
    let program = compiled();
    let finished = run(&program, "pair");
    let [client, server] = &ends(&finished.stdout)[..] else {
        panic!("{finished:?}")
    };

    // One start, two intervals and one end of each; the server listens, and stops when it is
    // stopped.
    assert_eq!(client.numbers, [0, 0, 4, 2, 1], "{finished:?}");
    assert_eq!(server.numbers[0], 1, "{finished:?}");
    assert_eq!(server.numbers[3..], [1, 1], "{finished:?}");
    assert_eq!(client.error, "");

    let start = &client.report["start"]["test_start"];
    assert_eq!(
        (&start["reverse"], &start["protocol"]),
        (&1.into(), &"TCP".into())
    );

    for end in [client, server] {
        assert!(
            end.report["end"]["sum_sent"]["bytes"].as_u64() > Some(0),
            "{finished:?}"
        );
    }
}

#[test]
fn another_thread_ends_a_test_and_its_report_has_what_was_measured() {
    let program = compiled();
    let finished = run(&program, "stop");
    assert!(finished.elapsed.as_secs() < 30, "{finished:?}");

    let [client, server] = &ends(&finished.stdout)[..] else {
        panic!("{finished:?}")
    };
    assert_eq!(client.numbers[0], 1, "{finished:?}");
    assert!(
        client.error.starts_with("the client has terminated"),
        "{finished:?}"
    );
    assert!(
        client.report["end"]["sum_sent"]["bytes"].as_u64() > Some(0),
        "{finished:?}"
    );
    assert!(
        server.report["error"]
            .as_str()
            .is_some_and(|error| error.contains("client has terminated"))
    );
}

#[test]
fn failures_have_a_number_and_a_text() {
    let program = compiled();
    let finished = run(&program, "fail");
    let [client] = &ends(&finished.stdout)[..] else {
        panic!("{finished:?}")
    };
    assert_eq!(client.numbers[..2], [-1, 103], "{finished:?}");
    assert!(client.error.ends_with("Connection refused"), "{finished:?}");
    assert_eq!(client.report["error"], client.error.as_str());
    finished.expect_stdout("-1 invalid number of parallel streams (min = 1, max = 128)");
}

#[test]
fn python_runs_both_ends_by_ctypes() {
    let mut command = Command::new("python3");
    command
        .arg(super::file("liblinerate.py"))
        .arg(so())
        .arg(free_port().to_string());
    let finished = Process::start(command).finish();
    finished.expect_clean();

    let seen = finished.json();
    let (client, server) = (&seen["client"], &seen["server"]);
    assert_eq!(
        (&client["result"], &server["result"]),
        (&0.into(), &1.into()),
        "{seen}"
    );
    assert_eq!(
        client["events"],
        serde_json::json!(["start", "interval", "end"]),
        "{seen}"
    );
    assert_eq!(server["events"][0], "listening", "{seen}");
    assert_eq!(
        client["report"]["start"]["test_start"]["protocol"], "UDP",
        "{seen}"
    );

    for end in [client, server] {
        assert!(
            end["report"]["end"]["sum"]["packets"].as_u64() > Some(100),
            "{seen}"
        );
    }
}

/// cbindgen writes the header; this compares the names, which needs no tool.
#[test]
fn the_header_declares_what_the_library_exports() {
    let header = std::fs::read_to_string(header()).expect("a header");
    let declared: BTreeSet<&str> = header
        .lines()
        .filter(|line| !line.trim_start().starts_with(['*', '/']))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("linerate_"))
        .collect();

    let listed = Command::new("nm")
        .args(["-D", "--defined-only"])
        .arg(so())
        .output()
        .expect("nm runs");
    let text = String::from_utf8(listed.stdout).expect("symbols are UTF-8");
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split_whitespace().nth(2))
        .collect();
    assert_eq!(declared, exported);
    assert!(exported.len() > 8, "{exported:?}");
}

fn header() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/faces/capi/include/linerate.h")
}

/// valgrind runs both ends twenty times slower.
#[test]
#[ignore = "make live SUITE=libraries"]
fn programs_leak_no_memory() {
    let program = compiled();
    for what in ["pair", "stop", "fail"] {
        let port = free_port().to_string();
        let under = valgrind(&command(&program), &[what, &port]);
        Process::start(under).finish_within(SLOW).expect_code(0);
    }
}
