//! The engine's output.

use linerate_model::event::{Endpoint, ServerOutput, TestHeader};
use linerate_model::sink::{Collector, PeerRequests};
use linerate_model::spec::LocalOptions;
use linerate_model::{Event, EventSink, SinkError, TestSpec};
use linerate_sys::clock;

/// Passes events to a sink and to the collectors of what a client requested. Remembers the first
/// failure, so that a full disk or a closed pipe ends the test at one place instead of at every
/// report.
pub(crate) struct Reporter<'a> {
    sink: Box<dyn EventSink + 'a>,
    report: Option<Box<dyn Collector<ServerOutput>>>,
    facts: Option<Box<dyn Collector<String>>>,
    failed: Option<SinkError>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(sink: impl EventSink + 'a) -> Self {
        Self::boxed(Box::new(sink))
    }

    pub(crate) fn boxed(sink: Box<dyn EventSink + 'a>) -> Self {
        Self {
            sink,
            report: None,
            facts: None,
            failed: None,
        }
    }

    pub(crate) fn emit(&mut self, event: &Event) {
        if self.failed.is_none() {
            let reported = self.sink.event(event);
            let collected = self.report.event(event).and(self.facts.event(event));
            self.failed = reported.and(collected).err();
        }
    }

    /// The report cannot be written any more.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// The failure, once.
    pub(crate) fn take_failure(&mut self) -> Option<SinkError> {
        self.failed.take()
    }

    /// Makes the collectors of what the client of a test requests; before `TestAccepted`.
    pub(crate) fn add_collectors(&mut self, spec: &TestSpec, requests: &PeerRequests) {
        let report = requests.report.as_ref().filter(|_| spec.want_server_output);
        let facts = requests.facts.as_ref().filter(|_| spec.want_peer_facts);
        self.report = report.map(|make| make());
        self.facts = facts.map(|make| make());
    }

    /// The report so far, if the client requested it.
    pub(crate) fn server_output(&mut self) -> Option<ServerOutput> {
        self.report.as_mut()?.collect()
    }

    /// Facts of this host, if the client requested them and may have them.
    pub(crate) fn facts_for_peer(&mut self) -> Option<String> {
        self.facts.as_mut()?.collect()
    }
}

/// The header of a test that begins now, without what only one dialect or one end has.
pub(crate) fn test_header(
    endpoint: Endpoint,
    peer_host: String,
    peer_port: u16,
    spec: &TestSpec,
    local: &LocalOptions,
) -> TestHeader {
    TestHeader {
        endpoint,
        peer_host,
        peer_port,
        started_at_unix_ms: clock::unix_ms(),
        spec: spec.clone(),
        interval: local.interval,
        file_name: local.file.as_ref().map(|path| path.display().to_string()),
        ..TestHeader::default()
    }
}
