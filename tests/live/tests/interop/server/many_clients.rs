//! One server, many clients at the same time, most of them the original.

use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::time::{Duration, Instant};

use linerate_interop::{
    Process, RawClient, Received, Report, Server, Service, Signal, Status, TIMEOUT, each_case,
    established, original, ours, udp_socket, wait_for, wait_until, words,
};
use serde_json::Value;

/// Clients at once.
const CLIENTS: usize = 50;

macro_rules! stock_clients_at_once {
    ($($name:ident: $kinds:expr;)*) => {$(
        #[test]
        fn $name() {
            agree_with_the_record(&$kinds);
        }
    )*};
}

stock_clients_at_once! {
    timed_fifty_tcp_clients_agree_with_the_record: [""];
    timed_fifty_udp_clients_agree_with_the_record: ["-u"];
    timed_fifty_udp_clients_in_reverse_agree_with_the_record: ["-u -R"];
    timed_fifty_clients_of_every_kind_agree_with_the_record: [
        "--bidir", "-u --bidir", "-R", "-u", "-P 3", "-u -P 2 -R"
    ];
}

/// Client number n has the options number n, over and over.
fn agree_with_the_record(kinds: &[&str]) {
    let service = Service::start(&[]);
    let client = |n: usize| {
        service.client(
            original(),
            &words(&format!("-t 3 -b 2M -J {}", kinds[n % kinds.len()])),
        )
    };
    let clients: Vec<Process> = (0..CLIENTS).map(client).collect();
    let reports: Vec<Report> = clients
        .into_iter()
        .map(|c| Report::parse(&c.finish().expect_clean().stdout))
        .collect();
    let records = service.wait_for_events("test_ended", CLIENTS, Duration::from_secs(5));
    let records: BTreeMap<&str, &Value> = records
        .iter()
        .map(|r| (r["cookie"].as_str().expect("a cookie"), r))
        .collect();
    assert_eq!(records.len(), CLIENTS, "one record per client");

    for report in &reports {
        let record = records.get(report.text("/start/cookie")).expect("a record");
        assert_eq!(record["outcome"], "complete", "{record}");
        assert_eq!(
            moved(report),
            [&record["received_bytes"], &record["sent_bytes"]].map(bytes),
            "{record}"
        );
    }

    // A busy host starts the last ones when the first have finished.
    let company = records
        .values()
        .filter_map(|record| record["ran_beside_max"].as_u64());
    let concurrent = company
        .filter(|beside| *beside >= CLIENTS as u64 / 4)
        .count();
    assert!(concurrent >= CLIENTS / 2, "they ran together: {records:?}");
}

fn bytes(value: &Value) -> u64 {
    value.as_u64().expect("a number of bytes")
}

/// Values of the server in the report of the client: bytes it received, bytes it sent.
fn moved(report: &Report) -> [u64; 2] {
    let test = "/start/test_start";
    let is = |key: &str| report.get(&format!("{test}/{key}")).and_then(Value::as_u64) == Some(1);
    let sum = |name: &str| report.number(&format!("/end/{name}/bytes")) as u64;

    // 3.12 does not say that a test was bidirectional.
    let bidirectional = report.get("/end/sum_sent_bidir_reverse").is_some();
    match (is("reverse"), bidirectional) {
        (_, true) => [sum("sum_received"), sum("sum_sent_bidir_reverse")],
        (true, _) => [0, sum("sum_sent")],
        _ => [sum("sum_received"), 0],
    }
}

/// Many UDP clients with addresses of their own open their streams at the same moment.
#[test]
fn simultaneous_hellos_all_get_a_reply() {
    let service = Service::start(&[]);
    let clients: Vec<Process> = (1..=40)
        .map(|n| {
            let address = format!("127.0.0.{n}");
            service.client(
                original(),
                &[
                    "-u", "-P", "4", "-t", "1", "-b", "100K", "-l", "500", "-B", &address,
                ],
            )
        })
        .collect();
    for client in clients {
        client.finish().expect_clean();
    }

    assert_eq!(service.wait_for_events("test_ended", 40, TIMEOUT).len(), 40);
}

/// The dialect's reports of concurrent tests: no two streams share a number, and every row has a
/// connect line.
#[test]
fn rows_of_concurrent_tests_have_distinct_stream_numbers() {
    let server = Server::start(ours(), &["--forceflush"]);
    let kinds: [&[&str]; 4] = [&["-P", "2"], &["-R"], &["-u", "--bidir"], &[]];
    let clients: Vec<Process> = kinds
        .iter()
        .map(|kind| {
            server.client(
                original(),
                "127.0.0.1",
                &[&["-t", "2", "-b", "1M"], *kind].concat(),
            )
        })
        .collect();
    for client in clients {
        client.finish().expect_clean();
    }

    server.process.wait_for_stdout("(test #5)", 1);
    server.process.signal(Signal::Terminate);
    let text = server.finish().stdout;
    let mut connected = Vec::new();

    for line in text.lines() {
        let Some(number) = line
            .strip_prefix('[')
            .and_then(|l| l.split(']').next()?.trim().parse::<u32>().ok())
        else {
            continue;
        };
        if line.contains(" connected to ") {
            assert!(
                !connected.contains(&number),
                "{number} is used twice:\n{text}"
            );
            connected.push(number);
        } else {
            assert!(
                connected.contains(&number),
                "{number} was never connected:\n{text}"
            );
        }
    }

    assert_eq!(connected.len(), 6, "{text}");
    assert!(text.contains("[ALL] 4 tests, 6 streams "), "{text}");
}

#[test]
fn linerate_client_receives_the_number_of_concurrent_tests() {
    let server = Server::start(ours(), &[]);
    let beside = server.client(
        original(),
        "127.0.0.1",
        &["-t", "20", "-b", "1M", "--forceflush"],
    );
    beside.wait_for_stdout("/sec", 1);

    for (extension, expected) in [(",\"linerate\":{\"protocol\":1}", Some(1)), ("", None)] {
        let parameters = format!("{{\"tcp\":true,\"time\":1{extension}}}");
        let results = RawClient::running(server.port, &parameters).finish();
        assert_eq!(
            results
                .pointer("/linerate/ran_beside")
                .and_then(Value::as_u64),
            expected,
            "{results}"
        );
    }
}

#[test]
fn admission_policy_is_configurable() {
    let long = ["-t", "20", "-b", "1M", "--forceflush"];
    each_case(
        &[("parallel:2", 2), ("exclusive", 1)],
        |(admission, places)| {
            let server = Server::start(ours(), &["--lr-admit", admission]);
            let running: Vec<Process> = (0..*places)
                .map(|_| server.client(original(), "127.0.0.1", &long))
                .collect();
            running
                .iter()
                .for_each(|client| client.wait_for_stdout("/sec", 1));

            let refused = server.run(original(), &["-t", "1"]);
            refused
                .expect_code(1)
                .expect_stderr("the server is busy running a test. try again later");
            drop(running);

            // The places are free as soon as those who held them are gone.
            let is_served = || server.run(original(), &["-n", "64K"]).code() == Some(0);
            assert!(wait_until(TIMEOUT, is_served), "a place is free again");
        },
    );
}

#[test]
fn a_queue_serves_in_the_order_of_arrival() {
    let service = Service::start(&["--admit", "queue:1"]);
    let mut clients = Vec::new();

    for _ in 0..3 {
        clients.push(service.client(original(), &["-t", "2", "-b", "1M", "-J"]));
        // The order of arrival is known once the connection stands; both ends of it are listed, and
        // of the first client its data connection as well.
        let expected = 2 + 2 * clients.len();
        assert!(
            wait_until(TIMEOUT, || established(service.port).len() >= expected),
            "the client has connected"
        );
    }

    let cookies: Vec<String> = clients
        .into_iter()
        .map(|c| {
            Report::parse(&c.finish().expect_clean().stdout)
                .text("/start/cookie")
                .to_owned()
        })
        .collect();
    let records = service.wait_for_events("test_ended", 3, TIMEOUT);
    let served: Vec<&str> = records
        .iter()
        .map(|r| r["cookie"].as_str().expect("a cookie"))
        .collect();
    assert_eq!(served, cookies);
    assert!(
        records.iter().all(|r| r["ran_beside_max"] == 0),
        "one at a time: {records:?}"
    );
}

#[test]
fn too_long_queue_refuses_at_once() {
    let service = Service::start(&["--admit", "queue:1"]);
    let first = service.client(original(), &["-t", "60", "-b", "1M", "--forceflush"]);
    first.wait_for_stdout("/sec", 1);

    let refused = service.client(original(), &["-t", "1"]).finish();
    refused
        .expect_code(1)
        .expect_stderr("the server is busy running a test. try again later");
    assert!(refused.elapsed < Duration::from_secs(5), "{refused:?}");

    let reasons = service.wait_for_events("refused", 1, TIMEOUT);
    assert_eq!(reasons[0]["reason"], "queue_too_long");
}

// UDP

#[test]
fn lost_response_to_a_hello_is_repeated() {
    let server = Server::start(ours(), &[]);
    // A client that repeats its hello: the second answer takes the place of the lost first one, and
    // is no second stream.
    let mut repeating = RawClient::accepted(server.port, UDP_FORWARD);
    let socket = udp_socket("127.0.0.1", server.port, TIMEOUT);

    for _ in 0..3 {
        socket.send(HELLO).expect("sent");
        assert_eq!(receive(&socket), REPLY);
    }

    repeating.expect_start();
    socket.send(&datagram(1)).expect("sent");
    let results = repeating.finish();
    assert_eq!(
        results.pointer("/streams/0/bytes").and_then(Value::as_u64),
        Some(1000),
        "{results}"
    );

    // A stock client waits silently: the answer is repeated until its data arrives.
    let mut waiting = RawClient::accepted(server.port, UDP_FORWARD);
    let socket = udp_socket("127.0.0.1", server.port, TIMEOUT);
    socket.send(HELLO).expect("sent");
    assert_eq!(receive(&socket), REPLY, "let this one be lost");
    assert_eq!(receive(&socket), REPLY);
    waiting.expect_start();

    for number in 1..=5 {
        socket.send(&datagram(number)).expect("sent");
    }

    let results = waiting.finish();
    assert_eq!(
        results.pointer("/streams/0/bytes").and_then(Value::as_u64),
        Some(5000),
        "{results}"
    );
    assert_eq!(
        results.pointer("/streams/0/errors").and_then(Value::as_u64),
        Some(0),
        "{results}"
    );
}

#[test]
fn datagrams_of_other_sources_get_no_reply_and_no_state() {
    let server = Server::start(ours(), &[]);
    let mut test = RawClient::accepted(server.port, UDP_FORWARD);
    let before = Status::of(server.process.id());

    // Addresses without a test: other hosts of the loopback network.
    let strangers: Vec<UdpSocket> = (2..=200_u8)
        .map(|last| {
            let socket = udp_socket(&format!("127.0.0.{last}"), server.port, TIMEOUT);
            socket.set_nonblocking(true).expect("an option");

            for _ in 0..5 {
                socket.send(HELLO).expect("sent");
            }
            socket
        })
        .collect();
    // What comes behind them is handled behind them.
    let own = udp_socket("127.0.0.1", server.port, Duration::from_millis(200));

    // The kernel may have dropped some of these datagrams before the server saw them.
    let reply = wait_for(TIMEOUT, || {
        own.send(HELLO).expect("sent");
        let mut buffer = [0; 64];
        own.recv(&mut buffer)
            .ok()
            .map(|count| buffer[..count].to_vec())
    });
    assert_eq!(reply.as_deref(), Some(REPLY));
    test.expect_start();

    let with_response = strangers
        .iter()
        .filter(|s| s.recv(&mut [0; 64]).is_ok())
        .count();
    assert_eq!(with_response, 0);
    let after = Status::of(server.process.id());
    let grown = after.descriptors - before.descriptors;
    assert!(
        grown <= 6,
        "one stream and its worker need {grown} descriptors"
    );
    own.send(&datagram(1)).expect("sent");

    let _ = test.finish();
}

#[test]
fn udp_streams_come_from_the_address_of_their_test_unless_the_operator_allows_otherwise() {
    for (options, welcome) in [(&[][..], false), (&["--lr-allow-split-address"], true)] {
        let server = Server::start(ours(), options);
        let mut test = RawClient::accepted(server.port, UDP_FORWARD);
        let socket = udp_socket("127.0.0.3", server.port, Duration::from_millis(300));
        socket.send(HELLO).expect("sent");
        assert_eq!(socket.recv(&mut [0; 64]).is_ok(), welcome, "{options:?}");

        if welcome {
            test.expect_start();
        } else {
            assert_eq!(
                test.control.response_within(Duration::from_millis(100)),
                Received::Silence
            );
        }
    }
}

/// A hello can be forged. Whatever the operator allows, an address without a control connection
/// gets no data and no answer that is longer than what it sent.
#[test]
fn an_address_that_may_be_forged_gets_back_at_most_what_it_sent() {
    const UDP_REVERSE: &str =
        "{\"udp\":true,\"time\":1,\"len\":1000,\"bandwidth\":1000000,\"reverse\":true}";

    let server = Server::start(ours(), &["--lr-allow-split-address"]);
    for (parameters, response_bytes) in [(UDP_FORWARD, HELLO.len()), (UDP_REVERSE, 0)] {
        let _test = RawClient::accepted(server.port, parameters);
        let victim = udp_socket("127.0.0.3", server.port, Duration::from_millis(1200));
        victim.send(HELLO).expect("sent");
        assert_eq!(
            received_within(Duration::from_secs(3), &victim),
            response_bytes,
            "{parameters}"
        );
    }
}

/// Before a client's UDP port has proved that it listens, it gets a few bytes and no more.
#[test]
fn a_silent_udp_client_gets_a_handful_of_bytes() {
    let server = Server::start(ours(), &[]);
    let _test = RawClient::accepted(server.port, UDP_FORWARD);
    let socket = udp_socket("127.0.0.1", server.port, Duration::from_millis(1200));
    socket.send(HELLO).expect("sent");

    let bytes = received_within(Duration::from_secs(8), &socket);
    assert!((4..=40).contains(&bytes), "{bytes} bytes");
}

const UDP_FORWARD: &str = "{\"udp\":true,\"time\":3,\"len\":1000,\"bandwidth\":1000000}";
const HELLO: &[u8] = b"9876";
const REPLY: &[u8] = b"6789";

/// Bytes that arrive until the socket's time-out or the end of this time.
fn received_within(time: Duration, socket: &UdpSocket) -> usize {
    let (end, mut bytes) = (Instant::now() + time, 0);
    while Instant::now() < end
        && let Ok(count) = socket.recv(&mut [0; 2000])
    {
        bytes += count;
    }
    bytes
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 64];
    let count = socket.recv(&mut buffer).expect("an answer");
    buffer[..count].to_vec()
}

/// A datagram with its number; the time of sending does not matter.
fn datagram(number: u32) -> [u8; 1000] {
    let mut datagram = [0; 1000];
    datagram[8..12].copy_from_slice(&number.to_be_bytes());
    datagram
}
