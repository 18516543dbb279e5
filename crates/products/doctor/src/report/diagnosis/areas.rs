//! How much was checked, and areas that could not be checked.

use std::collections::BTreeSet;

use linerate_document::number::counted;
use linerate_model::facts;
use linerate_model::finding::{Diagnosis, areas};

/// Reasons that name what a host does not have.
const NOT_THERE: [&str; 2] = ["not-applicable-to-kind", "unsupported-by-driver"];
/// Reasons why areas could not be checked.
const REASONS_SHOWN: usize = 3;

/// `53 checks without a finding`; `None` where nothing was ruled out.
pub(super) fn fine(diagnosis: &Diagnosis) -> Option<String> {
    let checked = diagnosis
        .ruled_out
        .iter()
        .filter(|rule| rule.inapplicable.is_none());
    let ids: BTreeSet<&String> = checked.map(|rule| &rule.id).collect();
    (!ids.is_empty()).then(|| format!("{} without a finding", counted(ids.len(), "check")))
}

/// `the server (it sent no facts: serve --facts); NIC rings (needs root)`; `None` where everything
/// was checked that these hosts have.
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
        add("it sent no facts: serve --facts", "the server");
    }

    for (_, name) in areas().filter(|(area, _)| is_unread(diagnosis, area)) {
        add("lines not understood", name);
    }

    for rule in &diagnosis.not_evaluated {
        for (key, reason) in rule.missing.iter().zip(&rule.reasons) {
            // What a host does not have limits nothing.
            let is_there = !NOT_THERE.contains(&reason.as_str());
            let Some(fact) = fact_name(diagnosis, key).filter(|_| is_there) else {
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

    let mut texts: Vec<String> = groups
        .iter()
        .take(REASONS_SHOWN)
        .map(|(reason, names)| format!("{} ({reason})", first_names(names)))
        .collect();
    if groups.len() > REASONS_SHOWN {
        texts.push("more with -v".to_owned());
    }

    let text = texts.join("; ");
    (!text.is_empty()).then_some(text)
}

/// `link, PCIe and 9 more`
fn first_names(names: &[String]) -> String {
    match names {
        [first, second, more @ ..] if more.len() > 1 => {
            format!("{first}, {second} and {} more", more.len())
        }
        _ => names.join(", "),
    }
}

fn is_of(area: &[&str], id: &str) -> bool {
    id.split_once('-')
        .is_some_and(|(prefix, _)| area.contains(&prefix))
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
