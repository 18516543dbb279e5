//! Records of the tests of a server, as far as a server knows them.

use linerate_document::service::RecordMetrics;
use linerate_model::ServerReporter;

/// Records of the tests of a server.
pub trait TestRecords {
    /// Passes everything to `inner` and makes records beside it.
    fn observe<'a>(&'a self, inner: Box<dyn ServerReporter + 'a>) -> Box<dyn ServerReporter + 'a>;

    /// Counts of the records, for another thread; `None` where none are kept.
    fn metrics(&self) -> Option<CountRecords>;

    /// Records that were written, and those lost; `None` where none are kept.
    fn counts(&self) -> Option<(u64, u64)>;
}

/// Counts records.
pub type CountRecords = Box<dyn Fn() -> RecordMetrics + Send + Sync>;

/// A reporter with records beside it, where there are any.
pub fn observed<'a>(
    records: Option<&'a dyn TestRecords>,
    inner: Box<dyn ServerReporter + 'a>,
) -> Box<dyn ServerReporter + 'a> {
    match records {
        Some(records) => records.observe(inner),
        None => inner,
    }
}
