//! Goal: a mesh over ssh measures each link as it is, names the host that is slow, and leaves nothing behind. Method: hosts in
//! namespaces behind shapers, with a real sshd(8) each.

use std::time::Duration;

use linerate_interop::{FleetLab, HostLink, Process, Signal, TIMEOUT, wait_until};
use serde_json::Value;

/// Goodput of TCP through tbf(8), which counts no preamble, frame check sequence and gap: 1448 of 1514 bytes, and its burst.
const GIGABIT_MBPS: std::ops::RangeInclusive<f64> = 900.0..=1_000.0;

fn cells(report: &Value) -> &Vec<Value> {
    report["cells"].as_array().expect("cells")
}

fn mbps(cell: &Value) -> f64 {
    let goodput = cell["outcome"]["measured"]["goodput_bps"].as_f64();
    goodput.unwrap_or_else(|| panic!("no result: {cell}")) / 1e6
}

fn findings(report: &Value) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let all = report["findings"].as_array().expect("findings").iter();
    all.map(|finding| (text(finding, "id"), text(finding, "subject"))).collect()
}

/// Agents and workers end with their connections.
#[track_caller]
fn expect_nothing_left(lab: &FleetLab) {
    lab.expect_nothing_left(TIMEOUT);
}

#[test]
fn timed_mesh_measures_the_link_of_each_pair_and_starts_together() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else { return };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0"]);
    assert_eq!(cells(&report).len(), 12, "{report}");
    for cell in cells(&report) {
        assert!(GIGABIT_MBPS.contains(&mbps(cell)), "{cell}");
        let start = &cell["outcome"]["measured"]["start"];
        let late_ns = start["actual_ns"].as_i64().expect("a time") - start["planned_ns"].as_i64().expect("a time");
        assert!((-10_000_000..=10_000_000).contains(&late_ns), "{cell}");
    }
    assert_eq!(findings(&report), [], "{report}");
    expect_nothing_left(&lab);
}

#[test]
fn timed_slow_host_is_named_and_no_other() {
    let mut links = [HostLink::Gigabit; 8];
    links[6] = HostLink::Slow;
    let Some(lab) = FleetLab::new(&links) else { return };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0"]);
    assert_eq!(cells(&report).len(), 56, "{report}");
    assert_eq!(findings(&report), [("FLT-01".to_owned(), "h6".to_owned())], "{report}");
    expect_nothing_left(&lab);
}

#[test]
fn interrupt_ends_the_tests_on_all_hosts_and_reports_what_is_complete() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else { return };
    let run = Process::start(lab.command(&["run", "mesh", "-t", "5", "-O", "0"]));
    assert!(wait_until(TIMEOUT, || run.stderr().contains("round 2/3")), "{run:?}");
    run.signal(Signal::Interrupt);
    let finished = run.finish_within(Duration::from_secs(5));
    finished.expect_code(130);
    assert!(finished.stdout.contains("cancelled"), "{finished:?}");
    expect_nothing_left(&lab);
}

#[test]
fn host_without_sshd_is_named_and_the_others_are_tested() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 3]) else { return };
    lab.end_sshd(1);
    let run = Process::start(lab.command(&["run", "mesh", "-t", "1", "-O", "0", "--json"]));
    let finished = run.finish();
    finished.expect_stderr("h1: ");
    let report = finished.json();
    let measured = cells(&report).iter().filter(|cell| cell["outcome"]["measured"].is_object());
    let tasks: Vec<(&Value, &Value)> = measured.map(|cell| (&cell["task"]["source"], &cell["task"]["sink"])).collect();
    assert_eq!(tasks.len(), 2, "{report}");
    assert!(tasks.iter().all(|(source, sink)| *source != "h1" && *sink != "h1"), "{tasks:?}");
    finished.expect_code(6);
    expect_nothing_left(&lab);
}

#[test]
fn dry_run_connects_to_no_host() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else { return };
    lab.end_sshd(0);
    lab.end_sshd(1);
    let finished = Process::start(lab.command(&["run", "mesh", "--dry-run"])).finish();
    finished.expect_code(0);
    assert!(finished.stdout.starts_with("mesh, 2 hosts, 2 cells"), "{finished:?}");
}
