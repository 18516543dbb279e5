//! Reports of a diagnosis: text for a tired person, JSON for a program, a script for a careful one.

use std::fmt::Write;

use crate::printable::printable;
use linerate_model::finding::{Comparison, Confidence, Diagnosis, Finding, LimitPeriod, LossSplit, Severity, Verdict};

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
    let mut out = String::new();
    let _ = writeln!(out, "{}", head(diagnosis));
    let _ = writeln!(out, "{}: {}", diagnosis.verdict.verdict, diagnosis.verdict.sentence);
    if let [_, _, ..] = diagnosis.verdict.timeline.as_slice() {
        let _ = writeln!(out, "  over time: {}", timeline(&diagnosis.verdict, verbose));
    }
    if let Some(next) = &diagnosis.verdict.what_if {
        let _ = writeln!(out, "  next: {next}");
    }
    for split in &diagnosis.loss {
        let _ = writeln!(out, "  {}", loss(split));
    }
    if let Some(comparison) = &diagnosis.comparison {
        out.push_str(&differences(comparison, verbose));
    }
    let shown = if verbose { usize::MAX } else { FINDINGS_SHOWN };
    for finding in diagnosis.findings.iter().take(shown) {
        out.push('\n');
        out.push_str(&finding_text(finding, verbose));
    }
    let hidden = diagnosis.findings.len().saturating_sub(shown);
    if hidden > 0 {
        let _ = writeln!(out, "\n{hidden} more of less effect: -v shows them");
    }
    out.push_str(&ruled_out(diagnosis, verbose));
    out.push_str(&open(diagnosis, verbose));
    if !diagnosis.unread.is_empty() {
        let _ = writeln!(
            out,
            "\n{} lines were not understood{}",
            diagnosis.unread.len(),
            if verbose { ":" } else { " (-v shows them)" }
        );
        if verbose {
            for line in &diagnosis.unread {
                let _ = writeln!(out, "  {line}");
            }
        }
    }
    printable(&out)
}

/// `slow-start 1.0 s, receiver-cpu-app 9.0 s`
fn timeline(verdict: &Verdict, verbose: bool) -> String {
    let shown = if verbose { usize::MAX } else { PERIODS_SHOWN };
    let name = |period: &LimitPeriod| {
        let tenths = period.length_ms.saturating_add(50) / 100;
        format!("{} {}.{} s", period.verdict, tenths / 10, tenths % 10)
    };
    let mut words: Vec<String> = verdict.timeline.iter().take(shown).map(name).collect();
    if verdict.timeline.len() > shown {
        words.push("...".to_owned());
    }
    words.join(", ")
}

/// `1200 datagrams lost (test, client to server): sender 0, network 3, nic not known, socket buffer 1197`
fn loss(split: &LossSplit) -> String {
    let part = |part: Option<u64>| part.map_or_else(|| "not known".to_owned(), |number| number.to_string());
    format!(
        "{} datagrams lost ({}): sender {}, network {}, adapter {}, socket buffer {}",
        split.lost,
        split.label,
        part(split.sender),
        split.network,
        part(split.nic),
        part(split.socket)
    )
}

fn head(diagnosis: &Diagnosis) -> String {
    let rules = |ids: Vec<&str>| {
        let mut ids = ids;
        ids.sort_unstable();
        ids.dedup();
        ids.len()
    };
    let found = rules(diagnosis.findings.iter().map(|f| f.id.as_str()).collect());
    let out = rules(diagnosis.ruled_out.iter().map(|r| r.id.as_str()).collect());
    let open = rules(diagnosis.not_evaluated.iter().map(|n| n.id.as_str()).collect());
    format!(
        "{}: {found} found, {out} ruled out, {open} not checkable",
        diagnosis.hosts.join(", ")
    )
}

fn finding_text(finding: &Finding, verbose: bool) -> String {
    let mut out = String::new();
    let sure = match finding.confidence {
        Confidence::High => "",
        Confidence::Medium => " (medium confidence)",
        Confidence::Low => " (low confidence)",
    };
    let _ = writeln!(
        out,
        "{:<7} {}  {}: {}{sure}",
        word(finding.severity),
        finding.id,
        finding.subject,
        finding.title
    );
    for (index, evidence) in finding.evidence.iter().enumerate() {
        let label = if index == 0 { "seen" } else { "" };
        let _ = writeln!(
            out,
            "  {label:<5} {} = {} ({})",
            evidence.fact, evidence.value, evidence.threshold
        );
    }
    let _ = writeln!(out, "  why   {}", finding.explanation);
    if let Some(cause) = &finding.retest_after {
        let _ = writeln!(out, "  do    test again after {cause}: it changes what this rests on");
    }
    for (index, command) in finding.remedy.iter().enumerate() {
        let _ = writeln!(out, "  {:<5} {command}", if index == 0 { "do" } else { "" });
    }
    if let Some(advice) = &finding.advice {
        let _ = writeln!(
            out,
            "  {:<5} {advice}",
            if finding.remedy.is_empty() { "do" } else { "" }
        );
    }
    for (index, command) in finding.undo.iter().enumerate() {
        let _ = writeln!(out, "  {:<5} {command}", if index == 0 { "undo" } else { "" });
    }
    if verbose {
        if let Some(hint) = &finding.persist {
            let _ = writeln!(out, "  keep  {hint}");
        }
        if !finding.needs.is_empty() {
            let _ = writeln!(out, "  needs {}", finding.needs.join(", "));
        }
        let _ = writeln!(out, "  see   {}", finding.reference);
    }
    out
}

const fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Blocker => "BLOCKER",
        Severity::High => "HIGH",
        Severity::Medium => "MEDIUM",
        Severity::Low => "LOW",
        Severity::Info => "INFO",
    }
}

fn ruled_out(diagnosis: &Diagnosis, verbose: bool) -> String {
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
    let mut out = String::new();
    for (ids, subject, reason) in lines {
        let _ = writeln!(
            out,
            "{}NOT     {ids}  {subject}: {reason}",
            if out.is_empty() { "\n" } else { "" }
        );
    }
    out
}

fn open(diagnosis: &Diagnosis, verbose: bool) -> String {
    let mut out = String::new();
    let mut silent = Vec::new();
    for entry in &diagnosis.not_evaluated {
        match &entry.suspicion {
            Some(suspicion) => {
                let _ = writeln!(
                    out,
                    "?       {}  {}: {suspicion} (needs {})",
                    entry.id,
                    entry.subject,
                    entry.missing.join(", ")
                );
            }
            None if verbose => {
                let _ = writeln!(
                    out,
                    "?       {}  {}: needs {} ({})",
                    entry.id,
                    entry.subject,
                    entry.missing.join(", "),
                    entry.reasons.join(", ")
                );
            }
            None if silent.last() != Some(&entry.id.as_str()) => silent.push(&entry.id),
            None => {}
        }
    }
    if !silent.is_empty() {
        silent.dedup();
        let _ = writeln!(out, "?       not checkable here: {} (-v says why)", silent.join(" "));
    }
    if out.is_empty() { out } else { format!("\n{out}") }
}

fn differences(comparison: &Comparison, verbose: bool) -> String {
    let mut out = String::from("\n");
    let rules = [
        ("only on the first", &comparison.rules_only_a),
        ("only on the second", &comparison.rules_only_b),
        ("on both, so no explanation of a difference", &comparison.rules_both),
    ];
    for (where_, ids) in rules.iter().filter(|(_, ids)| !ids.is_empty()) {
        let _ = writeln!(out, "rules   {}: {where_}", ids.join(" "));
    }
    let shown = if verbose { usize::MAX } else { DIFFERENCES_SHOWN };
    for difference in comparison
        .changed
        .iter()
        .filter(|d| verbose || d.impact > 0)
        .take(shown)
    {
        let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
        let _ = writeln!(
            out,
            "DIFFERS {} : {} | {} (effect {}: {})",
            difference.key,
            side(&difference.a),
            side(&difference.b),
            difference.impact,
            difference.why
        );
    }
    for (which, keys) in [("first", &comparison.only_a), ("second", &comparison.only_b)] {
        if !keys.is_empty() {
            let names = if verbose {
                format!(": {}", keys.join(", "))
            } else {
                String::new()
            };
            let _ = writeln!(out, "ONLY    the {which} knows {} more facts{names}", keys.len());
        }
    }
    let _ = writeln!(out, "EQUAL   {} facts", comparison.same_count);
    out
}

/// The diagnosis as one JSON object, schema `linerate.doctor/1`.
#[must_use]
pub fn json(diagnosis: &Diagnosis) -> String {
    let mut text = serde_json::to_string_pretty(diagnosis).unwrap_or_else(|_| "{}".to_owned());
    text.push('\n');
    text
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
    use linerate_model::finding::{DOCTOR_SCHEMA, Evidence, NotEvaluated, RuledOut};

    fn diagnosis() -> Diagnosis {
        Diagnosis {
            schema: DOCTOR_SCHEMA.to_owned(),
            hosts: vec!["receiver".to_owned()],
            verdict: Verdict {
                verdict: "no-load".to_owned(),
                sentence: "the ring overflows".to_owned(),
                confidence: Confidence::Low,
                ..Verdict::default()
            },
            findings: vec![Finding {
                id: "NIC-01".to_owned(),
                severity: Severity::High,
                confidence: Confidence::Low,
                subject: "receiver eth0".to_owned(),
                title: "Receive ring overflows and can grow".to_owned(),
                evidence: vec![Evidence {
                    fact: "nic.eth0.ring.rx.cur".to_owned(),
                    value: "256".to_owned(),
                    threshold: "up to 4096".to_owned(),
                }],
                explanation: "Bursts\u{1b}[2J. Rings.".to_owned(),
                remedy: vec!["ethtool -G eth0 rx 4096\nreboot".to_owned()],
                advice: None,
                undo: vec!["ethtool -G eth0 rx 256".to_owned()],
                persist: None,
                needs: vec!["CAP_NET_ADMIN".to_owned()],
                reference: "ethtool(8)".to_owned(),
                retest_after: None,
            }],
            ruled_out: vec![RuledOut {
                id: "PCI-02".to_owned(),
                subject: "receiver eth0".to_owned(),
                reason: "Gen1 x1 carries about 1.68 Gbit/s, the port needs 1".to_owned(),
            }],
            not_evaluated: vec![NotEvaluated {
                id: "PAU-02".to_owned(),
                subject: "receiver eth0".to_owned(),
                missing: vec!["nic.eth0.pause.partner".to_owned()],
                reasons: vec!["not-reported".to_owned()],
                suspicion: None,
            }],
            loss: Vec::new(),
            differences: None,
            comparison: None,
            unread: Vec::new(),
        }
    }

    #[test]
    fn lost_datagrams_are_reported_by_place() {
        let mut diagnosis = diagnosis();
        diagnosis.loss = vec![LossSplit {
            label: "test".to_owned(),
            lost: 12,
            sender: Some(0),
            nic: None,
            socket: Some(9),
            network: 3,
        }];
        let line = "  12 datagrams lost (test): sender 0, network 3, adapter not known, socket buffer 9\n";
        assert!(text(&diagnosis, false).contains(line), "{}", text(&diagnosis, false));
    }

    #[test]
    fn rules_with_the_same_reason_share_a_line() {
        let mut diagnosis = diagnosis();
        let bus = diagnosis.ruled_out[0].clone();
        diagnosis.ruled_out = ["PCI-01", "PCI-02"]
            .map(|id| RuledOut {
                id: id.to_owned(),
                ..bus.clone()
            })
            .to_vec();
        assert!(text(&diagnosis, false).contains("\nNOT     PCI-01 PCI-02  receiver eth0: Gen1"));
        assert!(text(&diagnosis, true).contains("\nNOT     PCI-02  receiver eth0: Gen1"));
    }

    #[test]
    fn the_short_report_is_as_reviewed() {
        let expected = "\
receiver: 1 found, 1 ruled out, 1 not checkable
no-load: the ring overflows

HIGH    NIC-01  receiver eth0: Receive ring overflows and can grow (low confidence)
  seen  nic.eth0.ring.rx.cur = 256 (up to 4096)
  why   Bursts\u{fffd}[2J. Rings.
  do    ethtool -G eth0 rx 4096
reboot
  undo  ethtool -G eth0 rx 256

NOT     PCI-02  receiver eth0: Gen1 x1 carries about 1.68 Gbit/s, the port needs 1

?       not checkable here: PAU-02 (-v says why)
";
        assert_eq!(text(&diagnosis(), false), expected);
    }

    #[test]
    fn a_script_does_nothing_by_itself() {
        let script = fix_script(&diagnosis());
        assert!(
            script.contains("# ethtool -G eth0 rx 4096 reboot\n# undo: ethtool -G eth0 rx 256\n"),
            "{script}"
        );
        assert!(
            script.lines().all(|line| line.is_empty() || line.starts_with('#')),
            "{script}"
        );
    }

    #[test]
    fn json_reads_back_as_the_same_diagnosis() {
        let back: Diagnosis = serde_json::from_str(&json(&diagnosis())).expect("our own JSON");
        assert_eq!(back, diagnosis());
    }
}
