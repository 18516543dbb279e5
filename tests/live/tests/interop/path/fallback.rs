//! `linerate test` against the original server: what it can show is shown, the rest is named, and
//! nothing harms the server.

use std::path::Path;
use std::process::Command;

use linerate_interop::namespaces::{DEVICE, Net, SERVER, inside, run, try_run};
use linerate_interop::{Finished, Process, Server, original, ours, words};
use serde_json::Value;
use tempfile::TempDir;

/// Needs of a test of a path beside its server: a state directory of its own.
struct Tester(TempDir);

impl Tester {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary folder"))
    }

    fn run(&self, mut command: Command) -> Finished {
        command.env("XDG_STATE_HOME", self.0.path());
        Process::start(command).finish()
    }

    fn test(&self, server: &Server, line: &str) -> Finished {
        let mut command = Command::new(ours().path());
        command
            .arg("test")
            .arg(format!("127.0.0.1:{}", server.port))
            .args(words(line));
        self.run(command)
    }
}

/// Reason of what the protocol lacks.
const IPERF3_ONLY: &str = "the server speaks iperf3 only";

fn entries<'a>(report: &'a Value, name: &str) -> &'a [Value] {
    report[name]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// The log of a server that served this number of tests, and the next client after them.
fn log_after(server: Server) -> String {
    server.run(original(), &["-t", "1"]).expect_code(0);
    let log = server.process.stdout() + &server.process.stderr();
    drop(server);
    log
}

/// Server of the original that writes its log at once.
fn stock() -> Server {
    Server::start(original(), &["--forceflush"])
}

/// All phases run, without and with connections to the busy server; the server logs no error and
/// serves the next client.
#[test]
#[ignore = "all phases take forty seconds: make live SUITE=path"]
fn original_server_serves_all_phases_and_the_next_client() {
    for side_probe in ["none", "busy"] {
        let server = stock();
        let line = format!("--time 6 --json -q --side-probe {side_probe} --streams 2 --rate 200M");
        let finished = Tester::new().test(&server, &line);
        let found = finished.expect_code(0).json();
        let kinds: Vec<_> = entries(&found, "phases")
            .iter()
            .filter_map(|phase| phase["kind"].as_str())
            .collect();
        assert_eq!(kinds, ["down", "up", "both"], "{finished:?}");
        assert_eq!(entries(&found, "datagrams").len(), 2, "{finished:?}");

        for loss in entries(&found, "datagrams").iter().map(|one| &one["loss"]) {
            let [sent, received] =
                ["sent", "received"].map(|name| loss[name].as_u64().expect("a count"));
            assert!(sent > 0 && received > 0 && received <= sent, "{loss}");
        }

        assert_eq!(
            (&found["target"]["dialect"], &found["target"]["identity"]),
            (&"iperf3".into(), &"unproven".into())
        );
        let has_delay = entries(&found, "phases")
            .iter()
            .all(|phase| phase["rtt"]["n"].as_u64().is_some_and(|n| n > 0));
        assert_eq!(has_delay, side_probe == "busy", "{finished:?}");

        let log = log_after(server);
        assert!(!log.contains("error"), "{side_probe}: {log}");
        // Five tests and the one after them.
        assert!(log.contains("(test #6)"), "{side_probe}: {log}");
    }
}

/// A server that serves many clients refuses none of the connections beside a test: their
/// handshakes are measured, and its log has no line about them.
#[test]
fn connections_beside_a_test_show_the_delay_at_a_server_for_many_clients() {
    let server = Server::start(ours(), &["--forceflush"]);
    let finished = Tester::new().test(
        &server,
        "--only idle,down --time 5 --json -q --side-probe busy",
    );
    let found = finished.expect_code(0).json();
    let rtt = &found["phases"][0]["rtt"];
    assert!(
        rtt["n"].as_u64().is_some_and(|n| n >= 8) && rtt["p50_ns"].as_i64().is_some(),
        "{rtt}"
    );

    let log = log_after(server);
    assert!(!log.contains("error") && !log.contains("warn"), "{log}");
}

/// Another service of the server's host shows the delay without and under load.
#[test]
fn handshakes_at_another_port_show_the_delay() {
    let server = stock();
    let other = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = other.local_addr().expect("an address").port();
    let line = format!("--only idle,down --time 5 --json -q --side-probe tcp:{port}");
    let found = Tester::new().test(&server, &line).expect_code(0).json();
    for rtt in [&found["idle"]["rtt"], &found["phases"][0]["rtt"]] {
        assert!(
            rtt["n"].as_u64().is_some_and(|n| n >= 8) && rtt["p50_ns"].as_i64().is_some(),
            "{rtt}"
        );
    }

    assert_eq!(found["grade"]["probe"], "tcp", "{found}");
    assert!(!log_after(server).contains("error"));
    let wrong = Tester::new().test(&stock(), "--side-probe tcp:0");
    assert!(
        wrong.expect_code(2).stderr.contains("tcp:PORT"),
        "{wrong:?}"
    );
}

/// Every figure that the protocol of iperf3 does not have is absent with the same reason.
#[test]
fn absent_measures_are_named() {
    let server = stock();
    let finished = Tester::new().test(
        &server,
        "--only idle,down,size --time 2 --json -q --side-probe none",
    );
    let found = finished.expect_code(0).json();

    let lacking = [
        "responsiveness",
        "in-band echo",
        "one-way delay",
        "RTT as the server's TCP measures it",
        "loss by place at the server",
        "facts and CPU of the server",
        "rate of one stream",
        "MTU up",
        "MTU down",
        "DSCP and ECN",
        "UDP flows bound to a token",
        "resumption of the control connection",
    ];
    let absent = found["absent"].as_object().expect("an object");

    for figure in lacking {
        assert_eq!(
            absent.get(figure).and_then(Value::as_str),
            Some(IPERF3_ONLY),
            "{figure}: {absent:?}"
        );
    }

    assert_eq!(
        absent.get("RTT under load").and_then(Value::as_str),
        Some("--side-probe none")
    );
    // The handshakes of one control connection and four streams determine no median, and without
    // one there is no grade.
    assert!(
        absent.contains_key("idle RTT") && absent.contains_key("bufferbloat"),
        "{absent:?}"
    );
    assert_eq!(absent.len(), lacking.len() + 3, "{absent:?}");
    assert_eq!(found["idle"]["tcp"]["n"], 5);
}

/// A server that cannot prove its identity is no server for who demands one: exit code 4, and no
/// password or token leaves.
#[test]
fn demanded_identity_is_not_downgraded() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let token = folder.path().join("token");
    std::fs::write(&token, "team 0123456789abcdef0123456789abcdef\n").expect("written");
    run(&format!("chmod 600 {}", token.display()));

    let fingerprint = "sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let demands = [
        "--native".to_owned(),
        format!("--pin {fingerprint}"),
        format!("--token-file {}", token.display()),
    ];
    for demand in demands {
        let server = stock();
        let finished = Tester::new().test(&server, &format!("{demand} -q"));
        finished
            .expect_code(4)
            .expect_stderr("answers as an iperf3 server");
        assert!(!log_after(server).contains("0123456789abcdef"), "{demand}");
    }
}

/// Through a shaper of 50 Mbit/s in each direction the goodput is what TCP makes of it, and ICMP
/// echo shows the queue that CUBIC fills.
#[test]
fn goodput_is_that_of_the_shaper_and_icmp_shows_its_queue() {
    let Some(net) = Net::new() else { return };
    for namespace in [&net.a, &net.b] {
        let shaper = format!(
            "tc -n {namespace} qdisc add dev {DEVICE} root tbf rate 50mbit burst 32kB limit 312500"
        );
        if !try_run(&shaper) {
            return linerate_interop::unsupported("the kernel has no tbf");
        }

        run(&format!(
            "ip netns exec {namespace} ethtool -K {DEVICE} tso off gso off gro off"
        ));
    }

    let allowed = inside(
        &net.a,
        Path::new("sysctl"),
        &["-qw", "net.ipv4.ping_group_range=0 2147483647"],
    )
    .status();
    assert!(
        allowed.is_ok_and(|status| status.success()),
        "ping_group_range"
    );
    let server = Process::start(inside(&net.b, original().path(), &["-s", "--forceflush"]));
    server.wait_for_stdout("Server listening", 1);

    let words = [
        "test",
        SERVER,
        "--only",
        "idle,down,up",
        "--time",
        "6",
        "--congestion",
        "cubic",
        "--json",
        "-q",
    ];
    let finished = Tester::new().run(inside(&net.a, ours().path(), &words));
    let found = finished.expect_code(0).json();
    for phase in entries(&found, "phases") {
        // 1448 of 1514 bytes of a frame are payload.
        let bps = phase["down_bps"]
            .as_f64()
            .or(phase["up_bps"].as_f64())
            .expect("a rate");
        assert!(
            (bps / (50e6 * 1448.0 / 1514.0) - 1.0).abs() < 0.02,
            "{}: {bps}",
            phase["kind"]
        );

        // The queue holds 312,500 B, 50 ms.
        let added_ns = phase["added_p50_ns"].as_i64().expect("a median");
        assert!(
            (20_000_000..60_000_000).contains(&added_ns),
            "{}: {added_ns} ns",
            phase["kind"]
        );
    }

    assert_eq!(found["grade"]["probe"], "icmp");
    assert!(
        !(server.stdout() + &server.stderr()).contains("error"),
        "{server:?}"
    );
}
