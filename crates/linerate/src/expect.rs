//! Limits that a test of a client must hold.

use linerate_lab::expect::{Expectations, Missed};
use linerate_model::{Event, EventSink, SinkError};
use linerate_record::Builder;

/// A test whose measures are held against limits; takes its events.
#[derive(Debug)]
pub struct LimitedTest {
    limits: Expectations,
    builder: Builder,
}

impl LimitedTest {
    /// The test begins.
    #[must_use]
    pub fn new(limits: Expectations) -> Self {
        Self { limits, builder: Builder::default() }
    }

    /// The test ended. Returns the limits that it missed.
    #[must_use]
    pub fn missed(self) -> Vec<Missed> {
        self.limits.missed(&[&self.builder.finish()])
    }
}

impl EventSink for LimitedTest {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.builder.event(event)
    }
}
