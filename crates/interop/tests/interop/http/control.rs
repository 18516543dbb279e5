//! Goal: the control channel tells who shows the token what a test costs a host, whatever state the port under test is
//! in, and other clients nothing. Method: raw requests against `linerate http agent` and `linerate http serve`, values
//! compared with `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_interop::{HttpServer, Process, Signal, TIMEOUT, cpu_time, linerate, wait_for};
use serde_json::Value;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// A program with a control channel.
struct Channel {
    process: Process,
    address: SocketAddr,
}

impl Channel {
    fn start(words: &[&str]) -> Self {
        let process = linerate(&format!("http {} --control 127.0.0.1:0", words.join(" ")));
        let address =
            wait_for(TIMEOUT, || printed(&process.stdout(), "control")?.strip_prefix("http://")?.parse().ok());
        let address = address.unwrap_or_else(|| panic!("no control channel: {process:?}"));
        Self { process, address }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the channel answers");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        stream
    }

    /// Sends bytes; all that comes back until the channel closes.
    fn raw(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        // The channel may have had enough before it has read everything.
        let _ = stream.write_all(bytes);
        let mut response = Vec::new();
        let _ = stream.read_to_end(&mut response);
        String::from_utf8_lossy(&response).into_owned()
    }

    /// Status and body of one request with the token.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        let length = body.len();
        let response = self.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n\
                 Content-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        );
        let (_, body) = response.split_once("\r\n\r\n").unwrap_or_default();
        (status(&response), serde_json::from_str(body).unwrap_or_default())
    }

    /// The same, when it has to succeed.
    fn get(&self, method: &str, path: &str, body: &str) -> Value {
        let (status, value) = self.ask(method, path, body);
        assert_eq!(status, 200, "{method} {path}: {value} {:?}", self.process);
        value
    }
}

fn status(response: &str) -> u16 {
    response.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or_default()
}

/// The word behind a name in what a program printed, once its line is complete.
fn printed<'a>(stdout: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = stdout.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.find_map(|line| line.trim().strip_prefix(name)?.split_whitespace().next())
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
            let response = channel.raw(format!("{request} HTTP/1.1\r\nHost: a\r\n{authorization}\r\n").as_bytes());
            assert_eq!(status(&response), 401, "{request}: {response}");
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
    let request = |method: &str, path: &str, fields: &str| {
        let body = if method == "POST" { r#"{"id":"a"}"# } else { "" };
        let length = body.len();
        channel.raw(
            format!(
                "{method} {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\nConnection: close\r\n{fields}\
                 Content-Length: {length}\r\n\r\n{body}"
            )
            .as_bytes(),
        )
    };
    for origin in ["Origin: http://192.0.2.7\r\n", "origin: null\r\n", "Origin:\r\n"] {
        for (method, path) in
            [("GET", "/v1/info"), ("POST", "/v1/cell"), ("OPTIONS", "/v1/cell"), ("GET", "/v1/samples")]
        {
            let response = request(method, path, origin);
            assert_eq!(status(&response), 403, "{method} {path} {origin}: {response}");
            let (header, body) = response.split_once("\r\n\r\n").expect("a head");
            assert!(body.contains("web page") && !header.contains("Access-Control"), "{response}");
        }
    }
    assert_eq!(status(&request("DELETE", "/v1/cell/a", "")), 404, "no cell was begun");
    assert_eq!(status(&request("POST", "/v1/cell", "")), 200);
}

#[test]
fn impostor_is_detected_and_does_not_receive_the_token() {
    let server = HttpServer::start(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let target = server.url("/0");
    let client = linerate(&format!("http load {target} --control-url {url} --token {TOKEN}"));
    listener.set_nonblocking(true).expect("a listener");
    let (mut stream, _) = wait_for(TIMEOUT, || listener.accept().ok()).expect("the client");
    stream.set_nonblocking(false).expect("a connection");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    // Whatever is asked, it says what a server would, as far as it can.
    let body = format!(
        r#"{{"nonce":"{}","program":"linerate","version":"1","capabilities":[],"pids":[],"environment":{{}}}}"#,
        "0".repeat(64)
    );
    let response = format!(
        "HTTP/1.1 200 OK\r\nAuthentication-Info: proof={}\r\nContent-Length: {}\r\n\r\n{body}",
        "0".repeat(64),
        body.len()
    );
    let mut received = String::new();
    let mut step = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut step) {
        received.push_str(&String::from_utf8_lossy(&step[..read]));
        let _ = stream.write_all(response.as_bytes());
    }
    assert!(received.contains("/v1/info") && !received.contains(TOKEN), "{received}");
    let finished = client.finish();
    finished.expect_code(4).expect_stderr("does not prove that it knows the token");
}

fn uname() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease").expect("a kernel").trim().to_owned()
}

#[test]
fn a_new_token_is_printed_and_one_in_a_file_is_not() {
    let fresh = Channel::start(&["agent"]);
    let token = printed(&fresh.process.stdout(), "token").expect("a token").to_owned();
    let response = fresh.raw(
        format!("GET /v1/clock HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n")
            .as_bytes(),
    );
    assert_eq!((status(&response), token.len()), (200, 64), "{response}");
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("token");
    fs::write(&path, TOKEN).expect("a file");
    let kept = Channel::start(&["agent", "--token-file", path.to_str().expect("a name")]);
    kept.get("GET", "/v1/clock", "");
    assert_eq!(printed(&kept.process.stdout(), "token"), None, "{:?}", kept.process);
}

#[test]
fn without_a_token_a_name_in_host_is_refused() {
    let channel = Channel::start(&["agent", "--no-token"]);
    let ask = |host: &str| {
        let response =
            channel.raw(format!("GET /v1/clock HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").as_bytes());
        (status(&response), response)
    };
    for host in [channel.address.to_string(), "127.0.0.1".to_owned(), "localhost:1".to_owned()] {
        assert_eq!(ask(&host).0, 200, "{host}");
    }
    let (refused, response) = ask(&format!("rebound.example:{}", channel.address.port()));
    assert_eq!(refused, 421);
    assert!(response.contains("Host must be an IP address or localhost"), "{response}");
}

#[test]
fn requests_without_end_are_refused_and_slow_ones_cut() {
    let channel = agent(&[]);
    let long_header = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "y".repeat(32 << 10));
    assert_eq!(status(&channel.raw(long_header.as_bytes())), 431);
    let header = format!("POST /v1/cell HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n");
    let announced = format!("{header}Content-Length: 1000000\r\n\r\n");
    assert_eq!(status(&channel.raw(announced.as_bytes())), 413);
    let chunked = format!("{header}Transfer-Encoding: chunked\r\n\r\n20000\r\n{}", "z".repeat(0x20000));
    assert_eq!(status(&channel.raw(chunked.as_bytes())), 413);

    let mut slow = channel.connect();
    slow.write_all(b"GET /v1/in").expect("a beginning");
    let mut response = String::new();
    slow.read_to_string(&mut response).expect("an end long before ours");
    assert_eq!(status(&response), 408, "{response}");
    channel.get("GET", "/v1/clock", "");
}

#[test]
fn statistics_of_a_cell_agree_with_proc() {
    const CONNECTIONS: usize = 40;
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let channel = agent(&["--listen-port", &port.to_string()]);
    let info = channel.get("GET", "/v1/info", "");
    assert_eq!(info["pids"], serde_json::json!([std::process::id()]), "this process listens");
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

#[test]
fn samples_are_streamed_in_order_until_the_program_ends() {
    let channel = agent(&["--pid", &std::process::id().to_string()]);
    let mut stream = channel.connect();
    let request = format!("GET /v1/samples?from=1 HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("asked");
    let mut lines = BufReader::new(stream).lines();
    let mut next = || lines.next().and_then(Result::ok);
    let mut readings = Vec::new();
    while readings.len() < 3 {
        let line = next().unwrap_or_else(|| panic!("the stream ended: {:?}", channel.process));
        if line.starts_with('{') {
            readings.push(serde_json::from_str::<Value>(&line).expect("JSON"));
        }
    }
    for (reading, number) in readings.iter().zip(1..) {
        assert_eq!(reading["sequence"], number, "{readings:#?}");
        assert!(reading["rss_bytes"].as_u64() > Some(0) && reading["window_ns"].as_u64() > Some(0), "{reading:#}");
    }
    // A client of the stream does not delay the end of the program.
    channel.process.signal(Signal::Terminate);
    channel.process.finish().expect_code(0);
    while next().is_some() {}
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
    let port: u16 = wait_for(TIMEOUT, || printed(&stuck.stdout(), "port")?.parse().ok()).expect("a port");
    let channel = Channel::start(&["agent", "--listen-port", &port.to_string(), "--token", TOKEN]);
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

fn data_address(channel: &Channel) -> SocketAddr {
    let stdout = channel.process.stdout();
    let word = printed(&stdout, "Listening on").and_then(|word| word.strip_prefix("http://"));
    word.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no address: {stdout}"))
}

#[test]
fn server_reports_and_restarts_its_threads() {
    let channel = Channel::start(&["serve", "--bind", "127.0.0.1:0", "--threads", "2", "--token", TOKEN]);
    let data = data_address(&channel);
    let info = channel.get("GET", "/v1/info", "");
    assert_eq!(info["capabilities"], serde_json::json!(["restart-workers"]));
    assert_eq!((&info["port"], &info["pids"]), (&data.port().into(), &serde_json::json!([channel.process.id()])));
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
    assert_eq!(status(&line), 200, "{line}");
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
