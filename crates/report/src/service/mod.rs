//! A server as a service: one log line per thing that happened, and metrics for a monitoring system.

mod log;
mod metrics;

use std::sync::Arc;

use linerate_model::ServerReporter;
use linerate_model::sink::Forward;

pub use log::{Format, Level, LogOptions};
pub use metrics::{Metrics, ProcessMetrics};

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
    Box::new(Forward::new(inner, move |event| metrics.count(event)))
}
