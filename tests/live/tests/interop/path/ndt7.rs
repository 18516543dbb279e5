//! `linerate test ndt7://HOST` against our server and against one of another making: rates of a
//! known link, what the server's kernel reports, and a reason for the rest.

use std::path::Path;
use std::process::Command;

use linerate_interop::namespaces::{DEVICE, Net, SERVER, inside, run, try_run};
use linerate_interop::{
    Certificate, Finished, Process, TIMEOUT, ours, unsupported, wait_until, words,
};
use serde_json::Value;

/// 1448 of 1514 bytes of 100 Mbit/s are payload of TCP.
const GOODPUT_BPS: f64 = 95.64e6;
const TOLERANCE: f64 = 0.03;
const PORT: &str = "5201";

/// A server in the namespace of the server.
fn serve(net: &Net, is_ours: bool) -> Process {
    match is_ours {
        true => started(net, inside(&net.b, ours().path(), &["serve", "-p", PORT])),
        false => foreign(net, &[]),
    }
}

/// A server of another making.
fn foreign(net: &Net, more: &[&str]) -> Process {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ndt7_server.py");
    let words = [&[script, SERVER, PORT], more].concat();
    started(net, inside(&net.b, Path::new("python3"), &words))
}

fn started(net: &Net, mut command: Command) -> Process {
    let state = std::env::temp_dir().join(&net.b);
    command.env("XDG_STATE_HOME", &state);
    let server = Process::start(command);
    let is_ready = || server.stdout().contains("ready") || server.stderr().contains("listening");
    let is_listening = || is_ready() || server.stdout().contains("listening");
    assert!(wait_until(TIMEOUT, is_listening), "{server:?}");
    server
}

fn test(net: &Net, line: &str) -> Finished {
    test_of(net, &format!("ndt7://{SERVER}:{PORT}"), line)
}

fn test_of(net: &Net, target: &str, line: &str) -> Finished {
    let mut command: Command = inside(&net.a, ours().path(), &["test", target]);
    command.args(words(line));
    let state = tempfile::tempdir().expect("a folder");
    command.env("XDG_STATE_HOME", state.path());
    Process::start(command).finish()
}

#[test]
fn timed_rates_are_those_of_the_link_with_the_state_of_the_servers_kernel() {
    for is_ours in [true, false] {
        let Some(net) = Net::new() else { return };
        for namespace in [&net.a, &net.b] {
            let shaper = format!(
                "tc -n {namespace} qdisc add dev {DEVICE} root tbf rate 100mbit burst 64kB limit 625000"
            );
            if !try_run(&shaper) {
                return unsupported("the kernel has no tbf");
            }
            run(&format!(
                "ip netns exec {namespace} ethtool -K {DEVICE} tso off gso off gro off"
            ));
        }

        let server = serve(&net, is_ours);
        let finished = test(&net, "--time 5 --json -q");
        let report = finished.expect_code(0).json();
        assert_eq!(report["target"]["dialect"], "ndt7", "{finished:?}");
        let phases = report["phases"].as_array().expect("phases");
        let kinds: Vec<&Value> = phases.iter().map(|phase| &phase["kind"]).collect();
        assert_eq!(kinds, ["down", "up"], "{finished:?}");

        for (phase, rate) in phases.iter().zip(["down_bps", "up_bps"]) {
            let found = phase[rate].as_f64().expect("a rate");
            let off = found / GOODPUT_BPS - 1.0;
            assert!(
                off.abs() < TOLERANCE,
                "{rate} {found} of {is_ours}: {phase:#}"
            );
            // A queue of 50 ms, which the load fills in part.
            let added = phase["added_p50_ns"].as_i64().expect("a delay under load");
            assert!((0..60_000_000).contains(&added), "{added}: {phase:#}");
        }
        assert!(phases[0]["down_retransmits"].is_u64(), "{report:#}");
        assert!(phases[1]["up_retransmits"].is_u64(), "{report:#}");
        // The server's counts are the rate of an upload.
        assert!(phases[1]["deviations"].is_null(), "{report:#}");

        let absent = report["absent"].as_object().expect("reasons");
        for name in ["both", "responsiveness", "one-way delay", "MTU up"] {
            assert_eq!(absent[name], "the server speaks ndt7 only", "{absent:?}");
        }
        assert!(
            !absent.contains_key("RTT as the server's TCP measures it"),
            "{absent:?}"
        );

        if !is_ours {
            let log = server.stdout();
            let tests: Vec<Value> = log
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok())
                .collect();
            assert_eq!(tests.len(), 2, "{log}");
            for test in tests {
                assert_eq!(test["masked"], true, "{log}");
                assert!(
                    test["pongs"].as_u64().is_some_and(|pongs| pongs > 5),
                    "{log}"
                );
            }
        }
    }
}

/// What fits into the buffers of a server that never reads is no rate.
#[test]
fn upload_that_the_server_never_reads_has_a_reason_and_no_rate() {
    let Some(net) = Net::new() else { return };
    let _server = foreign(&net, &["unread"]);
    let finished = test(&net, "--only up --time 4 --json -q");
    let report = finished.json();
    assert_eq!(report["phases"][0]["up_bps"], Value::Null, "{report:#}");
    let absent = report["absent"].to_string();
    assert!(
        absent.contains("no byte arrived in the part that counts"),
        "{absent}"
    );
}

/// The window of the client is what the server's kernel waits for.
#[test]
fn receive_window_of_this_host_is_named_by_the_servers_kernel() {
    let Some(net) = Net::new() else { return };
    let small = ["-qw", "net.ipv4.tcp_rmem=4096 8192 16384"];
    let is_set = inside(&net.a, Path::new("sysctl"), &small).status();
    assert!(is_set.is_ok_and(|status| status.success()));
    let _server = serve(&net, true);
    let finished = test(&net, "--only idle,down --time 5");
    let text = finished
        .expect_code(0)
        .stdout
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    assert!(
        text.contains("the receiver's window is too small"),
        "{text}"
    );
}

#[test]
fn other_servers_and_demands_are_refused() {
    let Some(net) = Net::new() else { return };
    let refused = test(&net, "-q");
    refused.expect_code(4).expect_stderr("refused");
    let server = net.server();
    let other = test(&net, "-q");
    other.expect_code(1);
    drop(server);
    test(&net, "--pin sha256:00")
        .expect_code(2)
        .expect_stderr("--pin");
}

/// A server with a certificate is measured over TLS where that is trusted, and not at all where it
/// is not.
#[test]
fn server_is_tested_over_tls_where_its_certificate_is_trusted() {
    let Some(net) = Net::new() else { return };
    let [certificate, other] = [Certificate::make(), Certificate::make()];
    let (cert, key) = (certificate.path("cert.pem"), certificate.path("key.pem"));
    let words = ["serve", "-p", PORT, "--tls-cert", &cert, "--tls-key", &key];
    let server = started(&net, inside(&net.b, ours().path(), &words));
    let pin = certificate.fingerprint();
    let secure = format!("ndt7s://{SERVER}:{PORT}");

    let trusted = format!("--cacert {cert} --time 1 --json -q");
    let report = test_of(&net, &secure, &trusted).expect_code(0).json();
    for (phase, rate) in [(0, "down_bps"), (1, "up_bps")] {
        let found = report["phases"][phase][rate].as_f64();
        assert!(found.is_some_and(|found| found > 20e6), "{report:#}");
    }
    // The server counts payload, this end what the kernel knows to be acknowledged.
    assert!(report["phases"][1]["deviations"].is_null(), "{report:#}");

    let cacert = other.path("cert.pem");
    for (target, options, code, text) in [
        (&secure, format!("--pin-sha256 {pin}"), 0, ""),
        (&secure, "--insecure".to_owned(), 0, ""),
        (
            &secure,
            String::new(),
            4,
            "the certificate of the server is not trusted",
        ),
        (
            &secure,
            format!("--cacert {cacert}"),
            4,
            "the certificate of the server is not trusted",
        ),
        (
            &secure,
            format!("--pin-sha256 {}", "00".repeat(32)),
            4,
            "SHA-256 is another one",
        ),
        (
            &secure,
            "--cacert /nowhere".to_owned(),
            4,
            "--cacert /nowhere",
        ),
        (&secure, "--pin sha256:00".to_owned(), 2, "--pin"),
        (
            &format!("ndt7://{SERVER}:{PORT}"),
            format!("--cacert {cert}"),
            2,
            "only ndt7s:// has",
        ),
    ] {
        let line = format!("{options} --only down --time 1 -q");
        test_of(&net, target, &line)
            .expect_code(code)
            .expect_stderr(text);
    }

    drop(server);
    let _server = serve(&net, true);
    test_of(&net, &secure, "--insecure -q")
        .expect_code(4)
        .expect_stderr("TLS handshake");
}
