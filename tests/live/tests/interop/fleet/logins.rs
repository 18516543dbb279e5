//! Goal: what users have set up for their own logins does not stop a fleet. Method: hosts in
//! namespaces with a real sshd(8) each, and the coordinator's configuration of ssh(1) changed.

use std::process::Command;
use std::time::{Duration, Instant};

use linerate_interop::{FleetLab, HostLink, Process, TIMEOUT, wait_until};

use super::report::{cells, expect_nothing_left};

/// Hosts behind a jump host, and how long it may take to reach all.
const BEHIND_JUMP: usize = 24;
const REACHED: Duration = Duration::from_secs(30);

#[track_caller]
fn expect_complete(lab: &FleetLab, hosts: usize) {
    let report = lab.report(&["mesh", "-t", "1", "-O", "0"]);
    let measured = cells(&report)
        .iter()
        .filter(|cell| cell["outcome"]["measured"].is_object());
    assert_eq!(measured.count(), hosts * (hosts - 1), "{report}");
    expect_nothing_left(lab);
}

#[test]
#[ignore = "a tenth of a minute: make live SUITE=fleet"]
fn text_of_a_login_is_skipped() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    let words = "echo Welcome; echo; cat /etc/services; eval \"$SSH_ORIGINAL_COMMAND\"";
    lab.configure_sshd(1, &format!("ForceCommand {words}\n"));
    expect_complete(&lab, 2);
}

#[test]
#[ignore = "a tenth of a minute: make live SUITE=fleet"]
fn shared_connections_of_the_user_leave_no_process() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    lab.configure_ssh(
        "Host *\n  ControlMaster auto\n  ControlPersist yes\n  ControlPath %d/.ssh/linerate-%C\n",
    );
    expect_complete(&lab, 2);

    let left = || {
        Command::new("ip")
            .args(["netns", "pids", &lab.coordinator()])
            .output()
            .expect("ip")
            .stdout
    };
    assert!(
        wait_until(TIMEOUT, || left().is_empty()),
        "processes of ssh: {}",
        String::from_utf8_lossy(&left())
    );
}

#[test]
#[ignore = "half a minute: make live SUITE=fleet"]
fn hosts_behind_a_jump_host_that_drops_logins_are_all_reached() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 1 + BEHIND_JUMP]) else {
        return;
    };
    lab.configure_sshd(0, "MaxStartups 4:100:4\n");
    lab.configure_ssh("Host * !h0\n  ProxyJump h0\n");

    let begin = Instant::now();
    let check = Process::start(lab.command(&["check"])).finish_within(2 * REACHED);
    check.expect_code(0).expect_stdout("25 hosts: 25 ready");
    assert!(
        begin.elapsed() <= REACHED,
        "{:?}: {check:?}",
        begin.elapsed()
    );
    assert!(
        lab.sshd_log(0).contains("MaxStartups"),
        "logins were dropped: {}",
        lab.sshd_log(0)
    );
    expect_nothing_left(&lab);
}
