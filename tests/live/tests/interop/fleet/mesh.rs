//! Goal: a mesh over ssh measures each link as it is, names the host that is slow, and leaves
//! nothing behind. Method: hosts in namespaces behind shapers, with a real sshd(8) each.

use std::time::Duration;

use linerate_interop::namespaces::run;
use linerate_interop::{FleetLab, HostLink, Process, Signal, TIMEOUT, wait_until};
use serde_json::Value;

use super::report::{GIGABIT_MBPS, cells, expect_nothing_left, findings, mbps};

#[test]
fn timed_mesh_measures_the_link_of_each_pair_and_starts_together() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0"]);
    assert_eq!(cells(&report).len(), 12, "{report}");

    for cell in cells(&report) {
        assert!(GIGABIT_MBPS.contains(&mbps(cell)), "{cell}");
        let start = &cell["outcome"]["measured"]["start"];
        let late_ns = start["actual_ns"].as_i64().expect("a time")
            - start["planned_ns"].as_i64().expect("a time");
        assert!((-10_000_000..=10_000_000).contains(&late_ns), "{cell}");
    }

    assert_eq!(findings(&report), [], "{report}");
    expect_nothing_left(&lab);
}

#[test]
fn timed_slow_host_is_named_and_no_other() {
    let mut links = [HostLink::Gigabit; 8];
    links[6] = HostLink::Slow;
    let Some(lab) = FleetLab::new(&links) else {
        return;
    };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0"]);
    assert_eq!(cells(&report).len(), 56, "{report}");
    assert_eq!(
        findings(&report),
        [("FLT-01".to_owned(), "h6".to_owned())],
        "{report}"
    );
    expect_nothing_left(&lab);
}

#[test]
fn interrupt_ends_the_tests_on_all_hosts_and_reports_what_is_complete() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let run = Process::start(lab.command(&["run", "mesh", "-t", "5", "-O", "0"]));
    assert!(
        wait_until(TIMEOUT, || run.stderr().contains("round 2/3")),
        "{run:?}"
    );
    run.signal(Signal::Interrupt);

    let finished = run.finish_within(Duration::from_secs(5));
    finished.expect_code(130);
    assert!(finished.stdout.contains("cancelled"), "{finished:?}");
    expect_nothing_left(&lab);
}

#[test]
fn host_without_sshd_is_named_and_the_others_are_tested() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 3]) else {
        return;
    };
    lab.end_sshd(1);
    let run = Process::start(lab.command(&["run", "mesh", "-t", "1", "-O", "0", "--json"]));
    let finished = run.finish();
    finished.expect_stderr("h1: ");

    let report = finished.json();
    let measured = cells(&report)
        .iter()
        .filter(|cell| cell["outcome"]["measured"].is_object());
    let tasks: Vec<(&Value, &Value)> = measured
        .map(|cell| (&cell["task"]["source"], &cell["task"]["sink"]))
        .collect();
    assert_eq!(tasks.len(), 2, "{report}");
    assert!(
        tasks
            .iter()
            .all(|(source, sink)| *source != "h1" && *sink != "h1"),
        "{tasks:?}"
    );
    finished.expect_code(6);
    expect_nothing_left(&lab);
}

#[test]
fn first_line_names_hosts_and_pairs_without_a_result() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    lab.end_sshd(1);
    let (host, closed) = (lab.host(2), "10.96.0.13");
    run(&format!("ip netns exec {host} nft add table inet filter"));
    run(&format!(
        "ip netns exec {host} nft add chain inet filter output \
         {{ type filter hook output priority 0; }}"
    ));
    run(&format!(
        "ip netns exec {host} nft add rule inet filter output ip daddr {closed} tcp dport \
         5201-5209 drop"
    ));

    let finished = Process::start(lab.command(&["run", "mesh", "-t", "1", "-O", "0"])).finish();
    let first = finished.stdout.split("\n\n").next().unwrap_or_default();
    let first = first.replace('\n', " ");
    assert!(
        first.contains("7 of 12 cells without a result: h1 unreachable; h2 to h3 blocked"),
        "{finished:?}"
    );
    finished
        .expect_stdout("`ssh h1 true` has to work")
        .expect_stdout("h2 to h3 blocked: open the ports");
    expect_nothing_left(&lab);
}

#[test]
fn dry_run_connects_to_no_host() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    lab.end_sshd(0);
    lab.end_sshd(1);

    let finished = Process::start(lab.command(&["run", "mesh", "--dry-run"])).finish();
    finished.expect_code(0);
    assert!(
        finished.stdout.starts_with("mesh, 2 hosts, 2 cells"),
        "{finished:?}"
    );
}
