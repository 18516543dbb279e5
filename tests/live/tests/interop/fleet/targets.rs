//! Goal: a server that runs without an agent is measured with the other hosts, one test at a time,
//! and stays as it was. Method: hosts in namespaces; in one of them a stock iperf3 runs, which
//! nothing else reaches.

use linerate_interop::{FleetLab, HostLink, Process};
use serde_json::Value;

use super::report::{GIGABIT_MBPS, cells, expect_nothing_left, findings, mbps};

/// All hosts of a gigabit; the last one has a server and no agent.
fn lab(hosts: usize) -> Option<FleetLab> {
    let mut lab = FleetLab::new(&vec![HostLink::Gigabit; hosts])?;
    lab.serve_stock(hosts - 1);
    Some(lab)
}

/// Every cell has a rate of the link, and nothing is wrong.
#[track_caller]
fn expect_rates(report: &Value, count: usize) {
    assert_eq!(cells(report).len(), count, "{report}");
    for cell in cells(report) {
        assert!(GIGABIT_MBPS.contains(&mbps(cell)), "{cell}");
    }
    assert_eq!(findings(report), [], "{report}");
}

/// Hosts of the report that are servers without an agent.
fn targets(report: &Value) -> Vec<&str> {
    let hosts = report["header"]["hosts"].as_array().expect("hosts").iter();
    hosts
        .filter(|host| host["is_target_only"] == true)
        .filter_map(|host| host["id"].as_str())
        .collect()
}

#[test]
fn timed_mesh_with_a_server_without_an_agent_is_complete_and_recorded() {
    let Some(lab) = lab(3) else { return };
    let report = lab.report(&["mesh", "-t", "1", "-O", "0"]);
    expect_rates(&report, 6);
    assert_eq!(targets(&report), ["h2"], "{report}");
    expect_nothing_left(&lab);

    let record = lab.record("last");
    assert_eq!(
        record["trials"].as_array().map(Vec::len),
        Some(6),
        "{record}"
    );
    let hosts = record["hosts"].as_array().expect("hosts");
    let server = hosts
        .iter()
        .find(|host| host["role"] == "h2")
        .expect("the server");
    assert_eq!(
        (server["name"].as_str(), &server["snapshot"]),
        (Some("10.96.0.12:5201"), &Value::Null),
        "{server}"
    );
    assert!(
        hosts
            .iter()
            .filter(|host| host["role"] != "h2")
            .all(|host| host["snapshot"].is_object()),
        "{record}"
    );
}

#[test]
#[ignore = "half a minute: make live SUITE=fleet"]
fn timed_mesh_over_shells_with_a_server_without_an_agent_is_complete() {
    let Some(lab) = lab(4) else { return };
    let report = lab.report(&["mesh", "-t", "2", "-O", "0", "--carrier", "script"]);
    expect_rates(&report, 12);
    assert_eq!(targets(&report), ["h3"], "{report}");
    expect_nothing_left(&lab);
}

#[test]
#[ignore = "half a minute: make live SUITE=fleet"]
fn timed_server_without_an_agent_sends_and_receives_in_pairs_stress_and_ladders() {
    let Some(lab) = lab(4) else { return };
    expect_rates(
        &lab.report(&["pairs", "--pairs", "h0:h3,h1:h3", "-t", "1", "-O", "0"]),
        4,
    );

    let stress = lab.report(&[
        "pairs",
        "--pairs",
        "h0:h3,h1:h3",
        "--mode",
        "stress",
        "-t",
        "1",
        "-O",
        "0",
    ]);
    expect_rates(&stress, 4);
    let incast = lab.report(&["incast", "--sink", "h0", "--both", "-t", "2", "-O", "0"]);
    let measured = |cell: &&Value| cell["outcome"]["measured"].is_object();
    assert_eq!(
        cells(&incast).iter().filter(measured).count(),
        cells(&incast).len(),
        "{incast}"
    );

    let last = incast["ladder"]
        .as_array()
        .and_then(|rows| rows.last())
        .expect("rows");
    assert_eq!(
        last["hosts_bps"].as_array().map(Vec::len),
        Some(3),
        "{last}"
    );
    expect_nothing_left(&lab);
}

#[test]
fn server_that_does_not_listen_is_named_with_the_next_step() {
    let Some(mut lab) = lab(3) else { return };
    let ready = Process::start(lab.command(&["check"])).finish();
    ready
        .expect_code(0)
        .expect_stdout("3 hosts: 3 ready")
        .expect_stdout("a server without an agent");
    lab.end_stock(2);

    let absent = Process::start(lab.command(&["check"])).finish();
    absent.expect_code(3).expect_stdout("2 ready, 1 blocked");

    // A remark is wrapped where another one, such as that of an uncertain clock, takes its place.
    let words = absent
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(words.contains("port 5201: 2 of 2 hosts"), "{absent:?}");
    absent.expect_stdout("Do       a server has to listen at 10.96.0.12:5201");

    let ladder = Process::start(lab.command(&["run", "incast", "--sink", "h2"])).finish();
    ladder
        .expect_code(2)
        .expect_stderr("one test at a time")
        .expect_stderr("`linerate fleet run pairs`");
}
