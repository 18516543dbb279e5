//! The intervals of a document, packed until it is written.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_model::IntervalReport;
use linerate_model::units::ns_to_s;

/// Intervals in the order in which they came, up to the first for which there was no room.
pub(crate) struct KeptIntervals {
    reports: Vec<IntervalReport>,
    budget: Option<RowBudget>,
    rows: usize,
    is_full: bool,
}

/// Rows that all documents of a server may keep together. A row is one stream in one interval.
#[derive(Clone)]
pub(crate) struct RowBudget(Arc<AtomicUsize>);

/// About 15 MiB packed and 30 MiB as text: 18 hours of one stream, a second per interval.
const ROWS_MAX: usize = 65_536;

impl RowBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(ROWS_MAX)))
    }

    fn take(&self, rows: usize) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(rows)
            });
        taken.is_ok()
    }
}

impl KeptIntervals {
    /// Without a budget everything is kept.
    pub(super) fn new(budget: Option<RowBudget>) -> Self {
        Self {
            reports: Vec::new(),
            budget,
            rows: 0,
            is_full: false,
        }
    }

    /// Keeps an interval. The first one without room returns a warning; it and all later ones are
    /// left out.
    pub(super) fn keep(&mut self, report: &IntervalReport) -> Option<String> {
        let rows = report.streams.len();
        if self.is_full {
            return None;
        }

        if self
            .budget
            .as_ref()
            .is_some_and(|budget| !budget.take(rows))
        {
            self.is_full = true;
            let start_s = report
                .streams
                .first()
                .map_or(0.0, |row| ns_to_s(row.start_ns));
            return Some(format!(
                "the report keeps no intervals after {start_s:.1} s: all reports together hold \
                 {ROWS_MAX} rows"
            ));
        }

        self.rows += rows;
        self.reports.push(report.clone());
        None
    }

    pub(super) fn reports(&self) -> &[IntervalReport] {
        &self.reports
    }
}

impl Drop for KeptIntervals {
    fn drop(&mut self) {
        if let Some(RowBudget(left)) = &self.budget {
            left.fetch_add(self.rows, Ordering::Relaxed);
        }
    }
}
