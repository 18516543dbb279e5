//! Areas that were checked and are fine, and areas that could not be checked.

use std::collections::BTreeSet;

use linerate_document::number::counted;
use linerate_model::facts;
use linerate_model::finding::{Diagnosis, Inapplicable, Severity, areas};

/// `windows, CPUs, MTU (53 checks; -v lists them)`; `None` where nothing was ruled out.
pub(super) fn fine(diagnosis: &Diagnosis) -> Option<String> {
    let checked = || {
        diagnosis
            .ruled_out
            .iter()
            .filter(|rule| rule.inapplicable.is_none())
    };
    let is_fine = |area: &[&str]| {
        checked().any(|rule| is_of(area, &rule.id))
            && !is_suspect(diagnosis, area)
            && !is_unread(diagnosis, area)
    };
    let mut names: Vec<&str> = areas()
        .filter(|(area, _)| is_fine(area))
        .map(|(_, name)| name)
        .collect();

    // One direction of many flows is fine where the other is not.
    names.extend(
        checked()
            .filter(|rule| rule.id == "CHN-02")
            .map(|rule| rule.subject.as_str()),
    );
    let count = checked()
        .map(|rule| &rule.id)
        .collect::<BTreeSet<_>>()
        .len();
    let listed = if count == 1 { "it" } else { "them" };

    (!names.is_empty()).then(|| {
        format!(
            "{} ({}; -v lists {listed})",
            names.join(", "),
            counted(count, "check")
        )
    })
}

/// `link, PCIe (virtual interface); CPU governor (not present here)`; `None` where everything was
/// checked.
pub(super) fn unknown(diagnosis: &Diagnosis) -> Option<String> {
    // Names with the same reason, in the order of the first.
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    let mut add = |reason: &str, name: &str| {
        if groups
            .iter()
            .any(|(_, names)| names.iter().any(|known| known == name))
        {
            return;
        }

        match groups.iter_mut().find(|(known, _)| known == reason) {
            Some((_, names)) => names.push(name.to_owned()),
            None => groups.push((reason.to_owned(), vec![name.to_owned()])),
        }
    };

    let is_import = diagnosis
        .not_evaluated
        .iter()
        .any(|rule| rule.reasons.iter().any(|reason| reason == "not-in-import"));
    if diagnosis.hosts == ["client"] && !is_import {
        add("it sent no facts", "the server");
    }

    for (_, name) in areas().filter(|(area, _)| is_unread(diagnosis, area)) {
        add("lines not understood", name);
    }

    for (area, name) in areas().filter(|(area, _)| !is_decided(diagnosis, area)) {
        let reason = diagnosis
            .ruled_out
            .iter()
            .filter(|rule| is_of(area, &rule.id))
            .find_map(|rule| match rule.inapplicable {
                Some(Inapplicable::VirtualInterface) => Some("virtual interface"),
                Some(Inapplicable::Device) => Some(rule.reason.as_str()),
                _ => None,
            });
        if let Some(reason) = reason {
            add(reason, name);
        }
    }

    for rule in &diagnosis.not_evaluated {
        for (key, reason) in rule.missing.iter().zip(&rule.reasons) {
            let Some(fact) = fact_name(diagnosis, key) else {
                continue;
            };
            let is_common = ["not-in-import", "not-reported"].contains(&reason.as_str());

            // What the device did not report is said, although other interfaces are fine.
            let is_suspected = is_import && reason == "not-reported" && rule.suspicion.is_some();
            match undecided(diagnosis, &rule.id) {
                Some((area, facts)) if is_common || facts > 1 => add(reason_words(reason), area),
                None if is_suspected => add(reason_words(reason), fact),
                None if is_common => {}
                _ => add(reason_words(reason), fact),
            }
        }
    }

    let groups = groups
        .into_iter()
        .map(|(reason, names)| format!("{} ({reason})", names.join(", ")));
    let text = groups.collect::<Vec<_>>().join("; ");
    (!text.is_empty()).then_some(text)
}

fn is_of(area: &[&str], id: &str) -> bool {
    id.split_once('-')
        .is_some_and(|(prefix, _)| area.contains(&prefix))
}

fn is_suspect(diagnosis: &Diagnosis, area: &[&str]) -> bool {
    let serious = diagnosis
        .findings
        .iter()
        .filter(|finding| finding.severity >= Severity::Medium);
    { serious }.any(|finding| is_of(area, &finding.id))
}

/// Lines about the area were not understood.
fn is_unread(diagnosis: &Diagnosis, area: &[&str]) -> bool {
    diagnosis
        .unread_subjects
        .iter()
        .any(|prefix| area.contains(&prefix.as_str()))
}

/// Some rule of the area applied to these hosts and had its facts.
fn is_decided(diagnosis: &Diagnosis, area: &[&str]) -> bool {
    diagnosis
        .findings
        .iter()
        .any(|finding| is_of(area, &finding.id))
        || diagnosis
            .ruled_out
            .iter()
            .any(|rule| is_of(area, &rule.id) && rule.inapplicable.is_none())
}

/// The name of the rule's area and the number of facts it lacks, where nothing in it could be
/// checked.
fn undecided(diagnosis: &Diagnosis, id: &str) -> Option<(&'static str, usize)> {
    let (area, name) = areas().find(|(area, _)| is_of(area, id))?;
    let rules = diagnosis
        .not_evaluated
        .iter()
        .filter(|rule| is_of(area, &rule.id));
    let facts: BTreeSet<&str> = rules
        .flat_map(|rule| &rule.missing)
        .filter_map(|key| fact_name(diagnosis, key))
        .collect();

    (!is_decided(diagnosis, area)).then_some((name, facts.len()))
}

/// The subject of a missing fact; `None` for what a note, another test or another host has.
fn fact_name(diagnosis: &Diagnosis, key: &str) -> Option<&'static str> {
    if key == "counters over a window" {
        return Some("load over time");
    }

    let is_of_test = key.starts_with("run.*")
        || key.starts_with("run.") && diagnosis.verdict.verdict == "no-load";
    let fact = facts::find(key).filter(|_| !is_of_test)?;
    let is_optional = ["note of a user", "command line", "test", "plan"].contains(&fact.source)
        || fact.source.starts_with("ovs-appctl");

    (!is_optional).then(|| {
        fact.meaning
            .split([',', ';', ':'])
            .next()
            .unwrap_or(fact.meaning)
    })
}

pub(super) fn reason_words(reason: &str) -> &str {
    match reason {
        "unsupported-by-driver" => "not offered by the driver",
        "not-applicable-to-kind" => "not present here",
        "permission" => "needs root",
        "kernel-too-old" => "not known to this kernel",
        "no-such-device" => "no such device",
        "parse-error" => "not readable",
        "not-in-import" => "not in the pasted text",
        "not-reported" => "not reported",
        other => other,
    }
}
