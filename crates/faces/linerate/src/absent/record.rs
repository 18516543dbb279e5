//! Records of runs in a build without the feature `store`: there are none.
#![allow(
    clippy::needless_pass_by_value,
    reason = "the surface is that of the counterpart"
)]

use std::collections::BTreeMap;

use linerate_document::service::RecordMetrics;
use linerate_model::finding::Diagnosis;
use linerate_model::spec::ClientSpec;
use linerate_model::{Event, EventSink, ServerReporter, SinkError};

use crate::Error;

/// Labels of a run.
pub type Labels = BTreeMap<String, String>;

/// Refuses labels.
///
/// # Errors
/// Always.
pub fn labels(_: &str) -> Result<Labels, Error> {
    Err(Error::absent("the history"))
}

/// Where a record goes.
#[derive(Debug, Clone)]
pub enum RecordOptions {}

/// Records of the tests of a server.
#[derive(Debug)]
pub enum SessionRecords {}

impl SessionRecords {
    /// Starts the writer.
    #[must_use]
    pub fn new(options: RecordOptions) -> Self {
        match options {}
    }

    /// Passes everything to `inner`.
    #[must_use]
    pub fn observe<'a>(
        _: Option<&'a Self>,
        inner: Box<dyn ServerReporter + 'a>,
    ) -> Box<dyn ServerReporter + 'a> {
        inner
    }

    /// Counts of the records, for another thread.
    pub(crate) fn metrics(&self) -> Option<fn() -> RecordMetrics> {
        match *self {}
    }

    /// Records that were written, and those lost.
    pub(crate) fn counts(&self) -> Option<(u64, u64)> {
        match *self {}
    }

    /// Waits until everything is written.
    #[must_use]
    pub fn close(self) -> Option<String> {
        match self {}
    }
}

/// A run that was kept.
#[derive(Debug)]
#[non_exhaustive]
pub struct Recorded {
    /// Message for the user.
    pub message: Option<String>,
}

/// A test of a client that is being recorded.
#[derive(Debug)]
pub enum TestRecording {}

impl TestRecording {
    /// The test begins.
    #[must_use]
    pub fn begin(options: RecordOptions, _: &ClientSpec) -> Self {
        match options {}
    }

    /// The test ended.
    #[must_use]
    pub fn finish(self, _: bool, _: Option<Diagnosis>) -> Recorded {
        match self {}
    }
}

impl EventSink for TestRecording {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        match *self {}
    }
}
