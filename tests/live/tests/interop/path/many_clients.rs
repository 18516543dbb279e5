//! Goal: every client of every dialect is served or refused with a reason, and nothing is left.
//! Method: a server with few places.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use linerate_interop::iperf2::Iperf2;
use linerate_interop::{NativeHost, Process, Status, TIMEOUT, native_cookie, original, wait_until};

#[test]
fn clients_of_all_dialects_are_served_or_refused_with_a_reason() {
    let port2 = linerate_interop::free_port();
    let host = NativeHost::here();
    let service = host.serve(&[
        "--admit",
        "parallel:4",
        "--limit",
        "address:tests=4",
        "--iperf2-port",
        &port2.to_string(),
    ]);
    let idle = Status::of(service.process.id());
    let target = format!("127.0.0.1:{}", service.port);

    let natives: Vec<(NativeHost, Process)> = (0..20)
        .map(|_| {
            let client = NativeHost::here();
            let test = client.test(
                &target,
                &["--json", "-q", "--only", "down", "--time", "1", "-b", "10M"],
            );
            (client, test)
        })
        .collect();
    let stock: Vec<Process> = (0..20)
        .map(|_| service.client(original(), &["-t", "1", "-b", "10M"]))
        .collect();
    let older: Vec<Process> = (0..5)
        .map(|_| Iperf2::Original.client(port2, "-t 1 -b 10M"))
        .collect();
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

/// The server reports tests that began later with the results of each phase.
#[test]
fn a_test_that_another_one_joins_says_so() {
    let service = NativeHost::here().serve(&[]);
    let target = format!("127.0.0.1:{}", service.port);
    let host = NativeHost::here();
    let first = host.test(
        &target,
        &["--only", "idle,down", "--time", "2", "-b", "10M", "-q"],
    );

    service.wait_for_events("test_started", 1, TIMEOUT);
    let second = service.client(original(), &["-n", "64K"]);
    second.finish().expect_code(0);

    let first = first.finish_within(Duration::from_secs(60));
    first.expect_code(0);
    let line = first.stdout.lines().nth(1).unwrap_or_default();
    assert!(line.contains("1 other test at the same time"), "{first:?}");
    assert!(
        !first.stdout.contains("no other tests at the same time"),
        "{first:?}"
    );
}

/// One place for all dialects: clients are served in the order in which they come, and a native
/// client gets its place in messages.
#[test]
fn clients_of_two_dialects_wait_in_one_queue() {
    let service = NativeHost::here().serve(&["--admit", "queue:1"]);
    let target = format!("127.0.0.1:{}", service.port);
    let first = service.client(original(), &["-t", "3", "-b", "1M", "-J"]);

    service.wait_for_events("test_started", 1, TIMEOUT);
    let native = NativeHost::here();
    let second = native.test(
        &target,
        &["--only", "down", "--time", "1", "-b", "10M", "--wait", "60"],
    );
    let waits = || second.stderr().contains("queued at the server: position 1");
    assert!(wait_until(TIMEOUT, waits), "{second:?}");

    let third = service.client(original(), &["-n", "64K", "-J"]);
    first.finish().expect_code(0);
    second.finish_within(Duration::from_secs(60)).expect_code(0);
    third.finish_within(Duration::from_secs(60)).expect_code(0);

    let records = service.wait_for_events("test_ended", 3, TIMEOUT);
    let directions: Vec<&str> = records
        .iter()
        .filter_map(|record| record["direction"].as_str())
        .collect();
    assert_eq!(directions, ["forward", "bidirectional", "forward"]);
    assert!(
        records.iter().all(|record| record["ran_beside_max"] == 0),
        "one at a time: {records:?}"
    );
}

#[test]
fn client_that_does_not_wait_long_enough_is_refused_with_advice() {
    let service = NativeHost::here().serve(&["--admit", "queue:1"]);
    let target = format!("127.0.0.1:{}", service.port);
    let _running = service.client(original(), &["-t", "15", "-b", "1M"]);

    service.wait_for_events("test_started", 1, TIMEOUT);
    let finished = NativeHost::here()
        .test(&target, &["--only", "size", "--wait", "1"])
        .finish();
    finished.expect_code(4).expect_stderr("try a longer --wait");

    // Its place in the queue is free: the next one is the first in it.
    let _ = NativeHost::here()
        .test(&target, &["--only", "size", "--wait", "1"])
        .finish()
        .expect_stderr("queue position 1");
}

/// The server answers the cookie of a new connection.
fn is_answered(port: u16) -> bool {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("the time is not zero");
    let mut answer = [0; 4];
    stream.write_all(&native_cookie()).is_ok() && stream.read_exact(&mut answer).is_ok()
}

#[test]
fn timed_an_address_has_two_hundred_handshakes_per_second() {
    let service = NativeHost::here().serve(&[]);
    let answered = (0..2000).take_while(|_| is_answered(service.port)).count();
    assert!((200..2000).contains(&answered), "{answered}");
    // The next second is another one.
    assert!(wait_until(TIMEOUT, || is_answered(service.port)));
}
