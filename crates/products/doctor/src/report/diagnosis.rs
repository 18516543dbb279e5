//! Reports of a diagnosis: text for a terminal, JSON for a program, a shell script of the fixes.

mod areas;
mod cards;
mod checks;
mod drops;
mod fixes;
mod periods;
mod placement;
mod short;
mod wording;

use std::collections::BTreeSet;

pub use cards::{card, cards, first_step, limiting, sentence};
pub use checks::checks;
pub use fixes::fix_script;
use linerate_document::Style;
use linerate_document::blocks::{Block, Document, Entry};
use linerate_document::short::fitted;
use linerate_model::finding::{
    Comparison, Confidence, Diagnosis, Evidence, Finding, KernelDrop, LossSplit, Severity, Verdict,
};
use linerate_model::stored_name;
use short::{AFTER_TEST_LINES_MAX, LINES_MAX};
pub use short::{checked, limit_and_steps, short};

use crate::drops::COUNTED;
use crate::work::classes;

/// Its advice has a line of its own.
const PLACEMENT_RULE: &str = "CPU-10";
/// Column of the text beside the labels.
pub const COLUMN: usize = 12;
/// Metrics of the finding that the verdict names.
const METRICS_SHOWN: usize = 4;

/// The report as text: the limit and what to do about it, other findings, and what was checked.
///
/// `verbose` shows every finding with its evidence, and every rule that was ruled out or not
/// evaluated.
pub fn text(diagnosis: &Diagnosis, verbose: bool, style: Style) -> String {
    within(LINES_MAX, diagnosis, verbose, style)
}

/// The report behind that of a test, which is shorter.
pub fn text_after_test(diagnosis: &Diagnosis, verbose: bool, style: Style) -> String {
    within(AFTER_TEST_LINES_MAX, diagnosis, verbose, style)
}

fn within(lines_max: usize, diagnosis: &Diagnosis, verbose: bool, style: Style) -> String {
    let blocks = if verbose {
        let mut blocks = findings(diagnosis);
        blocks.extend(checks(diagnosis));
        blocks
    } else {
        fitted(short::parts(diagnosis), lines_max, style)
    };

    Document {
        name: "linerate doctor",
        blocks,
    }
    .text(style)
}

/// The limit, what to do about it, and all other findings with their evidence.
pub fn findings(diagnosis: &Diagnosis) -> Vec<Block> {
    let named = named(diagnosis);
    let mut blocks = vec![wrapped("Checked", head(diagnosis))];
    blocks.extend(answer(diagnosis, named));
    blocks.extend(Block::entries("Tests", COLUMN, tests(diagnosis)));

    if let Some(comparison) = &diagnosis.comparison {
        blocks.extend(differences(comparison, true, usize::MAX));
    }

    let others = diagnosis
        .findings
        .iter()
        .filter(|finding| named.is_none_or(|named| !std::ptr::eq(named, *finding)));
    blocks.extend(others.flat_map(|finding| other(finding, diagnosis)));

    blocks.extend(drops::list(diagnosis));
    let ends = diagnosis.placement.iter().map(placement::line);
    blocks.extend(Block::entries("CPUs", COLUMN, ends));
    let work = diagnosis.work.iter().map(|work| {
        let spent: Vec<String> = classes(work).collect();
        let host = &work.host;
        let cpu = work.cpu;
        let busy = work.busy_percent;
        format!(
            "{host}: CPU {cpu}, busy for {busy:.0} %: {}",
            spent.join(", ")
        )
    });
    let unknown = diagnosis.work_unknown.iter();
    let unknown = unknown.map(|reason| format!("not sampled: {reason}"));
    blocks.extend(Block::entries("Work", COLUMN, work.chain(unknown)));
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
    graded_in(COLUMN, label, severity, text)
}

fn graded_in(column: usize, label: &str, severity: Severity, text: &str) -> Block {
    let label = format!("{label:<column$}");
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
fn answer(diagnosis: &Diagnosis, named: Option<&Finding>) -> Vec<Block> {
    let verdict = &diagnosis.verdict;
    let (label, sentence) = limit(verdict, named);
    let id = named.map_or_else(String::new, |finding| format!(", {}", finding.id));
    let sentence = format!("{sentence} [{}{id}]", verdict.verdict);

    let first = match named {
        Some(finding) => graded(label, finding.severity, &sentence),
        None => wrapped(label, sentence),
    };
    let mut blocks = vec![first];
    blocks.extend(named.map(|finding| wrapped("", metrics(finding, METRICS_SHOWN))));
    blocks.extend(periods::text(&verdict.timeline).map(|text| wrapped("  over time", text)));
    blocks.extend(
        diagnosis
            .loss
            .iter()
            .map(|split| wrapped("", loss(split, &diagnosis.drops))),
    );

    blocks.extend(
        named
            .into_iter()
            .flat_map(|finding| steps(finding, &diagnosis.findings)),
    );
    blocks.extend(verdict.what_if.as_ref().map(|then| wrapped("  then", then)));
    blocks.extend(named.into_iter().flat_map(details));
    blocks
}

/// Its label and the verdict's sentence with its confidence.
fn limit(verdict: &Verdict, named: Option<&Finding>) -> (&'static str, String) {
    let is_limit = match verdict.verdict.as_str() {
        "no-load" | "unknown" | "invalid" | "line-rate" | "speed-reading" => false,
        "configured-rate" => named.is_some(),
        _ => true,
    };

    let mut sentence = plain_sentence(verdict).to_owned();
    let is_guessed = verdict.verdict == "line-rate" && verdict.confidence < Confidence::High;
    if (is_limit && !is_undecided(verdict)) || is_guessed {
        sentence.push_str(confidence(verdict.confidence));
    }

    (if is_limit { "Limit" } else { "Result" }, sentence)
}

/// Several limits are possible; the sentence has the next step.
fn is_undecided(verdict: &Verdict) -> bool {
    verdict.sentence.starts_with("undecided")
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

/// How sure a conclusion is, behind it.
pub const fn confidence(confidence: Confidence) -> &'static str {
    match confidence {
        Confidence::High => " (certain)",
        Confidence::Medium => " (likely)",
        Confidence::Low => " (a guess)",
    }
}

/// As [`confidence`], nothing where it is high.
pub const fn doubt(sure: Confidence) -> &'static str {
    match sure {
        Confidence::High => "",
        other => confidence(other),
    }
}

/// `up: 95.7 Mbit/s received; RTT 7.3 ms under load`
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

/// Host and interface, or the direction of a test: of `client test, client to server` it is `up`.
pub(crate) fn place(finding: &Finding) -> &str {
    match finding.subject.rsplit(", ").next().unwrap_or_default() {
        "client to server" => "up",
        "server to client" => "down",
        place => place,
    }
}

/// Commands, the way back, and advice. `all` has the finding to which it may refer.
pub fn steps(finding: &Finding, all: &[Finding]) -> Vec<Block> {
    let mut blocks = labelled("  do", &on_its_host(finding, &finding.remedy));
    blocks.extend(labelled("  undo", &on_its_host(finding, &finding.undo)));
    blocks.extend(
        advice(finding, all)
            .zip(["  next", ""])
            .map(|(text, label)| wrapped(label, text)),
    );
    blocks
}

/// Commands with the host on which they are run, where the subject does not name it.
fn on_its_host(finding: &Finding, commands: &[String]) -> Vec<String> {
    let place = place_of_commands(finding);
    commands
        .iter()
        .map(|command| command.clone() + &place)
        .collect()
}

/// What to do besides the commands: a cause to repair first, and an advice.
fn advice<'a>(finding: &'a Finding, all: &[Finding]) -> impl Iterator<Item = String> + use<'a> {
    let cause = finding.retest_after.as_ref().map(|id| {
        let cause = all.iter().find(|finding| finding.id == *id);
        format!(
            "test again after this is repaired: {}",
            cause.map_or(id, |cause| &cause.title)
        )
    });
    // In advice these words join a sentence to the command before it.
    let plain = |text: &String| {
        text.trim_start_matches("and ")
            .trim_start_matches("or ")
            .to_owned()
    };
    cause.into_iter().chain(finding.advice.as_ref().map(plain))
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
        value => format!("{} = {value} ({})", seen.fact, wording::comparison(seen)),
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

/// A text for each test that was read: `nas iperf3 -c 192.0.2.20: 941 Mbit/s received; 6 s long`.
fn tests(diagnosis: &Diagnosis) -> impl Iterator<Item = String> {
    diagnosis.tests.iter().map(|test| {
        let values: Vec<String> = test.values.iter().filter_map(wording::metric).collect();
        let values = if values.is_empty() {
            "no result".to_owned()
        } else {
            values.join("; ")
        };
        format!("{}: {values}", test.subject)
    })
}

/// All about a finding that the verdict does not name.
fn other(finding: &Finding, diagnosis: &Diagnosis) -> Vec<Block> {
    let label = stored_name(finding.severity).to_uppercase();
    let line = format!(
        "{} [{}]",
        short::headline(finding, place(finding)),
        finding.id
    );
    let mut blocks = vec![graded(&label, finding.severity, &line)];
    blocks.extend(steps(finding, &diagnosis.findings));
    blocks.extend(details(finding));
    blocks
}

/// `client to server: 1200 datagrams lost: sender 0, network 3, NIC not known, backlog 0, firewall 0, socket buffer 1197 (SOCKET_RCVBUFF)`
fn loss(split: &LossSplit, drops: &[KernelDrop]) -> String {
    let direction = split.label.rsplit(", ").next().unwrap_or_default();
    if split.lost == 0 {
        return format!("{direction}: no datagrams lost");
    }

    let (sender, receiver) = match direction {
        "server to client" => ("server", "client"),
        _ => ("client", "server"),
    };
    // The reason of most drops of a place.
    let part = |lost: Option<u64>, host: &str, place: &str| {
        let is_there =
            |drop: &&KernelDrop| drop.host == host && drop.place.as_deref() == Some(place);
        let most = drops
            .iter()
            .filter(is_there)
            .max_by_key(|drop| drop.packets);
        let reason = most.and_then(|drop| drop.reason.as_ref());
        match (lost, reason) {
            (None, _) => "not known".to_owned(),
            (Some(lost), Some(reason)) if lost > 0 => format!("{lost} ({reason})"),
            (Some(lost), _) => lost.to_string(),
        }
    };
    let kernel = split.kernel.filter(|lost| *lost > 0);
    let kernel = kernel.map_or_else(String::new, |lost| {
        let places = drops::losses(drops).filter(|drop| drop.host == receiver);
        let mut places = places.filter_map(|drop| drop.place.as_deref());
        let place = places.find(|place| !COUNTED.contains(place));
        let place = place.unwrap_or_default();
        format!(
            ", elsewhere in the kernel {}",
            part(Some(lost), receiver, place)
        )
    });

    format!(
        "{direction}: {} datagrams lost: sender {}, network {}, NIC {}, backlog {}, firewall {}, \
         socket buffer {}{kernel}",
        split.lost,
        part(split.sender, sender, "qdisc"),
        split.network,
        part(split.nic, receiver, "NIC"),
        part(split.backlog, receiver, "backlog"),
        part(split.firewall, receiver, "firewall"),
        part(split.socket, receiver, "socket buffer")
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
        rules.map(|(place, ids)| verbatim("Rules", &format!("{}: {place}", ids.join(" ")))),
    );

    let changed = comparison
        .changed
        .iter()
        .filter(|change| verbose || change.impact > 0);
    for change in changed.take(shown) {
        let [a, b] = [&change.a, &change.b].map(|value| value.as_deref().unwrap_or("-"));
        let effect = format!("(effect {}: {})", change.impact, change.why);
        blocks.push(verbatim(
            "Differs",
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
            "Only",
            &format!("the {which} knows {} more facts{names}", keys.len()),
        ));
    }

    blocks.push(verbatim(
        "Equal",
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
