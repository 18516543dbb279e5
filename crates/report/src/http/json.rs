//! A study for programs, as it is.

use linerate_model::http::Study;

/// Name of the form with its version.
pub const SCHEMA: &str = "linerate.http/1";

/// The study as one JSON object whose keys always stand in the same order; `schema` names its form.
#[must_use]
pub fn json(study: &Study) -> String {
    let mut text = serde_json::to_string_pretty(study).unwrap_or_default();
    text.push('\n');
    text
}
