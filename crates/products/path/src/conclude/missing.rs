//! Values that a report lacks, one entry for each.

use std::collections::BTreeMap;

use linerate_model::path::{PhaseKind, PhaseResult, absent};

/// Measures without a value. The first reason for one counts; one of a phase names the phase unless
/// all phases that have the figure lack it for the same reason.
#[derive(Debug, Default)]
pub(super) struct Absent {
    whole: BTreeMap<String, String>,
    by_phase: BTreeMap<String, Vec<(PhaseKind, String)>>,
}

impl Absent {
    /// The report has no such figure.
    pub(super) fn add(&mut self, figure: impl Into<String>, reason: impl Into<String>) {
        self.whole
            .entry(figure.into())
            .or_insert_with(|| reason.into());
    }

    /// A phase has no such figure.
    pub(super) fn add_in(&mut self, kind: PhaseKind, figure: &str, reason: impl Into<String>) {
        let reasons = self.by_phase.entry(figure.to_owned()).or_default();
        let reason = reason.into();
        // The directions of a phase have reasons of their own.
        if !reasons.contains(&(kind, reason.clone())) {
            reasons.push((kind, reason));
        }
    }

    /// Measures and reasons, given the phases that ran.
    pub(super) fn into_reasons(self, phases: &[PhaseResult]) -> BTreeMap<String, String> {
        let mut all = self.whole;
        for (figure, reasons) in self.by_phase {
            let text = || {
                text(
                    &reasons,
                    phases
                        .iter()
                        .map(|phase| phase.spec.kind)
                        .filter(|kind| has(*kind, &figure)),
                )
            };
            let text = text();
            all.entry(figure).or_insert(text);
        }

        all
    }
}

/// Phases of this kind have the figure.
fn has(kind: PhaseKind, figure: &str) -> bool {
    match kind {
        PhaseKind::Down | PhaseKind::Up | PhaseKind::Both => true,
        PhaseKind::Idle => figure == absent::RESPONSIVENESS,
        _ => false,
    }
}

fn text(reasons: &[(PhaseKind, String)], mut expected: impl Iterator<Item = PhaseKind>) -> String {
    let Some((_, first)) = reasons.first() else {
        return String::new();
    };
    let is_one = reasons.iter().all(|(_, reason)| reason == first);
    if is_one && expected.all(|kind| reasons.iter().any(|(lacking, _)| *lacking == kind)) {
        return first.clone();
    }

    let mut parts: Vec<(Vec<&str>, &str)> = Vec::new();
    for (kind, reason) in reasons {
        match parts.iter_mut().find(|(_, known)| known == reason) {
            Some((kinds, _)) => kinds.push(kind.name()),
            None => parts.push((vec![kind.name()], reason)),
        }
    }

    let parts: Vec<String> = parts
        .iter()
        .map(|(kinds, reason)| format!("{}: {reason}", kinds.join(", ")))
        .collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests {
    use PhaseKind::{Both, Down, Idle, Up};

    use super::*;

    #[test]
    fn a_phase_is_named_where_others_have_the_figure() {
        let reason = |kind, text: &str| (kind, text.to_owned());
        for (reasons, ran, expected) in [
            (vec![reason(Down, "few")], vec![Down], "few"),
            (vec![reason(Down, "few")], vec![Down, Up], "down: few"),
            (
                vec![reason(Down, "few"), reason(Up, "few")],
                vec![Down, Up, Both],
                "down, up: few",
            ),
            (
                vec![reason(Down, "few"), reason(Up, "lost")],
                vec![Down, Up],
                "down: few; up: lost",
            ),
        ] {
            assert_eq!(text(&reasons, ran.into_iter()), expected);
        }

        assert!(has(Idle, absent::RESPONSIVENESS) && !has(Idle, absent::IN_BAND));
    }

    #[test]
    fn a_reason_of_the_whole_report_comes_first() {
        let mut lacking = Absent::default();
        lacking.add_in(Down, absent::IN_BAND, "no echo");
        lacking.add(absent::IN_BAND, "one");
        lacking.add(absent::IN_BAND, "two");
        assert_eq!(
            lacking.into_reasons(&[]),
            BTreeMap::from([(absent::IN_BAND.to_owned(), "one".to_owned())])
        );
    }
}
