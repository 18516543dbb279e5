//! Checks that found nothing, and checks that lacked facts.

use linerate_document::blocks::Block;
use linerate_model::finding::Diagnosis;

use super::{areas, verbatim, wrapped};

/// A line for each area, or with `verbose` for each rule; lines of an import that were not
/// understood.
pub fn checks(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    if verbose {
        blocks.extend(ruled_out(diagnosis));
        blocks.extend(not_evaluated(diagnosis));
    } else {
        blocks.extend(areas::fine(diagnosis).map(|text| wrapped("OK", text)));
        blocks.extend(areas::unknown(diagnosis).map(|text| wrapped("UNKNOWN", text)));
    }

    blocks.extend(unread(diagnosis, verbose));
    blocks
}

fn ruled_out(diagnosis: &Diagnosis) -> impl Iterator<Item = Block> {
    let rules = diagnosis.ruled_out.iter();
    rules.map(|rule| {
        verbatim(
            "NOT",
            &format!("{}  {}: {}", rule.id, rule.subject, rule.reason),
        )
    })
}

fn not_evaluated(diagnosis: &Diagnosis) -> impl Iterator<Item = Block> {
    diagnosis.not_evaluated.iter().map(|rule| {
        let missing = rule.missing.join(", ");
        let text = match &rule.suspicion {
            Some(suspicion) => format!("{suspicion} (needs {missing})"),
            None => format!("needs {missing} ({})", rule.reasons.join(", ")),
        };
        verbatim("?", &format!("{}  {}: {text}", rule.id, rule.subject))
    })
}

/// Lines of an import that were not understood.
fn unread(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let Some(first) = diagnosis.unread.first() else {
        return Vec::new();
    };
    let count = diagnosis.unread_count.max(diagnosis.unread.len());
    if !verbose {
        return vec![verbatim(
            "UNREAD",
            &format!("lines not understood: {count}; the first: {first} (-v shows all)"),
        )];
    }

    let mut blocks = vec![verbatim(
        "UNREAD",
        &format!("lines not understood: {count}"),
    )];
    blocks.extend(diagnosis.unread.iter().map(|line| verbatim("", line)));
    blocks
}
