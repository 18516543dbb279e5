//! Both ends of the channel, and misbehaving clients.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::http::{EndpointStats, Environment, Reading};

use super::*;

const TIMEOUT: Duration = Duration::from_secs(20);
const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// Has one cell, and samples up to number 5.
#[derive(Default)]
struct Fake(Mutex<Vec<String>>);

impl Agent for Fake {
    fn info(&self, peer: IpAddr) -> Info {
        Info {
            program: PROGRAM.to_owned(),
            version: "1".to_owned(),
            capabilities: vec!["restart-workers".to_owned()],
            pids: vec![7],
            port: Some(8080),
            environment: Environment { device: Some(peer.to_string()), ..Environment::default() },
        }
    }

    fn begin_cell(&self, mark: &CellMark, peer: IpAddr) -> Result<CellBegun, Refusal> {
        self.0.lock().expect("alive").push(format!("{} {peer}", mark.id));
        Ok(CellBegun { id: mark.id.clone(), at_ns: 9, baseline: EndpointStats::default() })
    }

    fn end_cell(&self, id: &str) -> Result<EndpointStats, Refusal> {
        match id {
            "a" => Ok(EndpointStats { samples: 3, ..EndpointStats::default() }),
            _ => Err(Refusal::Unknown(format!("no cell {id}"))),
        }
    }

    fn readings(&self, from: u64, timeout: Duration) -> Vec<Reading> {
        let found: Vec<Reading> =
            (from.max(1)..=5).map(|sequence| Reading { sequence, ..Reading::default() }).collect();
        if found.is_empty() {
            thread::sleep(timeout.min(Duration::from_millis(5)));
        }
        found
    }

    fn last_reading(&self) -> Option<Reading> {
        self.readings(5, Duration::ZERO).pop()
    }

    fn restart_workers(&self) -> Result<(), Refusal> {
        Err(Refusal::Unsupported("nothing to restart".to_owned()))
    }
}

fn open(token: Option<&str>) -> (Control, Arc<Fake>) {
    let agent = Arc::new(Fake::default());
    let spec = ControlSpec {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        token: token.map(|words| Token::new(words).expect("a token")),
        allow: Vec::new(),
    };
    let control = Control::open(spec, Arc::clone(&agent) as Arc<dyn Agent>).expect("a port");
    (control, agent)
}

fn client(control: &Control, token: Option<&str>) -> ControlClient {
    ControlClient::at(control.address(), token.map(|words| Token::new(words).expect("a token")))
}

/// Sends bytes and returns everything received until the server closes.
fn raw(control: &Control, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(control.address()).expect("connect");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    // Some of these requests make the server close early.
    let _ = stream.write_all(request);
    let mut response = Vec::new();
    let _ = stream.read_to_end(&mut response);
    String::from_utf8(response).expect("text")
}

fn status(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or_default()
}

#[test]
fn every_request_has_its_response() {
    let (control, agent) = open(Some(SECRET));
    let mut client = client(&control, Some(SECRET));
    let other: IpAddr = "192.0.2.7".parse().expect("an address");
    let info = client.info(Some(other)).expect("info");
    assert!(info.pids == [7] && info.can("restart-workers") && info.environment.device.as_deref() == Some("192.0.2.7"));
    let own = client.info(None).expect("info").environment.device;
    assert_eq!(own.as_deref(), Some("127.0.0.1"), "the client");

    let offset = client.clock_offset().expect("a clock");
    assert!(offset.offset_ns.unsigned_abs() <= offset.rtt_ns, "it is the same clock: {offset:?}");

    let begun = client.begin_cell(&CellMark::named("a")).expect("a cell");
    assert_eq!((begun.id.as_str(), begun.at_ns), ("a", 9));
    let mark = CellMark { peer: Some(other), ..CellMark::named("b") };
    client.begin_cell(&mark).expect("a cell");
    assert_eq!(*agent.0.lock().expect("alive"), ["a 127.0.0.1", "b 192.0.2.7"]);
    assert_eq!(client.end_cell("a").expect("figures").samples, 3);
    let last = client.another().last_reading().expect("a sample");
    assert_eq!(last.map(|reading| reading.sequence), Some(5));
    let unknown = client.end_cell("zz").expect_err("no such cell");
    assert!(matches!(&unknown, ControlError::Refused { status: 404, text } if text.contains("zz")), "{unknown}");
    let unsupported = client.restart_workers().expect_err("nothing there");
    assert!(matches!(unsupported, ControlError::Refused { status: 501, .. }), "{unsupported}");
}

#[test]
fn without_token_nothing_is_disclosed() {
    let (control, agent) = open(Some(SECRET));
    for token in [None, Some("another-secret-of-32-characters!")] {
        let mut client = client(&control, token);
        for failed in [client.info(None).map(drop), client.begin_cell(&CellMark::named("a")).map(drop)] {
            assert!(matches!(failed, Err(ControlError::Unauthorized)), "{failed:?}");
        }
    }
    assert!(agent.0.lock().expect("alive").is_empty());
    let response = raw(&control, b"GET /v1/nothing HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(
        response.starts_with("HTTP/1.1 401") && response.contains("WWW-Authenticate: Bearer, Linerate"),
        "{response}"
    );
}

/// A connection that computes its own proofs.
struct Prover {
    stream: TcpStream,
    nonce: proof::Nonce,
}

impl Prover {
    fn new(control: &Control) -> Self {
        let mut stream = TcpStream::connect(control.address()).expect("connect");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let response = exchange(&mut stream, b"GET /v1/nonce HTTP/1.1\r\nHost: a\r\n\r\n");
        let (_, body) = response.split_once("\r\n\r\n").expect("a head");
        let challenge: proof::Challenge = serde_json::from_str(body).expect("a nonce");
        Self { stream, nonce: challenge.nonce }
    }

    /// A request for a path with the proof for this or another one.
    fn request(&self, number: u64, path: &str, proved: &str) -> Vec<u8> {
        let exchange =
            proof::Exchange { server: self.nonce.clone(), client: proof::Nonce::fresh().expect("random"), number };
        let proof = exchange.of_request(&Token::new(SECRET).expect("a token"), "GET", proved, b"");
        let client = exchange.client;
        format!("GET {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Linerate nonce={client}, proof={proof}\r\n\r\n")
            .into_bytes()
    }
}

/// Sends a request; returns the bytes up to the end of the first response.
fn exchange(stream: &mut TcpStream, request: &[u8]) -> String {
    stream.write_all(request).expect("it listens");
    let mut response = Vec::new();
    loop {
        let mut step = [0; 4096];
        let read = stream.read(&mut step).expect("a response");
        response.extend_from_slice(&step[..read]);
        let text = String::from_utf8_lossy(&response).into_owned();
        if read == 0 || text.split_once("\r\n\r\n").is_some_and(|(_, body)| body.ends_with('}')) {
            return text;
        }
    }
}

#[test]
fn proof_is_valid_for_one_request_on_one_connection() {
    let (control, _) = open(Some(SECRET));
    let mut first = Prover::new(&control);
    let request = first.request(1, "/v1/clock", "/v1/clock");
    let response = exchange(&mut first.stream, &request);
    assert_eq!(status(&response), "200", "{response}");
    assert!(response.contains("Authentication-Info: proof="), "{response}");
    let again = exchange(&mut first.stream, &request);
    assert_eq!(status(&again), "401", "the same once more: {again}");

    let mut second = Prover::new(&control);
    let elsewhere = exchange(&mut second.stream, &request);
    assert_eq!(status(&elsewhere), "401", "on another connection: {elsewhere}");

    for (number, path, proved) in [(2, "/v1/clock", "/v1/clock"), (1, "/v1/info", "/v1/clock")] {
        let mut other = Prover::new(&control);
        let request = other.request(number, path, proved);
        let response = exchange(&mut other.stream, &request);
        assert_eq!(status(&response), "401", "{number} {path}: {response}");
    }
    let mut greedy = Prover::new(&control);
    let response = exchange(&mut greedy.stream, b"GET /v1/nonce HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(status(&response), "401", "one nonce per connection: {response}");
}

/// An impostor of the server is rejected and does not learn the token.
#[test]
fn impostor_without_token_is_rejected_and_learns_nothing() {
    let info = br#"{"program":"linerate","version":"1","capabilities":[],"pids":[],"environment":{}}"#;
    let nonce = format!("{{\"nonce\":\"{}\"}}", "0".repeat(64)).into_bytes();
    let proof = format!("Authentication-Info: proof={}\r\n", "0".repeat(64));
    for (challenge, field) in [(&nonce[..], ""), (&nonce[..], &proof[..]), (&info[..], ""), (&b"{}"[..], "")] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let answers = [(challenge, ""), (&info[..], field)].map(|(body, field)| {
            let length = body.len();
            let mut response = format!("HTTP/1.1 200 OK\r\n{field}Content-Length: {length}\r\n\r\n").into_bytes();
            response.extend_from_slice(body);
            response
        });
        let impostor = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut received = Vec::new();
            for response in answers {
                let mut step = [0; 4096];
                let read = stream.read(&mut step).unwrap_or_default();
                received.extend_from_slice(&step[..read]);
                let _ = stream.write_all(&response);
            }
            received
        });
        let error = ControlClient::at(address, Token::new(SECRET).ok()).info(None).expect_err("an impostor");
        assert!(matches!(error, ControlError::Unproved), "{error}");
        let received = String::from_utf8(impostor.join().expect("thread")).expect("text");
        assert!(received.starts_with("GET /v1/nonce ") && !received.contains(SECRET), "{received}");
    }
}

#[test]
fn invalid_and_oversized_requests_are_refused_with_reason() {
    let (control, _) = open(None);
    let http = |line: &str, rest: &str| format!("{line} HTTP/1.1\r\nHost: 127.0.0.1\r\n{rest}");
    let last = |line: &str| http(line, "Connection: close\r\n\r\n");
    let cell = |length: usize, body: &str| {
        let rest = format!("Content-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        http("POST /v1/cell", &rest)
    };
    let chunked = |body: &str| http("POST /v1/cell", &format!("Transfer-Encoding: chunked\r\n\r\n{body}"));
    let endless = format!("X: {}\r\n\r\n", "y".repeat(20 << 10));
    let large = format!("10001\r\n{}\r\n0\r\n\r\n", "z".repeat(0x10001));
    let rows: [(&str, String); 14] = [
        ("400", "nonsense\r\n\r\n".to_owned()),
        ("431", http("GET /", &endless)),
        ("413", cell(65_537, "")),
        ("413", chunked(&large)),
        ("400", chunked("x\r\n")),
        ("400", cell(2, "{}")),
        ("400", cell(12, r#"{"id":"a/b"}"#)),
        ("200", cell(10, r#"{"id":"a"}"#)),
        ("400", last("GET /v1/samples?from=-1")),
        ("400", last("GET /v1/info?peer=x")),
        ("405", last("DELETE /v1/info")),
        ("404", last("GET /v2")),
        ("404", last("DELETE /v1/cell/")),
        ("505", "GET /v1/samples HTTP/1.0\r\n\r\n".to_owned()),
    ];
    for (expected, request) in rows {
        let response = raw(&control, request.as_bytes());
        assert_eq!(status(&response), expected, "{request:.200}: {response}");
        let (_, body) = response.split_once("\r\n\r\n").expect("a body");
        let body: serde_json::Value = serde_json::from_str(body).expect("JSON");
        assert!(expected == "200" || body["error"].is_string(), "{response}");
    }
}

#[test]
fn two_requests_in_one_segment_get_two_responses() {
    let (control, _) = open(None);
    let one = "GET /v1/clock HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
    let last = "GET /v1/clock HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n";
    let response = raw(&control, format!("{one}{last}").as_bytes());
    assert_eq!(response.matches("HTTP/1.1 200 OK").count(), 2, "{response}");
    assert_eq!(response.matches("Connection: close").count(), 1, "{response}");
}

#[test]
fn slow_clients_are_closed_and_cannot_take_all_slots() {
    let (control, _) = open(Some(SECRET));
    let mut owner = client(&control, Some(SECRET));
    owner.info(None).expect("before the strangers");
    let strangers: Vec<TcpStream> = (0..40)
        .map(|_| {
            let mut stream = TcpStream::connect(control.address()).expect("connect");
            let _ = stream.write_all(b"GET /v1/inf");
            stream
        })
        .collect();
    owner.clock_offset().expect("among strangers, on the connection it has");
    client(&control, Some(SECRET)).info(None).expect("a new connection of the owner");
    let mut too_slow = 0;
    for mut stranger in strangers {
        stranger.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        let mut response = Vec::new();
        // Either replaced, or refused as too slow.
        if stranger.read_to_end(&mut response).is_ok() {
            let response = String::from_utf8_lossy(&response);
            assert!(response.is_empty() || status(&response) == "408", "{response}");
            too_slow += usize::from(!response.is_empty());
        }
    }
    assert!(too_slow > 0, "the last ones are not replaced");
}

#[test]
fn client_identifies_foreign_servers() {
    let answers: [&[u8]; 6] = [
        b"SSH-2.0-x\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ];
    for response in answers {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let foreign = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(response);
            let _ = stream.read(&mut [0; 4096]);
        });
        let error = ControlClient::at(address, None).info(None).expect_err("foreign");
        assert!(matches!(error, ControlError::Foreign(_)), "{error}");
        foreign.join().expect("thread");
    }
}

#[test]
fn client_retries_until_the_channel_is_back_or_reports_it_lost() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    // Two connections break before the third gets a response.
    let server = thread::spawn(move || {
        for _ in 0..2 {
            drop(listener.accept().expect("a client"));
        }
        let (mut stream, _) = listener.accept().expect("a client");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 20\r\n\r\n{\"error\":\"nothing.\"}");
        let _ = stream.read(&mut [0; 4096]);
    });
    let error = ControlClient::at(address, None).end_cell("a").expect_err("refused at last");
    assert!(matches!(error, ControlError::Refused { status: 404, .. }), "{error}");
    server.join().expect("thread");
    let began = Instant::now();
    let error = ControlClient::at(address, None).end_cell("a").expect_err("no listener");
    assert!(matches!(&error, ControlError::Lost { why, .. } if why == "Connection refused"), "{error}");
    assert!(began.elapsed() < TIMEOUT, "retries end");
}
