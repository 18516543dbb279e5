//! Goal: ladders report what a host receives and sends over the number of its partners, and what a
//! slow one does to the others. Method: hosts in namespaces behind shapers, with a real sshd(8)
//! each.

use linerate_interop::{FleetLab, HostLink, Process};
use serde_json::Value;

use super::report::{GIGABIT_MBPS, cells, expect_nothing_left, findings, mbps};

fn rows<'a>(report: &'a Value, direction: &str) -> Vec<&'a Value> {
    let rows = report["ladder"].as_array().expect("rows").iter();
    rows.filter(|row| row["direction"] == direction).collect()
}

fn levels(rows: &[&Value]) -> Vec<u64> {
    rows.iter()
        .map(|row| row["level"].as_u64().expect("a level"))
        .collect()
}

/// Sum of a row in Mbit/s.
fn sum_mbps(row: &Value) -> f64 {
    row["sums_bps"][0]
        .as_f64()
        .unwrap_or_else(|| panic!("no sum: {row}"))
        / 1e6
}

#[test]
fn timed_incast_has_a_row_for_each_level_with_rates_and_times_of_tcp() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 3]) else {
        return;
    };
    let report = lab.report(&["incast", "--sink", "h2", "-t", "1", "-O", "0"]);
    let rows = rows(&report, "incast");
    assert_eq!(levels(&rows), [1, 2], "{report}");

    for row in &rows {
        assert!(
            row["rtt_us"].as_u64().is_some_and(|us| us > 0) && row["retransmits"].is_u64(),
            "{row}"
        );
    }

    assert!(GIGABIT_MBPS.contains(&sum_mbps(rows[1])), "{}", rows[1]);
    assert!(
        cells(&report)
            .iter()
            .all(|cell| cell["task"]["sink"] == "h2"),
        "{report}"
    );
    expect_nothing_left(&lab);
}

#[test]
fn ladder_around_an_unknown_host_and_a_run_beyond_its_data_connect_to_no_host() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    lab.end_sshd(0);
    lab.end_sshd(1);

    let run = |words: &[&str]| {
        Process::start(lab.command(&[&["run"], words, &["--dry-run"]].concat())).finish()
    };
    run(&["incast", "--sink", "h7"])
        .expect_code(2)
        .expect_stderr("h7 is no host of the inventory");
    let limited = ["fanout", "--source", "h0", "--max-rate", "800M"];
    run(&limited)
        .expect_code(0)
        .expect_stdout("fanout from h0, 2 hosts, 1 cell, 1 round of 11 s");

    // 800 Mbit/s for 11 s are 1.1 GB.
    run(&[&limited[..], &["--max-bytes", "1G"]].concat())
        .expect_code(2)
        .expect_stderr("--max-bytes");
    run(&["baseline"])
        .expect_code(0)
        .expect_stdout("one pair at a time, 5 rounds of 6 s");
}

#[test]
#[ignore = "takes a minute: make live SUITE=fleet"]
fn timed_incast_of_seven_into_four_gigabit_is_full_beside_a_slow_sender() {
    let mut links = [HostLink::Gigabit; 8];
    (links[0], links[3]) = (HostLink::Fast, HostLink::Slow);
    let Some(lab) = FleetLab::new(&links) else {
        return;
    };
    let report = lab.report(&["incast", "--sink", "h0", "-t", "3", "-O", "1"]);
    let rows = rows(&report, "incast");
    assert_eq!(levels(&rows), [1, 2, 4, 7], "{report}");

    let all = rows[3];
    let sum = sum_mbps(all);
    let hosts = all["hosts_bps"].as_array().expect("hosts");
    let slow = hosts
        .iter()
        .find(|host| host[0] == "h3")
        .and_then(|host| host[1].as_f64())
        .expect("h3")
        / 1e6;

    let jain = all["jain"].as_f64().expect("an index");
    assert!((3_750.0..=3_900.0).contains(&sum), "{all}");
    assert!((90.0..=98.0).contains(&slow), "{all}");
    assert!((0.82..=0.95).contains(&jain), "{all}");

    let poisonings = report["poisonings"].as_array().expect("poisonings");
    assert!(
        poisonings.len() == 1 && poisonings[0]["suspect"] == "h3",
        "{poisonings:?}"
    );
    assert!(
        findings(&report).iter().all(|(id, _)| id != "FLT-08"),
        "{:?}",
        findings(&report)
    );
    expect_nothing_left(&lab);
}

#[test]
#[ignore = "takes half a minute: make live SUITE=fleet"]
fn timed_both_ladders_of_a_host_start_their_tests_one_after_another() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let words = [
        "incast",
        "--sink",
        "h1",
        "--both",
        "--stagger",
        "100ms",
        "-t",
        "2",
        "-O",
        "0",
    ];
    let report = lab.report(&words);

    for direction in ["incast", "fanout"] {
        let rows = rows(&report, direction);
        assert_eq!(levels(&rows), [1, 2, 3], "{report}");
        assert!(
            rows[1..]
                .iter()
                .all(|row| GIGABIT_MBPS.contains(&sum_mbps(row))),
            "{rows:?}"
        );
    }

    let is_full = |cell: &&Value| cell["task"]["variant"] == "senders=3";
    let start = |cell: &Value| {
        cell["outcome"]["measured"]["start"]["actual_ns"]
            .as_i64()
            .expect("a time")
    };
    let mut starts: Vec<i64> = cells(&report).iter().filter(is_full).map(start).collect();
    starts.sort_unstable();

    let gaps_ms: Vec<i64> = starts
        .windows(2)
        .map(|pair| (pair[1] - pair[0]) / 1_000_000)
        .collect();
    assert!(
        gaps_ms.len() == 2 && gaps_ms.iter().all(|gap| (90..=110).contains(gap)),
        "{gaps_ms:?}"
    );
    assert!(cells(&report).iter().all(|cell| mbps(cell) > 0.0));
    expect_nothing_left(&lab);
}
