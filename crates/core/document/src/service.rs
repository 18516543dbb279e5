//! A server as a service: one log line per thing that happened, and metrics for a monitoring
//! system.

mod log;
mod metrics;

use std::sync::Arc;

use linerate_model::ServerReporter;
use linerate_model::sink::Forward;

pub use log::{Format, Level, LogOptions, dropped_notice, log_reporter};
pub use metrics::{Metrics, ProcessMetrics, RecordMetrics};

/// A reporter that counts what passes through it.
pub fn counted(inner: Box<dyn ServerReporter>, metrics: Arc<Metrics>) -> Box<dyn ServerReporter> {
    Box::new(Forward::new(inner, move |event| metrics.count(event)))
}
