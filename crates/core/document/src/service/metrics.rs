//! Metrics in the text format of Prometheus (version 0.0.4), with its naming conventions: base
//! units, `_total` for counters, labels of few values.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use linerate_model::ServerEvent;
use linerate_model::service::{Outcome, TestFacts, TestRecord, TransportTotal};
use linerate_model::stored_name;
use linerate_model::units::{ns_to_s, rate_bps};

use crate::exposition::Exposition;

/// Counts of a server; one thread counts, another one reads.
#[derive(Debug, Default)]
pub struct Metrics(Mutex<Counts>);

/// Labels and their values, as they are printed.
type Labelled = BTreeMap<String, u64>;

#[derive(Debug, Default)]
struct Counts {
    started: Labelled,
    finished: Labelled,
    refused: Labelled,
    logins_failed: Labelled,
    handshakes_failed: Labelled,
    running_tests: u64,
    running_streams: u64,
    reserved_descriptors: u64,
    reserved_memory_bytes: u64,
    totals: Vec<TransportTotal>,
    rates: BTreeMap<String, Histogram>,
}

/// Counters of the operating system for this process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ProcessMetrics {
    /// CPU time used so far in s.
    pub cpu_seconds: f64,
    /// Resident memory in bytes.
    pub resident_memory_bytes: Option<u64>,
    /// Open descriptors.
    pub open_fds: Option<u64>,
    /// Most descriptors that may be open.
    pub max_fds: Option<u64>,
    /// Threads.
    pub threads: Option<u64>,
    /// Start of the process in s since 1970.
    pub start_time_seconds: f64,
}

/// Records of the tests of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RecordMetrics {
    /// Records in the store.
    pub stored: u64,
    /// Records that are lost.
    pub lost: u64,
    /// Records that wait for the writer of the store.
    pub waiting: u64,
    /// Space of the store; `None` before the first record is stored.
    pub store_bytes: Option<u64>,
}

/// Upper bounds of the histogram of goodput, in bit/s: decades, and the speeds of common links.
const RATE_BOUNDS_BPS: [u64; 12] = [
    1_000_000,
    10_000_000,
    100_000_000,
    300_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    25_000_000_000,
    40_000_000_000,
    100_000_000_000,
    400_000_000_000,
];

#[derive(Debug, Default)]
struct Histogram {
    /// Tests at or below each bound, and above the one before.
    buckets: [u64; RATE_BOUNDS_BPS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Takes an event of the server.
    pub fn count(&self, event: &ServerEvent) {
        let mut counts = self.lock();
        match event {
            ServerEvent::TestStarted(facts) => {
                increment(&mut counts.started, kind(facts));
                counts.running_tests += 1;
                counts.running_streams += u64::from(facts.streams);
            }
            ServerEvent::TestEnded(record) => counts.end(record),
            ServerEvent::Progress(progress) => {
                // The server reports totals since its start, not differences.
                counts.totals.clone_from(&progress.totals);
                counts.reserved_descriptors = progress.reserved_descriptors;
                counts.reserved_memory_bytes = progress.reserved_memory_bytes;
            }
            ServerEvent::Refused { reason, .. } => {
                increment(&mut counts.refused, label("reason", stored_name(*reason)));
            }
            ServerEvent::LoginFailed { cause, .. } => {
                increment(&mut counts.logins_failed, label("cause", cause));
            }
            ServerEvent::HandshakeFailed { cause, .. } => {
                increment(
                    &mut counts.handshakes_failed,
                    label("cause", stored_name(*cause)),
                );
            }
            _ => {}
        }
    }

    /// All metrics as text; those of records where the server makes some.
    pub fn exposition(
        &self,
        version: &str,
        process: &ProcessMetrics,
        records: Option<&RecordMetrics>,
    ) -> String {
        let counts = self.lock();
        let mut page = Exposition::default();
        page.family(
            "linerate_build_info",
            "gauge",
            "Version of the program.",
            [(label("version", version), 1)],
        );
        for (name, help, value) in [
            (
                "linerate_running_tests",
                "Tests that run.",
                counts.running_tests,
            ),
            (
                "linerate_running_streams",
                "Streams of the tests that run.",
                counts.running_streams,
            ),
            (
                "linerate_reserved_descriptors",
                "Descriptors that running tests may have open at most.",
                counts.reserved_descriptors,
            ),
            (
                "linerate_reserved_memory_bytes",
                "Memory that running tests may take of the process at most.",
                counts.reserved_memory_bytes,
            ),
        ] {
            page.family(name, "gauge", help, [("", value)]);
        }

        for (name, help, counts) in [
            (
                "linerate_tests_started_total",
                "Tests that began.",
                &counts.started,
            ),
            (
                "linerate_tests_finished_total",
                "Tests that had begun and have ended.",
                &counts.finished,
            ),
            (
                "linerate_tests_refused_total",
                "Clients that the rules kept out.",
                &counts.refused,
            ),
            (
                "linerate_logins_failed_total",
                "Clients that could not log in.",
                &counts.logins_failed,
            ),
            (
                "linerate_handshake_failures_total",
                "Connections that started no test.",
                &counts.handshakes_failed,
            ),
        ] {
            page.family(name, "counter", help, counts);
        }

        bytes(&mut page, &counts.totals);
        rates(&mut page, &counts.rates);

        if let Some(records) = records {
            singles(&mut page, &self::records(records));
        }

        singles(&mut page, &self::process(process));
        page.0
    }

    /// Counting cannot fail half way, so that a panic elsewhere leaves the metrics usable.
    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Counts {
    fn end(&mut self, record: &TestRecord) {
        let outcome = match record.outcome {
            Outcome::Complete => "complete",
            Outcome::Partial { .. } => "partial",
        };
        let labels = format!("{},{}", kind(&record.facts), label("outcome", outcome));
        increment(&mut self.finished, labels);
        // An end without its start must not wrap the gauge.
        self.running_tests = self.running_tests.saturating_sub(1);
        self.running_streams = self
            .running_streams
            .saturating_sub(u64::from(record.facts.streams));

        let bytes = record.received_bytes.saturating_add(record.sent_bytes);
        let rate_bps = rate_bps(bytes, ns_to_s(record.duration_ns));
        self.rates
            .entry(stored_name(record.facts.transport))
            .or_default()
            .add(rate_bps);
    }
}

impl Histogram {
    fn add(&mut self, rate_bps: f64) {
        let bucket = RATE_BOUNDS_BPS
            .iter()
            .position(|bound| rate_bps <= *bound as f64);
        // A rate above the last bound is in the count alone, which is the bucket of `+Inf`.
        if let Some(count) = bucket.and_then(|i| self.buckets.get_mut(i)) {
            *count += 1;
        }

        self.count += 1;
        self.sum += rate_bps;
    }
}

/// A metric of one value: its name, type, help and the value.
type Single = (&'static str, &'static str, &'static str, Option<f64>);

/// Metrics of one value; what the system or the server does not report has no line.
fn singles(page: &mut Exposition, metrics: &[Single]) {
    for (name, kind, help, value) in metrics {
        page.family_if_any(name, kind, help, value.map(|value| ("", value)));
    }
}

fn bytes(page: &mut Exposition, totals: &[TransportTotal]) {
    const NAME: &str = "linerate_bytes_total";

    page.head(NAME, "counter", "Payload bytes moved, warm-ups included.");
    for total in totals {
        let protocol = label("protocol", stored_name(total.transport));
        for (direction, bytes) in [
            ("received", total.received_bytes),
            ("sent", total.sent_bytes),
        ] {
            let labels = format!("{},{protocol}", label("direction", direction));
            page.sample(NAME, &labels, bytes);
        }
    }
}

fn rates(page: &mut Exposition, rates: &BTreeMap<String, Histogram>) {
    const NAME: &str = "linerate_test_goodput_bytes_per_second";

    page.head(
        NAME,
        "histogram",
        "Payload per second of finished tests, both directions together.",
    );
    for (protocol, histogram) in rates {
        let protocol = label("protocol", protocol);
        // Buckets of Prometheus are cumulative, and its base unit is the byte.
        let mut below = 0;
        let mut bucket = |bound: &str, count: u64| {
            let labels = format!("{protocol},le=\"{bound}\"");
            page.sample(&format!("{NAME}_bucket"), &labels, count);
        };

        for (bound, count) in RATE_BOUNDS_BPS.iter().zip(histogram.buckets) {
            below += count;
            bucket(&(bound / 8).to_string(), below);
        }

        bucket("+Inf", histogram.count);
        page.sample(&format!("{NAME}_sum"), &protocol, histogram.sum / 8.0);
        page.sample(&format!("{NAME}_count"), &protocol, histogram.count);
    }
}

fn records(records: &RecordMetrics) -> [Single; 4] {
    [
        (
            "linerate_records_total",
            "counter",
            "Records of tests in the store.",
            Some(records.stored as f64),
        ),
        (
            "linerate_records_lost_total",
            "counter",
            "Records of tests that are lost.",
            Some(records.lost as f64),
        ),
        (
            "linerate_queue_tests",
            "gauge",
            "Records of tests that wait for the writer of the store.",
            Some(records.waiting as f64),
        ),
        (
            "linerate_store_bytes",
            "gauge",
            "Space of the store.",
            records.store_bytes.map(|bytes| bytes as f64),
        ),
    ]
}

fn process(process: &ProcessMetrics) -> [Single; 6] {
    let number = |value: Option<u64>| value.map(|value| value as f64);
    [
        (
            "process_cpu_seconds_total",
            "counter",
            "User and system CPU time used.",
            Some(process.cpu_seconds),
        ),
        (
            "process_start_time_seconds",
            "gauge",
            "Start of the process since the Unix epoch.",
            Some(process.start_time_seconds),
        ),
        (
            "process_resident_memory_bytes",
            "gauge",
            "Resident memory.",
            number(process.resident_memory_bytes),
        ),
        (
            "process_open_fds",
            "gauge",
            "Open file descriptors.",
            number(process.open_fds),
        ),
        (
            "process_max_fds",
            "gauge",
            "Most file descriptors that may be open.",
            number(process.max_fds),
        ),
        (
            "process_threads",
            "gauge",
            "Threads.",
            number(process.threads),
        ),
    ]
}

fn kind(facts: &TestFacts) -> String {
    let protocol = label("protocol", stored_name(facts.transport));
    format!(
        "{protocol},{}",
        label("direction", stored_name(facts.direction))
    )
}

/// Values are words of our own, so that nothing in them needs escaping.
fn label(name: &str, value: impl std::fmt::Display) -> String {
    format!("{name}=\"{value}\"")
}

fn increment(counts: &mut Labelled, labels: String) {
    *counts.entry(labels).or_insert(0) += 1;
}
