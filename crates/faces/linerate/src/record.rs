//! Records of the runs of this process: made beside the reports, written to the history.

pub use linerate_history::run::record::{
    Labels, RecordOptions, Recorded, SessionRecords, TestRecording, json, labels,
};
pub(crate) use linerate_history::run::record::{Recording, Run};
