//! Checks that found nothing, and checks that lacked facts.

use linerate_document::blocks::Block;
use linerate_model::finding::{Diagnosis, NotEvaluated};

use super::areas::reason_words;
use super::{verbatim, wrapped};

/// Rules that found nothing or lacked facts, a line for those with one subject and one reason; lines
/// of an import that were not understood.
pub fn checks(diagnosis: &Diagnosis) -> Vec<Block> {
    let ruled_out = diagnosis.ruled_out.iter().map(|rule| Check {
        ids: vec![&rule.id],
        subjects: vec![&rule.subject],
        reason: rule.reason.clone(),
    });
    let not_evaluated = diagnosis.not_evaluated.iter().map(|rule| Check {
        ids: vec![&rule.id],
        subjects: vec![&rule.subject],
        reason: missing(rule),
    });
    let mut blocks = grouped("Not", ruled_out);
    blocks.extend(grouped("?", not_evaluated));

    if !diagnosis.unread.is_empty() {
        let count = diagnosis.unread_count.max(diagnosis.unread.len());
        let head = format!("lines not understood: {count}");
        blocks.push(verbatim("Unread", &head));
        blocks.extend(diagnosis.unread.iter().map(|line| verbatim("", line)));
    }
    blocks
}

/// Rules with the same subjects and the same reason.
struct Check<'a> {
    ids: Vec<&'a str>,
    subjects: Vec<&'a str>,
    reason: String,
}

fn missing(rule: &NotEvaluated) -> String {
    let missing = rule.missing.join(", ");
    match &rule.suspicion {
        Some(suspicion) => format!("{suspicion} (needs {missing})"),
        None => {
            let reasons: Vec<_> = rule
                .reasons
                .iter()
                .map(|reason| reason_words(reason))
                .collect();
            format!("{missing}: {}", reasons.join(", "))
        }
    }
}

/// `client lo: loopback has no link [LNK-01, LNK-02]`
fn grouped<'a>(label: &str, checks: impl Iterator<Item = Check<'a>>) -> Vec<Block> {
    let of_one_rule = merged(
        checks,
        |a, b| a.ids == b.ids,
        |known, check| known.subjects.extend(check.subjects),
    );
    let lines = merged(
        of_one_rule.into_iter(),
        |a, b| a.subjects == b.subjects,
        |known, check| known.ids.extend(check.ids),
    );

    lines
        .iter()
        .map(|check| {
            let (subject, ids) = (subject(&check.subjects), check.ids.join(", "));
            wrapped(label, format!("{subject}: {} [{ids}]", check.reason))
        })
        .collect()
}

/// Joins the checks that have one reason and are alike.
fn merged<'a>(
    checks: impl Iterator<Item = Check<'a>>,
    are_alike: fn(&Check<'a>, &Check<'a>) -> bool,
    join: fn(&mut Check<'a>, Check<'a>),
) -> Vec<Check<'a>> {
    let mut all: Vec<Check<'a>> = Vec::new();
    for check in checks {
        let same = all
            .iter_mut()
            .find(|known| known.reason == check.reason && are_alike(known, &check));
        match same {
            Some(known) => join(known, check),
            None => all.push(check),
        }
    }
    all
}

/// Both directions of one test have one name.
fn subject(subjects: &[&str]) -> String {
    let tests: Option<Vec<_>> = subjects.iter().map(|name| name.split_once(", ")).collect();
    match tests.as_deref() {
        Some([(test, "server to client"), (other, "client to server")]) if test == other => {
            format!("{test}, both directions")
        }
        _ => subjects.join("; "),
    }
}
