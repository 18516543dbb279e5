//! Goal: the control channel tells who shows the token what a test costs a host, whatever state the port under test is
//! in, and other clients nothing. Method: raw requests against `linerate http agent` and `linerate http serve`, values
//! compared with `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_interop::{
    CONTROL_TOKEN as TOKEN, HttpControl, HttpServer, Process, RawServer, TIMEOUT, Then, cpu_time, linerate, wait_for,
};
use serde_json::{Value, json};

/// A program with a control channel.
struct Channel {
    process: Process,
    control: HttpControl,
}

impl Channel {
    fn start(words: &[&str]) -> Self {
        let process = linerate(&format!("http {} --control 127.0.0.1:0", words.join(" ")));
        Self { control: HttpControl::of(&process), process }
    }
}

impl Deref for Channel {
    type Target = HttpControl;

    fn deref(&self) -> &HttpControl {
        &self.control
    }
}

fn agent(words: &[&str]) -> Channel {
    Channel::start(&[&["agent", "--token", TOKEN], words].concat())
}

#[test]
fn control_channel_requires_the_token() {
    let channel = agent(&[]);
    for authorization in
        ["", "Authorization: Bearer wrong-wrong-wrong-wrong-wrong-1234\r\n", "Authorization: Basic eA==\r\n"]
    {
        for request in
            ["GET /v1/info", "GET /v1/clock", "GET /v1/samples", "POST /v1/cell", "DELETE /v1/cell/a", "GET /"]
        {
            let (status, response) = channel.raw(format!("{request} HTTP/1.1\r\nHost: a\r\n{authorization}\r\n"));
            assert_eq!(status, 401, "{request}: {response}");
            assert!(!response.contains("kernel") && !response.contains(TOKEN), "{response}");
        }
    }
    let info = channel.get("GET", "/v1/info", "");
    assert_eq!(info["program"], "linerate");
    assert_eq!(info["environment"]["kernel"], uname().as_str(), "{info:#}");
    assert_eq!(info["environment"]["device"], "lo", "{info:#}");
    let limits = fs::read_to_string(format!("/proc/{}/limits", channel.process.id())).expect("it runs");
    let soft = limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next());
    assert_eq!(info["environment"]["nofile_soft"].to_string(), soft.expect("a limit"), "{info:#}");
}

#[test]
fn requests_of_web_pages_are_refused() {
    let channel = agent(&[]);
    let cell = r#"{"id":"a"}"#;
    for origin in ["Origin: http://192.0.2.7\r\n", "origin: null\r\n", "Origin:\r\n"] {
        for (method, path) in
            [("GET", "/v1/info"), ("POST", "/v1/cell"), ("OPTIONS", "/v1/cell"), ("GET", "/v1/samples")]
        {
            let (status, response) = channel.ask_with(origin, method, path, cell);
            assert_eq!(status, 403, "{method} {path} {origin}: {response}");
            let (header, body) = response.split_once("\r\n\r\n").expect("a head");
            assert!(body.contains("web page") && !header.contains("Access-Control"), "{response}");
        }
    }
    assert_eq!(channel.ask("DELETE", "/v1/cell/a", "").0, 404, "no cell was begun");
    assert_eq!(channel.ask("POST", "/v1/cell", cell).0, 200);
}

#[test]
fn impostor_without_token_is_detected() {
    let server = HttpServer::start(&[]);
    // A response to every request of the client, as far as it can be given without the token.
    let zeros = "0".repeat(64);
    let body = format!(
        r#"{{"nonce":"{zeros}","program":"linerate","version":"1","capabilities":[],"pids":[],"environment":{{}}}}"#
    );
    let length = body.len();
    let header = format!("HTTP/1.1 200 OK\r\nAuthentication-Info: proof={zeros}\r\nContent-Length: {length}\r\n\r\n");
    let impostor = RawServer::that_sends(header + &body, Then::Next);
    let (target, url) = (server.url("/0"), impostor.url(""));
    let client = linerate(&format!("http load {target} --control-url {url} --token {TOKEN}"));
    client.finish().expect_code(4).expect_stderr("does not prove that it knows the token");
    assert!(impostor.requested() > 1, "a nonce and information were requested");
}

fn uname() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel").trim().to_owned()
}

#[test]
fn a_new_token_is_printed_and_one_in_a_file_is_not() {
    let fresh = Channel::start(&["agent"]);
    let token = fresh.process.printed("token");
    let (status, response) = fresh.raw(format!(
        "GET /v1/clock HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
    ));
    assert_eq!((status, token.len()), (200, 64), "{response}");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("token");
    fs::write(&path, TOKEN).expect("a file");
    let kept = Channel::start(&["agent", "--token-file", path.to_str().expect("a name")]);
    kept.get("GET", "/v1/clock", "");
    assert!(!kept.process.stdout().lines().any(|line| line.trim().starts_with("token")), "{:?}", kept.process);
}

#[test]
fn without_a_token_a_name_in_host_is_refused() {
    let channel = Channel::start(&["agent", "--no-token"]);
    let ask = |host: &str| channel.raw(format!("GET /v1/clock HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"));
    for host in [channel.address.to_string(), "127.0.0.1".to_owned(), "localhost:1".to_owned()] {
        assert_eq!(ask(&host).0, 200, "{host}");
    }
    let (refused, response) = ask(&format!("rebound.example:{}", channel.address.port()));
    assert_eq!(refused, 421);
    assert!(response.contains("Host must be an IP address or localhost"), "{response}");
}

#[test]
fn statistics_of_a_cell_agree_with_proc() {
    const CONNECTIONS: usize = 40;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let channel = agent(&["--listen-port", &port.to_string()]);
    let info = channel.get("GET", "/v1/info", "");
    assert_eq!(info["pids"], json!([std::process::id()]), "this process listens");
    assert_eq!(info["port"], port, "{info:#}");

    let outer = Usage::now();
    channel.get("POST", "/v1/cell", r#"{"id":"a","phase":"matrix","payload_bytes":1024,"connections":40}"#);
    let inner = Usage::now();
    let clients: Vec<TcpStream> =
        (0..CONNECTIONS).map(|_| TcpStream::connect(("127.0.0.1", port)).expect("connect")).collect();
    let servers: Vec<TcpStream> = (0..CONNECTIONS).map(|_| listener.accept().expect("accept").0).collect();
    exchange(&clients, &servers);
    burn(Duration::from_millis(400));
    let inner = Usage::now().since(&inner);
    let stats = channel.get("DELETE", "/v1/cell/a", "");
    let outer = Usage::now().since(&outer);

    let between = |name: &str, value: f64, low: f64, high: f64| {
        assert!((low..=high).contains(&value), "{name}: {value} is not in {low}..={high}: {stats:#}");
    };
    let number = |value: &Value| value.as_f64().unwrap_or_else(|| panic!("no number: {stats:#}"));
    // Ticks are 10 ms long, and both readings of them may be one off.
    between("CPU", number(&stats["process_cpu_ns"]), inner.cpu_ns - 2e7, outer.cpu_ns + 2e7);
    between("sent", number(&stats["nic"]["tx_bytes"]), inner.lo_bytes, outer.lo_bytes);
    between("window", number(&stats["window_ns"]), 4e8, outer.elapsed_ns);
    assert!(number(&stats["connections"]) >= CONNECTIONS as f64, "{stats:#}");
    assert!(number(&stats["fds"]["peak"]) >= 2.0 * CONNECTIONS as f64, "{stats:#}");
    assert!(number(&stats["busiest_thread_busy"]) > 0.0, "{stats:#}");
    assert!(stats["nic"]["is_loopback"] == true && stats["samples"].as_u64() >= Some(2), "{stats:#}");

    assert_eq!(channel.get("DELETE", "/v1/cell/a", ""), stats, "the answer may have been lost");
    assert_eq!(channel.ask("DELETE", "/v1/cell/b", "").0, 404);
    assert_eq!(channel.ask("POST", "/v1/restart-workers", "").0, 501, "not our server");
}

/// What this process and the loopback device have done so far.
struct Usage {
    at: Instant,
    cpu_ns: f64,
    lo_bytes: f64,
    elapsed_ns: f64,
}

impl Usage {
    fn now() -> Self {
        let devices = fs::read_to_string("/proc/net/dev").expect("devices");
        let lo = devices.lines().find_map(|line| line.trim().strip_prefix("lo:")).expect("loopback");
        let lo_bytes = lo.split_whitespace().nth(8).and_then(|word| word.parse().ok()).expect("a counter");
        Self { at: Instant::now(), cpu_ns: cpu_time(std::process::id()).as_nanos() as f64, lo_bytes, elapsed_ns: 0.0 }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            at: self.at,
            cpu_ns: self.cpu_ns - before.cpu_ns,
            lo_bytes: self.lo_bytes - before.lo_bytes,
            elapsed_ns: (self.at - before.at).as_nanos() as f64,
        }
    }
}

/// Moves a megabyte in all.
fn exchange(clients: &[TcpStream], servers: &[TcpStream]) {
    let block = vec![7; 25_000];
    let mut room = vec![0; block.len()];
    for (mut client, mut server) in clients.iter().zip(servers) {
        client.write_all(&block).expect("it fits into the buffers");
        server.read_exact(&mut room).expect("it arrives");
    }
}

/// Uses a CPU for some of its time.
fn burn(time: Duration) {
    let begin = Instant::now();
    while begin.elapsed() < time {
        std::hint::spin_loop();
    }
}

/// Listens with a queue of one connection, prints its port and accepts nothing until its input ends.
const STUCK: &str = "
import socket, sys
listener = socket.create_server(('127.0.0.1', 0), backlog=1)
print('port', listener.getsockname()[1], flush=True)
sys.stdin.readline()
";

#[test]
fn server_replies_although_its_udp_port_is_stuck() {
    let (input, _held) = std::io::pipe().expect("a pipe");
    let mut command = Command::new("python3");
    command.args(["-c", STUCK]);
    let stuck = Process::start_reading(command, input);
    let port: u16 = stuck.printed("port").parse().expect("a port");
    let channel = agent(&["--listen-port", &port.to_string()]);
    channel.get("POST", "/v1/cell", r#"{"id":"stuck"}"#);
    let data = SocketAddr::from(([127, 0, 0, 1], port));
    let mut waiting = Vec::new();
    let is_full = wait_for(TIMEOUT, || match TcpStream::connect_timeout(&data, Duration::from_secs(2)) {
        Ok(stream) => {
            waiting.push(stream);
            None
        }
        Err(_) => Some(()),
    });
    assert!(is_full.is_some(), "the queue never filled: {} wait", waiting.len());

    let info = channel.get("GET", "/v1/info", "");
    assert_eq!(info["environment"]["backlog"], 1, "{info:#}");
    channel.get("GET", "/v1/clock", "");
    let stats = channel.get("DELETE", "/v1/cell/stuck", "");
    assert!(stats["accept_queue"]["peak"].as_u64() >= Some(1), "{stats:#}");
    assert_eq!(stats["accept_queue"]["limit"], 1, "{stats:#}");
    assert!(stats["counters"]["listen_overflows"].as_u64() >= Some(1), "{stats:#}");
}

#[test]
fn server_reports_and_restarts_its_threads() {
    let channel = Channel::start(&["serve", "--bind", "127.0.0.1:0", "--threads", "2", "--token", TOKEN]);
    let url = channel.process.printed("Listening on");
    let data: SocketAddr = url.strip_prefix("http://").and_then(|address| address.parse().ok()).expect("an address");
    let info = channel.get("GET", "/v1/info", "");
    assert_eq!(info["capabilities"], json!(["restart-workers"]));
    assert_eq!((&info["port"], &info["pids"]), (&data.port().into(), &json!([channel.process.id()])));
    channel.get("POST", "/v1/cell", r#"{"id":"one"}"#);
    let _one = get_zero(data);
    let stats = channel.get("DELETE", "/v1/cell/one", "");
    assert_eq!(stats["threads"], 2, "{stats:#}");
    assert_eq!(stats["thread_imbalance"], 2.0, "one thread has the only connection: {stats:#}");
    assert_eq!(channel.ask("POST", "/v1/restart-workers", "").0, 204);
    get_zero(data);
}

/// A connection on which one request was answered.
fn get_zero(data: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(data).expect("connect");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream.write_all(b"GET /0 HTTP/1.1\r\nHost: a\r\n\r\n").expect("asked");
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).expect("an answer");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");
    stream
}

#[test]
fn unreadable_process_is_reported_at_once() {
    let port = linerate_interop::free_port().to_string();
    for (words, part) in [
        (format!("agent --listen-port {port}"), "nobody listens"),
        ("agent --pid 1073741823".to_owned(), "no such process"),
        ("agent --no-token --control 0.0.0.0:0".to_owned(), "--control-allow"),
    ] {
        let refused = linerate(&format!("http {words}")).finish();
        refused.expect_code(2).expect_stderr(part);
    }
}
