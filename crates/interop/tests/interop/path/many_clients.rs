//! Goal: every client of every dialect is served or refused with a reason, and nothing is left. Method: a server with few places.

use std::time::Duration;

use linerate_interop::iperf2::Iperf2;
use linerate_interop::{NativeHost, Process, Status, TIMEOUT, original};

#[test]
fn clients_of_all_dialects_are_served_or_refused_with_a_reason() {
    let port2 = linerate_interop::free_port();
    let host = NativeHost::here();
    let service =
        host.serve(&["--admit", "parallel:4", "--limit", "address:tests=4", "--iperf2-port", &port2.to_string()]);
    let idle = Status::of(service.process.id());
    let target = format!("127.0.0.1:{}", service.port);
    let natives: Vec<(NativeHost, Process)> = (0..20)
        .map(|_| {
            let client = NativeHost::here();
            let test = client.test(&target, &["--json", "-q", "--only", "down", "--time", "1", "-b", "10M"]);
            (client, test)
        })
        .collect();
    let stock: Vec<Process> = (0..20).map(|_| service.client(original(), &["-t", "1", "-b", "10M"])).collect();
    let older: Vec<Process> = (0..5).map(|_| Iperf2::Original.client(port2, "-t 1 -b 10M")).collect();
    let mut served = 0;
    for (_, test) in natives {
        let finished = test.finish_within(Duration::from_secs(60));
        match finished.code() {
            Some(0) => served += 1,
            Some(4) => drop(finished.expect_stderr("linerate test: the server ")),
            _ => panic!("{finished:?}"),
        }
    }
    for test in stock {
        let finished = test.finish_within(Duration::from_secs(60));
        match finished.code() {
            Some(0) => served += 1,
            _ => drop(finished.expect_stderr("the server is busy running a test")),
        }
    }
    // iperf 2 has no message for a refusal.
    for test in older {
        test.finish_within(Duration::from_secs(60));
    }
    assert!(served >= 4, "{served}");
    let count = |kind: &str| service.events(kind).len();
    service.wait_for_events("test_ended", count("test_started"), TIMEOUT);
    service.process.wait_for_idle(idle);
    NativeHost::here().report(&target, &["--only", "size"]);
}
