//! What is written where.

use std::path::PathBuf;

/// To standard output and standard error.
#[derive(Debug, Clone, Copy, Default)]
pub struct Output {
    /// Write one JSON object instead of text
    pub json: bool,
    /// Write one JSON object per second and one at the end
    pub json_stream: bool,
    /// Say nothing while it runs
    pub quiet: bool,
}

/// To files.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// Write the report as one HTML file
    pub html: Option<PathBuf>,
}
