//! Goal: where packets wait and are lost is found. Method: a router with a class of its own for new
//! connections; a server that is stopped.

use std::thread;
use std::time::Duration;

use linerate_interop::namespaces::{CLIENT_PORT, Net, SERVER, SERVER_PORT, inside};
use linerate_interop::{NativeHost, Signal, TIMEOUT, wait_until};
use serde_json::Value;

#[track_caller]
fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("no number: {value}"))
}

#[track_caller]
fn p50_ms(delay: &Value) -> f64 {
    number(&delay["p50_ns"]) / 1e6
}

/// Connections of fewer than 30 packets have a class of their own; the others share a queue of 100
/// ms.
#[test]
#[ignore = "twenty seconds: make live SUITE=path"]
fn timed_queue_that_new_connections_pass_is_per_flow() {
    let Some(net) = Net::routed() else { return };
    net.in_middle(
        "nft 'table ip t { chain c { type filter hook postrouting priority mangle; \
         meta l4proto tcp ct packets < 30 meta priority set \"1:10\"; }; }'",
    );

    // Otherwise no packets of connections are counted.
    net.in_middle("sysctl -qw net.netfilter.nf_conntrack_acct=1");
    for port in [CLIENT_PORT, SERVER_PORT] {
        net.in_middle(&format!(
            "tc qdisc add dev {port} root handle 1: htb default 20"
        ));
        let class = |parent: &str, id: &str, rate: &str| {
            let burst = "ceil 20mbit burst 4k cburst 4k quantum 1600";
            net.in_middle(&format!(
                "tc class add dev {port} parent {parent} classid {id} htb rate {rate} {burst}"
            ));
        };
        class("1:", "1:1", "20mbit");
        class("1:1", "1:10", "4mbit prio 0");
        class("1:1", "1:20", "16mbit prio 1");

        // 250,000 bytes at 20 Mbit/s are 100 ms.
        net.in_middle(&format!(
            "tc qdisc add dev {port} parent 1:20 bfifo limit 250000"
        ));
    }

    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&["--facts", "all"]);

    let report = client.report(
        SERVER,
        &[
            "--only",
            "idle,down,up",
            "--time",
            "6",
            "--congestion",
            "cubic",
        ],
    );
    for phase in report["phases"].as_array().expect("loads") {
        assert!(p50_ms(&phase["in_band"]) >= 60.0, "{phase:#}");
        for kind in ["tcp", "tls", "echo"] {
            let added_ms = p50_ms(&phase[kind]) - p50_ms(&report["idle"][kind]);
            assert!(added_ms <= 5.0, "{kind} {added_ms} ms more: {phase:#}");
        }
    }

    let findings = report["diagnosis"]["findings"]
        .as_array()
        .expect("findings");
    let finding = findings.iter().find(|finding| finding["id"] == "LAT-02");
    assert!(
        finding.is_some_and(|finding| finding.to_string().contains("per flow")),
        "{:#}",
        report["diagnosis"]
    );
}

/// Datagrams that the socket of a receiver had no room for, by the counters of its network
/// namespace.
fn receive_buffer_errors(namespace: &str) -> u64 {
    let read = inside(namespace, "cat".as_ref(), &["/proc/net/snmp"])
        .output()
        .expect("cat");
    let text = String::from_utf8_lossy(&read.stdout).into_owned();
    let mut rows = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
    let (names, values) = (rows.next().expect("names"), rows.next().expect("values"));
    let pair = names
        .split(' ')
        .zip(values.split(' '))
        .find(|(name, _)| *name == "RcvbufErrors");

    pair.and_then(|(_, value)| value.parse().ok())
        .expect("a count")
}

/// A receiver that does not read for 200 ms of each second: what its socket has no room for is lost
/// there. 40 Mbit/s are 700 datagrams in 200 ms, and the default buffer holds some hundred.
#[test]
#[ignore = "a quarter of a minute: make live SUITE=path"]
fn timed_datagrams_of_a_stopped_receiver_are_lost_in_its_socket() {
    let Some(net) = Net::routed() else { return };
    let (client, server) = NativeHost::both(&net);
    let service = server.serve(&[]);

    let words = [
        "--json",
        "-q",
        "--profile",
        "thorough",
        "--only",
        "datagrams",
        "--rate",
        "40M",
    ];
    let before = receive_buffer_errors(&net.b);
    let mut test = client.test(SERVER, &words);

    service.wait_for_events("test_started", 1, TIMEOUT);
    while !test.has_ended() {
        service.process.signal(Signal::Stop);
        thread::sleep(Duration::from_millis(200));
        service.process.signal(Signal::Continue);
        wait_until(Duration::from_millis(800), || test.has_ended());
    }

    let finished = test.finish();
    let report = finished.expect_code(0).json();
    let dropped = receive_buffer_errors(&net.b) - before;
    let all = report["datagrams"].as_array().expect("datagrams");
    let up = all.iter().find(|one| one["direction"] == "up").expect("up");
    let loss = &up["loss"];
    assert!(
        dropped > 1_000,
        "the buffer had room for all: {dropped} of {loss}"
    );
    assert!(
        (number(&loss["socket"]) / dropped as f64 - 1.0).abs() <= 0.001,
        "{dropped} dropped: {up:#}"
    );
    assert_eq!(
        (number(&loss["network"]), number(&loss["sender"])),
        (0.0, 0.0),
        "{up:#}"
    );
}
