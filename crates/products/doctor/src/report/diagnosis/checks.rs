//! Checks that found nothing, and checks that lacked facts.

use linerate_document::blocks::Block;
use linerate_model::finding::Diagnosis;

use super::verbatim;

/// A line for each rule that found nothing or lacked facts; lines of an import that were not
/// understood.
pub fn checks(diagnosis: &Diagnosis) -> Vec<Block> {
    let mut blocks: Vec<Block> = ruled_out(diagnosis).collect();
    blocks.extend(not_evaluated(diagnosis));

    if !diagnosis.unread.is_empty() {
        let count = diagnosis.unread_count.max(diagnosis.unread.len());
        let head = format!("lines not understood: {count}");
        blocks.push(verbatim("Unread", &head));
        blocks.extend(diagnosis.unread.iter().map(|line| verbatim("", line)));
    }
    blocks
}

fn ruled_out(diagnosis: &Diagnosis) -> impl Iterator<Item = Block> {
    let rules = diagnosis.ruled_out.iter();
    rules.map(|rule| {
        verbatim(
            "Not",
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
