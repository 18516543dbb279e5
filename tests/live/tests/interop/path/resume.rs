//! Goal: a control connection that breaks does not end a test. Method: a router that resets the
//! control connection of a running test, or the kernel of the client does; the data connections
//! stay.

use std::time::Duration;

use linerate_interop::namespaces::{CLIENT_PORT, Net, SERVER, inside};
use linerate_interop::{NativeHost, Service, TIMEOUT, wait_until};
use serde_json::Value;

/// BBR overflows this queue at its start, and what it loses there differs from test to test.
const WORDS: [&str; 8] = [
    "--json",
    "--only",
    "idle,down",
    "--time",
    "5",
    "--native",
    "--congestion",
    "cubic",
];

fn down_bps(report: &Value) -> f64 {
    report["phases"][0]["down_bps"]
        .as_f64()
        .unwrap_or_else(|| panic!("no rate: {report}"))
}

/// Port of the client's end of the control connection of its newest test.
fn control_port(service: &Service, tests: usize) -> String {
    let started = service.wait_for_events("test_started", tests, TIMEOUT);
    let peer = started[tests - 1]["peer"]
        .as_str()
        .expect("an address")
        .to_owned();
    peer.rsplit_once(':').expect("a port").1.to_owned()
}

/// Runs a test; `cut` breaks its control connection while the load runs.
fn tested(client: &NativeHost, service: &Service, tests: usize, cut: impl FnOnce(&str)) -> Value {
    let test = client.test(SERVER, &WORDS);
    let port = control_port(service, tests);

    let is_loaded = || {
        test.stderr()
            .lines()
            .any(|line| line.trim_start().starts_with("idle"))
    };
    assert!(wait_until(TIMEOUT, is_loaded), "{test:?}");
    cut(&port);

    let finished = test.finish_within(Duration::from_secs(60));
    finished.expect_code(0).json()
}

#[test]
fn test_continues_over_a_new_control_connection() {
    let Some(net) = Net::routed() else { return };
    net.in_middle(&format!(
        "tc qdisc add dev {CLIENT_PORT} root tbf rate 100mbit burst 128kB limit 1250000"
    ));
    let (client, server) = NativeHost::both(&net);
    let service = server.serve(&[]);
    let whole = tested(&client, &service, 1, |_| ());
    assert_eq!(whole["resumed"], 0, "{whole}");

    let by_router = tested(&client, &service, 2, |port| {
        let reset = "reject with tcp reset";
        net.in_middle(&format!(
            "nft 'table ip t \
             {{ chain c {{ type filter hook forward priority 0; tcp dport 5201 tcp sport {port} {reset}; tcp sport 5201 tcp dport {port} {reset}; }}; }}'"
        ));
    });
    let by_kernel = tested(&client, &service, 3, |port| {
        let killed = inside(
            &net.a,
            "ss".as_ref(),
            &["-K", "sport", "=", &format!(":{port}")],
        )
        .output()
        .expect("ss");
        assert!(killed.status.success(), "{killed:?}");
    });
    for cut in [by_router, by_kernel] {
        assert_eq!(
            (&cut["state"], &cut["resumed"]),
            (&"complete".into(), &1.into()),
            "{cut}"
        );
        // A load that stopped at the cut would lose more than half. Pauses of the machine lost 7 %.
        let ratio = down_bps(&cut) / down_bps(&whole);
        assert!((0.8..1.2).contains(&ratio), "{ratio}: {cut}");
    }
}
