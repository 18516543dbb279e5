//! Goal: each fault of a host, a pair, an uplink or a group is named as what it is, and nothing
//! else is. Method: hosts in namespaces behind shapers and filters, with a real sshd(8) each; each
//! fault as often as `LINERATE_FLEET_RUNS` has it, once without it, and no fault four times as
//! often.

use linerate_interop::{FleetLab, HostLink};
use serde_json::Value;

use super::report::{expect_nothing_left, findings};

/// Seconds of each test, without a warm-up.
const TESTS: [&str; 4] = ["-t", "2", "-O", "0"];

/// Runs of a healthy fleet for each run of a faulty one.
const HEALTHY_RUNS: usize = 4;
/// Runs of a healthy fleet, of which one may have a finding.
const RUNS_PER_FINDING: usize = 20;

fn runs() -> usize {
    std::env::var("LINERATE_FLEET_RUNS")
        .ok()
        .and_then(|runs| runs.parse().ok())
        .unwrap_or(1)
}

fn mesh(lab: &FleetLab, words: &[&str]) -> Value {
    lab.report(&[&["mesh"], words, &TESTS].concat())
}

/// Every run has this finding and no other.
fn assert_found(lab: &FleetLab, words: &[&str], id: &str, subject: &str) {
    for _ in 0..runs() {
        let report = mesh(lab, words);
        assert_eq!(
            findings(&report),
            [(id.to_owned(), subject.to_owned())],
            "{report}"
        );
    }

    expect_nothing_left(lab);
}

fn gigabit_but(number: usize, link: HostLink) -> [HostLink; 6] {
    let mut links = [HostLink::Gigabit; 6];
    links[number] = link;
    links
}

#[test]
#[ignore = "takes half a minute: make live SUITE=fleet"]
fn timed_slow_host_is_named() {
    let Some(lab) = FleetLab::new(&gigabit_but(3, HostLink::Slow)) else {
        return;
    };
    assert_found(&lab, &[], "FLT-01", "h3");
}

#[test]
#[ignore = "takes a minute: make live SUITE=fleet"]
fn timed_healthy_fleet_has_a_finding_in_one_of_twenty_runs_at_most() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 6]) else {
        return;
    };
    let reports: Vec<Value> = (0..HEALTHY_RUNS * runs())
        .map(|_| mesh(&lab, &[]))
        .collect();
    let wrong: Vec<_> = reports
        .iter()
        .map(findings)
        .filter(|found| !found.is_empty())
        .collect();
    assert!(
        wrong.len() * RUNS_PER_FINDING <= reports.len(),
        "{} of {}: {wrong:?}",
        wrong.len(),
        reports.len()
    );

    for report in reports.iter().filter(|report| findings(report).is_empty()) {
        let hosts = report["effects"][0]["hosts"]
            .as_array()
            .expect("hosts")
            .iter();
        let effects =
            hosts.flat_map(|host| [&host["sends"]["effect"], &host["receives"]["effect"]]);
        assert!(
            effects
                .filter_map(Value::as_f64)
                .all(|effect| effect.abs() <= 0.01),
            "{report}"
        );
    }

    expect_nothing_left(&lab);
}

// Both ways at once, acknowledgements of the good direction wait in the full queue of the slow one.
#[test]
#[ignore = "takes half a minute: make live SUITE=fleet"]
fn timed_host_that_receives_slowly_is_named() {
    let Some(lab) = FleetLab::new(&gigabit_but(2, HostLink::SlowToReceive)) else {
        return;
    };
    assert_found(&lab, &["--one-way"], "FLT-02", "h2");
}

#[test]
#[ignore = "takes half a minute: make live SUITE=fleet"]
fn timed_host_that_sends_slowly_is_named() {
    let Some(lab) = FleetLab::new(&gigabit_but(4, HostLink::SlowToSend)) else {
        return;
    };
    assert_found(&lab, &["--one-way"], "FLT-03", "h4");
}

#[test]
#[ignore = "takes half a minute: make live SUITE=fleet"]
fn timed_pair_behind_a_filter_is_named() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 6]) else {
        return;
    };
    lab.limit_pair(1, 3);
    assert_found(&lab, &[], "FLT-04", "h1 and h3");
}

#[test]
#[ignore = "takes two minutes: make live SUITE=fleet"]
fn timed_uplink_of_two_racks_is_named_unless_the_rounds_respect_it() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 8]) else {
        return;
    };
    lab.divide(4);
    let found = findings(&mesh(&lab, &[]));
    let is_uplink = |(id, _): &(String, String)| id == "FLT-05";
    assert!(
        !found.is_empty() && found.iter().all(is_uplink),
        "{found:?}"
    );

    let report = mesh(&lab, &["--mode", "rack-safe"]);
    assert_eq!(findings(&report), [], "{report}");
    // Sixteen pairs cross an uplink that carries one.
    let rounds = report["header"]["rounds"].as_u64().expect("rounds");
    assert!(rounds <= 16 * 5 / 4, "{rounds} rounds");
    expect_nothing_left(&lab);
}

#[test]
#[ignore = "takes half a minute: make live SUITE=fleet"]
fn timed_group_with_another_mtu_is_named_with_the_mtu() {
    let mut links = [HostLink::Gigabit; 6];
    (links[2], links[4]) = (HostLink::Narrow, HostLink::Narrow);
    let Some(lab) = FleetLab::new(&links) else {
        return;
    };
    let report = mesh(&lab, &[]);
    let expected = |id: &str| (id.to_owned(), "h2, h4".to_owned());
    let found = findings(&report);
    assert!(
        found.contains(&expected("FLT-11")) && found.contains(&expected("FLT-17")),
        "{found:?}"
    );

    let groups = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .find(|finding| finding["id"] == "FLT-11");
    let evidence = groups
        .and_then(|groups| groups["evidence"].as_array())
        .expect("evidence")
        .iter();
    let facts = evidence
        .filter_map(|one| one["fact"].as_str())
        .filter(|fact| fact.contains("on the slower"));
    let first: Vec<&str> = facts.take(3).collect();
    assert!(
        first
            .iter()
            .any(|fact| fact.contains(".net.mtu: 1500 on the faster, 1400 on the slower")),
        "{first:?}"
    );
    expect_nothing_left(&lab);
}
