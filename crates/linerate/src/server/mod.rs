//! A server of iperf3's dialect inside another command. It reports nothing: clients have both ends' numbers.

pub(crate) mod in_use;
pub mod metrics;
pub mod service;

use std::sync::Arc;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use linerate_engine::StopHandle;
use linerate_engine::dialect::iperf3::server;
use linerate_model::policy::{AccessRules, ServerPolicy};
use linerate_model::sink::PeerRequests;
use linerate_model::spec::{BindSpec, LocalOptions, ServerSpec};
use linerate_model::{EventSink, Failure, FailureKind, ServerReporter, SinkError};

/// A server that runs until it is dropped.
pub(crate) struct Embedded {
    port: u16,
    stop: Arc<StopHandle>,
    thread: Option<JoinHandle<Result<(), Failure>>>,
}

impl Embedded {
    /// Starts one on `port` of `host`, or of every address, for these clients; port 0 lets the kernel choose.
    ///
    /// # Errors
    /// Why it does not listen.
    pub(crate) fn start(host: Option<String>, port: u16, access: AccessRules) -> Result<Self, Failure> {
        let stop = Arc::new(StopHandle::new().map_err(|error| failed(&error))?);
        let (ready, listening) = mpsc::channel();
        let theirs = Arc::clone(&stop);
        let spec = spec(host, port, access);
        let thread = thread::Builder::new()
            .name("iperf3".to_owned())
            .spawn(move || server::run(&spec, PeerRequests::default(), &mut Quiet { ready }, &*theirs))
            .map_err(|error| failed(&error))?;
        match listening.recv() {
            Ok(port) => Ok(Self {
                port,
                stop,
                thread: Some(thread),
            }),
            // It ended before it listened, and says why.
            Err(mpsc::RecvError) => match thread.join() {
                Ok(Err(failure)) => Err(failure),
                _ => Err(failed(&"the server ended before it listened")),
            },
        }
    }

    /// Where it listens.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Ends it.
    ///
    /// # Errors
    /// What ended it before.
    pub(crate) fn stop(mut self) -> Result<(), Failure> {
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

impl Drop for Embedded {
    fn drop(&mut self) {
        // `stop` returns it.
        let _ = self.end();
    }
}

fn spec(host: Option<String>, port: u16, access: AccessRules) -> ServerSpec {
    ServerSpec {
        local: LocalOptions {
            port,
            bind: BindSpec {
                host,
                ..BindSpec::default()
            },
            ..LocalOptions::default()
        },
        one_off: false,
        idle_timeout: None,
        bitrate_limit: None,
        max_duration: None,
        auth: None,
        mptcp: false,
        policy: ServerPolicy {
            access,
            ..ServerPolicy::default()
        },
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

fn failed(error: &impl std::fmt::Display) -> Failure {
    Failure {
        kind: FailureKind::Error,
        message: error.to_string(),
        code: None,
    }
}
