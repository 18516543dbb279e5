//! Reports of a diagnosis: text for a tired person, JSON for a program, a script for a careful one.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::document::style::Style;
use crate::document::{Block, Document};
use crate::printable::printable;
use linerate_model::finding::{Comparison, Confidence, Diagnosis, Finding, LimitPeriod, LossSplit, Verdict};
use linerate_model::stored_name;

/// Findings a short report shows.
const FINDINGS_SHOWN: usize = 5;
/// Changes of the limit a short report shows.
const PERIODS_SHOWN: usize = 6;
/// Lines a short report shows of what differs.
const DIFFERENCES_SHOWN: usize = 10;

/// The report as text: the verdict first, then findings in order of effect, then what it is not.
///
/// `verbose` shows everything; otherwise at most five findings, and one line for each rule that was ruled out.
#[must_use]
pub fn text(diagnosis: &Diagnosis, verbose: bool) -> String {
    printable(&document(diagnosis, verbose).text(Style::UNSTYLED))
}

fn document(diagnosis: &Diagnosis, verbose: bool) -> Document {
    let limit = |shown: usize| if verbose { usize::MAX } else { shown };
    let verdict = &diagnosis.verdict;
    let mut blocks = vec![line(head(diagnosis)), line(format!("{}: {}", verdict.verdict, verdict.sentence))];
    if let [_, _, ..] = verdict.timeline.as_slice() {
        let timeline = timeline(verdict, limit(PERIODS_SHOWN));
        blocks.push(line(format!("  over time: {timeline}")));
    }
    blocks.extend(verdict.what_if.iter().map(|next| line(format!("  next: {next}"))));
    blocks.extend(diagnosis.loss.iter().map(|split| line(loss(split))));
    if let Some(comparison) = &diagnosis.comparison {
        blocks.extend(differences(comparison, verbose, limit(DIFFERENCES_SHOWN)));
    }
    let shown = limit(FINDINGS_SHOWN);
    let findings = diagnosis.findings.iter().take(shown);
    blocks.extend(findings.flat_map(|finding| finding_blocks(finding, verbose)));
    let hidden = diagnosis.findings.len().saturating_sub(shown);
    if hidden > 0 {
        blocks.extend([Block::Space, line(format!("{hidden} more of less effect: -v shows them"))]);
    }
    blocks.extend(after_space(ruled_out(diagnosis, verbose)));
    blocks.extend(after_space(open(diagnosis, verbose)));
    if let Some(first) = diagnosis.unread.first() {
        let shown = if verbose { ":".to_owned() } else { format!("; the first: {first} (-v shows all)") };
        let count = diagnosis.unread.len();
        blocks.extend([Block::Space, line(format!("lines not understood: {count}{shown}"))]);
        let lines = diagnosis.unread.iter().filter(|_| verbose);
        blocks.extend(lines.map(|unread| line(format!("  {unread}"))));
    }
    let name = "linerate doctor";
    Document { name, blocks }
}

/// A line that is never wrapped, so that commands can be copied.
fn line(text: impl Into<String>) -> Block {
    status("", text)
}

/// A line of a rule, a fact or a finding.
fn status(status: &str, text: impl Into<String>) -> Block {
    Block::verbatim(status, if status.is_empty() { 0 } else { 8 }, text)
}

/// Blocks of a section; nothing without any.
fn after_space(blocks: Vec<Block>) -> impl Iterator<Item = Block> {
    let space = (!blocks.is_empty()).then_some(Block::Space);
    space.into_iter().chain(blocks)
}

/// `slow-start 1.0 s, receiver-cpu-app 9.0 s`
fn timeline(verdict: &Verdict, shown: usize) -> String {
    let name = |period: &LimitPeriod| {
        let tenths = period.length_ms.saturating_add(50) / 100;
        format!("{} {}.{} s", period.verdict, tenths / 10, tenths % 10)
    };
    let words: Vec<String> = verdict.timeline.iter().take(shown).map(name).collect();
    let more = if verdict.timeline.len() > shown { ", ..." } else { "" };
    words.join(", ") + more
}

/// `1200 datagrams lost (test, client to server): sender 0, network 3, NIC not known, firewall 0, socket buffer 1197`
fn loss(split: &LossSplit) -> String {
    let part = |part: Option<u64>| part.map_or_else(|| "not known".to_owned(), |number| number.to_string());
    format!(
        "  {} datagrams lost ({}): sender {}, network {}, NIC {}, firewall {}, socket buffer {}",
        split.lost,
        split.label,
        part(split.sender),
        split.network,
        part(split.nic),
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

fn finding_blocks(finding: &Finding, verbose: bool) -> Vec<Block> {
    let Finding { id, subject, title, .. } = finding;
    let sure = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    // Text under a label that is printed once.
    let labelled = |label: &str, texts: &[String]| {
        let mut label = label;
        let entry = |text: &String| Block::verbatim(&format!("  {}", std::mem::take(&mut label)), 8, text.as_str());
        texts.iter().map(entry).collect::<Vec<_>>()
    };
    let one = |label: &str, text: String| labelled(label, &[text]);
    let evidence = finding.evidence.iter();
    let evidence: Vec<String> =
        evidence.map(|seen| format!("{} = {} ({})", seen.fact, seen.value, seen.threshold)).collect();
    let mut blocks = vec![
        Block::Space,
        status(&stored_name(finding.severity).to_uppercase(), format!("{id}  {subject}: {title}{sure}")),
    ];
    blocks.extend(labelled("seen", &evidence));
    blocks.extend(one("why", finding.explanation.clone()));
    if let Some(cause) = &finding.retest_after {
        blocks.extend(one("do", format!("test again after {cause}: it changes what this rests on")));
    }
    let steps: Vec<String> = finding.remedy.iter().chain(&finding.advice).cloned().collect();
    blocks.extend(labelled("do", &steps));
    blocks.extend(labelled("undo", &finding.undo));
    if verbose {
        blocks.extend(finding.persist.iter().flat_map(|hint| one("keep", hint.clone())));
        if !finding.needs.is_empty() {
            blocks.extend(one("needs", finding.needs.join(", ")));
        }
        blocks.extend(one("see", finding.reference.clone()));
    }
    blocks
}

fn ruled_out(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let mut lines: Vec<(String, &str, &str)> = Vec::new();
    let mut last = "";
    for entry in &diagnosis.ruled_out {
        // The short report names each rule once, and rules with the same reason together; the long one every interface.
        if !verbose && entry.id == last {
            continue;
        }
        last = &entry.id;
        let alike = lines
            .iter_mut()
            .find(|(_, subject, reason)| !verbose && *subject == entry.subject && *reason == entry.reason);
        match alike {
            Some((ids, ..)) => *ids = format!("{ids} {}", entry.id),
            None => lines.push((entry.id.clone(), &entry.subject, &entry.reason)),
        }
    }
    let lines = lines.into_iter();
    lines.map(|(ids, subject, reason)| status("NOT", format!("{ids}  {subject}: {reason}"))).collect()
}

fn open(diagnosis: &Diagnosis, verbose: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut silent: Vec<&str> = Vec::new();
    for entry in &diagnosis.not_evaluated {
        let (id, subject, missing) = (&entry.id, &entry.subject, entry.missing.join(", "));
        match &entry.suspicion {
            Some(suspicion) => blocks.push(status("?", format!("{id}  {subject}: {suspicion} (needs {missing})"))),
            None if verbose => {
                let reasons = entry.reasons.join(", ");
                blocks.push(status("?", format!("{id}  {subject}: needs {missing} ({reasons})")));
            }
            None if silent.last() != Some(&id.as_str()) => silent.push(id),
            None => {}
        }
    }
    if !silent.is_empty() {
        let rules = silent.join(" ");
        blocks.push(status("?", format!("not checkable here: {rules} (-v says why)")));
    }
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
    blocks.extend(rules.map(|(place, ids)| status("rules", format!("{}: {place}", ids.join(" ")))));
    let changed = comparison.changed.iter().filter(|change| verbose || change.impact > 0);
    for change in changed.take(shown) {
        let [a, b] = [&change.a, &change.b].map(|value| value.as_deref().unwrap_or("-"));
        let effect = format!("(effect {}: {})", change.impact, change.why);
        blocks.push(status("DIFFERS", format!("{} : {a} | {b} {effect}", change.key)));
    }
    let only = [("first", &comparison.only_a), ("second", &comparison.only_b)];
    for (which, keys) in only.into_iter().filter(|(_, keys)| !keys.is_empty()) {
        let names = if verbose { format!(": {}", keys.join(", ")) } else { String::new() };
        blocks.push(status("ONLY", format!("the {which} knows {} more facts{names}", keys.len())));
    }
    blocks.push(status("EQUAL", format!("{} facts", comparison.same_count)));
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
        for command in &finding.remedy {
            let _ = writeln!(out, "# {}", one_line(command));
        }
        for command in &finding.undo {
            let _ = writeln!(out, "# undo: {}", one_line(command));
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
    use linerate_model::finding::{DOCTOR_SCHEMA, RuledOut};

    fn diagnosis() -> Diagnosis {
        let diagnosis = serde_json::json!({
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
                "needs": ["CAP_NET_ADMIN"],
                "reference": "ethtool(8)",
            }],
            "ruled_out": [{
                "id": "PCI-02",
                "subject": "receiver eth0",
                "reason": "Gen1 x1 carries about 1.68 Gbit/s, the port needs 1",
            }],
            "not_evaluated": [{
                "id": "PAU-02",
                "subject": "receiver eth0",
                "missing": ["nic.eth0.pause.partner"],
                "reasons": ["not-reported"],
            }],
        });
        serde_json::from_value(diagnosis).expect("a diagnosis")
    }

    #[test]
    fn lost_datagrams_are_reported_by_place() {
        let mut diagnosis = diagnosis();
        diagnosis.loss = vec![LossSplit {
            label: "test".to_owned(),
            lost: 12,
            sender: Some(0),
            nic: None,
            firewall: Some(0),
            socket: Some(9),
            network: 3,
        }];
        let line = "  12 datagrams lost (test): sender 0, network 3, NIC not known, firewall 0, socket buffer 9\n";
        assert!(text(&diagnosis, false).contains(line), "{}", text(&diagnosis, false));
    }

    #[test]
    fn rules_with_the_same_reason_share_a_line() {
        let mut diagnosis = diagnosis();
        let bus = diagnosis.ruled_out[0].clone();
        diagnosis.ruled_out = ["PCI-01", "PCI-02"].map(|id| RuledOut { id: id.to_owned(), ..bus.clone() }).to_vec();
        assert!(text(&diagnosis, false).contains("\nNOT     PCI-01 PCI-02  receiver eth0: Gen1"));
        assert!(text(&diagnosis, true).contains("\nNOT     PCI-02  receiver eth0: Gen1"));
    }

    #[test]
    fn the_short_report_is_as_reviewed() {
        crate::expected::assert_expected("doctor.txt", &text(&diagnosis(), false));
    }

    #[test]
    fn a_script_does_nothing_by_itself() {
        let script = fix_script(&diagnosis());
        assert!(script.contains("# ethtool -G eth0 rx 4096 reboot\n# undo: ethtool -G eth0 rx 256\n"), "{script}");
        assert!(script.lines().all(|line| line.is_empty() || line.starts_with('#')), "{script}");
    }

    #[test]
    fn json_reads_back_as_the_same_diagnosis() {
        let back: Diagnosis = serde_json::from_str(&json(&diagnosis())).expect("our own JSON");
        assert_eq!(back, diagnosis());
    }
}
