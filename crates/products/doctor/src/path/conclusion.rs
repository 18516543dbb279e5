//! One verdict over the phases of an examination.

use linerate_model::finding::{Finding, LimitPeriod, Severity, Verdict};
use linerate_model::path::PhaseKind;

use crate::limit::{self, PATH_RATE};
use crate::verdict::{NO_DATA, NO_LOAD, SLOW_START, UNKNOWN};

/// Concludes from the verdict of every phase. Each direction counts with its own phase, and with
/// that of both only where it has no other. Directions of one limit are one sentence; otherwise
/// each has its part, and the verdict is named after the limit that explains first.
pub(super) fn conclude(
    phases: &[(PhaseKind, Verdict)],
    findings: &[Finding],
    has_places: bool,
) -> Verdict {
    let alone: Vec<_> = phases
        .iter()
        .filter(|(kind, _)| *kind != PhaseKind::Both)
        .collect();
    let both = phases.iter().find(|(kind, _)| *kind == PhaseKind::Both);
    let mut ranked: Vec<_> = if alone.is_empty() {
        both.into_iter().collect()
    } else {
        alone
    };
    ranked.sort_by_key(|(_, verdict)| {
        (
            rank(&verdict.verdict),
            std::cmp::Reverse(verdict.confidence),
        )
    });

    let Some(((kind, first), others)) =
        ranked.split_first().map(|(first, others)| (*first, others))
    else {
        let sentence = "no load was measured: only settings and totals were checked".to_owned();
        let without = Verdict {
            verdict: NO_LOAD.to_owned(),
            sentence,
            ..Verdict::default()
        };
        return without;
    };
    let mut verdict = first.clone();

    add_others(&mut verdict, *kind, others);

    let concurrent = both.filter(|(_, both)| {
        // Verdicts from this rank on name no limit.
        rank(&both.verdict) < limit::ALL.len()
            && !ranked
                .iter()
                .any(|(_, alone)| alone.verdict == both.verdict)
    });
    if let Some((_, both)) = concurrent {
        verdict.runner_up = Some(format!("{} (both directions at once)", both.verdict));
        verdict.what_if = Some(format!("both directions at once: {}", both.sentence));
    }

    // A place has the delay of its queue.
    if verdict.verdict == PATH_RATE && !has_places {
        verdict.sentence = with_queues(&verdict.sentence, findings);
    }

    verdict.timeline = timeline(phases);
    verdict.share_of_time_percent = share_percent(&verdict.timeline, &verdict.verdict);
    verdict
}

/// What the other directions say beside the first one.
fn add_others(verdict: &mut Verdict, kind: PhaseKind, others: &[&(PhaseKind, Verdict)]) {
    let is_other = |other: &&&(PhaseKind, Verdict)| other.1.verdict != verdict.verdict;
    if let Some((other, second)) = others.iter().find(is_other) {
        // What the other direction shows is the likely cause of one in which nothing arrived.
        let is_silent = second.sentence.starts_with(NO_DATA);
        let text = if is_silent {
            "no byte arrived"
        } else {
            parted(&second.sentence).0
        };
        verdict.sentence = of_each(*other, text, kind, &verdict.sentence);
        verdict.runner_up = Some(format!("{} ({})", second.verdict, other.name()));
        verdict.what_if = None;
        return;
    }

    // A limit of both directions is as certain as in the less certain one.
    let confidence = others.iter().map(|(_, other)| other.confidence);
    verdict.confidence = confidence.fold(verdict.confidence, Ord::min);
    // The narrowest hop of each direction may have a place of its own.
    let first = parted(&verdict.sentence).0;
    let elsewhere = others
        .iter()
        .find(|(_, other)| other.verdict == PATH_RATE && parted(&other.sentence).0 != first);
    if let Some((other, second)) = elsewhere {
        verdict.sentence = of_each(*other, parted(&second.sentence).0, kind, &verdict.sentence);
    }
}

/// `up: the link is full; down: the path is the limit`
fn of_each(other: PhaseKind, text: &str, kind: PhaseKind, sentence: &str) -> String {
    format!("{}: {text}; {}: {sentence}", other.name(), kind.name())
}

/// Place in the order in which limits explain; those that name none are last.
fn rank(name: &str) -> usize {
    let known = limit::ALL.iter().position(|limit| limit.name == name);
    known.unwrap_or(match name {
        UNKNOWN => limit::ALL.len() + 1,
        NO_LOAD => limit::ALL.len() + 2,
        _ => limit::ALL.len(),
    })
}

/// The sentence and the finding that it names at its end.
pub(super) fn parted(sentence: &str) -> (&str, &str) {
    sentence
        .rfind(" (")
        .filter(|_| sentence.ends_with(')'))
        .map_or((sentence, ""), |at| sentence.split_at(at))
}

/// Adds how long the queues of the path are, where that matters.
fn with_queues(sentence: &str, findings: &[Finding]) -> String {
    let long = findings
        .iter()
        .filter(|finding| finding.id == "LAT-02" && finding.severity >= Severity::Medium);
    let of_one_direction = long.filter(|finding| !finding.subject.ends_with("both"));
    let mut queues: Vec<&str> = of_one_direction
        .filter_map(|finding| finding.evidence.iter().find(|seen| seen.fact == "queue"))
        .map(|seen| seen.value.as_str())
        .collect();
    queues.sort_unstable();
    queues.dedup();

    if queues.is_empty() {
        return sentence.to_owned();
    }

    let (text, finding) = parted(sentence);
    format!(
        "{text}, and its queues hold {}{finding}",
        queues.join(" and ")
    )
}

fn timeline(phases: &[(PhaseKind, Verdict)]) -> Vec<LimitPeriod> {
    let of_load = |(kind, verdict): &(PhaseKind, Verdict)| {
        let mut periods = verdict.timeline.clone();
        periods
            .iter_mut()
            .for_each(|period| period.load = Some(kind.name().to_owned()));
        periods
    };
    phases.iter().flat_map(of_load).collect()
}

/// Part of the time without slow start in which this was the limit; `None` without a timeline.
fn share_percent(timeline: &[LimitPeriod], name: &str) -> Option<u32> {
    let length = |wanted: &dyn Fn(&str) -> bool| {
        let periods = timeline.iter().filter(|period| wanted(&period.verdict));
        periods.fold(0_u64, |sum, period| sum.saturating_add(period.length_ms))
    };
    let all = length(&|verdict| verdict != SLOW_START);
    let own = length(&|verdict| verdict == name);

    // Half of the divisor is added to round to the nearest per cent.
    u32::try_from(
        own.saturating_mul(100)
            .saturating_add(all / 2)
            .checked_div(all)?,
    )
    .ok()
}

#[cfg(test)]
mod tests {
    use linerate_model::finding::Confidence;

    use super::*;

    fn verdict(name: &str, confidence: Confidence, length_ms: u64) -> Verdict {
        Verdict {
            verdict: name.to_owned(),
            sentence: format!("about {name} (X-01 on x)"),
            confidence,
            timeline: vec![LimitPeriod {
                load: None,
                verdict: name.to_owned(),
                length_ms,
            }],
            ..Verdict::default()
        }
    }

    fn concluded(phases: &[(PhaseKind, &str)]) -> (String, String, Option<String>, Option<u32>) {
        let phases: Vec<_> = phases
            .iter()
            .map(|(kind, name)| (*kind, verdict(name, Confidence::High, 1000)))
            .collect();
        let Verdict {
            verdict,
            sentence,
            runner_up,
            share_of_time_percent,
            ..
        } = conclude(&phases, &[], false);
        (verdict, sentence, runner_up, share_of_time_percent)
    }

    #[test]
    fn directions_agree_or_have_a_part_of_the_sentence_each() {
        use PhaseKind::{Both, Down, Up};

        let text = |name: &str| format!("about {name} (X-01 on x)");
        for (phases, name, sentence, runner_up, share) in [
            (
                &[(Down, "path-rate"), (Up, "path-rate")][..],
                "path-rate",
                text("path-rate"),
                None,
                100,
            ),
            (
                &[(Down, "path"), (Up, "configured-rate")],
                "configured-rate",
                format!("down: about path; up: {}", text("configured-rate")),
                Some("path (down)"),
                50,
            ),
            (
                &[(Down, "path"), (Up, UNKNOWN)],
                "path",
                format!("up: about unknown; down: {}", text("path")),
                Some("unknown (up)"),
                50,
            ),
            (
                &[(Down, "path"), (Up, "path"), (Both, "host-cpu")],
                "path",
                text("path"),
                Some("host-cpu (both directions at once)"),
                67,
            ),
            (
                &[(Down, "path"), (Both, UNKNOWN)],
                "path",
                text("path"),
                None,
                50,
            ),
            (&[(Both, "path")], "path", text("path"), None, 100),
        ] {
            let expected = (
                name.to_owned(),
                sentence,
                runner_up.map(str::to_owned),
                Some(share),
            );
            assert_eq!(concluded(phases), expected, "{phases:?}");
        }

        assert_eq!(conclude(&[], &[], false).verdict, NO_LOAD);
    }

    #[test]
    fn verdict_is_no_surer_than_the_less_sure_direction() {
        let phases = [
            (PhaseKind::Down, verdict("path", Confidence::High, 1)),
            (PhaseKind::Up, verdict("path", Confidence::Low, 1)),
        ];
        assert_eq!(conclude(&phases, &[], false).confidence, Confidence::Low);
    }
}
