//! Watches: one command line of this program, repeated on a grid. Each slot leaves one record.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_history::report::export::prometheus;
use linerate_history::run::watch::{MetricsFile, Outlet};
pub use linerate_history::run::watch::{WatchSpec, systemd};
use linerate_http::target::Target;
use linerate_model::record::RunRecord;
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
    linerate_history::run::watch::watch(spec, || open(outlets), signals, progress)
}

fn open(outlets: &Outlets) -> Result<Vec<Box<dyn Outlet>>, String> {
    let mut open: Vec<Box<dyn Outlet>> = Vec::new();

    match &outlets.metrics {
        Some(MetricsTarget::File(path)) => open.push(Box::new(MetricsFile(path.clone()))),
        Some(MetricsTarget::Address(address)) => open.push(Box::new(MetricsPage::open(*address)?)),
        None => {}
    }

    if let Some(url) = &outlets.otlp {
        open.push(Box::new(Collector(url.clone())));
    }

    Ok(open)
}

/// The results at `/metrics` of an address.
#[derive(Debug)]
struct MetricsPage(Arc<Mutex<String>>);

impl MetricsPage {
    fn open(address: SocketAddr) -> Result<Self, String> {
        let page = Arc::new(Mutex::new(String::new()));
        let shown = Arc::clone(&page);
        let text = move || shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
        metrics::serve(address, text).map_err(|error| error.to_string())?;

        Ok(Self(page))
    }
}

impl Outlet for MetricsPage {
    fn write(&self, runs: &[RunRecord]) -> Result<(), String> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = prometheus::exposition(runs);
        Ok(())
    }
}

/// A collector of OpenTelemetry, which takes the last run.
#[derive(Debug)]
struct Collector(Target);

impl Outlet for Collector {
    fn write(&self, runs: &[RunRecord]) -> Result<(), String> {
        let Some(last) = runs.last() else {
            return Ok(());
        };
        otlp::send(&self.0, std::slice::from_ref(last))
            .map_err(|error| format!("the collector has not taken the run: {error}"))
    }
}
