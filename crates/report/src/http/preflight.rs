//! The checks of `linerate http check`, and those before an experiment.

use std::fmt::Write;

use linerate_model::http::{Check, CheckStatus};

use super::labels::{counted, side, status};
use crate::document::style::Style;
use crate::document::wrap::{LINE_CHARS, wrapped};

/// Names of checks are short; one from a stranger may not be.
const NAME_CHARS_MAX: usize = 32;

/// Checks as text: those that fail first, with the commands that help. Commands stand on lines of their own and are
/// never broken, so that they can be copied.
#[must_use]
pub fn preflight(checks: &[Check], style: Style) -> String {
    let mut out = String::new();
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(urgency(check.status)));
    for check in sorted {
        out.push_str(&lines(check, style));
    }
    let number = |wanted| checks.iter().filter(|check| check.status == wanted).count();
    let all = [
        CheckStatus::Fail,
        CheckStatus::Warn,
        CheckStatus::Unknown,
        CheckStatus::Info,
        CheckStatus::Pass,
    ];
    let words = all.map(|outcome| (number(outcome), status(outcome)));
    let words = words.iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> = words.map(|(number, word)| format!("{number} {word}")).collect();
    let _ = writeln!(out, "{}: {}", counted(checks.len(), "check"), words.join(", "));
    out
}

/// Checks for programs: one JSON array of `{id, side, status, have, need, fix, cells}`.
#[must_use]
pub fn preflight_json(checks: &[Check]) -> String {
    crate::pretty_json(&checks)
}

fn lines(check: &Check, style: Style) -> String {
    let mut out = String::new();
    let word = style.bold(&format!("{:<7}", status(check.status)));
    let name: String = style.line(&check.id).chars().take(NAME_CHARS_MAX).collect();
    let mut numbers = format!("have {}", check.have);
    if !check.need.is_empty() {
        let _ = write!(numbers, "; need {}", check.need);
    }
    let head = format!("{:<6}  {name:<20}  ", side(check.side));
    let indent = 9 + head.chars().count();
    let parts = wrapped(&style.line(&numbers), LINE_CHARS.saturating_sub(indent).max(30));
    for (number, part) in parts.iter().enumerate() {
        let _ = match number {
            0 => writeln!(out, "{word}  {head}{part}"),
            _ => writeln!(out, "{:indent$}{part}", ""),
        };
    }
    if !check.cells.is_empty() {
        let cells = style.line(&format!("concerns {}", check.cells.join(", ")));
        for part in wrapped(&cells, LINE_CHARS - 9) {
            let _ = writeln!(out, "         {part}");
        }
    }
    for fix in &check.fix {
        let _ = writeln!(out, "         fix: {}", style.line(fix));
    }
    out
}

fn urgency(status: CheckStatus) -> u8 {
    match status {
        CheckStatus::Fail => 4,
        CheckStatus::Warn => 3,
        CheckStatus::Unknown => 2,
        CheckStatus::Info => 1,
        CheckStatus::Pass => 0,
    }
}
