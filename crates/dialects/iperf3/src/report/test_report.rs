//! The report of one test, and additions to it.

use linerate_model::sink::Tee;
use linerate_model::{EventSink, SinkError};
use serde_json::Value;

/// The report of one test.
pub trait TestReport: EventSink {
    /// Adds to the report; before the last event.
    ///
    /// # Errors
    /// When the report cannot be written.
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError>;
}

impl<T: TestReport + ?Sized> TestReport for &mut T {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        (**self).append(appendix)
    }
}

/// Additions are for the second sink alone.
impl<A: EventSink, B: TestReport> TestReport for Tee<A, B> {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.1.append(appendix)
    }
}

/// An addition to a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Appendix {
    /// Its name in structured reports.
    pub name: &'static str,
    /// The addition for people; lines without an end.
    pub text: String,
    /// The same for programs: one JSON value.
    pub json: String,
}

impl Appendix {
    /// Output that is no JSON is reported as text.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or_else(|_| self.text.as_str().into())
    }
}
