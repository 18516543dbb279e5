//! Watches: one command line of this program, repeated on a grid. Each slot leaves one record.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_history::report::export::prometheus;
use linerate_history::run::watch::{Outlet, write_metrics};
pub use linerate_history::run::watch::{WatchSpec, systemd};
use linerate_http::target::Target;
use linerate_sys::signal::Signals;

use crate::server::metrics;
use crate::{Error, Outcome, Progress, otlp};

/// Where the results of a watch go besides the history.
#[derive(Debug, Clone, Default)]
pub struct Outlets {
    /// Where the results are for Prometheus.
    pub metrics: Option<MetricsTarget>,
    /// Collector of OpenTelemetry.
    pub otlp: Option<Target>,
}

/// Where the results are for Prometheus.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsTarget {
    /// A file for the collector of text files.
    File(PathBuf),
    /// The address of an endpoint, `/metrics`.
    Address(SocketAddr),
}

/// Repeats a run until its number of runs or a signal ends it. The outcome is that of the last run.
///
/// # Errors
/// A period that a run does not fit in, or results that cannot be kept.
pub fn watch(
    spec: &WatchSpec,
    outlets: &Outlets,
    signals: &Signals,
    progress: Progress,
) -> Result<Outcome, Error> {
    let grouping = linerate_fleet::conclude::changes::group;
    linerate_history::run::watch::watch(spec, || open(outlets), grouping, signals, progress)
}

fn open(outlets: &Outlets) -> Result<Vec<Outlet>, String> {
    let mut open: Vec<Outlet> = Vec::new();

    match outlets.metrics.clone() {
        Some(MetricsTarget::File(path)) => {
            open.push(Box::new(move |runs| write_metrics(&path, runs)));
        }
        Some(MetricsTarget::Address(address)) => open.push(metrics_page(address)?),
        None => {}
    }

    if let Some(url) = outlets.otlp.clone() {
        open.push(Box::new(move |runs| {
            // Earlier runs were sent when they ended.
            let last = runs.last().map_or(&[][..], std::slice::from_ref);
            otlp::send(&url, last)
                .map_err(|error| format!("the collector has not taken the run: {error}"))
        }));
    }

    Ok(open)
}

/// The results at `/metrics` of an address.
fn metrics_page(address: SocketAddr) -> Result<Outlet, String> {
    let page = Arc::new(Mutex::new(String::new()));
    let shown = Arc::clone(&page);
    let text = move || shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
    metrics::serve(address, text).map_err(|error| error.to_string())?;

    Ok(Box::new(move |runs| {
        *page.lock().unwrap_or_else(PoisonError::into_inner) = prometheus::exposition(runs);
        Ok(())
    }))
}
