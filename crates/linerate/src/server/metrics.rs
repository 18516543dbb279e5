//! The endpoint with the metrics of a server: as much of HTTP/1.1 (RFC 9112) as a monitoring system needs.
//!
//! One request per connection, a thread for each, everything bounded: connections that ask nothing make room for later
//! ones, and none can harm the tests.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use linerate_model::ServerReporter;
use linerate_report::service::{Metrics, ProcessMetrics, counted};
use linerate_sys::error::io_text;
use linerate_sys::{cpu, process};
use thiserror::Error;

use super::in_use;

/// Longest request that is read.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Time for a request and its answer.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Connections at a time; the oldest is closed for one more.
const CONNECTIONS_MAX: usize = 16;
/// Pause after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The endpoint cannot be opened.
#[derive(Debug, Error)]
#[error("{}", in_use::explained(
    &format!("unable to listen on {} for metrics: {}", .address, io_text(.source)),
    .address.port(),
    "choose another address for metrics",
))]
pub(crate) struct MetricsError {
    address: SocketAddr,
    source: io::Error,
}

/// Opens the endpoint and counts what the reporter reports.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) fn offer(
    inner: Box<dyn ServerReporter>,
    address: SocketAddr,
) -> Result<Box<dyn ServerReporter>, MetricsError> {
    let metrics = Arc::new(Metrics::default());
    let shown = Arc::clone(&metrics);
    let start_time_seconds = seconds_since_1970();
    serve(address, move || shown.exposition(env!("CARGO_PKG_VERSION"), &process_metrics(start_time_seconds)))?;
    Ok(counted(inner, metrics))
}

/// Opens the endpoint with this text at `/metrics`.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) fn serve(
    address: SocketAddr,
    text: impl Fn() -> String + Send + Sync + 'static,
) -> Result<(), MetricsError> {
    let named = |source| MetricsError { address, source };
    let listener = TcpListener::bind(address).map_err(named)?;
    let text: Arc<Text> = Arc::new(text);
    let thread = thread::Builder::new().name("linerate-metrics".into());
    thread.spawn(move || answer_all(&listener, &text)).map_err(named)?;
    Ok(())
}

type Text = dyn Fn() -> String + Send + Sync;

fn answer_all(listener: &TcpListener, text: &Arc<Text>) {
    let mut open: VecDeque<Weak<TcpStream>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(PAUSE);
            continue;
        };
        open.retain(|stream| stream.strong_count() > 0);
        if open.len() >= CONNECTIONS_MAX
            && let Some(oldest) = open.pop_front().and_then(|stream| stream.upgrade())
        {
            // Its thread ends at the end of the stream.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        let (stream, text) = (Arc::new(stream), Arc::clone(text));
        open.push_back(Arc::downgrade(&stream));
        let work = move || answer(&stream, &*text);
        // Without a thread the connection is closed; a client that fails to ask or to listen is its own affair.
        let _ = thread::Builder::new().name("linerate-scrape".into()).spawn(work);
    }
}

fn answer(mut stream: &TcpStream, text: &Text) -> io::Result<()> {
    let request = read_request(stream)?;
    let (status, body) = match request_target(&request) {
        Some(("GET", "/metrics")) => ("200 OK", text()),
        Some(("GET", _)) => ("404 Not Found", "The figures are at /metrics.\n".to_owned()),
        Some(_) => ("405 Method Not Allowed", "Only GET is understood.\n".to_owned()),
        None => ("400 Bad Request", "This is no HTTP/1.1 request.\n".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {}\r\nAllow: GET\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Reads up to the empty line. Progress does not extend the time.
fn read_request(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let end = Instant::now() + TIMEOUT;
    let mut request = Vec::new();
    let mut chunk = [0; 1024];
    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => request.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
    Ok(request)
}

/// Method and path of the first line, without the query.
fn request_target(request: &[u8]) -> Option<(&str, &str)> {
    let line = request.split(|byte| *byte == b'\r').next()?;
    let mut words = std::str::from_utf8(line).ok()?.split(' ');
    let (method, target, version) = (words.next()?, words.next()?, words.next()?);
    let path = target.split('?').next()?;
    (words.next().is_none() && version.starts_with("HTTP/1.")).then_some((method, path))
}

fn process_metrics(start_time_seconds: f64) -> ProcessMetrics {
    let cpu = cpu::process_time();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ProcessMetrics {
        cpu_seconds: (cpu.user + cpu.system).as_secs_f64(),
        resident_memory_bytes: field(&status, "VmRSS:").map(|kib| kib * 1024),
        open_fds: process::open_fd_count().ok().and_then(|n| u64::try_from(n).ok()),
        max_fds: process::raise_fd_limit().ok(),
        threads: field(&status, "Threads:"),
        start_time_seconds,
    }
}

/// A number of `/proc/self/status` (proc_pid_status(5)).
fn field(status: &str, key: &str) -> Option<u64> {
    let rest = status.lines().find_map(|line| line.strip_prefix(key))?;
    rest.split_whitespace().next()?.parse().ok()
}

fn seconds_since_1970() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_requests_are_taken_for_requests() {
        type Row = (&'static [u8], Option<(&'static str, &'static str)>);
        let rows: &[Row] = &[
            (b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Some(("GET", "/metrics"))),
            (b"GET /metrics?name=x HTTP/1.0\r\n\r\n", Some(("GET", "/metrics"))),
            (b"POST /metrics HTTP/1.1\r\n\r\n", Some(("POST", "/metrics"))),
            (b"GET /metrics\r\n\r\n", None),
            (b"GET /a b HTTP/1.1\r\n\r\n", None),
            (b"\xff\xfe\r\n\r\n", None),
            (b"\r\n\r\n", None),
        ];
        for (request, expected) in rows {
            assert_eq!(request_target(request), *expected, "{request:?}");
        }
    }

    #[test]
    fn metrics_of_the_process_are_found() {
        let status = "Name:\tlinerate\nVmRSS:\t    5120 kB\nThreads:\t3\n";
        assert_eq!((field(status, "VmRSS:"), field(status, "Threads:")), (Some(5120), Some(3)));
        assert_eq!(field(status, "VmSwap:"), None);
        let metrics = process_metrics(1.0);
        assert!(metrics.resident_memory_bytes.is_some_and(|bytes| bytes > 0) && metrics.threads >= Some(1));
    }
}
