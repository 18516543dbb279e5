//! Reports of a diagnosis: text for a terminal, JSON for a program, a shell script of the fixes; and of the proof of a fix.

mod areas;
mod placement;
mod proof;
mod words;

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::document::style::Style;
use crate::document::{Block, Document, Entry};
use crate::printable::printable;
use linerate_model::finding::{
    Comparison, Confidence, Diagnosis, Evidence, Finding, LimitPeriod, LossSplit, Severity, Verdict,
};
use linerate_model::limit::limit_name;
use linerate_model::stored_name;
pub use proof::{proof, proof_json};

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
/// Lines a short report shows of what differs.
const DIFFERENCES_SHOWN: usize = 10;

/// The report as text: the limit and what to do about it, other findings, and one line each for what is fine and what could
/// not be checked.
///
/// `verbose` shows every finding with its evidence, and every rule that was ruled out or not evaluated.
#[must_use]
pub fn text(diagnosis: &Diagnosis, verbose: bool, style: Style) -> String {
    document(diagnosis, verbose).text(style)
}

fn document(diagnosis: &Diagnosis, verbose: bool) -> Document {
    Document { name: "linerate doctor", blocks: blocks(diagnosis, verbose) }
}

/// The parts of the report.
pub(crate) fn blocks(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let mut blocks = findings(diagnosis, verbose);
    blocks.extend(checks(diagnosis, verbose));
    blocks
}

/// The limit, what to do about it, and other findings.
pub(crate) fn findings(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let limit = |shown: usize| if verbose { usize::MAX } else { shown };
    let named = named(diagnosis);
    let mut blocks: Vec<Block> = verbose.then(|| wrapped("CHECKED", head(diagnosis))).into_iter().collect();
    blocks.extend(answer(diagnosis, named, verbose, limit(PERIODS_SHOWN)));
    if let Some(comparison) = &diagnosis.comparison {
        blocks.extend(differences(comparison, verbose, limit(DIFFERENCES_SHOWN)));
    }
    let is_other = |finding: &&Finding| {
        let is_shown = finding.severity >= Severity::Medium && finding.id != PLACEMENT_RULE;
        named.is_none_or(|named| !std::ptr::eq(named, *finding)) && (verbose || is_shown)
    };
    let others: Vec<&Finding> = diagnosis.findings.iter().filter(is_other).collect();
    if verbose {
        blocks.extend(others.into_iter().flat_map(|finding| other(finding, diagnosis)));
    } else {
        blocks.extend(others_in_short(&others));
    }
    blocks.extend(placement_blocks(diagnosis, verbose));
    blocks
}

/// What is fine and what could not be checked.
pub(crate) fn checks(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
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

/// A line that is never wrapped, so that commands can be copied.
fn verbatim(label: &str, text: &str) -> Block {
    Block::verbatim(label, COLUMN, printable(&one_line(text)))
}

/// Text that is wrapped within its column.
pub(crate) fn wrapped(label: &str, text: impl Into<String>) -> Block {
    Block::entry(label, COLUMN, printable(&text.into()))
}

/// Wrapped text under a label that has the colour of a severity.
pub(crate) fn graded(label: &str, severity: Severity, text: &str) -> Block {
    let label = format!("{label:<COLUMN$}");
    let status = label.trim_end().to_owned();
    let padding = label[status.len()..].to_owned();
    let text = printable(text);
    Block::Entry(Entry { status, label: padding, severity: Some(severity), text, ..Entry::default() })
}

/// The finding that the verdict names; without load the most severe one.
fn named(diagnosis: &Diagnosis) -> Option<&Finding> {
    let verdict = &diagnosis.verdict;
    let is_named = |finding: &&Finding| match verdict.verdict.as_str() {
        "no-load" => finding.severity >= Severity::Medium,
        _ => verdict.sentence.ends_with(&format!("({} on {})", finding.id, finding.subject)),
    };
    diagnosis.findings.iter().find(is_named)
}

/// The verdict's sentence, the metrics it rests on, and what to do.
fn answer(diagnosis: &Diagnosis, named: Option<&Finding>, verbose: bool, periods_shown: usize) -> Vec<Block> {
    let verdict = &diagnosis.verdict;
    let is_limit = match verdict.verdict.as_str() {
        "no-load" | "unknown" | "invalid" | "line-rate" => false,
        "configured-rate" => named.is_some(),
        _ => true,
    };
    let mut sentence = plain_sentence(verdict).to_owned();
    // Its sentence has the next step.
    let is_undecided = sentence.starts_with("undecided");
    if is_limit && !is_undecided {
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
    blocks.extend(timeline(verdict, periods_shown).map(|text| wrapped("  over time", text)));
    blocks.extend(diagnosis.loss.iter().map(|split| wrapped("", loss(split))));
    let repaired = named.filter(|_| verbose || !is_undecided);
    blocks.extend(repaired.into_iter().flat_map(|finding| steps(finding, &diagnosis.findings, verbose)));
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
    sentence.rsplit_once(" (").filter(|_| is_marked).map_or(sentence, |(plain, _)| plain)
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
    let metrics: Vec<String> = finding.evidence.iter().filter_map(words::metric).take(shown).collect();
    let subject = place(finding);
    if metrics.is_empty() { subject.to_owned() } else { format!("{subject}: {}", metrics.join("; ")) }
}

/// Host and interface, or the direction of a test: `client test, client to server`.
fn place(finding: &Finding) -> &str {
    finding.subject.rsplit(", ").next().unwrap_or_default()
}

/// Commands, the way back, and advice. `all` has the finding to which it may refer.
pub(crate) fn steps(finding: &Finding, all: &[Finding], verbose: bool) -> Vec<Block> {
    let there = |command: &String| command.clone() + &place_of_commands(finding);
    let commands = |commands: &[String]| commands.iter().map(there).collect::<Vec<_>>();
    let mut blocks = labelled("  do", &commands(&finding.remedy));
    blocks.extend(labelled("  undo", &commands(&finding.undo)));
    let advice = |text: &String| {
        let text = text.trim_start_matches("and ").trim_start_matches("or ");
        if verbose { text.to_owned() } else { words::without_ids(text) }
    };
    let cause = finding.retest_after.as_ref().map(|id| {
        let cause = all.iter().find(|finding| finding.id == *id);
        format!("test again after this is repaired: {}", cause.map_or(id, |cause| &cause.title))
    });
    let next = cause.into_iter().chain(finding.advice.as_ref().map(advice));
    blocks.extend(next.zip(["  next", ""]).map(|(text, label)| wrapped(label, text)));
    blocks
}

/// The host of the commands as a comment of the shell, where the subject does not name it.
fn place_of_commands(finding: &Finding) -> String {
    finding.remedy_host.as_ref().map_or_else(String::new, |host| format!("  # on {host}"))
}

/// Commands or evidence under a label that is written once.
fn labelled(label: &str, lines: &[String]) -> Vec<Block> {
    let labels = std::iter::once(label).chain(std::iter::repeat(""));
    lines.iter().zip(labels).map(|(line, label)| verbatim(label, line)).collect()
}

/// What the long report adds to a finding.
fn details(finding: &Finding) -> Vec<Block> {
    let seen = |seen: &Evidence| match seen.value.as_str() {
        "" => seen.fact.clone(),
        value => format!("{} = {value} ({})", seen.fact, seen.threshold),
    };
    let mut blocks = labelled("  seen", &finding.evidence.iter().map(seen).collect::<Vec<_>>());
    blocks.push(wrapped("  why", &finding.explanation));
    blocks.extend(finding.persist.iter().map(|hint| wrapped("  keep", hint)));
    if !finding.needs.is_empty() {
        blocks.push(wrapped("  needs", finding.needs.join(", ")));
    }
    blocks.push(wrapped("  see", &finding.reference));
    blocks
}

/// A line for each finding that the verdict does not name; what several hosts have alike is one line.
fn others_in_short(others: &[&Finding]) -> Vec<Block> {
    let mut lines: Vec<(&Finding, String)> = Vec::new();
    for finding in others {
        let is_alike = |known: &Finding| known.id == finding.id && first_metric(known) == first_metric(finding);
        match lines.iter_mut().find(|(known, _)| is_alike(known)) {
            Some((_, places)) => *places = format!("{places}, {}", place(finding)),
            None => lines.push((finding, place(finding).to_owned())),
        }
    }
    let hidden = lines.len().saturating_sub(FINDINGS_SHOWN);
    let labels = std::iter::once("ALSO").chain(std::iter::repeat(""));
    let shown = lines.iter().take(FINDINGS_SHOWN).zip(labels);
    let mut blocks: Vec<Block> =
        shown.map(|((finding, places), label)| graded(label, finding.severity, &headline(finding, places))).collect();
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
    let sure = if finding.confidence == Confidence::High { "" } else { confidence(finding.confidence) };
    format!("{} ({places}){metric}{sure}", finding.title)
}

fn first_metric(finding: &Finding) -> Option<String> {
    finding.evidence.iter().find_map(words::metric)
}

/// `slow start 1.0 s, receiver's CPU 9.0 s`, of an examined path `down: slow start 1.0 s, receiver's CPU 9.0 s; up: ...`;
/// `None` where the limit did not change.
fn timeline(verdict: &Verdict, shown: usize) -> Option<String> {
    let mut periods: Vec<LimitPeriod> = Vec::new();
    for period in verdict.timeline.iter().filter(|period| period.length_ms >= TENTH_MS / 2) {
        match periods.last_mut().filter(|last| (&last.load, &last.verdict) == (&period.load, &period.verdict)) {
            Some(last) => last.length_ms = last.length_ms.saturating_add(period.length_ms),
            None => periods.push(period.clone()),
        }
    }
    if periods.windows(2).all(|pair| matches!(pair, [a, b] if a.verdict == b.verdict)) {
        return None;
    }
    let mut words = String::new();
    let mut load = &None;
    for period in periods.iter().take(shown) {
        let separator = match (words.is_empty(), &period.load == load) {
            (true, _) => "",
            (false, true) => ", ",
            (false, false) => "; ",
        };
        let head = period.load.as_ref().filter(|_| &period.load != load);
        let head = head.map_or_else(String::new, |load| format!("{load}: "));
        let tenths = period.length_ms.saturating_add(TENTH_MS / 2) / TENTH_MS;
        let name = limit_name(&period.verdict);
        let name = name.trim_start_matches("the ");
        let _ = write!(words, "{separator}{head}{name} {}.{} s", tenths / 10, tenths % 10);
        load = &period.load;
    }
    let more = if periods.len() > shown { ", ..." } else { "" };
    Some(words + more)
}

/// A tenth of a second.
const TENTH_MS: u64 = 100;

/// `client to server: 1200 datagrams lost: sender 0, network 3, NIC not known, backlog 0, firewall 0, socket buffer 1197`
fn loss(split: &LossSplit) -> String {
    let direction = split.label.rsplit(", ").next().unwrap_or_default();
    if split.lost == 0 {
        return format!("{direction}: no datagrams lost");
    }
    let part = |part: Option<u64>| part.map_or_else(|| "not known".to_owned(), |number| number.to_string());
    format!(
        "{direction}: {} datagrams lost: sender {}, network {}, NIC {}, backlog {}, firewall {}, socket buffer {}",
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

fn ruled_out(diagnosis: &Diagnosis) -> impl Iterator<Item = Block> {
    let rules = diagnosis.ruled_out.iter();
    rules.map(|rule| verbatim("NOT", &format!("{}  {}: {}", rule.id, rule.subject, rule.reason)))
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
    let advised = diagnosis.findings.iter().filter(|finding| finding.id == PLACEMENT_RULE);
    let advice = advised.filter_map(|finding| Some((finding, finding.advice.as_ref()?)));
    advice.map(|(finding, advice)| wrapped("PLACEMENT", format!("{}: {advice}", finding.subject))).collect()
}

/// Lines of an import that were not understood.
fn unread(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let Some(first) = diagnosis.unread.first() else { return Vec::new() };
    let count = diagnosis.unread.len();
    if !verbose {
        return vec![verbatim("UNREAD", &format!("lines not understood: {count}; the first: {first} (-v shows all)"))];
    }
    let mut blocks = vec![verbatim("UNREAD", &format!("lines not understood: {count}"))];
    blocks.extend(diagnosis.unread.iter().map(|line| verbatim("", line)));
    blocks
}

fn differences(comparison: &Comparison, verbose: bool, shown: usize) -> Vec<Block> {
    let rules = [
        ("only on the first", &comparison.rules_only_a),
        ("only on the second", &comparison.rules_only_b),
        ("on both, so no explanation of a difference", &comparison.rules_both),
    ];
    let rules = rules.into_iter().filter(|(_, ids)| !ids.is_empty());
    let mut blocks = vec![Block::Space];
    blocks.extend(rules.map(|(place, ids)| verbatim("rules", &format!("{}: {place}", ids.join(" ")))));
    let changed = comparison.changed.iter().filter(|change| verbose || change.impact > 0);
    for change in changed.take(shown) {
        let [a, b] = [&change.a, &change.b].map(|value| value.as_deref().unwrap_or("-"));
        let effect = format!("(effect {}: {})", change.impact, change.why);
        blocks.push(verbatim("DIFFERS", &format!("{} : {a} | {b} {effect}", change.key)));
    }
    let only = [("first", &comparison.only_a), ("second", &comparison.only_b)];
    for (which, keys) in only.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        let names = if verbose { format!(": {}", keys.join(", ")) } else { String::new() };
        blocks.push(verbatim("ONLY", &format!("the {which} knows {} more facts{names}", keys.len())));
    }
    blocks.push(verbatim("EQUAL", &format!("{} facts", comparison.same_count)));
    blocks
}

/// The diagnosis as one JSON object, schema `linerate.doctor/1`.
#[must_use]
pub fn json(diagnosis: &Diagnosis) -> String {
    crate::pretty_json(diagnosis)
}

/// A shell script with every command that helps, each with its reason and the way back. All commands are comments:
/// nothing runs until a user has read a line and removed its comment mark.
#[must_use]
pub fn fix_script(diagnosis: &Diagnosis) -> String {
    let mut out = String::from("#!/bin/sh\n# Suggested changes. Read each one, then remove the `# ` in front of it.\n");
    for finding in diagnosis.findings.iter().filter(|finding| !finding.remedy.is_empty()) {
        let _ = writeln!(out, "\n# {} {}: {}", finding.id, finding.subject, finding.title);
        for need in &finding.needs {
            let _ = writeln!(out, "# needs: {need}");
        }
        let there = place_of_commands(finding);
        for command in &finding.remedy {
            let _ = writeln!(out, "# {}{there}", one_line(command));
        }
        for command in &finding.undo {
            let _ = writeln!(out, "# undo: {}{there}", one_line(command));
        }
    }
    printable(&out)
}

/// A command out of pasted text must not smuggle a second line into a script.
fn one_line(text: &str) -> String {
    text.split(['\n', '\r']).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_model::finding::DOCTOR_SCHEMA;
    use serde_json::json;

    /// A host without load.
    fn diagnosis() -> Diagnosis {
        let diagnosis = json!({
            "schema": DOCTOR_SCHEMA,
            "hosts": ["receiver"],
            "verdict": {"verdict": "no-load", "sentence": "the ring overflows", "confidence": "low"},
            "findings": [{
                "id": "NIC-01",
                "severity": "high",
                "confidence": "low",
                "subject": "receiver eth0",
                "title": "Receive ring overflows and can grow",
                "evidence": [{"fact": "nic.eth0.ring.rx.cur", "value": "256", "threshold": "up to 4096"}],
                "explanation": "Bursts\u{1b}[2J. Rings.",
                "remedy": ["ethtool -G eth0 rx 4096\nreboot"],
                "undo": ["ethtool -G eth0 rx 256"],
                "advice": "shape the sender (LNK-03), or spread the receive work (IRQ-02)",
                "needs": ["CAP_NET_ADMIN"],
                "reference": "ethtool(8)",
            }, {
                "id": "QD-02",
                "severity": "medium",
                "confidence": "low",
                "subject": "receiver eth0",
                "title": "A queueing discipline drops packets",
                "evidence": [{
                    "fact": "nic.eth0.qdisc.root.drops",
                    "value": "7",
                    "threshold": "total since boot, expected 0",
                }],
                "explanation": "",
                "remedy": ["tc qdisc replace dev eth0 root fq_codel"],
                "undo": [],
                "reference": "tc(8)",
            }],
            "ruled_out": [
                {"id": "PCI-02", "subject": "receiver eth0", "reason": "Gen1 x1 carries about 1.68 Gbit/s, the port needs 1"},
                {"id": "LNK-01", "subject": "receiver lr0", "reason": "veth has no link", "inapplicable": "virtual-interface"},
                {"id": "IRQ-01", "subject": "receiver lr0", "reason": "veth has no link", "inapplicable": "virtual-interface"},
                {"id": "WIN-01", "subject": "receiver", "reason": "not TCP", "inapplicable": "test"},
                {"id": "CHN-01", "subject": "receiver", "reason": "no channels", "inapplicable": "device"},
            ],
            "not_evaluated": [
                {"id": "PAU-02", "subject": "receiver eth0", "missing": ["nic.eth0.pause.partner"], "reasons": ["not-reported"]},
                {"id": "SYS-01", "subject": "receiver", "missing": ["load.connections"], "reasons": ["not-reported"]},
                {"id": "CPU-03", "subject": "receiver", "missing": ["cpu.freq.governor"],
                    "reasons": ["not-applicable-to-kind"], "suspicion": "the governor is not known"},
            ],
        });
        serde_json::from_value(diagnosis).expect("a diagnosis")
    }

    /// A test over a narrow path.
    fn path() -> Diagnosis {
        let fact = |fact: &str, value: &str| json!({"fact": fact, "value": value, "threshold": ""});
        let subject = "client test, client to server";
        let period = |verdict: &str, length_ms: u64| json!({"verdict": verdict, "length_ms": length_ms});
        let diagnosis = json!({
            "schema": DOCTOR_SCHEMA,
            "hosts": ["client", "server"],
            "verdict": {
                "verdict": "path",
                "sentence": format!("the path between the hosts is the limit (PATH-10 on {subject})"),
                "confidence": "medium",
                "timeline": [period("slow-start", 120), period("path", 4000), period("unknown", 3), period("path", 880)],
            },
            "findings": [{
                "id": "PATH-10",
                "severity": "high",
                "confidence": "high",
                "subject": subject,
                "title": "The path between the hosts is the limit",
                "evidence": [
                    fact("run.0.received_bps", "95.7 Mbit/s"),
                    fact("run.0.min_rtt_us", "15"),
                    fact("run.0.rtt_us", "7300"),
                    fact("run.0.retransmit_share", "0"),
                    fact("run.0.busy_share", "0.99"),
                ],
                "explanation": "",
                "remedy": [],
                "undo": [],
                "advice": "look for a port speed or a shaper on the switch, router or bridge in between",
                "reference": "",
            }],
            "ruled_out": [],
            "not_evaluated": [],
        });
        serde_json::from_value(diagnosis).expect("a diagnosis")
    }

    fn short(diagnosis: &Diagnosis) -> String {
        text(diagnosis, false, Style::PLAIN)
    }

    #[test]
    fn lost_datagrams_are_reported_by_place() {
        let mut diagnosis = diagnosis();
        diagnosis.loss = vec![LossSplit {
            label: "test".to_owned(),
            lost: 12,
            sender: Some(0),
            nic: None,
            backlog: Some(0),
            firewall: Some(0),
            socket: Some(9),
            network: 3,
        }];
        let line = "\n            test: 12 datagrams lost: sender 0, network 3, NIC not known, backlog 0, firewall 0, socket buffer 9\n";
        assert!(short(&diagnosis).contains(line), "{}", short(&diagnosis));
    }

    #[test]
    fn short_reports_are_as_reviewed() {
        crate::expected::assert_expected("doctor.txt", &short(&diagnosis()));
        crate::expected::assert_expected("doctor-path.txt", &short(&path()));
    }

    #[test]
    fn placement_is_listed_in_the_long_report_and_advised_in_the_short_one() {
        let mut diagnosis = path();
        let end = |host: &str| json!({"host": host, "worker": {"cpus": [{"cpu": 0, "percent": 100}]}, "softirq": {"absent": "not-reported"}});
        diagnosis.placement = serde_json::from_value(json!([end("client"), end("server")])).expect("placements");
        assert!(!short(&diagnosis).contains("PLACEMENT"), "{}", short(&diagnosis));
        let advice = Some("try -A 1,0".to_owned());
        let (id, subject) = (PLACEMENT_RULE.to_owned(), "client".to_owned());
        diagnosis.findings.push(Finding { id, subject, advice, ..diagnosis.findings[0].clone() });
        let text = short(&diagnosis);
        assert!(text.contains("\nPLACEMENT   client: try -A 1,0\n") && !text.contains("ALSO"), "{text}");
        let wide = Style { columns: 200, ..Style::PLAIN };
        let text = super::text(&diagnosis, true, wide);
        assert!(
            text.contains("\nPLACEMENT   client: worker CPU 0 (100 %); softirq not known (not reported)\n"),
            "{text}"
        );
        assert!(text.contains("\n            server: worker CPU 0 (100 %)"), "{text}");
    }

    #[test]
    fn what_both_hosts_have_alike_is_one_line() {
        let mut diagnosis = path();
        let finding = |subject: &str, drops: &str| {
            let drops = vec![Evidence {
                fact: "nic.lr0.qdisc.root.drops".into(),
                value: drops.into(),
                threshold: String::new(),
            }];
            Finding {
                id: "QD-02".into(),
                severity: Severity::Medium,
                title: "Drops".into(),
                subject: subject.into(),
                evidence: drops,
                ..diagnosis.findings[0].clone()
            }
        };
        let others = [finding("client", "5"), finding("server", "5"), finding("router", "6")];
        diagnosis.findings.extend(others);
        let lines = "\nALSO        Drops (client, server): 5 packets dropped by the qdisc\n            Drops (router): 6 packets dropped by the qdisc\n";
        assert!(short(&diagnosis).contains(lines), "{}", short(&diagnosis));
    }

    #[test]
    fn guest_without_offloads_is_not_fine() {
        let mut diagnosis = path();
        let off = json!({"id": "OFF-01", "subject": "server", "reason": "fixed off: it cannot be switched on here"});
        diagnosis.ruled_out = vec![serde_json::from_value(off).expect("a rule")];
        assert!(short(&diagnosis).contains("\nOK          offloads "), "{}", short(&diagnosis));
        diagnosis.findings.push(Finding { id: "VIRT-01".to_owned(), ..diagnosis.findings[0].clone() });
        assert!(!short(&diagnosis).contains("\nOK "), "{}", short(&diagnosis));
    }

    #[test]
    fn long_report_has_ids_evidence_and_every_rule() {
        let text = text(&diagnosis(), true, Style::PLAIN);
        for line in [
            "RESULT      the ring overflows [no-load, NIC-01]\n",
            "  seen      nic.eth0.ring.rx.cur = 256 (up to 4096)\n",
            "  why       Bursts\u{fffd}[2J. Rings.\n",
            "MEDIUM      A queueing discipline drops packets (receiver eth0): 7 packets dropped",
            " [QD-02]\n",
            "NOT         LNK-01  receiver lr0: veth has no link\n",
            "?           CPU-03  receiver: the governor is not known (needs cpu.freq.governor)\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
    }

    #[test]
    fn only_a_limit_is_called_a_bottleneck() {
        for (verdict, sentence, line) in [
            ("no-load", "no problem found; no load", "RESULT      no problem found; no load\n"),
            ("configured-rate", "the rate is reached (test, client to server)", "RESULT      the rate is reached\n"),
            ("line-rate", "the link is full (TOP-01 on receiver eth0)", "RESULT      the link is full\n"),
            ("sender-cpu", "the sender is full (CPU-01 on x)", "BOTTLENECK  the sender is full (a guess)\n"),
            (
                "path",
                "undecided between A and B: do X to tell them apart (PATH-10 on x)",
                "BOTTLENECK  undecided between A and B: do X to tell them apart\n",
            ),
        ] {
            let mut diagnosis = diagnosis();
            diagnosis.verdict =
                Verdict { verdict: verdict.to_owned(), sentence: sentence.to_owned(), ..Verdict::default() };
            assert!(short(&diagnosis).starts_with(line), "{}", short(&diagnosis));
        }
    }

    #[test]
    fn text_is_as_wide_as_the_terminal_and_commands_are_never_wrapped() {
        let mut diagnosis = path();
        let command = format!("tc {}", "long ".repeat(40).trim_end());
        diagnosis.findings[0].remedy = vec![command.clone()];
        let text = text(&diagnosis, false, Style { columns: 60, ..Style::PLAIN });
        assert!(text.contains(&format!("  do        {command}\n")), "{text}");
        assert!(text.lines().filter(|line| !line.contains(&command)).all(|line| line.len() <= 60), "{text}");
    }

    #[test]
    fn severity_is_coloured_on_a_terminal_only() {
        let coloured = text(&path(), false, Style { is_coloured: true, ..Style::PLAIN });
        assert!(coloured.starts_with("\u{1b}[31mBOTTLENECK\u{1b}[0m  the path"), "{coloured:?}");
        assert!(!short(&path()).contains('\u{1b}'));
    }

    #[test]
    fn a_script_does_nothing_by_itself() {
        let script = fix_script(&diagnosis());
        assert!(script.contains("# ethtool -G eth0 rx 4096 reboot\n# undo: ethtool -G eth0 rx 256\n"), "{script}");
        assert!(script.lines().all(|line| line.is_empty() || line.starts_with('#')), "{script}");
    }

    #[test]
    fn commands_of_the_other_end_name_it_beside_them() {
        let mut diagnosis = diagnosis();
        diagnosis.findings[0].remedy_host = Some("the receiver".to_owned());
        let text = short(&diagnosis);
        let lines = "  do        ethtool -G eth0 rx 4096 reboot  # on the receiver\n  undo      ethtool -G eth0 rx 256  # on the receiver\n";
        assert!(text.contains(lines) && fix_script(&diagnosis).contains("rx 256  # on the receiver\n"), "{text}");
    }

    #[test]
    fn json_reads_back_as_the_same_diagnosis() {
        let back: Diagnosis = serde_json::from_str(&json(&diagnosis())).expect("our own JSON");
        assert_eq!(back, diagnosis());
    }
}
