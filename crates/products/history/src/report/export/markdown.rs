//! Runs as Markdown (CommonMark with the tables of GitHub).

use std::fmt::Write as _;

use linerate_document::number::counted;
use linerate_model::printable::acts;
use linerate_model::record::{RunRecord, RunState};
use linerate_model::stored_name;

use super::{medians, name};

/// Longest document: GitHub takes comments of up to 65,536 characters.
pub const DOCUMENT_BYTES_MAX: usize = 60_000;
/// Longest summary of a step of a job.
pub const STEP_SUMMARY_BYTES_MAX: u64 = 1024 * 1024;
/// Longest text of a user in a heading or a cell.
const TEXT_CHARS_MAX: usize = 200;

/// One section per run, up to [`DOCUMENT_BYTES_MAX`].
pub fn document(runs: &[RunRecord]) -> String {
    const LAST_LINE_BYTES: usize = 100;

    let mut text = String::new();
    for (number, run) in runs.iter().enumerate() {
        let section = section(run);
        // A section is whole or left out: a table that is cut is no table.
        if text.len() + section.len() + LAST_LINE_BYTES > DOCUMENT_BYTES_MAX {
            let _ = writeln!(
                text,
                "{} not shown: the limit of this document is reached.",
                counted(runs.len() - number, "more run")
            );
            break;
        }

        text += &section;
    }

    text
}

fn section(run: &RunRecord) -> String {
    let mut text = String::from("### ");
    let path =
        [&run.path.client, &run.path.server].map(|end| escaped(end.as_deref().unwrap_or("?")));
    let _ = write!(text, "{} {} → {}", stored_name(run.kind), path[0], path[1]);

    if !name(run).is_empty() {
        let _ = write!(text, ": {}", escaped(name(run)));
    }

    let _ = write!(text, "\n\n{}, {}", run.started_at, run.state.words());
    if run.state != RunState::Complete
        && let Some(reason) = &run.reason
    {
        let _ = write!(text, ": {}", escaped(reason));
    }

    let _ = writeln!(text, ", `{}`\n", run.run_id.short());
    let medians = medians(run);
    if !medians.is_empty() {
        text += "| measure | way | median |\n|---|---|---:|\n";
    }

    for (name, way, value) in &medians {
        let info = name.info();
        let _ = writeln!(
            text,
            "| {} | {} | {} |",
            info.meaning,
            way.words().unwrap_or_default(),
            info.unit.text(*value)
        );
    }

    if !medians.is_empty() {
        text.push('\n');
    }

    text
}

/// Text of others as text: no markup, no control characters, one line.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars().take(TEXT_CHARS_MAX) {
        match c {
            _ if acts(c) => escaped.push('\u{fffd}'),
            '&' => escaped += "&amp;",
            '<' => escaped += "&lt;",
            '>' => escaped += "&gt;",
            // Without a name before it, no user is mentioned.
            '@' => escaped += "&#64;",
            _ if c.is_ascii_punctuation() && !matches!(c, '.' | ':' | '-' | ',' | '/') => {
                escaped.extend(['\\', c]);
            }
            _ => escaped.push(c),
        }
    }

    escaped
}
