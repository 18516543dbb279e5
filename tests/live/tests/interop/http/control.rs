//! Goal: the control channel reports to clients with access what a test costs a host, whatever
//! state the port under test is in, and nothing to others. Method: clients by hand and
//! `linerate http load` against `linerate http agent` and `linerate http serve`, values compared
//! with `/proc`.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::ops::Deref;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use linerate_interop::namespaces::{CLIENT, Net, SERVER, inside};
use linerate_interop::{
    HttpControl, HttpServer, Process, RawNative, TIMEOUT, cpu_time, free_port,
    hello_without_phases, linerate, ours, wait_for, words,
};
use serde_json::{Value, json};

/// A program with a control channel on loopback and without a token.
struct Channel {
    process: Process,
    control: HttpControl,
}

impl Channel {
    fn start(words: &[&str]) -> Self {
        let process = linerate(&format!("http {} --control 127.0.0.1:0", words.join(" ")));
        Self {
            control: HttpControl::of(&process),
            process,
        }
    }
}

impl Deref for Channel {
    type Target = HttpControl;

    fn deref(&self) -> &HttpControl {
        &self.control
    }
}

fn agent(words: &[&str]) -> Channel {
    Channel::start(&[&["agent"], words].concat())
}

/// Starts `linerate` with a state directory of its own.
fn with_state(state: &Path, line: &str) -> Process {
    let mut command = Command::new(ours().path());
    command
        .args(words(line))
        .env("LC_ALL", "C")
        .env("XDG_STATE_HOME", state);
    Process::start(command)
}

/// A short load with the statistics of this channel.
fn load(server: &HttpServer, control: SocketAddr) -> String {
    format!(
        "http load {} -c 1 -d 200ms --warmup 0 --line-rate 1G --control {control} --json",
        server.url("/0")
    )
}

#[test]
fn an_agent_responds_with_the_facts_of_its_host() {
    let channel = agent(&[]);
    let info = channel.response("http.info", &Value::Null);
    assert_eq!(info["environment"]["kernel"], uname().as_str(), "{info:#}");
    assert_eq!(info["environment"]["device"], "lo", "{info:#}");

    let limits =
        fs::read_to_string(format!("/proc/{}/limits", channel.process.id())).expect("it runs");
    let soft = limits.lines().find_map(|line| {
        line.strip_prefix("Max open files")?
            .split_whitespace()
            .next()
    });
    assert_eq!(
        info["environment"]["nofile_soft"].to_string(),
        soft.expect("a limit"),
        "{info:#}"
    );
}

fn uname() -> String {
    fs::read_to_string("/proc/sys/kernel/osrelease")
        .expect("a kernel")
        .trim()
        .to_owned()
}

#[test]
fn both_ends_prove_the_token() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name).display().to_string();
    let channel = agent(&["--token-file", &file("token")]);
    let other = agent(&["--token-file", &file("other")]);

    assert!(
        !channel
            .process
            .stdout()
            .contains(fs::read_to_string(file("token")).expect("a token").trim())
    );
    let server = HttpServer::start(&[]);
    let run = |control, options: &str| {
        linerate(&format!("{} {options}", load(&server, control))).finish()
    };
    let result = run(channel.address, &format!("--token-file {}", file("token")));
    let server_side = &result.expect_code(0).json()["trials"][0]["detail"]["cell"]["server"];
    assert!(server_side.is_object(), "{result:?}");
    run(other.address, &format!("--token-file {}", file("token")))
        .expect_code(4)
        .expect_stderr("not accepted");
    run(channel.address, "")
        .expect_code(4)
        .expect_stderr("demands a token");
    run(channel.address, &format!("--token-file {}", file("none")))
        .expect_code(2)
        .expect_stderr("the server creates it");

    let mut client = RawNative::connect(channel.address);
    client.send(hello_without_phases());
    let refused = client.drain();
    assert_eq!(
        (&refused[0]["type"], &refused[0]["clause"]),
        (&json!("refused"), &json!("token")),
        "{refused:?}"
    );
}

#[test]
fn a_server_with_another_key_than_before_is_refused() {
    let [here, there, replaced] = [(); 3].map(|()| tempfile::tempdir().expect("a folder"));
    let server = HttpServer::start(&[]);
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let start = |state: &Path| {
        let agent = with_state(state, &format!("http agent --control {address}"));
        agent.wait_for_stdout("control", 1);
        agent
    };
    let first = start(there.path());
    let line = load(&server, address);

    for _ in 0..2 {
        with_state(here.path(), &line).finish().expect_code(0);
    }

    drop(first);
    let _second = start(replaced.path());
    let forget = format!("--forget {address}");

    with_state(here.path(), &line)
        .finish()
        .expect_code(4)
        .expect_stderr("has changed")
        .expect_stderr(&forget);
    with_state(here.path(), &format!("test {forget}"))
        .finish()
        .expect_code(0);
    with_state(here.path(), &line).finish().expect_code(0);
}

#[test]
fn without_a_token_only_this_host_and_allowed_networks_have_access() {
    let Some(net) = Net::new() else { return };
    let start = |allow: &str| {
        let words = [
            "http",
            "agent",
            "--control",
            "0.0.0.0:0",
            "--control-allow",
            allow,
        ];
        Process::start(inside(&net.b, ours().path(), &words))
    };

    let server = HttpServer::in_net(&net, &format!("{SERVER}:8080"), &[]);
    for (allow, code) in [("203.0.113.0/24", 4), (CLIENT, 0)] {
        let agent = start(allow);
        let port = HttpControl::of(&agent).address.port();
        let line = load(
            &server,
            SocketAddr::new(SERVER.parse().expect("an address"), port),
        );
        let client = Process::start(inside(&net.a, ours().path(), &words(&line)));
        client.finish().expect_code(code);
    }

    for words in ["agent --control 0.0.0.0:0", "serve --control [::]:0"] {
        linerate(&format!("http {words}"))
            .finish()
            .expect_code(2)
            .expect_stderr("--control-allow");
    }
}

#[test]
fn hostile_clients_of_the_channel_leave_it_and_the_server_as_they_were() {
    let channel = Channel::start(&["serve", "--bind", "127.0.0.1:0"]);
    let data = listening(&channel);

    let sent = |control: &HttpControl, bytes: &[u8]| {
        let mut stream = TcpStream::connect(control.address).expect("connect");
        stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
        // The server may close before all is sent.
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let _ = stream.read_to_end(&mut Vec::new());
    };
    sent(&channel, b"GET /v1/info HTTP/1.1\r\nHost: a\r\n\r\n");
    sent(&channel, &[0xff; 4096]);
    sent(&channel, b"");

    let rows: [(&str, Vec<Value>, &str); 4] = [
        (
            "body above 8 KiB",
            vec![request("http.info", &json!("x".repeat(8191)))],
            "body",
        ),
        (
            "name of 257 characters",
            vec![request(&"x".repeat(257), &Value::Null)],
            "name",
        ),
        (
            "no body",
            vec![json!({ "type": "request", "name": "http.info" })],
            "body",
        ),
        (
            "two requests at once",
            vec![request("http.info", &Value::Null); 2],
            "type",
        ),
    ];
    for (name, messages, member) in rows {
        let mut client = channel.session();
        messages
            .into_iter()
            .for_each(|message| client.send(message));
        let last = client
            .drain()
            .into_iter()
            .find(|message| message["type"] == "fault");
        let fault = last.unwrap_or_else(|| panic!("{name}: no fault"));
        assert_eq!(fault["member"], member, "{name}: {fault}");
    }

    let mut early = RawNative::connect(channel.address);
    early.send(request("http.info", &Value::Null));
    assert_eq!(
        early.drain()[0]["member"],
        "type",
        "a request before the session"
    );

    for (name, body) in [
        ("http.nothing", Value::Null),
        ("http.begin_cell", json!(7)),
        ("http.end_cell", json!("none")),
    ] {
        let refusal = channel.request(name, &body).expect_err(name);
        assert!(refusal["text"].is_string(), "{name}: {refusal}");
    }

    let mut phases = channel.session();
    phases.send(json!({ "type": "open_phase", "phase": 1, "spec": idle() }));
    assert_eq!(phases.expect("refused")["clause"], "phase");

    // Those who leave while their request is handled.
    for _ in 0..40 {
        channel.session().send(request("http.info", &Value::Null));
    }

    get_zero(data);
    let responds = wait_for(TIMEOUT, || channel.request("http.info", &Value::Null).ok());
    assert!(responds.is_some_and(|info| info["port"] == data.port()));
}

fn request(name: &str, body: &Value) -> Value {
    json!({ "type": "request", "name": name, "body": body })
}

fn idle() -> Value {
    json!({
        "kind": "idle", "transport": "tcp", "streams_max": 0, "probe_flows": 1, "duration_max_ns": 1_000_000_000_u64,
    })
}

fn listening(channel: &Channel) -> SocketAddr {
    let url = channel.process.printed("Listening on");
    url.strip_prefix("http://")
        .and_then(|address| address.parse().ok())
        .expect("an address")
}

#[test]
fn samples_arrive_while_a_cell_runs() {
    let channel = agent(&[]);
    assert_eq!(
        channel.response("http.last_reading", &Value::Null),
        Value::Null
    );
    channel.response("http.begin_cell", &json!({ "id": "a" }));

    let number = |reading: &Value| reading["sequence"].as_u64();
    let sample = || {
        Some(channel.response("http.last_reading", &Value::Null))
            .filter(|reading| reading.is_object())
    };
    let first = wait_for(TIMEOUT, sample).expect("a sample");
    let next = wait_for(TIMEOUT, || {
        sample().filter(|reading| number(reading) > number(&first))
    });
    assert!(next.is_some_and(|reading| reading["rss_bytes"].as_u64() > Some(0)));
    channel.response("http.end_cell", &json!("a"));
}

#[test]
fn statistics_of_a_cell_agree_with_proc() {
    const CONNECTIONS: usize = 40;

    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let channel = agent(&["--listen-port", &port.to_string()]);
    let info = channel.response("http.info", &Value::Null);
    assert_eq!(
        info["pids"],
        json!([std::process::id()]),
        "this process listens"
    );
    assert_eq!(info["port"], port, "{info:#}");

    let outer = Usage::now();
    channel.response("http.begin_cell", &json!({ "id": "a", "future": 1 }));
    let inner = Usage::now();
    let clients: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).expect("connect"))
        .collect();
    let servers: Vec<TcpStream> = (0..CONNECTIONS)
        .map(|_| listener.accept().expect("accept").0)
        .collect();
    exchange(&clients, &servers);
    burn(Duration::from_millis(400));

    let inner = Usage::now().since(&inner);
    let stats = channel.response("http.end_cell", &json!("a"));
    let outer = Usage::now().since(&outer);

    let between = |name: &str, value: f64, low: f64, high: f64| {
        assert!(
            (low..=high).contains(&value),
            "{name}: {value} is not in {low}..={high}: {stats:#}"
        );
    };
    let number = |value: &Value| {
        value
            .as_f64()
            .unwrap_or_else(|| panic!("no number: {stats:#}"))
    };

    // Ticks are 10 ms long, and both readings of them may be one off.
    between(
        "CPU",
        number(&stats["process_cpu_ns"]),
        inner.cpu_ns - 2e7,
        outer.cpu_ns + 2e7,
    );
    between(
        "sent",
        number(&stats["nic"]["tx_bytes"]),
        inner.lo_bytes,
        outer.lo_bytes,
    );
    between("window", number(&stats["window_ns"]), 4e8, outer.elapsed_ns);
    assert!(
        number(&stats["connections"]) >= CONNECTIONS as f64,
        "{stats:#}"
    );
    assert!(
        number(&stats["fds"]["peak"]) >= 2.0 * CONNECTIONS as f64,
        "{stats:#}"
    );
    assert!(number(&stats["busiest_thread_busy"]) > 0.0, "{stats:#}");
    assert!(
        stats["nic"]["is_loopback"] == true && stats["samples"].as_u64() >= Some(2),
        "{stats:#}"
    );

    assert_eq!(
        channel.response("http.end_cell", &json!("a")),
        stats,
        "the answer may have been lost"
    );
    assert_eq!(
        channel
            .request("http.end_cell", &json!("b"))
            .expect_err("no such cell")["clause"],
        "cell"
    );
    let refusal = channel
        .request("http.restart_workers", &Value::Null)
        .expect_err("not our server");
    assert_eq!(refusal["clause"], "workers");
}

/// Counters of this process and the loopback device so far.
struct Usage {
    at: Instant,
    cpu_ns: f64,
    lo_bytes: f64,
    elapsed_ns: f64,
}

impl Usage {
    fn now() -> Self {
        let devices = fs::read_to_string("/proc/net/dev").expect("devices");
        let lo = devices
            .lines()
            .find_map(|line| line.trim().strip_prefix("lo:"))
            .expect("loopback");
        let lo_bytes = lo
            .split_whitespace()
            .nth(8)
            .and_then(|word| word.parse().ok())
            .expect("a counter");

        Self {
            at: Instant::now(),
            cpu_ns: cpu_time(std::process::id()).as_nanos() as f64,
            lo_bytes,
            elapsed_ns: 0.0,
        }
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

/// Listens with a queue of one connection, prints its port and accepts nothing until its input
/// ends.
const STUCK: &str = "
import socket, sys
listener = socket.create_server(('127.0.0.1', 0), backlog=1)
print('port', listener.getsockname()[1], flush=True)
sys.stdin.readline()
";

#[test]
fn a_channel_responds_although_the_port_under_test_is_stuck() {
    let (input, _held) = std::io::pipe().expect("a pipe");
    let mut command = Command::new("python3");
    command.args(["-c", STUCK]);

    let stuck = Process::start_reading(command, input);
    let port: u16 = stuck.printed("port").parse().expect("a port");
    let channel = agent(&["--listen-port", &port.to_string()]);
    channel.response("http.begin_cell", &json!({ "id": "stuck" }));

    let data = SocketAddr::from(([127, 0, 0, 1], port));
    let mut waiting = Vec::new();
    let is_full = wait_for(TIMEOUT, || {
        match TcpStream::connect_timeout(&data, Duration::from_secs(2)) {
            Ok(stream) => {
                waiting.push(stream);
                None
            }
            Err(_) => Some(()),
        }
    });
    assert!(
        is_full.is_some(),
        "the queue never filled: {} wait",
        waiting.len()
    );

    let info = channel.response("http.info", &Value::Null);
    assert_eq!(info["environment"]["backlog"], 1, "{info:#}");
    let stats = channel.response("http.end_cell", &json!("stuck"));
    assert!(
        stats["accept_queue"]["peak"].as_u64() >= Some(1),
        "{stats:#}"
    );
    assert_eq!(stats["accept_queue"]["limit"], 1, "{stats:#}");
    assert!(
        stats["counters"]["listen_overflows"].as_u64() >= Some(1),
        "{stats:#}"
    );
}

#[test]
fn server_reports_and_restarts_its_threads() {
    let channel = Channel::start(&["serve", "--bind", "127.0.0.1:0", "--threads", "2"]);
    let data = listening(&channel);
    let info = channel.response("http.info", &Value::Null);
    assert_eq!(info["capabilities"], json!(["restart-workers"]));
    assert_eq!(
        (&info["port"], &info["pids"]),
        (&data.port().into(), &json!([channel.process.id()]))
    );
    channel.response("http.begin_cell", &json!({ "id": "one" }));

    let _one = get_zero(data);
    let stats = channel.response("http.end_cell", &json!("one"));
    assert_eq!(stats["threads"], 2, "{stats:#}");
    assert_eq!(
        stats["thread_imbalance"], 2.0,
        "one thread has the only connection: {stats:#}"
    );
    channel.response("http.restart_workers", &Value::Null);
    get_zero(data);
}

/// A connection on which one request was answered.
fn get_zero(data: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(data).expect("connect");
    stream.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
    stream
        .write_all(b"GET /0 HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("asked");

    let mut line = String::new();
    BufReader::new(&stream)
        .read_line(&mut line)
        .expect("an answer");
    assert!(line.starts_with("HTTP/1.1 200 "), "{line}");

    stream
}

#[test]
fn unreadable_process_is_reported_at_once() {
    let port = free_port().to_string();
    for (words, part) in [
        (format!("agent --listen-port {port}"), "no process listens"),
        ("agent --pid 1073741823".to_owned(), "no such process"),
    ] {
        let refused = linerate(&format!("http {words}")).finish();
        refused.expect_code(2).expect_stderr(part);
    }
}
