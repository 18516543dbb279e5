//! The client of an iperf3 test.

use linerate_engine::Interrupts;
use linerate_engine::dialect::iperf3::client::{self, ClientResult};
use linerate_model::spec::ClientSpec;
use linerate_model::{EventSink, Failure};
use linerate_report::iperf3::TestReport;

use crate::diagnose::observed_test;

/// One test against an iperf3 server, linerate or the original.
#[derive(Debug, Clone)]
pub struct Client {
    spec: ClientSpec,
}

impl Client {
    /// The test that `spec` describes.
    #[must_use]
    pub fn new(spec: ClientSpec) -> Self {
        Self { spec }
    }

    /// Runs the test. The outcome of the result is an error when the server cannot be reached or refuses, either end fails,
    /// or the test is interrupted.
    pub fn run(&self, interrupts: &dyn Interrupts) -> ClientResult {
        self.observe(&mut (), interrupts)
    }

    /// The same; `sink` receives every event as it happens: streams, intervals, totals.
    pub fn observe(&self, sink: &mut dyn EventSink, interrupts: &dyn Interrupts) -> ClientResult {
        client::run(&self.spec, sink, interrupts)
    }

    /// Runs the test with a writer of reports. With `want_peer_facts` in the specification the report ends with a
    /// diagnosis; `is_verbose` shows all of it.
    ///
    /// # Errors
    /// Those of the outcome of [`Self::run`], and those of the writer.
    pub fn report(
        &self,
        report: &mut dyn TestReport,
        is_verbose: bool,
        interrupts: &dyn Interrupts,
    ) -> Result<(), Failure> {
        if self.spec.test.want_peer_facts {
            observed_test::run_client(&self.spec, report, interrupts, is_verbose)
        } else {
            client::run(&self.spec, &mut *report, interrupts).outcome
        }
    }
}
