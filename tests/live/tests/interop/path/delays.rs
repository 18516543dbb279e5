//! Goal: delays are those of the path, in the direction that has them. Method: a queue that a flood
//! of datagrams holds full; two namespaces of one kernel, which have one clock.

use linerate_interop::iperf2::Iperf2;
use linerate_interop::namespaces::{CLIENT_PORT, Net, SERVER, inside};
use linerate_interop::{NativeHost, Process, TIMEOUT, wait_until};
use serde_json::Value;

#[track_caller]
fn ns(delay: &Value, figure: &str) -> f64 {
    delay[figure]
        .as_f64()
        .unwrap_or_else(|| panic!("no {figure}: {delay}"))
}

#[test]
fn full_queue_delays_its_own_direction_by_its_length() {
    let Some(net) = Net::routed() else { return };
    // 1,250,000 bytes at 100 Mbit/s are 100 ms.
    net.in_middle(&format!(
        "tc qdisc add dev {CLIENT_PORT} root tbf rate 100mbit burst 32kB limit 1250000"
    ));
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&[]);
    let empty = client.report(SERVER, &["--only", "idle"]);

    // The receiver drops what fills the queue before it could refuse it.
    let drop = "table ip t \
                { chain c { type filter hook prerouting priority -300; udp dport 5001 drop; }; }";
    assert!(
        inside(&net.a, "nft".as_ref(), &[drop])
            .status()
            .expect("nft")
            .success()
    );
    let flood = Iperf2::Original.command_inside(&net.b, "-c 10.99.0.1 -u -b 120M -t 60");
    let _flood = Process::start(flood);
    let middle = net.middle.clone().expect("a router");
    let backlog_bytes = || {
        let shown = inside(
            &middle,
            "tc".as_ref(),
            &["-s", "-j", "qdisc", "show", "dev", CLIENT_PORT],
        )
        .output()
        .ok()?;
        let shown: Value = serde_json::from_slice(&shown.stdout).ok()?;
        shown[0]["backlog"].as_u64()
    };
    assert!(
        wait_until(TIMEOUT, || backlog_bytes()
            .is_some_and(|bytes| bytes > 1_200_000)),
        "the queue fills"
    );

    let full = client.report(SERVER, &["--only", "idle"]);
    let grown_ms = |delay: &str| {
        (ns(&full["idle"][delay], "p50_ns") - ns(&empty["idle"][delay], "p50_ns")) / 1e6
    };
    assert!(
        (grown_ms("rtt") - 100.0).abs() <= 2.0,
        "{} ms: {full:#}",
        grown_ms("rtt")
    );
    assert!(
        (grown_ms("one_way_down") - 100.0).abs() <= 2.0,
        "{} ms: {full:#}",
        grown_ms("one_way_down")
    );
    assert!(
        grown_ms("one_way_up").abs() <= 0.3,
        "{} ms: {full:#}",
        grown_ms("one_way_up")
    );
}

#[test]
fn hosts_of_one_kernel_have_one_clock() {
    let Some(net) = Net::routed() else { return };
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&[]);
    let report = client.report(SERVER, &["--only", "idle"]);
    assert_eq!(report["clock"]["method"], "one-clock", "{report:#}");
    assert!(ns(&report["clock"], "error_ns") <= 20_000.0, "{report:#}");

    let mean = |delay: &str| ns(&report["idle"][delay], "mean_ns");
    let difference = mean("one_way_up") + mean("one_way_down") - mean("rtt");
    assert!(difference.abs() <= 2_000.0, "{difference} ns: {report:#}");
}
