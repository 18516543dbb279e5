//! Texts of the findings about a fleet.

use linerate_model::finding::{Confidence, Evidence, Finding, Severity};
use linerate_model::from_stored_name;

/// First line of a report without a finding.
pub const NO_FINDING: &str = "no host or pair is an outlier";

/// A finding before it has a subject: the name of a line of `findings.txt`.
#[derive(Clone, Copy)]
pub(super) struct Template(pub &'static str);

pub(super) const HOST: Template = Template("FLT-01");
pub(super) const RECEIVES: Template = Template("FLT-02");
pub(super) const SENDS: Template = Template("FLT-03");
pub(super) const PAIR: Template = Template("FLT-04");
pub(super) const UPLINK: Template = Template("FLT-05");
pub(super) const POISON: Template = Template("FLT-08");
pub(super) const UNFAIR: Template = Template("FLT-09");
pub(super) const QUEUES: Template = Template("FLT-10");
pub(super) const GROUPS: Template = Template("FLT-11");
pub(super) const SHARED_SLOT: Template = Template("FLT-12");
pub(super) const SHARED_PORT: Template = Template("FLT-13");
pub(super) const ASYMMETRY: Template = Template("FLT-14");
pub(super) const CLOCK: Template = Template("FLT-15");
pub(super) const SAME_MACHINE: Template = Template("FLT-16");
pub(super) const PATH_MTU: Template = Template("FLT-17");

impl Template {
    pub(super) fn about(
        self,
        subject: impl Into<String>,
        confidence: Confidence,
        next: impl Into<String>,
    ) -> Finding {
        let lines = include_str!("findings.txt").lines();
        let mut rows = lines.map(|line| line.split(" | "));
        let row = rows.find(|columns| columns.clone().next() == Some(self.0));
        let mut columns = row.into_iter().flatten().map(str::to_owned);
        let mut next_column = || columns.next().unwrap_or_default();

        Finding {
            id: next_column(),
            severity: from_stored_name(&next_column()).unwrap_or(Severity::Medium),
            title: next_column(),
            explanation: next_column(),
            reference: next_column(),
            confidence,
            subject: subject.into(),
            evidence: Vec::new(),
            remedy: Vec::new(),
            advice: Some(next.into()),
            undo: Vec::new(),
            remedy_host: None,
            persist: None,
            needs: Vec::new(),
            retest_after: None,
        }
    }
}

/// Adds statements that a finding rests on.
pub(crate) fn because(
    mut finding: Finding,
    statements: impl IntoIterator<Item = String>,
) -> Finding {
    for statement in statements {
        finding.evidence.push(Evidence::statement(statement));
    }

    finding
}

/// Evidence of a finding on one line.
pub(crate) fn seen(finding: &Finding) -> String {
    let seen: Vec<String> = finding.evidence.iter().map(ToString::to_string).collect();
    seen.join("; ")
}

/// Adds a value and what it was compared with.
pub(super) fn read(mut finding: Finding, fact: &str, value: String, threshold: String) -> Finding {
    finding.evidence.push(Evidence::new(fact, value, threshold));
    finding
}

/// Findings, the most severe first, then the surest; equal ones stay in order.
pub fn ranked(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.confidence)));
    findings
}

/// The first line of a report: the strongest finding. `is_whole`: all cells have a result, so that
/// what was not found is not there.
pub fn headline(findings: &[Finding], is_whole: bool) -> String {
    let Some(first) = findings.first() else {
        return NO_FINDING.to_owned();
    };
    let others = match findings.len() - 1 {
        0 if is_whole => "; nothing else was found".to_owned(),
        0 => String::new(),
        others => format!(", and {others} more findings"),
    };
    format!("{}: {} ({}){others}", first.subject, first.title, first.id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_its_columns() {
        let lines = include_str!("findings.txt").lines();
        for line in lines.filter(|line| !line.starts_with('#')) {
            let columns: Vec<&str> = line.split(" | ").collect();
            let [id, severity, title, explanation, reference] = columns[..] else {
                panic!("{line}");
            };

            let finding = Template(id).about("a host", Confidence::High, "look");
            assert_eq!(Some(finding.severity), from_stored_name(severity));
            let texts = [&finding.title, &finding.explanation, &finding.reference];
            assert_eq!(texts, [title, explanation, reference]);
        }
    }
}
