//! Goal: a client of a server's samples (`GET /v1/samples`) misses nothing of a load, can resume where it stopped,
//! and delays no other. Method: the stream is read byte by byte beside `linerate http load`, and compared with what the
//! load and `/proc` say.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

use linerate_interop::namespaces::{Net, inside};
use linerate_interop::{CONTROL_TOKEN, HttpControl, HttpLab, Process, Signal, TIMEOUT, cpu_time, wait_for, words};
use serde_json::Value;

const MS: u64 = 1_000_000;
/// Between two looks while a test of less than a minute runs.
const STEP_NS: u64 = 200 * MS;

fn control(lab: &HttpLab) -> HttpControl {
    lab.control.expect("the server has a control channel")
}

/// A request for samples with the token.
fn request(query: &str) -> String {
    format!("GET /v1/samples{query} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {CONTROL_TOKEN}\r\n\r\n")
}

/// A stream of readings behind its head.
struct Stream {
    bytes: BufReader<TcpStream>,
    /// Lines of the chunk that was read last.
    lines: Vec<Value>,
}

impl Stream {
    /// Asks, and checks the head of the answer.
    fn open(lab: &HttpLab, query: &str) -> Self {
        let mut stream = control(lab).connect();
        stream.write_all(request(query).as_bytes()).expect("asked");
        let mut bytes = BufReader::new(stream);
        let mut header = String::new();
        while !header.ends_with("\r\n\r\n") {
            assert!(bytes.read_line(&mut header).expect("a head") > 0, "{header}");
        }
        let header = header.to_ascii_lowercase();
        for part in
            ["http/1.1 200 ", "\r\ntransfer-encoding: chunked\r\n", "\r\ncontent-type: application/x-ndjson\r\n"]
        {
            assert!(header.contains(part), "no {part:?} in {header}");
        }
        assert!(!header.contains("content-length"), "{header}");
        Self { bytes, lines: Vec::new() }
    }

    /// The next line; `None` at the end, behind which nothing may come.
    fn next(&mut self) -> Option<Value> {
        if self.lines.is_empty() {
            self.lines = self.chunk()?;
            self.lines.reverse();
        }
        self.lines.pop()
    }

    /// The next chunk: whole lines, each of which is one object.
    fn chunk(&mut self) -> Option<Vec<Value>> {
        let mut size = String::new();
        self.bytes.read_line(&mut size).expect("the size of a chunk");
        let size = size.strip_suffix("\r\n").expect("a line");
        let size = usize::from_str_radix(size, 16).expect("a size");
        let mut chunk = vec![0; size + 2];
        self.bytes.read_exact(&mut chunk).expect("a chunk");
        assert!(chunk.ends_with(b"\r\n"), "{chunk:?}");
        chunk.truncate(size);
        if size == 0 {
            assert_eq!(self.bytes.read(&mut [0]).expect("an orderly end"), 0);
            return None;
        }
        let text = String::from_utf8(chunk).expect("text");
        assert!(text.ends_with('\n'), "half a line: {text}");
        let object = |line: &str| {
            let value: Value = serde_json::from_str(line).expect("JSON");
            assert!(value.is_object(), "{line}");
            value
        };
        Some(text.lines().map(object).collect())
    }

    /// Reads on until the look that was made at this time or later.
    fn until(&mut self, at_ns: u64) -> Vec<Value> {
        let mut readings = Vec::new();
        while readings.last().is_none_or(|last| number(last, "at_ns") < at_ns) {
            readings.push(self.next().expect("the stream goes on"));
        }
        readings
    }
}

fn number(reading: &Value, name: &str) -> u64 {
    reading[name].as_u64().unwrap_or_else(|| panic!("no {name}: {reading:#}"))
}

fn sequence(reading: Option<Value>) -> u64 {
    number(&reading.expect("a reading"), "sequence")
}

/// The monotonic clock, which both ends share.
fn now_ns(lab: &HttpLab) -> u64 {
    number(&control(lab).get("GET", "/v1/clock", ""), "monotonic_ns")
}

/// Runs a load with the control channel to its end.
/// The cell of a load: its result and the CPUs of both ends.
fn load(lab: &HttpLab, seconds: &str) -> Value {
    let url = format!("{}/1k", lab.url);
    let line = format!("load {url} -c 4 -d {seconds} --warmup 400ms --ramp max --json");
    lab.run(&words(&line)).expect_code(0).json()["trials"][0]["detail"]["cell"].take()
}

#[test]
fn nothing_of_a_load_is_missing_between_two_lines() {
    let lab = HttpLab::start(&[]);
    let mut stream = Stream::open(&lab, "");
    let first = stream.next().expect("a reading");
    let before_ns = now_ns(&lab);
    let result = load(&lab, "2s");
    let after_ns = now_ns(&lab);
    let mut readings = vec![first];
    readings.extend(stream.until(after_ns));

    for (reading, expected) in readings.iter().zip(1..) {
        assert_eq!(number(reading, "sequence"), expected, "{reading:#}");
        assert!(number(reading, "rss_bytes") > 0, "{reading:#}");
    }
    for pair in readings.windows(2) {
        let begin_ns = number(&pair[1], "at_ns") - number(&pair[1], "window_ns");
        assert_eq!(begin_ns, number(&pair[0], "at_ns"), "a gap: {pair:#?}");
        assert!(number(&pair[1], "window_ns") > 0, "{pair:#?}");
    }
    let of_load = readings.iter().filter(|reading| (before_ns..after_ns).contains(&number(reading, "at_ns")));
    let steps = (after_ns - before_ns) / STEP_NS;
    let samples = of_load.count() as u64;
    // Two more begin the warm-up and the window; late samples are left out.
    assert!((3..=steps + 3).contains(&samples), "{samples} samples in {steps} steps");

    // Before the first load the route of the traffic is unknown.
    let sent = readings.iter().filter_map(|reading| reading["tx_bytes"].as_u64());
    let (sent_bytes, load) = (sent.sum::<u64>(), &result["load"]);
    let body_bytes = load["payload_bytes"].as_u64().expect("bytes");
    assert!(body_bytes > 0 && sent_bytes >= body_bytes, "{sent_bytes} sent: {load:#}");
    let connections = readings.iter().filter_map(|reading| reading["connections"].as_u64());
    assert_eq!(connections.max(), Some(4), "{readings:#?}");
    let spent = |reading: &Value| {
        let cpus = reading["process_cpus"].as_f64().expect("a share");
        cpus * number(reading, "window_ns") as f64
    };
    let spent_ns: f64 = readings.iter().map(spent).sum();
    let of_window_ns = result["server"]["process_cpu_ns"].as_f64().expect("an agent");
    let of_all_ns = cpu_time(lab.server.id()).as_nanos() as f64;
    // Ticks are 10 ms long, and each figure may be off by one of user and one of system time.
    let range = of_window_ns - 2e7..of_all_ns + 2e7;
    assert!(range.contains(&spent_ns), "{spent_ns} is not in {range:?}");
}

#[test]
fn sample_stream_resumes_at_the_requested_line() {
    let lab = HttpLab::start(&[]);
    let mut stream = Stream::open(&lab, "?from=1");
    let readings: Vec<Value> = (0..3).map(|_| stream.next().expect("a reading")).collect();
    for (query, expected) in [("", 1), ("?from=0", 1), ("?from=2", 2), ("?from=3&x=1", 3), ("?from=5", 5)] {
        // The fifth is not there yet: it is waited for, and none before it comes.
        let mut again = Stream::open(&lab, query);
        let found = again.next().expect("a reading");
        assert_eq!(number(&found, "sequence"), expected, "{query}");
        if let Some(known) = readings.get(expected as usize - 1) {
            assert_eq!(&found, known, "the same line again");
        }
        assert_eq!(sequence(again.next()), expected + 1, "{query}");
    }
    for query in words("?from ?from= ?from=x ?from=-1 ?from=1.5 ?from=18446744073709551616") {
        let (status, body) = control(&lab).ask("GET", &format!("/v1/samples{query}"), "");
        assert_eq!(status, 400, "{query}: {body}");
        assert!(body["error"].is_string(), "{query}: {body}");
    }
    let mut never = Stream::open(&lab, "?from=18446744073709551615");
    assert_eq!(sequence(stream.next()), 4);
    // A client that waits for a later sample receives the end as well.
    lab.server.signal(Signal::Terminate);
    assert_eq!(never.next(), None);
    while stream.next().is_some() {}
}

#[test]
fn client_that_never_reads_is_closed_and_delays_no_other() {
    let Some(net) = Net::new() else { return };
    // Little is kept for a client that does not read.
    for (namespace, name) in [(&net.a, "tcp_rmem"), (&net.b, "tcp_wmem")] {
        let setting = format!("net.ipv4.{name}=4096 4096 4096");
        let set = inside(namespace, "sysctl".as_ref(), &["-qw", &setting]).status();
        assert!(set.is_ok_and(|status| status.success()), "{setting}");
    }
    let lab = HttpLab::in_net(&net, &[]);
    let address = control(&lab).address;
    let (host, port) = (address.ip(), address.port());
    let script = format!("exec 3<>/dev/tcp/{host}/{port} && printf %s \"$1\" >&3 && exec sleep 600");
    let words = ["-c", &script, "bash", &request("")];
    let silent = Process::start(inside(&net.a, "bash".as_ref(), &words));
    let listeners = || threads_named(lab.server.id(), "lr-control-conn");
    let is_served = wait_for(TIMEOUT, || (listeners() == 1).then_some(()));
    assert!(is_served.is_some(), "{silent:?}");

    let result = load(&lab, "4s");
    assert!(result["server"]["process_cpu_ns"].as_u64() > Some(0), "{result:#}");
    assert!(result["load"]["errors"].as_object().is_some_and(serde_json::Map::is_empty));
    let is_given_up = wait_for(TIMEOUT, || (listeners() == 0).then_some(()));
    assert!(is_given_up.is_some(), "{} still listen: {:?}", listeners(), lab.server);
    load(&lab, "1s");
}

fn threads_named(process: u32, name: &str) -> usize {
    let threads = fs::read_dir(format!("/proc/{process}/task")).expect("it runs");
    let names = threads.flatten().filter_map(|thread| fs::read_to_string(thread.path().join("comm")).ok());
    names.filter(|known| known.trim_end() == name).count()
}
