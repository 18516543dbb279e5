//! One server for clients of both originals and for ours, on two ports and on one.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_interop::iperf2::{Iperf2, amounts};
use linerate_interop::{
    Finished, Process, Service, TIMEOUT, free_port, linerate, listens, original, wait_until,
};
use serde_json::Value;

const MIB: f64 = 1_048_576.0;

fn iperf3(port: u16, more: &str) -> Process {
    let words = format!("-c 127.0.0.1 -p {port} -t 1 -b 80M {more}");
    Process::start(original().command(words.split_whitespace()))
}

#[test]
fn timed_three_kinds_of_clients_are_served_at_the_same_time() {
    let (service, port2) = Service::start_both(&[]);
    let listening = service.wait_for_events("iperf2", 1, TIMEOUT);
    assert_eq!(listening[0]["address"], format!("[::]:{port2}"));

    let clients = [
        iperf3(service.port, ""),
        Iperf2::Original.client(port2, "-t 1 -b 80m -f B"),
        Iperf2::Original.client(port2, "-u -t 1 -f B"),
        Iperf2::Ours.client(port2, "-t 1 -b 80m -R -f B"),
        Iperf2::Ours.client(port2, "-n 1M -P 3 -f B"),
    ];
    let clients: Vec<Finished> = clients.into_iter().map(Process::finish).collect();
    for client in &clients {
        client.expect_code(0);
        assert!(client.elapsed < Duration::from_secs(3), "{client:?}");
    }

    assert!(
        clients[2].stdout.contains("Server Report:"),
        "{:?}",
        clients[2]
    );
    assert_eq!(amounts(&clients[4].stdout), [MIB; 3]);

    // Every one of them is in the log, with what it moved.
    let events = service.wait_for_events("test_ended", 5, TIMEOUT);
    let moved = |e: &Value| {
        e["received_bytes"].as_u64().unwrap_or(0) + e["sent_bytes"].as_u64().unwrap_or(0)
    };
    assert!(
        events.iter().all(|event| moved(event) > 100_000),
        "{events:?}"
    );

    // Four of them last a second, whatever they speak.
    let has_company = |event: &&Value| event["ran_beside_max"].as_u64() >= Some(3);
    assert!(events.iter().filter(has_company).count() >= 4, "{events:?}");
}

#[test]
fn a_client_of_iperf_2_at_the_port_of_iperf3_is_named() {
    let service = Service::start(&[]);
    Iperf2::Original.client(service.port, "-n 1M").finish();

    let events = service.wait_for_events("handshake_failed", 1, TIMEOUT);
    let message = events[0]["message"].as_str().expect("a text");
    assert!(
        message.ends_with("the client is not iperf3: it sent no cookie"),
        "{message}"
    );
}

#[test]
fn one_port_serves_both_dialects_by_their_first_bytes() {
    let port = free_port();
    let process = linerate(&format!(
        "serve --one-port 127.0.0.1:{port} --log-format json"
    ));
    let service = Service { port, process };
    assert!(wait_until(TIMEOUT, || listens(port)), "{service:?}");

    let clients = [
        iperf3(port, ""),
        Iperf2::Original.client(port, "-n 1M -f B"),
        Iperf2::Original.client(port, "-t 1 --bounceback"),
        Iperf2::Ours.client(port, "-n 1M -R -f B"),
        Iperf2::Original.client(port, "-n 1M -C -f B"),
        iperf3(port, "-u"),
    ];
    let clients: Vec<Finished> = clients.into_iter().map(Process::finish).collect();
    for client in &clients {
        client.expect_code(0);
        assert!(client.stderr.is_empty(), "{client:?}");
    }

    assert_eq!(amounts(&clients[1].stdout), [MIB]);
    assert_eq!(amounts(&clients[3].stdout), [MIB]);
    assert!(clients[2].stdout.contains("rps"), "{:?}", clients[2]);

    // Who speaks something else is not taken for a test.
    let mut stranger = TcpStream::connect(("127.0.0.1", port)).expect("the server listens");
    stranger
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nAccept: everything\r\n\r\n")
        .expect("loopback");
    let mut response = Vec::new();

    stranger
        .set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a socket");
    // However it ends, no test begins.
    let _ = stranger.read_to_end(&mut response);
    let _ = service.wait_for_events("test_ended", 6, TIMEOUT);
}

#[test]
fn the_rules_of_the_server_hold_for_this_dialect_too() {
    let (service, port2) =
        Service::start_both(&["--limit", "address:tests=1", "--deny", "127.0.0.2"]);
    let first = Iperf2::Ours.client(port2, "-t 1 -b 8m -f B");
    assert!(
        wait_until(TIMEOUT, || service
            .process
            .stdout()
            .contains("test_started")),
        "{service:?}"
    );

    // As many tests as one address may have run already, and the other address may have none.
    let refused = [
        Iperf2::Ours.client(port2, "-n 100M -f B"),
        Iperf2::Ours.client(port2, "-B 127.0.0.2 -n 100M"),
    ];
    for client in refused {
        let client = client.finish();
        assert!(!client.stderr.is_empty(), "{client:?}");
    }

    first.finish().expect_clean();
    let log = service.process.stdout();
    assert!(
        log.contains("address_tests") && log.contains("\"address\""),
        "{log}"
    );
}
