//! Adds runs that other programs reported to the history.

pub use linerate_history::run::import::{FileImport, import_file};
