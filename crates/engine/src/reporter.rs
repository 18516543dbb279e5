//! The engine's output.

use linerate_model::event::ServerOutput;
use linerate_model::{Event, EventSink, SinkError};

/// Passes events to a sink and remembers the first failure, so that a full disk or a closed pipe ends the test at one
/// place instead of at every report.
pub(crate) struct Reporter<'a> {
    sink: Box<dyn EventSink + 'a>,
    failed: Option<SinkError>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(sink: impl EventSink + 'a) -> Self {
        Self::boxed(Box::new(sink))
    }

    pub(crate) fn boxed(sink: Box<dyn EventSink + 'a>) -> Self {
        Self { sink, failed: None }
    }

    pub(crate) fn emit(&mut self, event: &Event) {
        if self.failed.is_none()
            && let Err(error) = self.sink.event(event)
        {
            self.failed = Some(error);
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

    /// See [`EventSink::facts_for_peer`].
    pub(crate) fn facts_for_peer(&mut self) -> Option<String> {
        self.sink.facts_for_peer()
    }

    /// See [`EventSink::server_output`].
    pub(crate) fn server_output(&mut self) -> Option<ServerOutput> {
        self.sink.server_output()
    }
}
