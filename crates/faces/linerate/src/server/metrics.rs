//! The endpoint with the metrics of a server, as Prometheus reads them.

use std::fs;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use linerate_document::service::{Metrics, ProcessMetrics, counted};
use linerate_model::ServerReporter;
use linerate_sys::error::io_text;
use linerate_sys::{cpu, process};
use linerate_web::wire::request::Request;
use linerate_web::wire::response;
use thiserror::Error;

use super::in_use;
use super::records::CountRecords;
use super::site;

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

/// Opens the endpoint and counts what the reporter reports; `records` are counted where tests are
/// recorded.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) fn offer(
    inner: Box<dyn ServerReporter>,
    address: SocketAddr,
    records: Option<CountRecords>,
) -> Result<Box<dyn ServerReporter>, MetricsError> {
    let metrics = Arc::new(Metrics::default());
    let shown = Arc::clone(&metrics);
    let start_time_seconds = seconds_since_1970();

    serve(address, move || {
        let records = records.as_ref().map(|records| records());
        shown.exposition(
            env!("CARGO_PKG_VERSION"),
            &process_metrics(start_time_seconds),
            records.as_ref(),
        )
    })?;
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
    let answer = move |request: &Request| match request.path.as_str() {
        // The exposition format 0.0.4 is the text format of Prometheus.
        "/metrics" => response::with_body("200 OK", "text/plain; version=0.0.4", text().as_bytes()),
        _ => response::line("404 Not Found", "The metrics are at /metrics."),
    };
    site::start(listener, Arc::new(answer)).map_err(named)
}

fn process_metrics(start_time_seconds: f64) -> ProcessMetrics {
    let cpu = cpu::process_time();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    ProcessMetrics {
        cpu_seconds: (cpu.user + cpu.system).as_secs_f64(),
        // VmRSS is in KiB (proc_pid_status(5)).
        resident_memory_bytes: field(&status, "VmRSS:").map(|kib| kib * 1024),
        open_fds: process::open_fd_count()
            .ok()
            .and_then(|n| u64::try_from(n).ok()),
        // The soft limit is at its highest already, so the call returns it unchanged.
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
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_of_the_process_are_found() {
        let status = "Name:\tlinerate\nVmRSS:\t    5120 kB\nThreads:\t3\n";
        assert_eq!(
            (field(status, "VmRSS:"), field(status, "Threads:")),
            (Some(5120), Some(3))
        );
        assert_eq!(field(status, "VmSwap:"), None);

        let metrics = process_metrics(1.0);
        assert!(
            metrics.resident_memory_bytes.is_some_and(|bytes| bytes > 0)
                && metrics.threads >= Some(1)
        );
    }
}
