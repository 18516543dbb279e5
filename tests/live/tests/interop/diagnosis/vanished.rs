//! Goal: datagrams that do not arrive are lost, for the diagnosis, for limits and in the record; a
//! rate that the user set is the limit of a test that reaches it. Method: two hosts with a router
//! between them, which drops what the test says.

use std::path::Path;
use std::time::Duration;

use linerate_interop::namespaces::{CLIENT_PORT, Net, SERVER, SERVER_PORT, inside};
use linerate_interop::{NativeHost, Process, ours};
use serde_json::Value;

/// Drops packets on their way through the router.
fn drop_all(net: &Net, hook: &str, packets: &str) {
    net.in_middle(&format!(
        "nft 'table ip t {{ chain c {{ type filter hook {hook}; {packets} drop; }}; }}'"
    ));
}

fn last_record(store: &Path) -> Value {
    let mut command = std::process::Command::new(ours().path());
    command
        .args(["history", "show", "last", "--json", "--store"])
        .arg(store);
    Process::start(command).finish().expect_clean().json()
}

fn measure(record: &Value, name: &str) -> Option<f64> {
    let measures = record["trials"][0]["measures"].as_array()?;
    measures.iter().find(|measure| measure["name"] == name)?["value"].as_f64()
}

/// A receiver knows of no datagram behind the last one that it saw.
#[test]
fn udp_that_vanishes_is_loss_for_the_limit_the_diagnosis_and_the_record() {
    let Some(net) = Net::routed() else { return };
    let _server = net.server();
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("history.db");

    let words = [
        "iperf3",
        "-c",
        SERVER,
        "--forceflush",
        "-u",
        "-b",
        "5M",
        "-t",
        "3",
        "--lr-doctor",
        "--lr-record",
        "--lr-expect",
    ];
    let mut command = inside(&net.a, ours().path(), &[&words[..], &["loss<=1%"]].concat());
    command.env("LINERATE_STORE", &store);

    let client = Process::start(command);
    // The first interval may end late.
    client.wait_for_stdout("0.00-1.0", 1);
    drop_all(&net, "forward priority 0", "meta l4proto udp");

    let finished = client.finish();
    finished.expect_code(5).expect_stderr("loss<=1%");
    let text = &finished.stdout;
    assert!(
        text.contains("the path between the hosts is the limit"),
        "{text}"
    );
    assert!(
        !text.contains("no datagrams lost") && !text.contains("the target rate is reached"),
        "{text}"
    );

    let record = last_record(&store);
    let lost = measure(&record, "lost_share").unwrap_or_else(|| panic!("no loss: {record:#}"));
    assert!((0.3..0.9).contains(&lost), "{lost}: {record:#}");

    let received = measure(&record, "received_bps").expect("a rate");
    assert!((0.5e6..4e6).contains(&received), "{received}: {record:#}");
}

#[test]
fn udp_that_is_blocked_has_that_error_where_a_diagnosis_is_wanted() {
    let Some(net) = Net::routed() else { return };
    let _server = net.server();
    drop_all(&net, "forward priority 0", "meta l4proto udp");

    let client = net.client(&["-u", "-t", "1", "--lr-doctor"]).finish();
    client.expect_code(1).expect_stderr("UDP is blocked");
    assert!(
        !client.stderr.contains("temporarily unavailable"),
        "{client:?}"
    );

    // A server of iperf3 alone.
    let (client, _) = NativeHost::both(&net);
    let words = [
        "-q",
        "--side-probe",
        "none",
        "--only",
        "datagrams",
        "-b",
        "10M",
    ];
    client
        .test(SERVER, &words)
        .finish_within(Duration::from_secs(60))
        .expect_code(1)
        .expect_stderr("UDP is blocked");
}

#[test]
fn fragments_that_vanish_are_the_loss_of_all_datagrams() {
    let Some(net) = Net::routed() else { return };
    let _server = net.server();
    // Before the router puts fragments together.
    drop_all(
        &net,
        "prerouting priority -450",
        "ip frag-off & 0x3fff != 0",
    );

    let client = net.client(&[
        "-J",
        "--lr-doctor",
        "-u",
        "-b",
        "10M",
        "-l",
        "8192",
        "-t",
        "1",
    ]);
    let report = client.finish().json();
    let diagnosis = &report["lr_doctor"];
    assert_eq!(diagnosis["verdict"]["verdict"], "path-mtu", "{diagnosis:#}");

    let split = &diagnosis["loss"][0];
    assert!(
        split["lost"].as_u64().is_some_and(|lost| lost > 100),
        "{split}"
    );
    assert_eq!(split["lost"], split["network"], "{split}");
    assert!(
        !diagnosis.to_string().contains("no datagrams lost"),
        "{diagnosis:#}"
    );
}

/// The rates of all loads, and with one stream.
fn rates(report: &Value) -> Vec<f64> {
    let phases = report["phases"].as_array().expect("loads").iter();
    let names = ["up_bps", "down_bps", "single_stream_bps"];
    phases
        .flat_map(|phase| names.into_iter().filter_map(|name| phase[name].as_f64()))
        .collect()
}

#[test]
fn timed_a_rate_that_is_reached_is_the_limit() {
    let Some(net) = Net::routed() else { return };
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&["--facts", "all"]);
    let report = client.report(SERVER, &["--profile", "quick", "-b", "50M"]);
    let verdict = &report["diagnosis"]["verdict"];
    assert!(
        verdict["sentence"]
            .as_str()
            .is_some_and(|text| text.contains("the target rate is reached")),
        "{verdict:#}"
    );

    let rates = rates(&report);
    assert!(
        rates.iter().all(|rate| (40e6..=50e6).contains(rate)),
        "{rates:?}"
    );
}

#[test]
fn timed_a_rate_that_is_reached_over_loopback_is_the_limit() {
    let host = NativeHost::here();
    let server = host.serve(&[]);
    let target = format!("127.0.0.1:{}", server.port);
    let test = host
        .test(&target, &["--profile", "quick", "-b", "50M", "-q"])
        .finish_within(Duration::from_secs(60));
    test.expect_code(0)
        .expect_stdout("Result   the target rate is reached");
    assert!(!test.stdout.contains("runs both ends"), "{test:?}");
}

/// The server is a program of this machine that gives no facts, in a namespace of its own.
#[test]
fn server_of_the_test_is_none_of_the_other_programs() {
    let Some(net) = Net::new() else { return };
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&[]);
    let native = client.report(SERVER, &["--only", "down,up", "--time", "3"])["diagnosis"].clone();

    let foreign = net
        .client(&["-J", "--lr-doctor", "-t", "3"])
        .finish()
        .json()["lr_doctor"]
        .clone();
    for diagnosis in [native, foreign] {
        assert!(
            diagnosis["hosts"]
                .as_array()
                .is_some_and(|hosts| hosts.len() == 1),
            "{diagnosis:#}"
        );
        let text = diagnosis.to_string();
        assert!(
            !text.contains("other programs use") && !text.contains("end these programs"),
            "{diagnosis:#}"
        );
    }
}

/// Without probes a load is cut short, and a burst is a large part of it.
#[test]
fn goodput_of_a_short_load_is_at_most_its_rate() {
    let Some(net) = Net::routed() else { return };
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&[]);
    let udp = |port: &str| format!("iifname {port} meta l4proto udp drop;");
    net.in_middle(&format!(
        "nft 'table ip t {{ chain c {{ type filter hook forward priority 0; {} {} }}; }}'",
        udp(CLIENT_PORT),
        udp(SERVER_PORT)
    ));

    let words = ["--json", "-q", "--profile", "quick", "-b", "50M"];
    let report = client
        .test(SERVER, &words)
        .finish_within(Duration::from_secs(90))
        .json();
    assert!(
        report["absent"].to_string().contains("UDP is blocked"),
        "{report:#}"
    );

    let rates = rates(&report);
    assert!(
        !rates.is_empty() && rates.iter().all(|rate| *rate <= 50e6),
        "{rates:?}"
    );
}
