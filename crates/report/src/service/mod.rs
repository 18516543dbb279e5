//! A server as a service: one log line per thing that happened, and metrics for a monitoring system.

mod log;
mod metrics;
mod peer_reports;

use std::sync::Arc;

use linerate_model::{EventSink, ServerEvent, ServerReporter, SinkError};

pub use log::{Format, Level, LogOptions};
pub use metrics::{Metrics, ProcessMetrics};
pub use peer_reports::with_peer_reports;

use crate::{DroppedNotice, Output};

/// A reporter that writes log lines.
#[must_use]
pub fn log_reporter(options: LogOptions, output: Output) -> Box<dyn ServerReporter> {
    log::reporter(options, output)
}

/// How the log announces its lines that were dropped.
#[must_use]
pub fn dropped_notice(options: LogOptions) -> DroppedNotice {
    log::dropped_notice(options)
}

/// A reporter that counts what passes through it.
#[must_use]
pub fn counted(inner: Box<dyn ServerReporter>, metrics: Arc<Metrics>) -> Box<dyn ServerReporter> {
    observed(inner, move |event| metrics.count(event))
}

/// A reporter that forwards every event of the server to a second receiver.
#[must_use]
pub fn observed(
    inner: Box<dyn ServerReporter>,
    observer: impl FnMut(&ServerEvent) + 'static,
) -> Box<dyn ServerReporter> {
    Box::new(Observed { inner, observer })
}

struct Observed<F> {
    inner: Box<dyn ServerReporter>,
    observer: F,
}

impl<F: FnMut(&ServerEvent)> ServerReporter for Observed<F> {
    fn listening(&mut self, port: u16, test_number: u32) -> Result<(), SinkError> {
        self.inner.listening(port, test_number)
    }

    fn reopened(&mut self) -> Result<(), SinkError> {
        self.inner.reopened()
    }

    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        self.inner.open_test()
    }

    fn warning(&mut self, text: &str) {
        self.inner.warning(text);
    }

    fn server_event(&mut self, event: &ServerEvent) {
        (self.observer)(event);
        self.inner.server_event(event);
    }
}
