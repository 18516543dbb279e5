//! What a watch shows of its runs: a line for each, and the results for Prometheus.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_history::report::export::prometheus;
use linerate_model::record::RunRecord;
use linerate_sys::error::io_text;

use super::history::has_result;
use crate::server::metrics;

/// Where the results are for Prometheus.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricsTarget {
    /// A file for the collector of text files.
    File(PathBuf),
    /// The address of an endpoint, `/metrics`.
    Address(SocketAddr),
}

pub(super) enum Results {
    Nowhere,
    File(PathBuf),
    Page(Arc<Mutex<String>>),
}

impl Results {
    pub(super) fn open(target: Option<&MetricsTarget>) -> Result<Self, String> {
        match target {
            None => Ok(Self::Nowhere),
            Some(MetricsTarget::File(path)) => Ok(Self::File(path.clone())),
            Some(MetricsTarget::Address(address)) => {
                let page = Arc::new(Mutex::new(String::new()));
                let shown = Arc::clone(&page);
                let text = move || shown.lock().unwrap_or_else(PoisonError::into_inner).clone();
                metrics::serve(*address, text).map_err(|error| error.to_string())?;
                Ok(Self::Page(page))
            }
        }
    }

    /// Replaces the results. A file is replaced as a whole, so that a reader never finds a part of
    /// it.
    pub(super) fn write(&self, runs: &[RunRecord]) -> Result<(), String> {
        match self {
            Self::Nowhere => Ok(()),
            Self::File(path) => {
                let mut part = path.clone().into_os_string();
                part.push(".part");
                let written = fs::write(&part, prometheus::exposition(runs))
                    .and_then(|()| fs::rename(&part, path));
                written.map_err(|error| {
                    format!("cannot write {}: {}", path.display(), io_text(&error))
                })
            }
            Self::Page(page) => {
                *page.lock().unwrap_or_else(PoisonError::into_inner) = prometheus::exposition(runs);
                Ok(())
            }
        }
    }
}

/// `2026-05-28T20:26:40.000Z  1f2e3d4c  941 Mbit/s`, or why there is no result.
pub(super) fn line(run: &RunRecord, reason: Option<&str>) -> String {
    let mut text = format!("{}  {}", run.started_at, run.run_id.short());
    if has_result(run)
        && let Some((name, value)) = run.primary()
    {
        text += &format!("  {}", name.info().unit.text(value));
    }

    if let Some(reason) = reason {
        text += &format!("  {reason}");
    }

    text
}
