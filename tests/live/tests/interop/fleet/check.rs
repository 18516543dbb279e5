//! Goal: a check finds what would stop a run, before any load. Method: hosts in namespaces, one
//! behind a firewall, one without sshd(8).

use linerate_interop::namespaces::run;
use linerate_interop::{Finished, FleetLab, HostLink, Process};

fn check(lab: &FleetLab) -> Finished {
    Process::start(lab.command(&["check"])).finish()
}

/// The row of a host.
fn row(finished: &Finished, host: &str) -> String {
    let row = finished
        .stdout
        .lines()
        .find(|line| line.split_whitespace().next() == Some(host));
    row.unwrap_or_else(|| panic!("no row of {host}: {finished:?}"))
        .to_owned()
}

#[test]
fn filtered_port_and_absent_host_are_named_with_the_next_step() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 4]) else {
        return;
    };
    let all_ready = check(&lab);
    all_ready.expect_code(0).expect_stdout("4 hosts: 4 ready");
    assert!(
        row(&all_ready, "h3").contains("10.96.0.13:5201 data"),
        "{all_ready:?}"
    );
    assert!(!all_ready.stdout.contains("Do  "), "{all_ready:?}");

    let host = lab.host(2);
    run(&format!("ip netns exec {host} nft add table inet filter"));
    run(&format!(
        "ip netns exec {host} nft add chain inet filter input \
         {{ type filter hook input priority 0; }}"
    ));
    run(&format!(
        "ip netns exec {host} nft add rule inet filter input iifname data tcp dport 5201-5209 drop"
    ));

    let filtered = check(&lab);
    filtered
        .expect_code(3)
        .expect_stdout("3 ready, 1 blocked")
        .expect_stdout("h2: port 5201: 3 of 3")
        .expect_stdout("Do       open TCP port 5201 on h2");

    lab.end_sshd(1);
    let absent = check(&lab);
    absent
        .expect_code(3)
        .expect_stdout("1 unreachable")
        .expect_stdout("`ssh h1 true`");
    absent.expect_stdout("Connection refused");
}

#[test]
fn fewer_than_two_hosts_are_no_fleet() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    lab.end_sshd(0);
    check(&lab)
        .expect_code(4)
        .expect_stdout("1 ready, 1 unreachable");
}
