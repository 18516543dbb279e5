//! The report that fits a small terminal: the limit, what to do about it, what else was found, and
//! how much was checked.

use linerate_document::blocks::Block;
use linerate_document::short::{Need, SHORT_COLUMN};
use linerate_model::finding::{Confidence, Diagnosis, Finding, Severity};

use super::{
    METRICS_SHOWN, PLACEMENT_RULE, advice, areas, differences, doubt, drops, graded_in,
    is_undecided, limit, loss, metrics, named, on_its_host, one_line, place, tests, wording,
};

/// Commands and advice of the limit.
const STEPS_SHOWN: usize = 3;
/// Tests of a pasted text.
const TESTS_SHOWN: usize = 3;
/// Facts that differ between two hosts.
const DIFFERENCES_SHOWN: usize = 4;

/// Lines of the report of a host.
pub(super) const LINES_MAX: usize = 12;
/// Lines of the report behind that of a test, which has lines of its own.
pub(super) const AFTER_TEST_LINES_MAX: usize = 8;

/// The report as blocks.
pub fn short(diagnosis: &Diagnosis) -> Vec<Block> {
    let parts = parts(diagnosis).into_iter();
    parts.map(|(_, block)| block).collect()
}

/// The same, with how much a reader needs each part.
pub(super) fn parts(diagnosis: &Diagnosis) -> Vec<(Need, Block)> {
    let mut parts = limit_and_steps(diagnosis, false);
    // What was not checked qualifies the answer more than further metrics do.
    parts.extend(checked(diagnosis).map(|text| (Need::Step, entry("Checked", text))));
    parts.extend(unread(diagnosis).map(|block| (Need::Step, block)));
    parts
}

/// The limit with its metrics, what to do about it, and what else was found. Of a direction the
/// metrics are left out where the report `has_values` of each direction in a table.
pub fn limit_and_steps(diagnosis: &Diagnosis, has_values: bool) -> Vec<(Need, Block)> {
    let named = named(diagnosis);
    let verdict = &diagnosis.verdict;
    let (label, sentence) = limit(verdict, named);
    let details = |block| (Need::Detail, block);

    let answer = match named {
        Some(finding) => graded_in(SHORT_COLUMN, label, finding.severity, &sentence),
        None => entry(label, sentence),
    };
    let mut parts = vec![(Need::Answer, answer)];
    let seen = named.filter(|finding| !has_values || !is_direction(finding));
    let lossy: Vec<_> = diagnosis
        .loss
        .iter()
        .filter(|split| split.lost > 0)
        .collect();
    // The lost datagrams by place are metrics as well.
    let shown = if lossy.is_empty() { METRICS_SHOWN } else { 1 };
    parts.extend(seen.map(|finding| details(entry("", metrics(finding, shown)))));
    parts.extend(
        lossy
            .iter()
            .map(|split| details(entry("", loss(split, &diagnosis.drops)))),
    );
    let dropped = drops::line(diagnosis).filter(|_| lossy.is_empty());
    parts.extend(dropped.map(|text| (Need::Finding, entry("Drops", text))));

    if let Some(named) = named.filter(|_| !is_undecided(verdict)) {
        let steps = steps(named, diagnosis, STEPS_SHOWN).into_iter();
        parts.extend(steps.map(|step| (Need::Step, step)));
    }

    if label == "Result" || diagnosis.tests.len() > 1 {
        parts.extend(listed_tests(diagnosis).into_iter().map(details));
    }
    if let Some(comparison) = &diagnosis.comparison {
        let listed = differences(comparison, false, DIFFERENCES_SHOWN);
        parts.extend(listed.into_iter().map(details));
    }

    parts.extend(others(diagnosis, named));
    parts
}

/// The finding is about a direction of a test, whose values stand in the table of a path.
fn is_direction(finding: &Finding) -> bool {
    ["up", "down", "both"].contains(&place(finding))
}

/// What was read of the tests.
fn listed_tests(diagnosis: &Diagnosis) -> Vec<Block> {
    let count = diagnosis.tests.len();
    let listed = tests(diagnosis).take(TESTS_SHOWN);
    let mut blocks: Vec<Block> = Block::entries("Tests", SHORT_COLUMN, listed).collect();
    if count > TESTS_SHOWN {
        blocks.push(entry("", format!("{} more with -v", count - TESTS_SHOWN)));
    }
    blocks
}

fn entry(label: &str, text: impl Into<String>) -> Block {
    Block::entry(label, SHORT_COLUMN, text)
}

/// Commands, which are never wrapped, and advice.
fn steps(finding: &Finding, diagnosis: &Diagnosis, shown: usize) -> Vec<Block> {
    let commands = on_its_host(finding, &finding.remedy);
    let commands = commands.iter().map(|command| (true, one_line(command)));
    let advice =
        advice(finding, &diagnosis.findings).map(|text| (false, wording::without_ids(&text)));

    let labels = std::iter::once("Do").chain(std::iter::repeat(""));
    let lines = commands.chain(advice).take(shown).zip(labels);
    lines
        .map(|((is_command, text), label)| {
            if is_command {
                Block::verbatim(label, SHORT_COLUMN, text)
            } else {
                entry(label, text)
            }
        })
        .collect()
}

/// The first finding that the verdict does not name, with its first step, and the number of others.
/// One cause on several devices is one finding.
fn others(diagnosis: &Diagnosis, named: Option<&Finding>) -> Vec<(Need, Block)> {
    let sentence = diagnosis.verdict.sentence.to_lowercase();
    let shown = diagnosis.findings.iter().filter(|finding| {
        let is_named = named.is_some_and(|named| std::ptr::eq(named, *finding))
            // The verdict of an examination names a limit for each direction.
            || sentence.contains(&finding.title.to_lowercase());
        let is_advice = finding.id == PLACEMENT_RULE && finding.advice.is_some();
        !is_named && (finding.severity >= Severity::Medium || is_advice)
    });
    let mut lines: Vec<(&Finding, String)> = Vec::new();
    for finding in shown {
        let is_alike = |known: &Finding| {
            known.id == finding.id && first_metric(known) == first_metric(finding)
        };
        match lines.iter_mut().find(|(known, _)| is_alike(known)) {
            Some((_, places)) => *places = format!("{places}, {}", place(finding)),
            None => lines.push((finding, place(finding).to_owned())),
        }
    }

    let Some((first, places)) = lines.first() else {
        return Vec::new();
    };
    let text = headline(first, places);
    let also = graded_in(SHORT_COLUMN, "Also", first.severity, &text);
    let mut parts = vec![(Need::Finding, also)];
    let step = steps(first, diagnosis, 1).into_iter();
    parts.extend(step.map(|step| (Need::Detail, step)));
    if lines.len() > 1 {
        let more = format!("{} more with -v", lines.len() - 1);
        parts.push((Need::Detail, entry("", more)));
    }
    parts
}

/// `A queue on the path delays packets (up): queue 177 ms`
pub(super) fn headline(finding: &Finding, places: &str) -> String {
    let metric = first_metric(finding).map_or_else(String::new, |metric| format!(": {metric}"));
    let doubt = doubt(finding.confidence);
    format!("{} ({places}){metric}{doubt}", finding.title)
}

fn first_metric(finding: &Finding) -> Option<String> {
    finding.evidence.iter().find_map(wording::metric)
}

/// `48 checks without a finding; not known: NIC rings (needs root)`. What is not known is named only
/// where it could change the verdict.
pub fn checked(diagnosis: &Diagnosis) -> Option<String> {
    let is_open = diagnosis.verdict.confidence < Confidence::High;
    let unknown = areas::unknown(diagnosis).filter(|_| is_open);
    let parts = [
        areas::fine(diagnosis),
        unknown.map(|names| format!("not known: {names}")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

/// Lines of an import that were not understood.
fn unread(diagnosis: &Diagnosis) -> Option<Block> {
    let first = diagnosis.unread.first()?;
    let count = diagnosis.unread_count.max(diagnosis.unread.len());
    Some(entry(
        "Unread",
        format!("lines not understood: {count} (-v shows them); the first: {first}"),
    ))
}
