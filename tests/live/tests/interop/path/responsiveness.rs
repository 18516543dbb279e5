//! Goal: a client of the test of responsiveness finds at our server what `linerate test` finds.
//! Method: both over one shaped path whose queue sets the delay.

use std::path::Path;
use std::time::Duration;

use linerate_interop::namespaces::{CLIENT_PORT, Net, SERVER, SERVER_PORT, inside};
use linerate_interop::{Certificate, NativeHost, Process, report};
use serde_json::Value;

const CLIENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/nq_client.py");
const TOLERANCE: f64 = 0.1;

/// 250,000 bytes are a queue of 40 ms at 50 Mbit/s.
const TBF: &str = "root tbf rate 50mbit burst 32kB limit 250000";

fn figure(report: &Value, name: &str) -> f64 {
    report[name]
        .as_f64()
        .unwrap_or_else(|| panic!("no {name}: {report:#}"))
}

#[test]
#[ignore = "half a minute: make live SUITE=path"]
fn timed_responsiveness_over_http2_is_that_of_our_own_test() {
    let Some(net) = Net::routed() else { return };
    for port in [CLIENT_PORT, SERVER_PORT] {
        net.in_middle(&format!("tc qdisc add dev {port} {TBF}"));
    }
    // It fills the queue, and every kernel has it.
    let reno = ["-qw", "net.ipv4.tcp_congestion_control=reno"];
    let is_set = inside(&net.b, Path::new("sysctl"), &reno).status();
    assert!(is_set.is_ok_and(|status| status.success()));
    let certificate = Certificate::make();
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let (client, server) = NativeHost::both(&net);
    let _server = server.serve(&["--tls-cert", &cert, "--tls-key", &key]);

    let words = ["--only", "idle,down", "--time", "10", "--streams", "4"];
    let ours = client.report(SERVER, &words);
    let ours = &ours["phases"][0];
    let words = [CLIENT, SERVER, "5201", &cert, "rpm", "15", "4"];
    let other = Process::start(client.command_of(Path::new("python3"), &words));
    let other = other.finish_within(Duration::from_secs(60));
    let other = other.expect_clean().json();

    for name in ["rpm_foreign", "rpm_self", "rpm"] {
        let (found, expected) = (figure(&other, name), figure(ours, name));
        report(&format!(
            "{name}: {found:.0} over HTTP/2, {expected:.0} of linerate test"
        ));
    }
    let (found, expected) = (figure(&other, "rpm"), figure(ours, "rpm"));
    assert!(
        (found / expected - 1.0).abs() < TOLERANCE,
        "{found}, not {expected}: {other:#} {ours:#}"
    );
}
