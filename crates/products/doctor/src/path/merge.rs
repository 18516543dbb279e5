//! Several diagnoses of the same hosts as one.

use std::cmp::Reverse;

use linerate_model::finding::{Diagnosis, Finding, KernelDrop, NotEvaluated, RuledOut, Verdict};

use crate::catalogue;

/// Joins diagnoses. A rule that found something about a subject in any of them has found it, the
/// strongest finding counts; one that was ruled out in any and found nothing in the others is ruled
/// out. The verdict is left empty.
pub(super) fn merged<'a>(parts: impl Iterator<Item = &'a Diagnosis>) -> Diagnosis {
    let mut all = Diagnosis::new(Verdict::default());
    for part in parts {
        all.hosts.extend(
            part.hosts
                .iter()
                .filter(|host| !all.hosts.contains(host))
                .cloned()
                .collect::<Vec<_>>(),
        );
        part.findings
            .iter()
            .for_each(|finding| add_finding(&mut all.findings, finding));
        part.ruled_out
            .iter()
            .for_each(|rule| add_ruled_out(&mut all.ruled_out, rule));
        part.not_evaluated
            .iter()
            .for_each(|rule| add_not_evaluated(&mut all.not_evaluated, rule));
        all.loss.extend(part.loss.iter().cloned());
        part.drops
            .iter()
            .for_each(|drop| add_drop(&mut all.drops, drop));
        // That of the last load, which mostly is the one in both directions.
        if !part.work.is_empty() {
            all.work.clone_from(&part.work);
        }

        if all.placement.is_empty() {
            all.placement.clone_from(&part.placement);
        }
    }

    let Diagnosis {
        findings,
        ruled_out,
        not_evaluated,
        ..
    } = &mut all;
    ruled_out.retain(|rule| {
        !findings
            .iter()
            .any(|found| found.id == rule.id && found.subject == rule.subject)
    });
    not_evaluated.retain(|rule| {
        let is_same = |id: &String, subject: &String| *id == rule.id && *subject == rule.subject;
        !findings
            .iter()
            .any(|found| is_same(&found.id, &found.subject))
            && !ruled_out.iter().any(|out| is_same(&out.id, &out.subject))
    });

    let order = |id: &str| catalogue().position(|rule| rule.id == id);
    findings.sort_by_key(|found| {
        (
            Reverse((found.severity, found.confidence)),
            order(&found.id),
        )
    });
    ruled_out.sort_by_key(|rule| order(&rule.id));
    not_evaluated.sort_by_key(|rule| order(&rule.id));

    all
}

/// Packets of all phases together; the errors of estimates add up at most.
fn add_drop(all: &mut Vec<KernelDrop>, drop: &KernelDrop) {
    let known = all
        .iter_mut()
        .find(|known| known.host == drop.host && known.key() == drop.key());
    match known {
        Some(known) => {
            known.packets = known.packets.saturating_add(drop.packets);
            known.error = known
                .error
                .into_iter()
                .chain(drop.error)
                .reduce(u64::saturating_add);
        }
        None => all.push(drop.clone()),
    }
}

fn add_finding(all: &mut Vec<Finding>, finding: &Finding) {
    let strength = |finding: &Finding| (finding.severity, finding.confidence);
    match all
        .iter_mut()
        .find(|known| known.id == finding.id && known.subject == finding.subject)
    {
        Some(known) if strength(finding) > strength(known) => *known = finding.clone(),
        Some(_) => {}
        None => all.push(finding.clone()),
    }
}

/// One that was checked says more than one that does not apply.
fn add_ruled_out(all: &mut Vec<RuledOut>, rule: &RuledOut) {
    match all
        .iter_mut()
        .find(|known| known.id == rule.id && known.subject == rule.subject)
    {
        Some(known) if known.inapplicable.is_some() && rule.inapplicable.is_none() => {
            *known = rule.clone();
        }
        Some(_) => {}
        None => all.push(rule.clone()),
    }
}

fn add_not_evaluated(all: &mut Vec<NotEvaluated>, rule: &NotEvaluated) {
    if !all
        .iter()
        .any(|known| known.id == rule.id && known.subject == rule.subject)
    {
        all.push(rule.clone());
    }
}
