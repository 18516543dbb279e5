//! Reports of a diagnosis: text for a terminal, JSON for a program, a shell script of the fixes.

mod areas;
mod checks;
mod fixes;
mod periods;
mod placement;
mod wording;

use std::collections::BTreeSet;

pub use checks::checks;
pub use fixes::fix_script;
use linerate_document::Style;
use linerate_document::blocks::{Block, Document, Entry};
use linerate_model::finding::{
    Comparison, Confidence, Diagnosis, Evidence, Finding, LossSplit, ReadTest, Severity, Verdict,
};
use linerate_model::stored_name;

/// Its advice has a line of its own.
const PLACEMENT_RULE: &str = "CPU-10";
/// Column of the text beside the labels.
const COLUMN: usize = 12;
/// Metrics of the finding that the verdict names.
const METRICS_SHOWN: usize = 4;
/// Other findings a short report shows.
const FINDINGS_SHOWN: usize = 5;
/// Changes of the limit a short report shows.
const PERIODS_SHOWN: usize = 6;
/// Tests of a pasted text that a short report lists.
const TESTS_SHOWN: usize = 8;
/// Lines a short report shows of what differs.
const DIFFERENCES_SHOWN: usize = 10;

/// The report as text: the limit and what to do about it, other findings, and one line each for
/// what is fine and what could not be checked.
///
/// `verbose` shows every finding with its evidence, and every rule that was ruled out or not
/// evaluated.
pub fn text(diagnosis: &Diagnosis, verbose: bool, style: Style) -> String {
    document(diagnosis, verbose).text(style)
}

fn document(diagnosis: &Diagnosis, verbose: bool) -> Document {
    Document {
        name: "linerate doctor",
        blocks: blocks(diagnosis, verbose),
    }
}

/// The parts of the report.
pub fn blocks(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let mut blocks = findings(diagnosis, verbose);
    blocks.extend(checks(diagnosis, verbose));
    blocks
}

/// The limit, what to do about it, and other findings.
pub fn findings(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let limit = |shown: usize| if verbose { usize::MAX } else { shown };
    let named = named(diagnosis);
    let mut blocks: Vec<Block> = verbose
        .then(|| wrapped("CHECKED", head(diagnosis)))
        .into_iter()
        .collect();
    blocks.extend(answer(diagnosis, named, verbose, limit(PERIODS_SHOWN)));
    blocks.extend(tests(diagnosis, limit(TESTS_SHOWN)));

    if let Some(comparison) = &diagnosis.comparison {
        blocks.extend(differences(comparison, verbose, limit(DIFFERENCES_SHOWN)));
    }

    let is_other = |finding: &&Finding| {
        let is_shown = finding.severity >= Severity::Medium && finding.id != PLACEMENT_RULE;
        named.is_none_or(|named| !std::ptr::eq(named, *finding)) && (verbose || is_shown)
    };
    let others: Vec<&Finding> = diagnosis.findings.iter().filter(is_other).collect();

    if verbose {
        blocks.extend(
            others
                .into_iter()
                .flat_map(|finding| other(finding, diagnosis)),
        );
    } else {
        blocks.extend(others_in_short(&others, named, diagnosis));
    }

    blocks.extend(placement_blocks(diagnosis, verbose));
    blocks
}

/// A line that is never wrapped, so that commands can be copied.
pub fn verbatim(label: &str, text: &str) -> Block {
    Block::verbatim(label, COLUMN, one_line(text))
}

/// Text that is wrapped within its column.
pub fn wrapped(label: &str, text: impl Into<String>) -> Block {
    Block::entry(label, COLUMN, text)
}

/// Wrapped text under a label that has the colour of a severity.
pub fn graded(label: &str, severity: Severity, text: &str) -> Block {
    let label = format!("{label:<COLUMN$}");
    let status = label.trim_end().to_owned();
    // Only spaces were cut off, so that the index is the end of a character.
    let padding = label[status.len()..].to_owned();
    let text = text.to_owned();

    Block::Entry(Entry {
        status,
        label: padding,
        severity: Some(severity),
        text,
        ..Entry::default()
    })
}

/// The finding that the verdict names; without load the most severe one.
fn named(diagnosis: &Diagnosis) -> Option<&Finding> {
    let verdict = &diagnosis.verdict;
    let is_named = |finding: &&Finding| match verdict.verdict.as_str() {
        "no-load" => finding.severity >= Severity::Medium,
        _ => verdict
            .sentence
            .ends_with(&format!("({} on {})", finding.id, finding.subject)),
    };
    diagnosis.findings.iter().find(is_named)
}

/// The verdict's sentence, the metrics it rests on, and what to do.
fn answer(
    diagnosis: &Diagnosis,
    named: Option<&Finding>,
    verbose: bool,
    periods_shown: usize,
) -> Vec<Block> {
    let verdict = &diagnosis.verdict;
    let is_limit = match verdict.verdict.as_str() {
        "no-load" | "unknown" | "invalid" | "line-rate" | "speed-reading" => false,
        "configured-rate" => named.is_some(),
        _ => true,
    };

    let mut sentence = plain_sentence(verdict).to_owned();
    // Its sentence has the next step.
    let is_undecided = sentence.starts_with("undecided");
    let is_guessed = verdict.verdict == "line-rate" && verdict.confidence < Confidence::High;
    if (is_limit && !is_undecided) || is_guessed {
        sentence.push_str(confidence(verdict.confidence));
    }

    if verbose {
        let id = named.map_or_else(String::new, |finding| format!(", {}", finding.id));
        sentence = format!("{sentence} [{}{id}]", verdict.verdict);
    }

    let label = if is_limit { "BOTTLENECK" } else { "RESULT" };
    let first = match named {
        Some(finding) => graded(label, finding.severity, &sentence),
        None => wrapped(label, sentence),
    };
    let mut blocks = vec![first];
    blocks.extend(named.map(|finding| wrapped("", metrics(finding, METRICS_SHOWN))));
    blocks.extend(
        periods::text(&verdict.timeline, periods_shown).map(|text| wrapped("  over time", text)),
    );
    blocks.extend(diagnosis.loss.iter().map(|split| wrapped("", loss(split))));

    let repaired = named.filter(|_| verbose || !is_undecided);
    blocks.extend(
        repaired
            .into_iter()
            .flat_map(|finding| steps(finding, &diagnosis.findings, verbose)),
    );

    if let Some(then) = verdict.what_if.as_ref().filter(|_| verbose) {
        blocks.push(wrapped("  then", then));
    }

    blocks.extend(named.filter(|_| verbose).into_iter().flat_map(details));
    blocks
}

/// The sentence without the finding or the test that it ends with, which the next line shows.
fn plain_sentence(verdict: &Verdict) -> &str {
    let sentence = verdict.sentence.as_str();
    let is_marked = verdict.verdict != "no-load" && sentence.ends_with(')');
    sentence
        .rsplit_once(" (")
        .filter(|_| is_marked)
        .map_or(sentence, |(plain, _)| plain)
}

const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => " (certain)",
        Confidence::Medium => " (likely)",
        Confidence::Low => " (a guess)",
    }
}

/// `client to server: 95.7 Mbit/s received; RTT 7.3 ms under load`
fn metrics(finding: &Finding, shown: usize) -> String {
    let metrics: Vec<String> = finding
        .evidence
        .iter()
        .filter_map(wording::metric)
        .take(shown)
        .collect();
    let subject = place(finding);

    if metrics.is_empty() {
        subject.to_owned()
    } else {
        format!("{subject}: {}", metrics.join("; "))
    }
}

/// Host and interface, or the direction of a test: `client test, client to server`.
fn place(finding: &Finding) -> &str {
    finding.subject.rsplit(", ").next().unwrap_or_default()
}

/// Commands, the way back, and advice. `all` has the finding to which it may refer.
pub fn steps(finding: &Finding, all: &[Finding], verbose: bool) -> Vec<Block> {
    let there = |command: &String| command.clone() + &place_of_commands(finding);
    let commands = |commands: &[String]| commands.iter().map(there).collect::<Vec<_>>();
    let mut blocks = labelled("  do", &commands(&finding.remedy));
    blocks.extend(labelled("  undo", &commands(&finding.undo)));

    let advice = |text: &String| {
        // In advice these words join a sentence to the command before it.
        let text = text.trim_start_matches("and ").trim_start_matches("or ");
        if verbose {
            text.to_owned()
        } else {
            wording::without_ids(text)
        }
    };
    let cause = finding.retest_after.as_ref().map(|id| {
        let cause = all.iter().find(|finding| finding.id == *id);
        format!(
            "test again after this is repaired: {}",
            cause.map_or(id, |cause| &cause.title)
        )
    });
    let next = cause.into_iter().chain(finding.advice.as_ref().map(advice));
    // Two lines at most: a cause and an advice.
    blocks.extend(
        next.zip(["  next", ""])
            .map(|(text, label)| wrapped(label, text)),
    );

    blocks
}

/// The host of the commands as a comment of the shell, where the subject does not name it.
fn place_of_commands(finding: &Finding) -> String {
    finding
        .remedy_host
        .as_ref()
        .map_or_else(String::new, |host| format!("  # on {host}"))
}

/// Commands or evidence under a label that is written once.
fn labelled(label: &str, lines: &[String]) -> Vec<Block> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    lines
        .iter()
        .zip(labels)
        .map(|(line, label)| verbatim(label, line))
        .collect()
}

/// Details of a finding, in the long report only.
fn details(finding: &Finding) -> Vec<Block> {
    let seen = |seen: &Evidence| match seen.value.as_str() {
        "" => seen.fact.clone(),
        value => format!("{} = {value} ({})", seen.fact, seen.threshold),
    };
    let mut blocks = labelled(
        "  seen",
        &finding.evidence.iter().map(seen).collect::<Vec<_>>(),
    );
    blocks.push(wrapped("  why", &finding.explanation));
    blocks.extend(finding.persist.iter().map(|hint| wrapped("  keep", hint)));

    if !finding.needs.is_empty() {
        blocks.push(wrapped("  needs", finding.needs.join(", ")));
    }

    blocks.push(wrapped("  see", &finding.reference));
    blocks
}

/// A line for each test that was read: `nas iperf3 -c 192.0.2.20: 941 Mbit/s received; 6 s long`.
fn tests(diagnosis: &Diagnosis, shown: usize) -> Vec<Block> {
    let line = |test: &ReadTest| {
        let values: Vec<String> = test.values.iter().filter_map(wording::metric).collect();
        format!(
            "{}: {}",
            test.subject,
            if values.is_empty() {
                "no result".to_owned()
            } else {
                values.join("; ")
            }
        )
    };
    let labels = std::iter::once("TESTS").chain(std::iter::repeat(""));
    let listed = diagnosis.tests.iter().take(shown).zip(labels);
    let mut blocks: Vec<Block> = listed
        .map(|(test, label)| wrapped(label, line(test)))
        .collect();

    if diagnosis.tests.len() > shown {
        blocks.push(wrapped(
            "",
            format!("{} more: -v shows them", diagnosis.tests.len() - shown),
        ));
    }

    blocks
}

/// A line for each finding that the verdict does not name; what several hosts have alike is one
/// line. The first one has its remedy where it is worse than what the verdict names.
fn others_in_short(
    others: &[&Finding],
    named: Option<&Finding>,
    diagnosis: &Diagnosis,
) -> Vec<Block> {
    let mut lines: Vec<(&Finding, String)> = Vec::new();
    for finding in others {
        // One cause on several devices takes one line.
        let is_alike = |known: &Finding| {
            known.id == finding.id && first_metric(known) == first_metric(finding)
        };
        match lines.iter_mut().find(|(known, _)| is_alike(known)) {
            Some((_, places)) => *places = format!("{places}, {}", place(finding)),
            None => lines.push((finding, place(finding).to_owned())),
        }
    }

    let hidden = lines.len().saturating_sub(FINDINGS_SHOWN);
    let labels = std::iter::once("ALSO").chain(std::iter::repeat(""));
    let mut blocks = Vec::new();

    for ((finding, places), label) in lines.iter().take(FINDINGS_SHOWN).zip(labels) {
        blocks.push(graded(label, finding.severity, &headline(finding, places)));
        let is_worst =
            label == "ALSO" && named.is_none_or(|named| finding.severity > named.severity);
        if is_worst {
            blocks.extend(steps(finding, &diagnosis.findings, false));
        }
    }

    if hidden > 0 {
        blocks.push(wrapped("", format!("{hidden} more: -v shows them")));
    }

    blocks
}

/// All about a finding that the verdict does not name.
fn other(finding: &Finding, diagnosis: &Diagnosis) -> Vec<Block> {
    let label = stored_name(finding.severity).to_uppercase();
    let line = format!("{} [{}]", headline(finding, place(finding)), finding.id);
    let mut blocks = vec![graded(&label, finding.severity, &line)];
    blocks.extend(steps(finding, &diagnosis.findings, true));
    blocks.extend(details(finding));
    blocks
}

fn headline(finding: &Finding, places: &str) -> String {
    let metric = first_metric(finding).map_or_else(String::new, |metric| format!(": {metric}"));
    let sure = if finding.confidence == Confidence::High {
        ""
    } else {
        confidence(finding.confidence)
    };
    format!("{} ({places}){metric}{sure}", finding.title)
}

fn first_metric(finding: &Finding) -> Option<String> {
    finding.evidence.iter().find_map(wording::metric)
}

/// `client to server: 1200 datagrams lost: sender 0, network 3, NIC not known, backlog 0, firewall 0, socket buffer 1197`
fn loss(split: &LossSplit) -> String {
    let direction = split.label.rsplit(", ").next().unwrap_or_default();
    if split.lost == 0 {
        return format!("{direction}: no datagrams lost");
    }

    let part = |part: Option<u64>| {
        part.map_or_else(|| "not known".to_owned(), |number| number.to_string())
    };
    format!(
        "{direction}: {} datagrams lost: sender {}, network {}, NIC {}, backlog {}, firewall {}, \
         socket buffer {}",
        split.lost,
        part(split.sender),
        split.network,
        part(split.nic),
        part(split.backlog),
        part(split.firewall),
        part(split.socket)
    )
}

fn head(diagnosis: &Diagnosis) -> String {
    fn rules<'a>(ids: impl Iterator<Item = &'a String>) -> usize {
        ids.collect::<BTreeSet<_>>().len()
    }

    let found = rules(diagnosis.findings.iter().map(|finding| &finding.id));
    let out = rules(diagnosis.ruled_out.iter().map(|rule| &rule.id));
    let open = rules(diagnosis.not_evaluated.iter().map(|rule| &rule.id));
    let hosts = diagnosis.hosts.join(", ");

    format!("{hosts}: {found} found, {out} ruled out, {open} not checkable")
}

/// The CPUs of both ends; a short report has only the advice.
fn placement_blocks(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    if verbose {
        let labels = std::iter::once("PLACEMENT").chain(std::iter::repeat(""));
        return diagnosis
            .placement
            .iter()
            .zip(labels)
            .map(|(end, label)| wrapped(label, placement::line(end)))
            .collect();
    }

    let advised = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.id == PLACEMENT_RULE);
    let advice = advised.filter_map(|finding| Some((finding, finding.advice.as_ref()?)));
    advice
        .map(|(finding, advice)| wrapped("PLACEMENT", format!("{}: {advice}", finding.subject)))
        .collect()
}

fn differences(comparison: &Comparison, verbose: bool, shown: usize) -> Vec<Block> {
    let rules = [
        ("only on the first", &comparison.rules_only_a),
        ("only on the second", &comparison.rules_only_b),
        (
            "on both, so no explanation of a difference",
            &comparison.rules_both,
        ),
    ];
    let rules = rules.into_iter().filter(|(_, ids)| !ids.is_empty());
    let mut blocks = vec![Block::Space];
    blocks.extend(
        rules.map(|(place, ids)| verbatim("rules", &format!("{}: {place}", ids.join(" ")))),
    );

    let changed = comparison
        .changed
        .iter()
        .filter(|change| verbose || change.impact > 0);
    for change in changed.take(shown) {
        let [a, b] = [&change.a, &change.b].map(|value| value.as_deref().unwrap_or("-"));
        let effect = format!("(effect {}: {})", change.impact, change.why);
        blocks.push(verbatim(
            "DIFFERS",
            &format!("{} : {a} | {b} {effect}", change.key),
        ));
    }

    let only = [
        ("first", &comparison.only_a),
        ("second", &comparison.only_b),
    ];
    for (which, keys) in only.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        let names = if verbose {
            format!(": {}", keys.join(", "))
        } else {
            String::new()
        };
        blocks.push(verbatim(
            "ONLY",
            &format!("the {which} knows {} more facts{names}", keys.len()),
        ));
    }

    blocks.push(verbatim(
        "EQUAL",
        &format!("{} facts", comparison.same_count),
    ));
    blocks
}

/// The diagnosis as one JSON object, schema `linerate.doctor/1`.
pub fn json(diagnosis: &Diagnosis) -> String {
    linerate_document::pretty_json(diagnosis)
}

/// A command out of pasted text must not smuggle a second line into a script.
fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests;
