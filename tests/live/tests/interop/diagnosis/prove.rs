//! Goal: `doctor --prove` measures what the fix of a finding does, and leaves every setting as it
//! was, however it ends. Method: a fault at the client of a veth pair between namespaces of our
//! own; the settings before and after are compared.

use std::path::Path;
use std::process::Command;

use linerate_interop::namespaces::{DEVICE, Net, SERVER, SERVER_PORT, inside, run};
use linerate_interop::{Finished, Process, Signal, TIMEOUT, linerate, original, ours, wait_until};
use serde_json::Value;

/// Runs of a second each.
const SHORT: [&str; 2] = ["--budget", "42s"];

fn words<'a>(id: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["doctor", "--prove", id, "--to", SERVER], &SHORT[..], more].concat()
}

fn prove(net: &Net, id: &str) -> Process {
    Process::start(inside(
        &net.a,
        ours().path(),
        &words(id, &["--yes", "--json"]),
    ))
}

fn output(host: &str, program: &str, arguments: &[&str]) -> String {
    let output = inside(host, Path::new(program), arguments)
        .output()
        .expect(program);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The client's queueing disciplines.
fn qdiscs(net: &Net) -> String {
    output(&net.a, "tc", &["qdisc", "show", "dev", DEVICE])
}

/// Two hosts, with a shaper at the client.
fn shaped() -> Option<Net> {
    let net = Net::new()?;
    run(&format!(
        "tc -n {} qdisc add dev {DEVICE} root tbf rate 100mbit burst 32k latency 20ms",
        net.a
    ));
    Some(net)
}

/// A proof at a test with the fix, which is in force.
fn with_fix(net: &Net) -> Process {
    let running = prove(net, "QD-01");
    assert!(
        wait_until(TIMEOUT, || running.stderr().contains("[3/12] with the fix")),
        "{running:?}"
    );
    assert!(!qdiscs(net).contains("tbf"), "{running:?}");
    running
}

fn result(finished: &Finished) -> Value {
    finished.expect_code(0);
    let proof = finished.json();
    assert_eq!(proof["schema"], "linerate.proof/1", "{proof:#}");

    for side in ["without", "with"] {
        assert_eq!(
            proof[side]["runs_bps"].as_array().map(Vec::len),
            Some(6),
            "{proof:#}"
        );
    }

    proof
}

#[test]
#[ignore = "half a minute: make live SUITE=faults"]
fn fix_that_helps_is_measured_and_undone() {
    let Some(net) = shaped() else { return };
    let before = qdiscs(&net);
    let _server = net.server();
    let finished = prove(&net, "qd-01").finish_within(TIMEOUT * 3);
    let proof = result(&finished);
    assert_eq!(proof["result"], "helps", "{proof:#}");
    assert!(
        proof["interval"][0].as_f64().is_some_and(|low| low > 1.5),
        "{proof:#}"
    );
    assert_eq!(qdiscs(&net), before);

    for list in ["do", "undo"] {
        let command = proof[list][0].as_str().expect("a command");
        finished.expect_stderr(&format!("  {list:<8}  {command}\n"));
    }
}

#[test]
#[ignore = "half a minute: make live SUITE=faults"]
fn fix_without_effect_makes_no_difference() {
    let Some(net) = Net::bridged() else { return };
    let middle = net.middle.as_deref().unwrap_or_default();
    run(&format!(
        "tc -n {middle} qdisc add dev {SERVER_PORT} root tbf rate 200mbit burst 64k limit 20000000"
    ));
    output(&net.a, "sysctl", &["-qw", "net.ipv4.tcp_sack=0"]);

    let server = Process::start(inside(&net.b, original().path(), &["-s", "--forceflush"]));
    server.wait_for_stdout("Server listening", 1);
    let proof = result(&prove(&net, "WIN-04").finish_within(TIMEOUT * 3));
    assert_eq!(proof["result"], "no-difference", "{proof:#}");
    assert_eq!(
        output(&net.a, "sysctl", &["-n", "net.ipv4.tcp_sack"]),
        "0\n"
    );
}

/// Ends a proof: the hosts, the program, and the server, which goes when it is dropped.
type End = fn(&Net, &Process, Process);

#[test]
#[ignore = "half a minute: make live SUITE=faults"]
fn former_settings_return_however_it_ends() {
    let ends: [(End, i32); 3] = [
        (|_, running, _server| running.signal(Signal::Terminate), 130),
        (|_, _, server| drop(server), 1),
        (|net, _, _server| net.cut(), 1),
    ];
    for (end, code) in ends {
        let Some(net) = shaped() else { return };
        let before = qdiscs(&net);
        let server = net.server();
        let running = with_fix(&net);
        let second = prove(&net, "QD-01").finish();
        second.expect_code(1).expect_stderr("another --prove");
        end(&net, &running, server);

        let finished = running.finish();
        finished
            .expect_code(code)
            .expect_stderr("the former settings are restored");
        assert_eq!(qdiscs(&net), before, "{finished:?}");
    }
}

#[test]
fn next_call_restores_what_a_killed_one_changed() {
    let Some(net) = shaped() else { return };
    let before = qdiscs(&net);
    let _server = net.server();
    let killed = with_fix(&net);
    killed.signal(Signal::Kill);
    killed.finish();
    assert_ne!(qdiscs(&net), before);

    let next = prove(&net, "QD-01");
    assert!(
        wait_until(TIMEOUT, || next.stderr().contains("[1/12] without the fix")),
        "{next:?}"
    );
    assert_eq!(qdiscs(&net), before);
    next.signal(Signal::Interrupt);
    next.finish()
        .expect_code(130)
        .expect_stderr("was killed before it restored");
}

/// A pseudo-terminal needs system calls that this crate must not contain, hence the script.
#[test]
fn user_who_declines_changes_nothing() {
    let script = r#"
import os, pty, sys
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
seen = b""
while b"[y/N]" not in seen:
    seen += os.read(terminal, 4096)
os.write(terminal, b"n\n")
try:
    while chunk := os.read(terminal, 4096):
        seen += chunk
except OSError:
    pass
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), seen.decode())
"#;
    let Some(net) = shaped() else { return };
    let before = qdiscs(&net);
    let _server = net.server();
    let mut command = Command::new("python3");
    command
        .args(["-c", script, "ip", "netns", "exec", &net.a])
        .arg(ours().path())
        .args(words("QD-01", &[]));

    let declined = Process::start(command).finish();
    assert!(
        declined.stdout.starts_with("1 ") && declined.stdout.contains("tc qdisc del dev lr0 root"),
        "{declined:?}"
    );
    declined.expect_stdout("nothing was changed");
    assert_eq!(qdiscs(&net), before);
}

#[test]
fn what_cannot_be_proved_is_refused_with_its_reason() {
    let Some(net) = Net::new() else { return };
    run(&format!("ip -n {} link set dev {DEVICE} mtu 9000", net.a));
    output(
        &net.b,
        "sysctl",
        &["-qw", "net.ipv4.tcp_rmem=4096 16384 16384"],
    );

    let _server = net.server();
    for (id, reason) in [
        ("QD-01", "QD-01: it does not apply: no shaper"),
        ("MTU-01", "may interrupt connections"),
        ("WIN-01", "its commands are for the"),
    ] {
        prove(&net, id)
            .finish()
            .expect_code(1)
            .expect_stderr(reason);
    }

    for (line, code, reason) in [
        ("doctor --prove QD-01 --to 127.0.0.1", 2, "--yes"),
        (
            "doctor --prove QD-99 --to 127.0.0.1 --yes",
            2,
            "no rule QD-99",
        ),
        (
            "doctor --prove QD-01 --to 127.0.0.1 --yes --budget 10s",
            2,
            "at least 42s",
        ),
        ("doctor --prove QD-01 --yes", 2, "--to"),
        (
            "doctor --prove QD-01 --to 127.0.0.1 --port 1 --yes",
            4,
            "Connection refused",
        ),
    ] {
        linerate(line)
            .finish()
            .expect_code(code)
            .expect_stderr(reason);
    }
}
