//! Servers: one inside this process, and what runs as a service.

pub(crate) mod in_use;
mod managed;
pub(crate) mod metrics;
pub(crate) mod records;
pub mod service;
mod site;
pub mod web;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use linerate_document::Output;
use linerate_engine::{Interrupts, StopHandle};
use linerate_iperf3::report;
use linerate_iperf3::wire::ErrorCode;

pub use linerate_engine::dialect::iperf2::server::run as run_iperf2;
use linerate_engine::dialect::iperf3::server;
use linerate_model::outcome::failure;
use linerate_model::policy::AccessRules;
use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_model::{EventSink, Failure, FailureKind, ServerEvent, ServerReporter, SinkError};
pub use managed::flush;
use managed::{managed, peer_requests};
pub use records::{CountRecords, TestRecords, observed};

/// Serves iperf3 clients until `interrupts` or `spec` end it, and reports every test. `metrics` is
/// the address of the Prometheus endpoint; `records` keeps the tests.
///
/// # Errors
/// What ended the server; also a signal.
pub fn run_iperf3(
    spec: &ServerSpec,
    options: report::Options,
    output: Output,
    metrics: Option<SocketAddr>,
    records: Option<&dyn TestRecords>,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let mut reporter = report::server_reporter(options.clone(), output);
    if let Some(address) = metrics {
        reporter = metrics::offer(reporter, address, records.and_then(TestRecords::metrics))
            .map_err(|e| Failure::error(ErrorCode::InitTest.number(), e.to_string()))?;
    }

    let mut reporter = observed(records, Box::new(managed(reporter)));
    serve_iperf3(spec, options, &mut *reporter, interrupts)
}

/// Serves with a reporter of the caller. `options` are for reports that clients request.
///
/// # Errors
/// What ended the server; also an interrupt.
pub fn serve_iperf3(
    spec: &ServerSpec,
    options: report::Options,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    server::run(spec, peer_requests(options), reporter, interrupts)
}

/// A server that runs until it is dropped.
pub struct Server {
    address: SocketAddr,
    /// Events that it announces after its address.
    #[cfg(feature = "full")]
    announced: mpsc::Receiver<ServerEvent>,
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

    /// Starts one on `port` of `host`, or of every address, for these clients; port 0 lets the
    /// kernel choose.
    ///
    /// # Errors
    /// Why it does not listen.
    pub fn start(host: Option<String>, port: u16, access: AccessRules) -> Result<Self, Failure> {
        let spec = spec(host, port, access);
        Self::spawn("iperf3", move |reporter, interrupts| {
            server::run(&spec, PeerRequests::default(), reporter, interrupts)
        })
    }

    /// Runs a server in a thread of this name, and waits until it listens.
    pub(crate) fn spawn(
        name: &str,
        run: impl FnOnce(&mut dyn ServerReporter, &dyn Interrupts) -> Result<(), Failure>
        + Send
        + 'static,
    ) -> Result<Self, Failure> {
        let stop = Arc::new(StopHandle::new().map_err(|error| failure(&error))?);
        let (ready, announced) = mpsc::channel();
        let theirs = Arc::clone(&stop);
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || run(&mut Announcer { ready }, &*theirs))
            .map_err(|error| failure(&error))?;

        match announced.recv() {
            // The first event is the address; a server that fails sends none, and drops its sender.
            Ok(ServerEvent::Listening { address }) => Ok(Self {
                address,
                #[cfg(feature = "full")]
                announced,
                stop,
                thread: Some(thread),
            }),
            // It ended before it listened, and says why.
            _ => match thread.join() {
                Ok(Err(failure)) => Err(failure),
                _ => Err(failure(&"the server ended before it listened")),
            },
        }
    }

    /// Where it listens.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Where it listens.
    #[cfg(feature = "full")]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The key of a server of the native dialect, which it announces when it listens.
    #[cfg(feature = "full")]
    pub(crate) fn host_key(&self) -> Option<String> {
        match self.announced.recv() {
            Ok(ServerEvent::HostKey { text }) => Some(text),
            _ => None,
        }
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
            // The interrupt is that of `stop`.
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

pub(crate) fn spec(host: Option<String>, port: u16, access: AccessRules) -> ServerSpec {
    let mut spec = ServerSpec::default();
    spec.local.port = port;
    spec.local.bind.host = host;
    spec.policy.access = access;
    spec
}

/// Announces address and key, and nothing else.
struct Announcer {
    ready: mpsc::Sender<ServerEvent>,
}

impl ServerReporter for Announcer {
    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(Box::new(()))
    }

    fn warning(&mut self, _: &str) {}

    fn server_event(&mut self, event: &ServerEvent) {
        if matches!(
            event,
            ServerEvent::Listening { .. } | ServerEvent::HostKey { .. }
        ) {
            // The receiver may have no interest in it.
            let _ = self.ready.send(event.clone());
        }
    }
}
