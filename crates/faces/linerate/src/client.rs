//! Clients of tests.

use std::time::Duration;

use linerate_engine::Interrupts;
pub use linerate_engine::dialect::iperf2::client::run as run_iperf2;
use linerate_engine::dialect::iperf3::client::{self, ClientResult};
use linerate_iperf3::report::TestReport;
use linerate_model::finding::Diagnosis;
use linerate_model::spec::{ClientSpec, LocalOptions};
use linerate_model::{EventSink, Failure, TestSpec};

#[cfg(feature = "full")]
use crate::diagnose::run_client;

/// Longest time to set up the control connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Outcome of a test that was reported.
#[derive(Debug)]
#[non_exhaustive]
pub struct Reported {
    /// An error of the test, as in the result of [`Client::run`], or of the writer.
    pub outcome: Result<(), Failure>,
    /// Limits of a test that was observed.
    pub diagnosis: Option<Diagnosis>,
}

/// One test against an iperf3 server, linerate or the original.
#[derive(Debug, Clone)]
pub struct Client {
    spec: ClientSpec,
}

impl Client {
    /// The test that `spec` describes.
    pub fn new(spec: ClientSpec) -> Self {
        Self { spec }
    }

    /// `test` against the server at `port` of `host`, a name or an address, with the defaults of
    /// this end.
    pub fn to(host: &str, port: u16, test: TestSpec) -> Self {
        let local = LocalOptions {
            port,
            ..LocalOptions::default()
        };
        let mut spec = ClientSpec::new(host, local, test);
        spec.connect_timeout = Some(CONNECT_TIMEOUT);
        Self::new(spec)
    }

    /// Runs the test. The outcome of the result is an error when the server cannot be reached or
    /// refuses, either end fails, or the test is interrupted.
    pub fn run(&self, interrupts: &dyn Interrupts) -> ClientResult {
        self.observe(&mut (), interrupts)
    }

    /// As [`Self::run`]; `sink` receives every event as it happens: streams, intervals, totals.
    pub fn observe(&self, sink: &mut dyn EventSink, interrupts: &dyn Interrupts) -> ClientResult {
        traced(client::run(&self.spec, sink, interrupts))
    }

    /// Runs the test with a writer of reports. With `want_peer_facts` in the specification the
    /// report ends with a diagnosis; `is_verbose` shows all of it.
    #[cfg_attr(not(feature = "full"), expect(unused_variables))]
    pub fn report(
        &self,
        report: &mut dyn TestReport,
        is_verbose: bool,
        interrupts: &dyn Interrupts,
    ) -> Reported {
        #[cfg(feature = "full")]
        if self.spec.test.want_peer_facts {
            let (outcome, diagnosis) = run_client(&self.spec, report, interrupts, is_verbose);
            return Reported { outcome, diagnosis };
        }

        Reported {
            outcome: traced(client::run(&self.spec, &mut *report, interrupts)).outcome,
            diagnosis: None,
        }
    }
}

fn traced(result: ClientResult) -> ClientResult {
    match &result.outcome {
        Ok(()) => tracing::debug!("test ended"),
        Err(failure) => tracing::debug!(%failure, "test ended"),
    }
    result
}
