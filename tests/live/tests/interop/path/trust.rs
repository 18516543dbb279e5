//! Goal: a server answers no client without a valid token, and a client tests no server but the one
//! that was demanded. Method: knocks and heads by hand; servers whose key changes, which demand
//! tokens, or speak iperf3 instead.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::thread;

use linerate_interop::{
    Finished, Keys, NativeHost, Process, RawNative, Server, Service, Signal, TIMEOUT, free_port,
    knock, original, stream_head, token, udp_socket,
};
use serde_json::{Value, json};

fn idle_phase() -> Value {
    json!({ "kind": "idle", "transport": "tcp", "streams_max": 0, "probe_flows": 8, "duration_max_ns": 30_000_000_000_u64 })
}

fn down_phase() -> Value {
    json!({ "kind": "down", "transport": "tcp", "streams_max": 4, "probe_flows": 0, "duration_max_ns": 30_000_000_000_u64 })
}

/// Flows that a phase was granted, and those that opened so far.
struct Flows<'a> {
    service: &'a Service,
    granted: Vec<(u32, [u8; 16])>,
}

impl<'a> Flows<'a> {
    fn of(service: &'a Service, ready: &Value) -> Self {
        let flows = ready["flows"].as_array().expect("flows").iter();
        let granted = flows.map(|flow| {
            (
                flow["flow"].as_u64().expect("a number") as u32,
                token(&flow["token"]),
            )
        });
        Self {
            service,
            granted: granted.collect(),
        }
    }

    /// The next flow that is not open yet.
    fn next(&mut self) -> (u32, [u8; 16]) {
        self.granted.pop().expect("flows are left")
    }

    /// Opens a flow; the server has read everything before it then.
    #[track_caller]
    fn open_next(&mut self) -> (u32, [u8; 16]) {
        let (flow, token) = self.next();
        let socket = udp_socket("127.0.0.1", self.service.port, TIMEOUT);
        socket.send(&knock(flow, token)).expect("loopback");

        let mut answer = [0; 128];
        let length = socket.recv(&mut answer).expect("a valid knock is answered");
        assert!(
            length <= 64,
            "the answer is longer than the knock: {length}"
        );
        assert_eq!(answer[..3], [0xa5, 0x01, 1]);

        (flow, token)
    }

    /// Sends a datagram that is not to be answered.
    #[track_caller]
    fn expect_nothing(&mut self, name: &str, from: &str, datagram: &[u8]) {
        let socket = udp_socket(from, self.service.port, TIMEOUT);
        socket.send(datagram).expect("loopback");
        self.open_next();
        socket.set_nonblocking(true).expect("a socket");

        let received = socket.recv(&mut [0; 2048]).map_err(|error| error.kind());
        assert_eq!(received, Err(ErrorKind::WouldBlock), "{name}");
    }
}

#[test]
fn knocks_without_a_valid_token_of_their_address_are_not_answered() {
    let service = NativeHost::here().serve(&[]);
    let (mut client, _) = RawNative::welcomed((Ipv4Addr::LOCALHOST, service.port));
    let mut earlier = Flows::of(&service, &client.open_phase(1, &idle_phase()));
    let stale = earlier.next();
    let used = earlier.open_next();
    let (flow, unused) = earlier.next();
    earlier.expect_nothing(
        "token of another address",
        "127.0.0.9",
        &knock(flow, unused),
    );
    client.send(json!({ "type": "stop", "phase": 1 }));
    client.expect("phase_result");

    let mut flows = Flows::of(&service, &client.open_phase(2, &idle_phase()));
    flows.expect_nothing("wrong token", "127.0.0.1", &knock(1, [7; 16]));
    flows.expect_nothing("used token", "127.0.0.1", &knock(used.0, used.1));
    flows.expect_nothing(
        "token of an earlier phase",
        "127.0.0.1",
        &knock(stale.0, stale.1),
    );

    let (flow, valid) = flows.next();
    flows.expect_nothing(
        "token of another flow",
        "127.0.0.1",
        &knock(flow + 100, valid),
    );
    let (flow, valid) = flows.next();
    flows.expect_nothing("a short knock", "127.0.0.1", &knock(flow, valid)[..63]);
}

fn answer_to_knock(socket: &UdpSocket, knock: &[u8]) -> Vec<u8> {
    socket.send(knock).expect("loopback");
    let mut answer = [0; 128];
    let length = socket.recv(&mut answer).expect("a valid knock is answered");
    answer[..length].to_vec()
}

/// Without it a client with a token has the server send to a third host.
#[test]
fn another_address_opens_a_flow_after_it_has_received_a_challenge() {
    let service = NativeHost::here().serve(&["--allow-split-address"]);
    let (mut client, _) = RawNative::welcomed((Ipv4Addr::LOCALHOST, service.port));
    let mut flows = Flows::of(&service, &client.open_phase(1, &idle_phase()));
    let (flow, token) = flows.next();
    let knock = knock(flow, token);
    let with_proof = |stamp: &[u8]| [&knock[..8], stamp, &knock[16..]].concat();
    let elsewhere = udp_socket("127.0.0.9", service.port, TIMEOUT);
    let challenge = answer_to_knock(&elsewhere, &knock);
    assert!(
        challenge.len() <= knock.len() && challenge[..3] == [0xa5, 0x01, 9],
        "{challenge:?}"
    );
    assert_eq!(
        answer_to_knock(&elsewhere, &with_proof(&[7; 8]))[2],
        9,
        "a wrong proof"
    );

    let third = udp_socket("127.0.0.10", service.port, TIMEOUT);
    assert_eq!(
        answer_to_knock(&third, &with_proof(&challenge[24..32]))[2],
        9,
        "the proof of another address"
    );
    assert_eq!(
        answer_to_knock(&elsewhere, &with_proof(&challenge[24..32]))[2],
        1
    );
    flows.expect_nothing("used token", "127.0.0.10", &knock);
    flows.expect_nothing(
        "wrong token",
        "127.0.0.9",
        &linerate_interop::knock(1, [7; 16]),
    );
}

/// Otherwise an address that answered a challenge once gets data for ever after, whether it
/// receives them or not.
#[test]
fn proof_of_an_address_opens_no_flow_of_another_session_or_number() {
    let service = NativeHost::here().serve(&["--allow-split-address"]);
    let elsewhere = udp_socket("127.0.0.9", service.port, TIMEOUT);
    let answer_with = |knock: &[u8], proof: &[u8]| {
        let with_proof = [&knock[..8], proof, &knock[16..]].concat();
        answer_to_knock(&elsewhere, &with_proof)[2]
    };
    let (mut first, _) = RawNative::welcomed((Ipv4Addr::LOCALHOST, service.port));
    let mut flows = Flows::of(&service, &first.open_phase(1, &idle_phase()));
    let (flow, token) = flows.next();
    let proof = answer_to_knock(&elsewhere, &knock(flow, token))[24..32].to_vec();
    let (other_flow, other_token) = flows.next();
    assert_eq!(
        answer_with(&knock(other_flow, other_token), &proof),
        9,
        "another flow"
    );

    let (mut second, _) = RawNative::welcomed((Ipv4Addr::LOCALHOST, service.port));
    let (same_flow, its_token) = Flows::of(&service, &second.open_phase(1, &idle_phase())).next();
    assert_eq!(same_flow, flow, "each session numbers its flows");
    assert_eq!(
        answer_with(&knock(flow, its_token), &proof),
        9,
        "another session"
    );
    assert_eq!(answer_with(&knock(flow, token), &proof), 1);
}

#[test]
fn control_connection_over_another_address_needs_the_consent_of_the_server() {
    let (client, host) = (NativeHost::here(), NativeHost::here());
    let strict = host.serve(&[]);

    let split = |port: u16| {
        let words = [
            "--control-via",
            "127.0.0.2",
            "-B",
            "127.0.0.3",
            "--only",
            "idle,down,datagrams",
            "--time",
            "2",
        ];
        client
            .test(&target(port), &[&words[..], &["--json", "-q"]].concat())
            .finish()
    };
    split(strict.port)
        .expect_code(4)
        .expect_stderr("--allow-split-address");
    drop(strict);

    let service = host.serve(&["--allow-split-address"]);
    let report = split(service.port).expect_code(0).json();
    assert_eq!(report["target"]["address"], "127.0.0.1");

    let rate = report["phases"][0]["down_bps"].as_f64();
    assert!(rate.is_some_and(|bps| bps > 0.0), "{report}");
    assert!(
        report["idle"]["rtt"]["n"].as_u64().is_some_and(|n| n > 100),
        "{report}"
    );
    assert_eq!(report["datagrams"][0]["direction"], "down", "{report}");
}

/// Answer of the server to a head: bytes, and how the connection ends.
fn answer_to_head(port: u16, head: &[u8]) -> (usize, Option<ErrorKind>) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the server listens");
    stream
        .set_read_timeout(Some(TIMEOUT))
        .expect("the time is not zero");
    stream.write_all(head).expect("the server reads");

    let mut answer = [0; 16];
    let mut length = 0;

    loop {
        match stream.read(&mut answer[length..]) {
            Ok(0) => return (length, None),
            Ok(count) => length += count,
            Err(error) => return (length, Some(error.kind())),
        }
    }
}

#[test]
fn streams_without_a_valid_token_are_reset_without_a_byte() {
    let service = NativeHost::here().serve(&[]);
    let (mut client, _) = RawNative::welcomed((Ipv4Addr::LOCALHOST, service.port));
    let ready = client.open_phase(1, &down_phase());
    let tokens: Vec<[u8; 16]> = ready["streams"]
        .as_array()
        .expect("tokens")
        .iter()
        .map(token)
        .collect();

    let reset = (0, Some(ErrorKind::ConnectionReset));
    assert_eq!(
        answer_to_head(service.port, &stream_head([7; 16], 1)),
        reset,
        "wrong token"
    );
    let mut first =
        TcpStream::connect((Ipv4Addr::LOCALHOST, service.port)).expect("the server listens");
    first
        .write_all(&stream_head(tokens[0], 1))
        .expect("the server reads");

    let mut answer = [0; 16];
    first
        .read_exact(&mut answer)
        .expect("a valid head is answered");
    assert_eq!(answer[..5], [0xe5, 0x6c, 0x72, 0x81, 0]);
    assert_eq!(
        answer_to_head(service.port, &stream_head(tokens[0], 1)),
        reset,
        "used token"
    );
    assert_eq!(
        answer_to_head(service.port, &stream_head(tokens[1], 0)),
        reset,
        "load of the other direction"
    );
    client.send(json!({ "type": "stop", "phase": 1 }));
    client.expect("phase_result");
    client.open_phase(2, &down_phase());
    assert_eq!(
        answer_to_head(service.port, &stream_head(tokens[2], 1)),
        reset,
        "token of an earlier phase"
    );

    // Refusals are logged.
    assert!(
        service
            .wait_for_events("handshake_failed", 4, TIMEOUT)
            .len()
            >= 4
    );
}

fn target(port: u16) -> String {
    format!("127.0.0.1:{port}")
}

fn tested(client: &NativeHost, port: u16, words: &[&str]) -> Finished {
    client
        .test(
            &target(port),
            &[&["--only", "size", "--json", "-q"], words].concat(),
        )
        .finish()
}

fn fingerprint(service: &Service) -> String {
    let event = service.wait_for_events("host_key", 1, TIMEOUT).remove(0);
    event["host_key"]
        .as_str()
        .expect("a fingerprint")
        .split([',', ' '])
        .next()
        .expect("a word")
        .to_owned()
}

#[test]
fn changed_key_is_refused_with_both_and_the_way_to_forget() {
    let (client, first_host) = (NativeHost::here(), NativeHost::here());
    let first = first_host.serve(&[]);
    let (port, old) = (first.port, fingerprint(&first));
    assert_eq!(
        tested(&client, port, &[]).json()["target"]["identity"],
        "new"
    );
    assert_eq!(
        tested(&client, port, &[]).json()["target"]["identity"],
        "known"
    );
    assert_eq!(
        tested(&client, port, &["--pin", &old]).json()["target"]["identity"],
        "pinned"
    );
    drop(first);

    let second_host = NativeHost::here();
    let second = second_host.serve_at(port, &[]);
    let new = fingerprint(&second);
    let refused = tested(&client, port, &[]);
    refused
        .expect_code(4)
        .expect_stderr(&old)
        .expect_stderr(&new)
        .expect_stderr("--forget");
    assert!(refused.stdout.is_empty(), "{refused:?}");
    tested(&client, port, &["--pin", &old])
        .expect_code(4)
        .expect_stderr(&old)
        .expect_stderr(&new);
    assert_eq!(
        tested(&client, port, &["--insecure"]).json()["target"]["identity"],
        "unproven"
    );
    client
        .test(&target(port), &["--forget"])
        .finish()
        .expect_code(0);
    assert_eq!(
        tested(&client, port, &[]).json()["target"]["identity"],
        "new"
    );
}

#[test]
fn client_outside_the_allowed_networks_reads_that_its_address_is_refused() {
    let (client, host) = (NativeHost::here(), NativeHost::here());
    let service = host.serve(&["--allow", "192.0.2.0/24"]);
    tested(&client, service.port, &[])
        .expect_code(4)
        .expect_stderr("admits no test from this address");
    assert_eq!(service.wait_for_events("refused", 1, TIMEOUT).len(), 1);
}

fn secret_file(host: &NativeHost, name: &str, secret: &str) -> PathBuf {
    let path = host.state_file(name);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(&path, secret).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    path
}

#[test]
fn token_is_proved_by_both_ends() {
    let (client, host) = (NativeHost::here(), NativeHost::here());
    let tokens = secret_file(&host, "tokens", "group 0123456789abcdef0123456789abcdef\n");
    let service = host.serve(&[
        "--no-iperf3",
        "--tokens",
        tokens.to_str().expect("a plain path"),
    ]);

    let test = |name: &str, secret: &str| {
        let file = secret_file(&client, name, secret);
        tested(
            &client,
            service.port,
            &["--token-file", file.to_str().expect("a plain path")],
        )
    };
    assert_eq!(
        test("right", "group 0123456789abcdef0123456789abcdef\n").json()["target"]["identity"],
        "token"
    );
    test("wrong", "group ffffffffffffffffffffffffffffffff\n").expect_code(4);
    test("unknown", "others 0123456789abcdef0123456789abcdef\n").expect_code(4);
    tested(&client, service.port, &[])
        .expect_code(4)
        .expect_stderr("token");
}

/// 21 characters of Base64 are fewer than 128 bits, and a proof permits guessing at leisure.
#[test]
fn short_token_is_refused_at_both_ends_with_the_command_that_makes_one() {
    let host = NativeHost::here();
    let file = secret_file(
        &host,
        "tokens",
        "# who may test\ngroup 0123456789abcdef01234\n",
    );
    let file = file.to_str().expect("a plain path");
    let lines = [
        &["serve", "--port", "0", "--no-iperf3", "--tokens", file][..],
        &["test", "127.0.0.1:1", "--token-file", file],
        &[
            "http",
            "agent",
            "--control",
            "127.0.0.1:0",
            "--token-file",
            file,
        ],
    ];
    for line in lines {
        let refused = Process::start(host.command(line)).finish();
        assert_ne!(refused.code(), Some(0), "{refused:?}");
        refused
            .expect_stderr(&format!("{file} line 2"))
            .expect_stderr("openssl rand -base64 24");
    }
}

/// All that a server sends to a client by hand with this token, up to the end of the connection.
fn answers_to_token(port: u16, name: &str, secret: &str) -> Vec<Value> {
    let mut client = RawNative::connect((Ipv4Addr::LOCALHOST, port));
    client.send(client.hello_with_token(name, secret));
    client.drain()
}

/// A server that proved the token to a stranger would give it something to guess by, and one that
/// knows no such name must not be distinguishable from one that does. Guesses at the server itself
/// are as slow as those of passwords.
#[test]
fn stranger_gets_no_proof_and_the_same_answer_for_every_name() {
    let (client, host) = (NativeHost::here(), NativeHost::here());
    let (right, wrong) = (
        "0123456789abcdef0123456789abcdef",
        "ffffffffffffffffffffffffffffffff",
    );
    let tokens = secret_file(&host, "tokens", &format!("group {right}\n"));
    let service = host.serve(&[
        "--no-iperf3",
        "--tokens",
        tokens.to_str().expect("a plain path"),
    ]);
    let refused = answers_to_token(service.port, "group", wrong);
    let kinds: Vec<_> = refused
        .iter()
        .map(|message| (&message["type"], &message["clause"]))
        .collect();
    assert_eq!(kinds, [(&json!("refused"), &json!("token"))], "{refused:?}");
    assert_eq!(
        answers_to_token(service.port, "others", wrong),
        refused,
        "a name that does not exist"
    );

    for _ in 2..10 {
        answers_to_token(service.port, "group", wrong);
    }

    assert_eq!(
        answers_to_token(service.port, "group", right),
        refused,
        "the address waits"
    );
    let file = secret_file(&client, "right", &format!("group {right}\n"));
    let file = file.to_str().expect("a plain path");
    tested(&client, service.port, &["--token-file", file])
        .expect_code(4)
        .expect_stderr("the token is not accepted");

    let elsewhere = tested(
        &client,
        service.port,
        &["--token-file", file, "-B", "127.0.0.9"],
    );
    assert_eq!(
        elsewhere.expect_code(0).json()["target"]["identity"],
        "token"
    );

    let causes: Vec<Value> = service
        .events("login_failed")
        .iter()
        .map(|event| event["cause"].clone())
        .collect();
    let expected = [
        vec![json!("wrong_token"); 10],
        vec![json!("too_many_failures"); 2],
    ]
    .concat();
    assert_eq!(causes, expected);
    assert!(!service.process.stdout().contains(right));
}

/// Clients of iperf3 and iperf 2 have no token: they are served without one only where the operator
/// says so.
#[test]
fn tokens_leave_no_other_dialect_open_unsaid() {
    let (client, host) = (NativeHost::here(), NativeHost::here());
    let file = secret_file(&host, "tokens", "group 0123456789abcdef0123456789abcdef\n");
    let tokens = ["--tokens", file.to_str().expect("a plain path")];
    let refused = |words: &[&str], named: &[&str]| {
        let port = free_port().to_string();
        let start = [&["serve", "--port", &port], words, &tokens].concat();
        let server = Process::start(host.command(&start)).finish();
        server.expect_code(2);

        for text in named.iter().chain(&["--tokens-for native"]) {
            server.expect_stderr(text);
        }
    };
    refused(&[], &["clients of iperf3 would", "--no-iperf3"]);
    refused(
        &["--iperf2"],
        &["iperf3 and iperf 2", "--no-iperf3 and no --iperf2"],
    );
    refused(&["--no-iperf3", "--iperf2"], &["clients of iperf 2 would"]);

    let one_port = Process::start(
        host.command(&[&["serve", "--one-port", "127.0.0.1:1"][..], &tokens].concat()),
    )
    .finish();
    one_port
        .expect_code(2)
        .expect_stderr("iperf3 and iperf 2")
        .expect_stderr("--one-port");

    let token = secret_file(&client, "token", "group 0123456789abcdef0123456789abcdef\n");
    let with_token = ["--token-file", token.to_str().expect("a plain path")];
    let stock = ["-n", "64K"];
    let native_alone = host.serve(&[&["--no-iperf3"], &tokens[..]].concat());
    native_alone
        .client(original(), &stock)
        .finish()
        .expect_code(1);
    tested(&client, native_alone.port, &with_token).expect_code(0);
    tested(&client, native_alone.port, &[])
        .expect_code(4)
        .expect_stderr("token");
    native_alone.process.signal(Signal::Terminate);
    native_alone.process.finish().expect_code(0);

    let stated = host.serve(&[&["--tokens-for", "native"], &tokens[..]].concat());
    stated.client(original(), &stock).finish().expect_code(0);
    let stranger = NativeHost::here();
    tested(&stranger, stated.port, &[])
        .expect_code(4)
        .expect_stderr("token");
}

/// A server with users gives no test to anybody else, and a client sends its password to no server
/// that it does not know.
#[test]
fn password_is_demanded_and_sent_to_a_known_server_alone() {
    let (client, host, keys) = (NativeHost::here(), NativeHost::here(), Keys::make());
    let service = host.serve(&[
        "--private-key",
        &keys.path("private"),
        "--users",
        &keys.path("users"),
    ]);
    let at = target(service.port);
    let log_in = |password: &str, words: &[&str]| {
        let words = [
            &[
                "test", &at, "--store", "off", "--only", "size", "--json", "-q",
            ],
            words,
        ]
        .concat();
        let mut command = client.command(&words);
        command.env("LINERATE_PASSWORD", password);
        Process::start(command).finish()
    };

    let mario = ["--username", "mario"];
    log_in("rossi", &[])
        .expect_code(4)
        .expect_stderr("demands a user and a password");
    let other = NativeHost::here();
    let mut unknown = other.command(&["test", &at, "--store", "off", "--username", "mario"]);
    unknown.env("LINERATE_PASSWORD", "rossi");
    Process::start(unknown)
        .finish()
        .expect_code(4)
        .expect_stderr("the password is not sent");
    log_in("rossi", &[&mario[..], &["--accept-new"]].concat()).expect_code(0);
    log_in("rossi", &mario).expect_code(0);
    log_in("verdi", &mario)
        .expect_code(4)
        .expect_stderr("the login is not accepted");
    log_in("rossi", &["--username", "luigi"])
        .expect_code(4)
        .expect_stderr("the login is not accepted");

    let causes: Vec<String> = service
        .events("login_failed")
        .iter()
        .map(|event| event["cause"].to_string())
        .collect();
    assert_eq!(
        causes,
        ["\"login\"", "\"wrong_password\"", "\"unknown_user\""]
    );

    let users: Vec<String> = service
        .events("test_ended")
        .iter()
        .map(|event| event["user"].to_string())
        .collect();
    assert_eq!(users, ["\"mario\"", "\"mario\""]);
    let log = service.process.stdout();
    assert!(!log.contains("rossi") && !log.contains("verdi"), "{log}");
}

#[test]
fn stock_server_in_the_place_of_a_demanded_one_is_no_substitute() {
    let client = NativeHost::here();
    let host = NativeHost::here();
    let native = host.serve(&[]);
    let (port, pin) = (native.port, fingerprint(&native));
    tested(&client, port, &[]).expect_code(0);
    drop(native);

    let _stock = Server::start_at(original(), port, &[]);
    let token = secret_file(&client, "token", "group 0123456789abcdef0123456789abcdef\n");
    let stranger = NativeHost::here();

    for (client, words) in [
        (&client, &[][..]),
        (&stranger, &["--native"][..]),
        (&stranger, &["--pin", &pin]),
        (
            &stranger,
            &["--token-file", token.to_str().expect("a plain path")],
        ),
    ] {
        tested(client, port, words).expect_code(4);
    }
}

/// All that a server of another protocol gets is the cookie.
#[test]
fn server_that_is_not_native_receives_the_cookie_alone() {
    let client = NativeHost::here();
    let token = secret_file(&client, "token", "group 0123456789abcdef0123456789abcdef\n");
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let SocketAddr::V4(address) = listener.local_addr().expect("an address") else {
        panic!("IPv4")
    };

    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        let mut cookie = [0; 37];
        stream.read_exact(&mut cookie).expect("a cookie");
        stream.write_all(&[9]).expect("the client reads");

        let mut rest = Vec::new();
        // A reset is an end as well.
        let _ = stream.read_to_end(&mut rest);
        rest
    });
    let words = ["--token-file", token.to_str().expect("a plain path")];
    tested(&client, address.port(), &words).expect_code(4);
    assert_eq!(server.join().expect("no panic"), [0; 0]);
}
