//! Reports of a whole path: those of `linerate test --json`.

use linerate_model::finding::Diagnosis;
use linerate_model::path::{PATH_SCHEMA, PathReport};
use linerate_model::record::Origin;
use serde::Deserialize;
use serde_json::Value;

/// A test of a path in a text.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportedPath {
    /// Which program, and the document.
    pub origin: Origin,
    /// The test.
    pub test: PathTest,
    /// Equal for every report of this test; the key of the origin's import.
    pub source_key: String,
}

/// A test of a path as its client reported it.
#[derive(Debug, Clone, PartialEq)]
pub struct PathTest {
    /// The program.
    pub tool: &'static str,
    /// Name of the form of its report.
    pub format: &'static str,
    /// Start of the test in ms since 1970.
    pub started_unix_ms: Option<u64>,
    /// The report.
    pub report: PathReport,
    /// Diagnosis that the report contains.
    pub diagnosis: Option<Diagnosis>,
    /// Packets that a speed test lost, as a share. It does not report during which load.
    pub lost_share: Option<f64>,
}

/// Reads a report of this program; `None` of another document.
///
/// # Errors
/// The missing or invalid element.
pub(super) fn read(document: &Value) -> Option<Result<PathTest, String>> {
    if document["schema"] != PATH_SCHEMA {
        return None;
    }

    let diagnosis = document
        .get("diagnosis")
        .and_then(|diagnosis| Diagnosis::deserialize(diagnosis).ok());
    let test = |report| PathTest {
        tool: "linerate",
        format: "linerate-path",
        started_unix_ms: None,
        report,
        diagnosis,
        lost_share: None,
    };
    Some(
        PathReport::deserialize(document)
            .map(test)
            .map_err(|error| error.to_string()),
    )
}
