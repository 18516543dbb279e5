//! Goal: nothing that a client sends stops the server or makes it answer more than it should.
//! Method: clients by hand that break the rules; a client of ours is served after each.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};

use linerate_interop::{
    NativeHost, RawNative, Service, TIMEOUT, datagram, each_case, frame, hello, knock, stream_head,
    udp_socket,
};
use serde_json::{Value, json};

/// Name; what the client does, which returns the messages of the server up to the end of the
/// connection; and the member that its fault names, `None` where there is no message.
type Attack = (&'static str, fn(u16) -> Vec<Value>, Option<&'static str>);

fn to(port: u16) -> (Ipv4Addr, u16) {
    (Ipv4Addr::LOCALHOST, port)
}

/// Waits for the server to close a connection on which no message can come.
fn closed(mut stream: TcpStream) -> Vec<Value> {
    let mut rest = Vec::new();
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("the time is not zero");

    if let Err(error) = stream.read_to_end(&mut rest) {
        assert_eq!(
            error.kind(),
            std::io::ErrorKind::ConnectionReset,
            "the server keeps the connection open"
        );
    }

    Vec::new()
}

/// Bytes instead of a handshake.
fn instead_of_a_handshake(port: u16, bytes: &[u8]) -> Vec<Value> {
    let mut stream = RawNative::recognised(to(port));
    // The server may close before all is sent.
    let _ = stream.write_all(bytes);
    closed(stream)
}

/// Bytes instead of a first message.
fn instead_of_a_message(port: u16, bytes: &[u8]) -> Vec<Value> {
    let mut client = RawNative::connect(to(port));
    client.send_bytes(bytes);
    client.drain()
}

/// A message in a session.
fn in_a_session(port: u16, message: Value) -> Vec<Value> {
    let (mut client, _) = RawNative::welcomed(to(port));
    client.send(message);
    client.drain()
}

fn phase(kind: &str, streams: u32) -> Value {
    let whole = json!({
        "kind": kind, "transport": "tcp", "streams_max": streams, "probe_flows": 1, "duration_max_ns": 5_000_000_000_u64,
    });
    json!({ "type": "open_phase", "phase": 1, "spec": whole })
}

/// Record of the handshake (type 22) with a ClientHello of this length inside, RFC 8446 sections 4
/// and 5.1.
fn client_hello(length: usize, sent: usize) -> Vec<u8> {
    let mut message = vec![1];
    message.extend(&u32::try_from(length).expect("short").to_be_bytes()[1..]);
    message.resize(4 + sent, 0);

    let records = message.chunks(16_000).flat_map(|part| {
        let length = u16::try_from(part.len()).expect("short").to_be_bytes();
        [&[22, 3, 1][..], &length, part].concat()
    });
    records.collect()
}

const ATTACKS: [Attack; 16] = [
    (
        "ClientHello of 64 KiB",
        |port| instead_of_a_handshake(port, &client_hello(65_536, 65_536)),
        None,
    ),
    (
        "a handshake that never ends",
        |port| instead_of_a_handshake(port, &client_hello(500, 100)),
        None,
    ),
    (
        "silence instead of a handshake",
        |port| instead_of_a_handshake(port, &[]),
        None,
    ),
    (
        "no TLS",
        |port| instead_of_a_handshake(port, b"GET / HTTP/1.1\r\n\r\n"),
        None,
    ),
    (
        "silence instead of a message",
        |port| instead_of_a_message(port, &[]),
        None,
    ),
    (
        "an empty frame",
        |port| instead_of_a_message(port, &[0; 4]),
        Some("length"),
    ),
    (
        "a frame over its bound",
        |port| instead_of_a_message(port, &16_385_u32.to_be_bytes()),
        Some("length"),
    ),
    (
        "no UTF-8",
        |port| instead_of_a_message(port, &[0, 0, 0, 4, 0xff, 0xfe, 0, 0x80]),
        Some("message"),
    ),
    (
        "no JSON",
        |port| instead_of_a_message(port, &frame("time=1")),
        Some("message"),
    ),
    (
        "deep nesting",
        |port| {
            let text = format!(
                "{{\"type\":\"hello\",\"n\":1,\"x\":{}{}}}",
                "[".repeat(20),
                "]".repeat(20)
            );
            instead_of_a_message(port, &frame(&text))
        },
        Some("x"),
    ),
    (
        "a number that is not finite",
        |port| {
            instead_of_a_message(
                port,
                &frame(
                    "{\"type\":\"hello\",\"n\":1,\"minor\":0,\"program\":\"x\",\"streams_max\":1e999}",
                ),
            )
        },
        Some("streams_max"),
    ),
    (
        "an unknown type",
        |port| in_a_session(port, json!({ "type": "dance" })),
        Some("type"),
    ),
    (
        "a second hello",
        |port| in_a_session(port, hello()),
        Some("type"),
    ),
    (
        "results before a phase",
        |port| in_a_session(port, json!({ "type": "start", "phase": 1 })),
        Some("type"),
    ),
    (
        "the 65th message in a second",
        |port| {
            let (mut client, _) = RawNative::welcomed(to(port));
            // Each is refused at once, whatever else arrived with it.
            for number in 1..=200 {
                let mut refused = phase("down", 0);
                refused["phase"] = number.into();
                client.send(refused);
            }

            client.drain()
        },
        Some("message"),
    ),
    (
        "messages without numbers",
        |port| instead_of_a_message(port, &frame(&hello().to_string())),
        Some("n"),
    ),
];

fn is_alive(service: &Service) {
    let target = format!("127.0.0.1:{}", service.port);
    NativeHost::here().report(&target, &["--only", "size"]);
    let log = service.process.stderr();
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn next_client_is_served_after_every_attack() {
    each_case(&ATTACKS, |(name, attack, member)| {
        let service = NativeHost::here().serve(&[]);
        let messages = attack(service.port);
        let last = messages
            .iter()
            .rev()
            .find(|message| message["type"] == "fault");
        match (member, last) {
            (Some(member), Some(fault)) => {
                assert!(
                    fault["member"]
                        .as_str()
                        .is_some_and(|found| found.starts_with(member)),
                    "{name}: {fault}"
                );
            }
            (Some(_), None) => panic!("{name}: no fault, but {messages:?}"),
            (None, fault) => assert_eq!(fault, None, "{name}"),
        }

        is_alive(&service);
    });
}

/// A refused phase leaves the session as it is.
#[test]
fn phase_beyond_the_limits_is_refused_with_the_clause() {
    let service = NativeHost::here().serve(&[]);
    let (mut client, _) = RawNative::welcomed(to(service.port));

    for (number, mut message) in (1..).zip([phase("down", 0), phase("down", 5)]) {
        message["phase"] = json!(number);
        client.send(message.clone());
        let refused = client.expect("refused");
        assert_eq!(refused["clause"], "streams", "{message}: {refused}");
    }

    client.open_phase(3, &phase("down", 4)["spec"]);
    is_alive(&service);
}

#[test]
fn datagrams_of_no_flow_are_not_answered() {
    let service = NativeHost::here().serve(&[]);
    let (mut client, _) = RawNative::welcomed(to(service.port));
    client.open_phase(1, &phase("idle", 0)["spec"]);

    let socket = udp_socket("127.0.0.1", service.port, TIMEOUT);
    let random: Vec<u8> = (0..512_u32)
        .map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();

    for kind in 0..=255 {
        for length in [0, 31, 40, 512] {
            let body = &random[..length];
            // A peer that answers with an error of ICMP is none that listens; the socket reports it
            // once.
            let _ = socket.send(&datagram(kind, 1, 0x0102_0304_0506_0708, 1 << 50, body));
            let _ = socket.send(body);
        }
    }

    is_alive(&service);
    socket.set_nonblocking(true).expect("a socket");
    let answer = socket.recv(&mut [0; 2048]).map_err(|error| error.kind());
    assert_eq!(answer, Err(std::io::ErrorKind::WouldBlock));
}

/// More wrong tokens than an address may use in a minute, each at the head of a connection.
fn use_wrong_tokens(port: u16) {
    for number in 0..25_u8 {
        let mut stream = TcpStream::connect(to(port)).expect("the server listens");
        stream
            .write_all(&stream_head([number; 16], 1))
            .expect("the server reads");
        closed(stream);
    }
}

fn token(text: &Value) -> [u8; 16] {
    let text = text.as_str().expect("a token");
    std::array::from_fn(|at| {
        u8::from_str_radix(&text[2 * at..2 * at + 2], 16).expect("hexadecimal")
    })
}

/// Begins the first stream of a phase.
fn begin_stream(port: u16, ready: &Value) -> TcpStream {
    let mut stream = TcpStream::connect(to(port)).expect("the server listens");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("the time is not zero");
    stream
        .write_all(&stream_head(token(&ready["streams"][0]), 1))
        .expect("the server reads");

    stream
}

/// Opens the flow of a phase; the server has read all datagrams before it then.
fn open_flow(port: u16, ready: &Value) {
    let granted = &ready["flows"][0];
    let number = granted["flow"]
        .as_u64()
        .and_then(|number| u32::try_from(number).ok())
        .expect("a number");
    let socket = udp_socket("127.0.0.1", port, TIMEOUT);
    socket
        .send(&knock(number, token(&granted["token"])))
        .expect("loopback");

    let mut answer = [0; 128];
    socket
        .recv(&mut answer)
        .expect("the token of the flow is valid");
    assert_eq!(answer[..3], [0xa5, 0x01, 1]);
}

/// Twenty wrong tokens in a minute; then the streams of the address wait, and others do not.
#[test]
fn address_with_many_wrong_tokens_waits() {
    let service = NativeHost::here().serve(&[]);
    use_wrong_tokens(service.port);
    let (mut client, _) = RawNative::welcomed(to(service.port));
    let ready = client.open_phase(1, &phase("down", 4)["spec"]);
    closed(begin_stream(service.port, &ready));
    open_flow(service.port, &ready);

    let target = format!("127.0.0.1:{}", service.port);
    NativeHost::here().report(
        &target,
        &[
            "--only",
            "down",
            "--time",
            "1",
            "-b",
            "10M",
            "-B",
            "127.0.0.9",
        ],
    );
}

/// Anybody can write the address of a victim into a datagram.
#[test]
fn wrong_tokens_in_datagrams_count_against_no_address() {
    let service = NativeHost::here().serve(&[]);
    let (mut client, _) = RawNative::welcomed(to(service.port));
    let ready = client.open_phase(1, &phase("down", 4)["spec"]);
    let forger = udp_socket("127.0.0.1", service.port, TIMEOUT);

    for number in 0..50_u8 {
        forger.send(&knock(1, [number; 16])).expect("loopback");
    }

    open_flow(service.port, &ready);
    let mut answer = [0; 16];
    begin_stream(service.port, &ready)
        .read_exact(&mut answer)
        .expect("the token of the stream is valid");

    let target = format!("127.0.0.1:{}", service.port);
    NativeHost::here().report(
        &target,
        &["--only", "idle,down", "--time", "1", "-b", "10M"],
    );
}

/// Nothing is reported as measured, and above all no rate of 0, where the server refused what would
/// have measured it.
#[test]
fn client_whose_streams_are_refused_reports_it_and_fails() {
    let service = NativeHost::here().serve(&[]);
    use_wrong_tokens(service.port);
    let target = format!("127.0.0.1:{}", service.port);
    let kinds = ["down", "up", "both", "rr", "crr", "cps"];
    let words = [
        "--only",
        &kinds.join(","),
        "--time",
        "1",
        "--profile",
        "quick",
    ];

    let client = NativeHost::here();
    let text = client.test(&target, &words).finish();
    text.expect_code(1).expect_stdout("wait a minute");

    for wrong in ["0.00 bit/s", "no problem", "grade", "RPM"] {
        assert!(!text.stdout.contains(wrong), "{wrong}: {text:?}");
    }

    let finished = client
        .test(&target, &[&words[..], &["--json", "-q"]].concat())
        .finish();
    let report = finished.expect_code(1).json();

    for kind in kinds {
        let reason = report["absent"][kind].as_str().unwrap_or_default();
        assert!(
            reason.starts_with("the server refused"),
            "{kind}: {finished:?}"
        );
    }

    for figure in [
        "phases",
        "grade",
        "diagnosis",
        "voice",
        "transactions",
        "ladders",
    ] {
        let found = &report[figure];
        assert!(
            found.is_null() || found.as_array().is_some_and(Vec::is_empty),
            "{figure}: {found}"
        );
    }

    let refusals = service.events("handshake_failed");
    let is_explained = |event: &Value| event.to_string().contains("wrong tokens");
    assert!(refusals.iter().any(is_explained), "{refusals:?}");
}
