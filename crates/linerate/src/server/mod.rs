//! Servers of iperf3 tests: one inside this process, and what runs as a service.

pub(crate) mod in_use;
pub(crate) mod metrics;
pub mod service;
mod site;
pub mod web;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use linerate_engine::{Interrupts, StopHandle};
use linerate_iperf3::ErrorCode;
use linerate_report::{Output, iperf3};
use std::time::Duration;

use crate::diagnose::observed_test;
use crate::outcome::failure;
use crate::record::SessionRecords;
pub use linerate_engine::dialect::iperf2::server::run as run_iperf2;
use linerate_engine::dialect::iperf3::server;
use linerate_model::policy::{AccessRules, ServerPolicy};
use linerate_model::sink::PeerRequests;
use linerate_model::spec::{BindSpec, LocalOptions, ServerSpec};
use linerate_model::{EventSink, Failure, FailureKind, ServerReporter, SinkError};

/// Serves iperf3 clients until `interrupts` or `spec` end it, and reports every test. `metrics` is the address of the
/// Prometheus endpoint; `records` keeps the tests.
///
/// # Errors
/// What ended the server; also a signal.
pub fn run_iperf3(
    spec: &ServerSpec,
    options: iperf3::Options,
    output: Output,
    metrics: Option<SocketAddr>,
    records: Option<&SessionRecords>,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let requests = peer_requests(options.clone());
    let mut reporter = iperf3::server_reporter(options, output);
    if let Some(address) = metrics {
        reporter = metrics::offer(reporter, address, records.and_then(SessionRecords::metrics))
            .map_err(|e| Failure::error(ErrorCode::InitTest.number(), e.to_string()))?;
    }
    let mut reporter = SessionRecords::observe(records, Box::new(service::managed(reporter)));
    server::run(spec, requests, &mut *reporter, interrupts)
}

/// Sends clients that ask for them the server's report and facts about this host.
fn peer_requests(options: iperf3::Options) -> PeerRequests {
    PeerRequests {
        report: Some(iperf3::peer_report(options)),
        facts: observed_test::facts_for_clients(),
        drops: observed_test::drops_for_clients(),
    }
}

/// Gives the reader of a server's output time to take the rest. After a signal the server ends soon, as promised.
pub fn flush(output: &Output, outcome: &Result<(), Failure>) {
    let is_interrupted = outcome.as_ref().is_err_and(|f| f.kind == FailureKind::Interrupted);
    output.flush(if is_interrupted { Duration::from_millis(500) } else { Duration::from_secs(10) });
}

/// A server that runs until it is dropped.
pub struct Server {
    port: u16,
    stop: Arc<StopHandle>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Server {
    /// Starts one for this host, on a port that the kernel chooses.
    ///
    /// # Errors
    /// Why it does not listen.
    pub fn loopback() -> Result<Self, Failure> {
        Self::start(Some("127.0.0.1".to_owned()), 0, AccessRules::default())
    }

    /// Starts one on `port` of `host`, or of every address, for these clients; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// Why it does not listen.
    pub fn start(host: Option<String>, port: u16, access: AccessRules) -> Result<Self, Failure> {
        let stop = Arc::new(StopHandle::new().map_err(|error| failure(&error))?);
        let (ready, listening) = mpsc::channel();
        let theirs = Arc::clone(&stop);
        let spec = spec(host, port, access);
        let thread = thread::Builder::new()
            .name("iperf3".to_owned())
            .spawn(move || server::run(&spec, PeerRequests::default(), &mut Quiet { ready }, &*theirs))
            .map_err(|error| failure(&error))?;
        match listening.recv() {
            Ok(port) => Ok(Self { port, stop, thread: Some(thread) }),
            // It ended before it listened, and says why.
            Err(mpsc::RecvError) => match thread.join() {
                Ok(Err(failure)) => Err(failure),
                _ => Err(failure(&"the server ended before it listened")),
            },
        }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Ends it.
    ///
    /// # Errors
    /// What ended it before.
    pub fn stop(mut self) -> Result<(), Failure> {
        self.end()
    }

    fn end(&mut self) -> Result<(), Failure> {
        self.stop.stop();
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(Err(failure))) if failure.kind != FailureKind::Interrupted => Err(failure),
            _ => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // `stop` returns it.
        let _ = self.end();
    }
}

fn spec(host: Option<String>, port: u16, access: AccessRules) -> ServerSpec {
    ServerSpec {
        local: LocalOptions { port, bind: BindSpec { host, ..BindSpec::default() }, ..LocalOptions::default() },
        policy: ServerPolicy { access, ..ServerPolicy::default() },
        ..ServerSpec::default()
    }
}

/// Says only that it listens.
struct Quiet {
    ready: mpsc::Sender<u16>,
}

impl ServerReporter for Quiet {
    fn listening(&mut self, port: u16, _: u32) -> Result<(), SinkError> {
        // The receiver listens only for the first.
        let _ = self.ready.send(port);
        Ok(())
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(()))
    }

    fn warning(&mut self, _: &str) {}
}
