//! Records of the runs of this process: made beside the reports, written to the history.

use linerate_model::ServerReporter;

pub use linerate_history::run::record::{
    Labels, RecordOptions, Recorded, SessionRecords, TestRecording, json, labels,
};
pub(crate) use linerate_history::run::record::{Recording, Run};

use crate::server::records::{CountRecords, TestRecords};

impl TestRecords for SessionRecords {
    fn observe<'a>(&'a self, inner: Box<dyn ServerReporter + 'a>) -> Box<dyn ServerReporter + 'a> {
        Self::observe(self, inner)
    }

    fn metrics(&self) -> Option<CountRecords> {
        Some(Box::new(Self::metrics(self)?))
    }

    fn counts(&self) -> Option<(u64, u64)> {
        Self::counts(self)
    }
}
