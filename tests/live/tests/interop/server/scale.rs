//! Two hundred clients of one server, on two hosts. `make live SUITE=scale` runs it;
//! `SCALE_CLIENTS` sets their number and `SCALE_RATE` the rate of each.

#![allow(clippy::print_stdout, reason = "the table is the result")]

use std::env;
use std::path::Path;
use std::time::Duration;

use linerate_interop::namespaces::{Net, SERVER, inside};
use linerate_interop::{Process, Report, Service, Status, TIMEOUT, original, ours};

/// Asks a server and prints how long each answer took, in ms.
const PROBE: &str = r#"
import json, socket, struct, sys, time
for _ in range(int(sys.argv[2])):
    begin = time.monotonic()
    s = socket.create_connection((sys.argv[1], 5201), 10)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    s.sendall(b"probe" + str(time.monotonic_ns()).rjust(31, "a").encode() + b"\0")
    assert s.recv(1) == b"\x09"
    p = json.dumps({"tcp": True, "time": 1}).encode()
    s.sendall(struct.pack("!I", len(p)) + p)
    assert s.recv(1) == b"\x0a"
    print((time.monotonic() - begin) * 1000)
    s.close()
    time.sleep(0.1)
"#;

/// Answers of the server that are measured under load.
const PROBES: usize = 50;

#[test]
#[ignore = "a load test of a minute: make live SUITE=scale"]
fn two_hundred_clients_share_one_server() {
    let clients: usize = number("SCALE_CLIENTS", 200);
    let rate = env::var("SCALE_RATE").unwrap_or_else(|_| "10M".to_owned());
    let Some(net) = Net::new() else { return };

    // Each host has a CPU of its own, as two real ones would.
    let mut server = inside(&net.b, Path::new("taskset"), &["-c", "0"]);
    server.arg(ours().path());
    let service = Service::spawn(server, 5201, &["--limit", "address:tests=1000"]);
    let _ = service.wait_for_events("listening", 1, TIMEOUT);
    let idle = Status::of(service.process.id());

    let running: Vec<Process> = (0..clients)
        .map(|_| {
            let mut command = inside(&net.a, Path::new("taskset"), &["-c", "1"]);
            command.arg(original().path());
            command.args(["-c", SERVER, "-t", "20", "-b", &rate, "-J"]);
            Process::start(command)
        })
        .collect();
    let _ = service.wait_for_events("test_started", clients, Duration::from_secs(60));
    let loaded = Status::of(service.process.id());

    // Asked on the server's host, because the far one is exhausted by its clients: what counts is
    // how long the server takes. The one that measures must not wait for a CPU itself.
    let mut probe = inside(&net.b, Path::new("nice"), &[]);
    probe.args([
        "-n",
        "-20",
        "taskset",
        "-c",
        "0",
        "python3",
        "-c",
        PROBE,
        "127.0.0.1",
    ]);
    probe.arg(PROBES.to_string());

    let probe = Process::start(probe).finish_within(Duration::from_secs(60));
    probe.expect_code(0);

    let reports: Vec<Report> = running
        .into_iter()
        .map(|c| {
            Report::parse(
                &c.finish_within(Duration::from_secs(120))
                    .expect_clean()
                    .stdout,
            )
        })
        .collect();
    let mut responses: Vec<f64> = probe
        .stdout
        .lines()
        .filter_map(|l| l.parse().ok())
        .collect();

    let mut rates: Vec<f64> = reports
        .iter()
        .map(|r| r.number("/end/sum_received/bits_per_second"))
        .collect();
    responses.sort_by(f64::total_cmp);
    rates.sort_by(f64::total_cmp);

    let per_session = (loaded.resident_kib.saturating_sub(idle.resident_kib)) / clients;
    println!("clients           {clients} at {rate} bit/s each");
    println!(
        "rates             {:.3} to {:.3} Mbit/s, median {:.3}",
        rates[0] / 1e6,
        rates[clients - 1] / 1e6,
        rates[clients / 2] / 1e6
    );
    println!(
        "sum               {:.2} Gbit/s",
        rates.iter().sum::<f64>() / 1e9
    );
    println!(
        "control answers   median {:.1} ms, slowest {:.1} ms",
        responses[responses.len() / 2],
        responses[responses.len() - 1]
    );
    println!("idle server       {idle:?}");
    println!("under load        {loaded:?}: {per_session} KiB per session");
    assert_eq!(responses.len(), PROBES);
    assert!(responses[PROBES - 1] < 100.0, "{responses:?}");

    let slow = rates
        .iter()
        .filter(|r| **r < 0.9 * rates[clients / 2])
        .count();
    assert_eq!(slow, 0, "{rates:?}");
}

fn number(name: &str, default: usize) -> usize {
    env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(default)
}
