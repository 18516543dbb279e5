//! Checks, plan and progress of an experiment.

use std::time::Duration;

use linerate_document::Style;
use linerate_model::http::{CheckStatus, Reading, RunState};
use linerate_model::live::LiveHttp;

use super::super::{
    Stage, block, event, finished_line, plan_json, plan_text, preflight, preflight_json, run_words,
};
use super::assert_expected;
use super::fixtures::{client_limited, full};
use crate::plan::cells::PlannedRun;
use crate::plan::estimate::{Cost, Estimate};

#[test]
fn checks_come_in_order_of_urgency_with_commands_to_copy() {
    let checks = full().checks;
    assert_expected("http/checks.txt", &preflight(&checks, Style::PLAIN));
    let value: serde_json::Value = serde_json::from_str(&preflight_json(&checks)).expect("JSON");
    let keys: Vec<&String> = value[1].as_object().expect("an object").keys().collect();
    assert_eq!(
        keys,
        [
            "id", "side", "status", "have", "need", "fix", "undo", "advice", "cells"
        ]
    );
    assert_eq!(value[1]["status"], "fail");

    let long = "x".repeat(300);
    let mut checks = checks;
    checks.retain(|check| check.status == CheckStatus::Fail);
    checks[0].fix = vec![long.clone()];
    assert!(
        preflight(&checks, Style::PLAIN).contains(&format!("do    {long}\n")),
        "a command is never broken"
    );
}

fn planned() -> PlannedRun {
    PlannedRun {
        key: full().cells[4].key,
        repeat: 2,
    }
}

fn progress() -> LiveHttp {
    let mut client = Reading::default();
    (client.cpu_busy, client.busiest_cpu_busy) = (Some(0.41), Some(0.63));
    let mut server = Reading {
        window_ns: 200_000_000,
        ..Reading::default()
    };
    (server.cpu_busy, server.busiest_cpu_busy) = (Some(0.95), Some(1.0));
    server.connections = Some(64);
    (server.rx_bytes, server.tx_bytes) = (Some(300_000), Some(23_525_000));

    let mut now = LiveHttp {
        running: run_words(&planned(), Stage::Measure),
        run: 17,
        runs: 54,
        left_s: Some(590.0),
        payload_bytes: 103_800_000,
        p99_ns: Some(1_200_000),
        open: 64,
        client: Some(client),
        server: Some(server),
        ..LiveHttp::default()
    };
    now.ok_per_s.push(101_400.0);
    now
}

const ELAPSED: Duration = Duration::from_millis(272_400);

#[test]
fn the_status_block_has_four_lines_whatever_is_known() {
    let expected = "\
matrix 1k c64, repeat 2, measure; run 17 of 54, 4:32 so far, about 9:50 left
101,000 responses/s, payload 103.8 MB/s, p99 1.20 ms, 0 errors, 64 open
client: CPU 41 % (busiest 63 %), n/a connections, n/a sent, n/a received
server: CPU 95 % (busiest 100 %), 64 connections, 941 Mbit/s sent, 12.0 Mbit/s received
";
    let wide = Style {
        columns: 120,
        ..Style::PLAIN
    };
    assert_eq!(block(&progress(), ELAPSED, wide), expected);
    let mut unknown = progress();
    unknown.left_s = None;
    unknown.ok_per_s = LiveHttp::default().ok_per_s;
    unknown.server = None;

    let text = block(&unknown, ELAPSED, Style::PLAIN);
    assert_eq!(text.lines().count(), 4);
    assert!(
        text.contains("n/a responses/s") && text.contains("server: no values\n"),
        "{text}"
    );

    let event = event(&planned(), Stage::Measure, ELAPSED, &progress());
    assert_eq!(event.matches('\n').count(), 1);
    let value: serde_json::Value = serde_json::from_str(&event).expect("JSON");
    assert_eq!(value["event"], "second");
    assert_eq!(value["cell"]["connections"], 64);
    assert_eq!(value["stage"], "measure");
    assert_eq!(value["server"]["connections"], 64);
}

#[test]
fn a_finished_run_is_one_line() {
    let study = client_limited();
    let run = &study.cells[4].runs[0];
    assert_eq!(
        finished_line(run, 4, 54, Style::PLAIN),
        "[4/54] matrix 1k c64 r1: 102,000 responses/s, payload 104.3 MB/s, p99 2.53 ms, 0 errors, \
         busiest CPU client 63 % server 100 %\n"
    );

    let mut skipped = run.clone();
    skipped.state = RunState::Skipped;
    skipped.load = None;
    skipped.reason = Some("nofile.hard\u{1b}[0m".to_owned());
    assert_eq!(
        finished_line(&skipped, 5, 54, Style::PLAIN),
        "[5/54] matrix 1k c64 r1: skipped: nofile.hard\u{fffd}[0m\n"
    );
}

#[test]
fn plan_listing_has_time_bytes_and_requirements() {
    let key = full().cells[4].key;
    let cost = |runs, seconds, bytes| Cost {
        runs,
        time: Duration::from_secs(seconds),
        bytes,
    };
    let estimate = Estimate {
        cells: vec![(key, cost(3, 48, Some(3_120_000_000)))],
        total: cost(3, 870, None),
    };
    let (target, needs) = (
        "http://192.168.5.2:8080",
        [["descriptors", "10,128 at both ends"].map(str::to_owned)],
    );
    assert_expected(
        "http/plan.txt",
        &plan_text(target, &estimate, &needs, Style::PLAIN),
    );

    let value: serde_json::Value =
        serde_json::from_str(&plan_json(target, &estimate, &needs)).expect("JSON");
    assert_eq!(value["cells"][0]["repeats"], 3);
    assert!(value["bytes"].is_null());
}
