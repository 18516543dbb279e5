//! The diagnosis as parts of a page: the evidence of the limit as a table, each finding as a card.

use linerate_document::blocks::{Block, FindingCard};
use linerate_document::number::counted;
use linerate_document::table::Table;
use linerate_model::finding::{Diagnosis, Finding, Severity};

use super::{
    advice, areas, details, is_undecided, limit, named, on_its_host, one_line, place, wording,
};

/// The sentence of the verdict with the place of what it names, as a page begins with it.
#[must_use]
pub fn sentence(diagnosis: &Diagnosis) -> String {
    let named = named(diagnosis);
    let (label, sentence) = limit(&diagnosis.verdict, named);
    // A sentence that names directions has its place.
    let is_placed = ["down:", "up:", "down ", "up "]
        .iter()
        .any(|word| sentence.contains(word));
    let at = named.filter(|_| label == "Limit" && !is_placed);
    let at = at.map_or_else(String::new, |finding| format!(", {}", place(finding)));
    sentence + &at
}

/// The finding that the verdict names, where it is a limit.
#[must_use]
pub fn limiting(diagnosis: &Diagnosis) -> Option<&Finding> {
    let named = named(diagnosis);
    let (label, _) = limit(&diagnosis.verdict, named);
    named.filter(|_| label == "Limit")
}

/// What to do first about the finding that the verdict names: a command, or advice.
#[must_use]
pub fn first_step(diagnosis: &Diagnosis) -> Option<String> {
    let finding = named(diagnosis).filter(|_| !is_undecided(&diagnosis.verdict))?;
    let commands = on_its_host(finding, &finding.remedy).into_iter();
    let advice = advice(finding, &diagnosis.findings).map(|text| wording::without_ids(&text));
    commands
        .map(|command| one_line(&command))
        .chain(advice)
        .next()
}

/// Why the verdict is what it is: evidence, findings by severity, what was checked.
#[must_use]
pub fn cards(diagnosis: &Diagnosis) -> Vec<Block> {
    let mut blocks: Vec<Block> = named(diagnosis)
        .and_then(evidence)
        .map(Block::Table)
        .into_iter()
        .collect();

    let mut findings: Vec<&Finding> = diagnosis.findings.iter().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let (shown, minor): (Vec<&Finding>, Vec<&Finding>) = findings
        .into_iter()
        .partition(|finding| finding.severity >= Severity::Medium);
    let card = |finding: &Finding| Block::Finding(card(finding, &diagnosis.findings));
    blocks.extend(shown.into_iter().map(card));
    if !minor.is_empty() {
        let head = counted(minor.len(), "smaller finding");
        let minor = minor.into_iter().map(card).collect();
        blocks.push(Block::Details(head, minor));
    }

    let unknown = areas::unknown(diagnosis).map(|names| format!("Not known: {names}"));
    let checked = areas::fine(diagnosis).into_iter().chain(unknown);
    blocks.extend(checked.map(Block::Paragraph));
    blocks
}

/// What was read, and what it was compared with.
fn evidence(finding: &Finding) -> Option<Table> {
    let rows: Vec<[String; 2]> = finding
        .evidence
        .iter()
        .filter_map(|seen| Some([wording::metric(seen)?, wording::threshold(seen)]))
        .collect();
    let table = Table::of_words("", "Evidence", ["read", "compared with"], &rows);
    (!rows.is_empty()).then_some(table)
}

/// A finding with its remedy; `all` has the finding to which that may refer.
#[must_use]
pub fn card(finding: &Finding, all: &[Finding]) -> FindingCard {
    let commands = |commands: &[String]| -> Vec<Block> {
        let lines = on_its_host(finding, commands);
        let lines: Vec<String> = lines.iter().map(|line| one_line(line)).collect();
        if lines.is_empty() {
            Vec::new()
        } else {
            vec![Block::Verbatim(lines.join("\n"))]
        }
    };
    let mut steps = commands(&finding.remedy);
    steps.extend(advice(finding, all).map(Block::Paragraph));

    let parts = [
        ("Do", steps),
        ("Undo", commands(&finding.undo)),
        ("Why", details(finding)),
    ];
    FindingCard {
        severity: finding.severity,
        title: finding.title.clone(),
        subject: format!("{} · {}", place(finding), finding.id),
        text: finding
            .evidence
            .iter()
            .find_map(wording::metric)
            .unwrap_or_default(),
        parts: parts
            .into_iter()
            .filter(|(_, blocks)| !blocks.is_empty())
            .collect(),
    }
}
