//! Goal: whatever ends in the middle of a run, the other pairs are measured, and no process and no
//! listener stays on any host. Method: hosts in namespaces; processes are killed or frozen by their
//! id, cables are taken out of the switch.

use std::time::Duration;

use linerate_interop::{Finished, FleetLab, HostLink, Process, Signal, TIMEOUT, wait_until};
use serde_json::Value;

/// Longest silence of the coordinator in a lab, where the tested network is another one, and the
/// second that is promised after it.
const LEASE: Duration = Duration::from_secs(3 + 1);
/// A second is promised; the rest is for a busy machine.
const GONE: Duration = Duration::from_secs(3);
/// The host to which something happens, in a round with the others.
const VICTIM: usize = 1;

/// More than the preparation of a run moves.
const DATA_BYTES: u64 = 8_000_000;

/// A mesh of four hosts whose first tests run.
fn running_mesh(lab: &FleetLab) -> Process {
    let run = Process::start(lab.command(&["run", "mesh", "-t", "3", "-O", "0", "--json"]));
    assert!(
        wait_until(TIMEOUT, || lab.sent_bytes(VICTIM) > DATA_BYTES),
        "{run:?}"
    );
    run
}

fn agent(lab: &FleetLab) -> u32 {
    let found = lab
        .processes_of(VICTIM)
        .into_iter()
        .find(|(_, line)| line.contains("fleet agent"));
    found.expect("an agent").0
}

/// Cells with a result and without, of the victim or of the others.
fn count(report: &Value, is_measured: bool, is_of_victim: bool) -> usize {
    let victim = format!("h{VICTIM}");
    let is_it = |cell: &&Value| {
        let ends = [&cell["task"]["source"], &cell["task"]["sink"]];
        let of_victim = ends.iter().any(|end| **end == victim.as_str());
        cell["outcome"]["measured"].is_object() == is_measured && of_victim == is_of_victim
    };

    report["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .filter(is_it)
        .count()
}

/// All six cells between the other hosts have a result.
#[track_caller]
fn expect_others_measured(finished: &Finished) -> Value {
    let report = finished.json();
    assert_eq!(count(&report, true, false), 6, "{finished:?}");
    report
}

#[test]
#[ignore = "waits for leases and timeouts of ssh: make live SUITE=fleet"]
fn control_link_that_is_cut_ends_the_tests_of_its_host_by_the_lease() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let run = running_mesh(&lab);
    lab.unplug(VICTIM, false);
    assert!(
        wait_until(LEASE + GONE, || lab.processes_of(VICTIM).is_empty()),
        "{:?}",
        lab.processes_of(VICTIM)
    );

    let finished = run.finish();
    let report = expect_others_measured(&finished);
    assert!(count(&report, false, true) >= 4, "{report}");
    finished.expect_code(6);
    lab.expect_nothing_left(GONE);
}

#[test]
#[ignore = "waits for leases and timeouts of ssh: make live SUITE=fleet"]
fn host_that_vanishes_in_a_round_frees_its_partner_and_the_others_are_measured() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let run = running_mesh(&lab);
    lab.unplug(VICTIM, true);

    let finished = run.finish_within(Duration::from_secs(40));
    let report = expect_others_measured(&finished);
    assert_eq!(count(&report, false, true), 6, "{report}");
    finished.expect_code(6);
    lab.expect_nothing_left(LEASE + GONE);
}

#[test]
#[ignore = "a quarter of a minute: make live SUITE=fleet"]
fn agent_that_is_killed_leaves_nothing_and_the_others_are_measured() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let run = running_mesh(&lab);
    Signal::Kill.send_to(agent(&lab));
    assert!(
        wait_until(GONE, || lab.processes_of(VICTIM).is_empty()),
        "{:?}",
        lab.processes_of(VICTIM)
    );

    let finished = run.finish();
    expect_others_measured(&finished);
    finished.expect_code(6);
    lab.expect_nothing_left(GONE);
}

#[test]
#[ignore = "half a minute: make live SUITE=fleet"]
fn frozen_host_is_skipped_and_ends_everything_when_it_goes_on() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let run = running_mesh(&lab);
    let agent = agent(&lab);
    Signal::Stop.send_to(agent);

    let finished = run.finish_within(Duration::from_secs(60));
    expect_others_measured(&finished);
    finished
        .expect_code(6)
        .expect_stderr(&format!("h{VICTIM}: did not confirm its end"));
    Signal::Continue.send_to(agent);
    lab.expect_nothing_left(GONE);
}

#[test]
#[ignore = "a quarter of a minute: make live SUITE=fleet"]
fn worker_that_hangs_is_killed_at_its_deadline_and_the_next_rounds_run() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let run = running_mesh(&lab);

    // The server of the host is the first one.
    let (client, line) = lab.processes_of(VICTIM).pop().expect("a worker");
    assert!(line.contains("fleet worker"), "{line}");
    Signal::Stop.send_to(client);

    let finished = run.finish();
    let report = expect_others_measured(&finished);
    assert!(matches!(count(&report, false, true), 1 | 2), "{report}");
    assert!(
        !lab.processes()
            .iter()
            .any(|line| line.contains("fleet worker")),
        "{:?}",
        lab.processes()
    );
    lab.expect_nothing_left(GONE);
}

#[test]
#[ignore = "mounts a file system: make live SUITE=fleet"]
fn full_disk_of_the_coordinator_loses_the_record_and_leaves_no_half_report() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    let state = tempfile::tempdir().expect("a folder");
    let folder = state.path().to_str().expect("a plain path");
    let words = lab.command(&["run", "mesh", "-t", "1", "-O", "0"]);
    let words: Vec<&str> = words.get_args().filter_map(|word| word.to_str()).collect();

    // ip-netns(8) gives its command a mount namespace of its own.
    let script = format!(
        "mount -t tmpfs -o size=64k none {folder} && head -c 56k /dev/zero >{folder}/full && \
         export XDG_STATE_HOME={folder} && unset LINERATE_STORE && \"$@\" --csv {folder}/cells.csv \
         --html {folder}/report.html; code=$?; ls {folder} >&2; exit $code"
    );
    let mut command = std::process::Command::new("ip");
    let (namespace, program) = words.split_at(3);
    command
        .args(namespace)
        .args(["sh", "-c", &script, "sh"])
        .args(program);

    let finished = Process::start(command).finish();
    finished
        .expect_code(1)
        .expect_stdout("2 of 2 cells")
        .expect_stderr("record")
        .expect_stderr("cannot write");
    assert!(
        !finished.stderr.lines().any(|line| line == "report.html"),
        "{finished:?}"
    );
    lab.expect_nothing_left(GONE);
}
