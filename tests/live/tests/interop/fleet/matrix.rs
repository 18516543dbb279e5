//! Goal: a matrix measures each pair over each path and with each setting, and a path that is that
//! of the control connection needs consent. Method: hosts in namespaces with two networks, with a
//! real sshd(8) each.

use linerate_interop::{FleetLab, HostLink, Process};

use super::report::{GIGABIT_MBPS, cells, expect_nothing_left, findings, mbps};

#[test]
#[ignore = "a fifth of a minute: make live SUITE=fleet"]
fn timed_matrix_measures_each_path_as_it_is() {
    let Some(mut lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    lab.add_path();

    let report = lab.report(&[
        "matrix",
        "--paths",
        "lab,mgmt",
        "--shared-path",
        "-t",
        "1",
        "-O",
        "0",
    ]);
    let of = |path: &str| {
        cells(&report)
            .iter()
            .filter(|cell| cell["task"]["path"] == path)
            .map(mbps)
            .collect::<Vec<_>>()
    };
    let (shaped, free) = (of("lab"), of("mgmt"));
    assert!(
        shaped.len() == 2 && shaped.iter().all(|rate| GIGABIT_MBPS.contains(rate)),
        "{shaped:?}"
    );
    assert!(
        free.len() == 2 && free.iter().all(|rate| *rate > 1_000.0),
        "no shaper is on the other path: {free:?}"
    );
    expect_nothing_left(&lab);
}

#[test]
#[ignore = "a fifth of a minute: make live SUITE=fleet"]
fn congestion_control_of_a_variant_is_that_of_its_tests() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    let words = [
        "run",
        "matrix",
        "--vary",
        "cc=reno,nosuch",
        "-t",
        "1",
        "-O",
        "0",
        "--json",
    ];
    let finished = Process::start(lab.command(&words)).finish();
    finished.expect_code(6);

    let report = finished.json();
    let of = |variant: &str| {
        cells(&report)
            .iter()
            .filter(|cell| cell["task"]["variant"] == variant)
            .collect::<Vec<_>>()
    };
    assert!(
        of("cc=reno")
            .iter()
            .all(|cell| cell["outcome"]["measured"].is_object()),
        "{report}"
    );

    let detail = |cell: &&serde_json::Value| cell["outcome"]["not_run"]["detail"].to_string();
    assert!(
        of("cc=nosuch")
            .iter()
            .map(detail)
            .all(|detail| detail.contains("TCP_CONGESTION")),
        "{report}"
    );
    assert_eq!((of("cc=reno").len(), of("cc=nosuch").len()), (2, 2));
    expect_nothing_left(&lab);
}

#[test]
fn route_over_the_port_of_the_control_connection_is_refused_without_consent() {
    let Some(lab) = FleetLab::new(&[HostLink::Gigabit; 2]) else {
        return;
    };
    lab.misroute(1);
    let words = ["run", "mesh", "-t", "1", "-O", "0"];
    let refused = Process::start(lab.command(&words)).finish();
    refused
        .expect_code(4)
        .expect_stderr("h1: ")
        .expect_stderr("(FLT-13)")
        .expect_stderr("--shared-path");
    refused.expect_stderr("route to 10.96.0.10 through mgmt");

    let checked = Process::start(lab.command(&["check"])).finish();
    checked
        .expect_code(3)
        .expect_stdout("1 ready, 1 blocked")
        .expect_stdout("FLT-13");
    let report = lab.report(&["mesh", "-t", "1", "-O", "0", "--shared-path"]);
    assert!(
        cells(&report)
            .iter()
            .all(|cell| cell["outcome"]["measured"].is_object()),
        "{report}"
    );
    assert_eq!(report["header"]["is_control_shared"], true);
    assert!(
        findings(&report).iter().all(|(id, _)| id != "FLT-13"),
        "{:?}",
        findings(&report)
    );
    expect_nothing_left(&lab);
}
