//! The checks of `linerate http lab --check`, and those before an experiment.

use linerate_document::blocks::{Block, Document, Entry};
use linerate_document::style::{Style, shortened};
use linerate_model::http::{Check, CheckStatus};
use linerate_model::stored_name;

use super::labels::counted;

/// Names of checks are short; one from a stranger may not be.
const NAME_CHARS_MAX: usize = 32;
/// Column of everything below the first line of a check.
const INDENT: usize = 9;
/// Outcomes, the most urgent one first.
const BY_URGENCY: [CheckStatus; 5] = [
    CheckStatus::Fail,
    CheckStatus::Warn,
    CheckStatus::Unknown,
    CheckStatus::Info,
    CheckStatus::Pass,
];

/// Checks as text: those that fail first, with the commands that help; those that pass are counted.
/// Commands are on lines of their own and are never broken, so that they can be copied.
pub fn preflight(checks: &[Check], style: Style) -> String {
    let of = |wanted| checks.iter().filter(move |check| check.status == wanted);
    let listed = BY_URGENCY
        .into_iter()
        .filter(|status| *status != CheckStatus::Pass);
    let mut blocks: Vec<Block> = listed.flat_map(of).flat_map(blocks).collect();
    let counts = BY_URGENCY.map(|wanted| (of(wanted).count(), word(wanted)));
    let counts = counts.iter().filter(|(number, _)| *number > 0);
    let words: Vec<String> = counts
        .map(|(number, word)| format!("{number} {word}"))
        .collect();
    let total = counted(checks.len(), "check");
    blocks.push(Block::Remark(format!("{total}: {}", words.join(", "))));

    let name = "linerate http lab --check";
    Document { name, blocks }.text(style)
}

/// Checks for programs: one JSON array of
/// `{id, side, status, have, need, fix, undo, advice, cells}`.
pub fn preflight_json(checks: &[Check]) -> String {
    linerate_document::pretty_json(&checks)
}

fn word(status: CheckStatus) -> String {
    stored_name(status).to_uppercase()
}

fn blocks(check: &Check) -> Vec<Block> {
    let name: String = shortened(&check.id).chars().take(NAME_CHARS_MAX).collect();
    let need = if check.need.is_empty() { "" } else { "; need " };
    let first = Block::Entry(Entry {
        status: format!("{:<7}", word(check.status)),
        label: format!("  {:<6}  {name:<20}  ", stored_name(check.side)),
        text: format!("have {}{need}{}", check.have, check.need),
        ..Entry::default()
    });

    let concerns =
        (!check.cells.is_empty()).then(|| format!("concerns {}", check.cells.join(", ")));
    let commands = |label: &'static str, commands: &[String]| -> Vec<Block> {
        let lines = commands
            .iter()
            .map(|command| format!("{label:<6}{}", shortened(command)));
        lines
            .map(|text| Block::verbatim("", INDENT, text))
            .collect()
    };

    let advice = (!check.advice.is_empty()).then(|| format!("next  {}", check.advice));
    std::iter::once(first)
        .chain(concerns.map(|text| Block::entry("", INDENT, text)))
        .chain(commands("do", &check.fix))
        .chain(commands("undo", &check.undo))
        .chain(advice.map(|text| Block::entry("", INDENT, text)))
        .collect()
}
