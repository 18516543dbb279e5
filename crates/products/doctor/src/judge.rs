//! From snapshots to a diagnosis: applies every rule, resolves contradictions, sorts.

use linerate_model::finding::{
    Confidence, Diagnosis, Finding, Inapplicable, NotEvaluated, RuledOut, Severity, Verdict,
};
use linerate_model::snapshot::Snapshot;

use crate::derive::derive;
use crate::limit::{self, Limit};
use crate::observed::Observed;
use crate::period::Period;
use crate::placement::placements;
use crate::read_tests::read_tests;
use crate::rule::{Judge, Layer, Rule};
use crate::ruling::{Match, NoMatch, Ruling};
use crate::scope::{Host, Scope};
use crate::slices::{Slice, slices};
use crate::{drops, rules, verdict, vote, work};

/// Diagnoses hosts. `only` names the rules to apply; empty means all.
pub fn diagnose(observed: &[Observed], only: &[String]) -> Diagnosis {
    let slices = slices(observed, &[]);
    diagnose_with(observed, only, &slices)
}

/// Diagnoses hosts as a whole, and again in every slice of the time for the verdict.
pub(crate) fn diagnose_with(observed: &[Observed], only: &[String], slices: &[Slice]) -> Diagnosis {
    let mut votes: Vec<_> = slices
        .iter()
        .filter_map(|slice| {
            let (_, verdict) = judged(&slice.observed, only, verdict::of_slice);
            Some((slice.seconds, verdict?))
        })
        .collect();
    name_path(&mut votes, observed, only);
    name_target(&mut votes, observed, only);

    let mut observed = observed.to_vec();
    // Rules read the limit as a fact of the run, so that the verdict names a finding and no rule
    // contradicts it.
    if let Some(name) = vote::winner(&votes) {
        observed
            .iter_mut()
            .for_each(|one| crate::slices::conclude(&mut one.snapshot, &name));
    }

    let observed = observed.as_slice();
    let (outcomes, (verdict, placement, tests, is_silent)) =
        judged(observed, only, |scope, findings| {
            (
                verdict::verdict(scope, findings),
                placements(scope),
                read_tests(scope),
                is_silent(scope),
            )
        });

    let is_watched = |one: &Observed| {
        one.period
            .as_ref()
            .is_some_and(|period| !period.is_around_test)
    };
    // A test that moved nothing has no intervals to vote, and more of them would show no more.
    let watched = observed.iter().any(is_watched) && !is_silent;
    let mut diagnosis = Diagnosis {
        hosts: observed
            .iter()
            .map(|one| one.snapshot.host.clone())
            .collect(),
        findings: outcomes
            .findings
            .into_iter()
            .map(|(_, finding)| finding)
            .collect(),
        ruled_out: outcomes.ruled_out,
        not_evaluated: outcomes.not_evaluated,
        placement,
        tests,
        drops: drops::of_hosts(observed),
        work: work::of_hosts(observed),
        work_unknown: work::unwatched(observed),
        ..Diagnosis::new(vote::decide(verdict, &votes, watched))
    };

    work::explain(&mut diagnosis);
    diagnosis
}

/// Gives all slices that the path limited the name that the whole load shows.
fn name_path(votes: &mut [(f64, Verdict)], observed: &[Observed], only: &[String]) {
    let is_path = |vote: &Verdict| [limit::PATH, limit::PATH_RATE].contains(&vote.verdict.as_str());
    if !votes.iter().any(|(_, vote)| is_path(vote)) {
        return;
    }

    let (_, named) = judged(observed, only, |scope, _| {
        verdict::path_of_examination(scope)
    });
    let Some(named) = named else { return };

    for (_, vote) in votes.iter_mut().filter(|(_, vote)| is_path(vote)) {
        // The slices decide how certain the limit is, the whole load only names it.
        let confidence = vote.confidence;
        *vote = named.clone();
        vote.confidence = confidence;
    }
}

/// A load that reaches its target as a whole is limited by it, also in seconds that were late and
/// made up for later.
fn name_target(votes: &mut [(f64, Verdict)], observed: &[Observed], only: &[String]) {
    let (_, reached) = judged(observed, only, |scope, _| {
        verdict::target_of_examination(scope)
    });
    let Some(reached) = reached else { return };
    let is_eliminated =
        |vote: &Verdict| Limit::of(&vote.verdict).is_some_and(|limit| !limit.is_certain);
    for (_, vote) in votes.iter_mut().filter(|(_, vote)| is_eliminated(vote)) {
        *vote = reached.clone();
    }
}

/// True if there were tests, and none of them moved a byte.
fn is_silent(scope: &Scope<'_>) -> bool {
    scope.runs().next().is_some() && scope.runs().all(|run| run.moved_nothing())
}

/// The outcomes of all rules, and `verdict` of them.
fn judged<T>(
    observed: &[Observed],
    only: &[String],
    verdict: impl FnOnce(&Scope<'_>, &[(Layer, Finding)]) -> T,
) -> (Outcomes, T) {
    let is_wanted =
        |id: &str| only.is_empty() || only.iter().any(|wanted| wanted.eq_ignore_ascii_case(id));

    with_derived(observed, |scope| {
        let mut outcomes = Outcomes::default();
        for (layer, rule) in rules::all().filter(|(_, rule)| is_wanted(rule.id)) {
            for (subject, ruling) in apply(rule, scope) {
                outcomes.add(layer, rule, subject, ruling);
            }
        }

        outcomes.resolve(scope);
        let verdict = verdict(scope, &outcomes.findings);
        (outcomes, verdict)
    })
}

/// The result of `judge` on hosts whose snapshots have the derived facts as well.
pub(crate) fn with_derived<T>(observed: &[Observed], judge: impl FnOnce(&Scope<'_>) -> T) -> T {
    let derived = observed.iter().map(|one| derive(one.snapshot.clone()));
    let snapshots: Vec<Snapshot> = derived.collect();
    let periods: Vec<Option<&Period>> = observed.iter().map(|one| one.period.as_ref()).collect();

    judge(&scope(&snapshots, &periods))
}

/// Joins snapshots that were derived already.
pub(crate) fn scope<'a>(snapshots: &'a [Snapshot], periods: &[Option<&'a Period>]) -> Scope<'a> {
    // Of more than two hosts the other end is not determined.
    let other = |index: usize| (snapshots.len() == 2).then(|| &snapshots[1 - index]);
    let host = |(index, snapshot)| Host {
        snapshot,
        period: periods.get(index).copied().flatten(),
        other: other(index),
    };
    Scope {
        hosts: snapshots.iter().enumerate().map(host).collect(),
    }
}

fn apply(rule: &Rule, scope: &Scope<'_>) -> Vec<(String, Ruling)> {
    match rule.judge {
        Judge::Nic(judge) => scope.of_nics(judge).collect(),
        Judge::Host(judge) => scope
            .hosts
            .iter()
            .map(|host| (host.name().to_owned(), judge(host)))
            .collect(),
        Judge::Run(judge) => scope
            .runs()
            .map(|run| (run.subject(), judge(&run)))
            .collect(),
        Judge::Scope(judge) => judge(scope),
    }
}

/// Findings that explain another one away: on the same host, and flow control anywhere.
const EXPLAINS: [(&str, &str); 16] = [
    // A step in speed, or pause frames, lose and delay packets as a policer does.
    ("LNK-03", "PATH-01"),
    ("LNK-03", "PATH-06"),
    ("PAU-03", "PATH-01"),
    ("LNK-03", "PATH-15"),
    ("PAU-01", "PATH-15"),
    // The queue of this host's own shaper grows and drops.
    ("QD-01", "PATH-02"),
    ("QD-01", "QD-02"),
    // The same queue, with its direction and its size.
    ("LAT-02", "PATH-02"),
    // An emulated network behaves as configured.
    ("QD-03", "PATH-01"),
    ("QD-03", "PATH-02"),
    ("QD-03", "PATH-06"),
    // A sender that waits for a CPU has nothing to send.
    ("TOOL-03", "APP-01"),
    ("TOOL-03", "WIN-06"),
    // Fragments that do not arrive are the loss.
    ("UDP-03", "PATH-11"),
    // Nothing can be switched on that the host does not offer.
    ("VIRT-01", "OFF-01"),
    // The same drops, with the limit that they exceed.
    ("QD-07", "QD-02"),
];

/// Findings about what lowers the rate of the link: they matter because it is reached.
const LOWERS_LINE_RATE: [&str; 1] = ["LNK-01"];

/// Subjects begin with the host.
pub(crate) fn host_of(finding: &Finding) -> &str {
    finding.subject.split(' ').next().unwrap_or_default()
}

#[derive(Debug, Default)]
struct Outcomes {
    findings: Vec<(Layer, Finding)>,
    ruled_out: Vec<RuledOut>,
    not_evaluated: Vec<NotEvaluated>,
}

impl Outcomes {
    fn add(&mut self, layer: Layer, rule: &Rule, subject: String, ruling: Ruling) {
        let id = rule.id.to_owned();
        match ruling {
            Ok(matched) => self.findings.push((layer, finding(rule, subject, matched))),
            Err(NoMatch::Clear(reason)) => self.rule_out(id, subject, reason, None),
            Err(NoMatch::NotApplicable(to, reason)) => {
                self.rule_out(id, subject, reason, Some(to));
            }
            Err(NoMatch::Unknown(unknown)) => {
                let (missing, reasons) = unknown.missing.into_iter().unzip();
                self.not_evaluated.push(NotEvaluated {
                    id,
                    subject,
                    missing,
                    reasons,
                    suspicion: unknown.suspicion,
                });
            }
        }
    }

    fn rule_out(
        &mut self,
        id: String,
        subject: String,
        reason: String,
        inapplicable: Option<Inapplicable>,
    ) {
        self.ruled_out.push(RuledOut {
            id,
            subject,
            reason,
            inapplicable,
        });
    }

    fn resolve(&mut self, scope: &Scope<'_>) {
        self.suppress();
        self.demote_behind_line_rate(scope);
        // After the demotion: a link whose line rate was reached is not broken.
        self.hold_back_remedies();
        self.findings
            .sort_by(|(left_phase, left), (right_phase, right)| {
                let strength = |finding: &Finding| (finding.severity, finding.confidence);
                strength(right)
                    .cmp(&strength(left))
                    .then(left_phase.cmp(right_phase))
            });
    }

    /// Removes findings that another finding explains.
    fn suppress(&mut self) {
        for (cause, explained) in EXPLAINS {
            let causes = self
                .findings
                .iter()
                .filter(|(_, finding)| finding.id == cause);
            let hosts: Vec<String> = causes.map(|(_, cause)| host_of(cause).to_owned()).collect();
            let is_explained = |(_, finding): &(Layer, Finding)| {
                let here = hosts.iter().any(|host| host == host_of(finding));
                finding.id == explained
                    && !hosts.is_empty()
                    // Pause frames and a step in speed at one end lower the rate at the other.
                    && (here || cause.starts_with("PAU") || cause.starts_with("LNK"))
            };

            let findings = std::mem::take(&mut self.findings);
            let (gone, kept): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_explained);
            self.findings = kept;
            for (_, Finding { id, subject, .. }) in gone {
                let reason = format!("explained by {cause}");
                self.rule_out(id, subject, reason, Some(Inapplicable::Explained));
            }
        }
    }

    /// Where every test reached line rate, nothing holds throughput back.
    fn demote_behind_line_rate(&mut self, scope: &Scope<'_>) {
        let is_full = |host: &&Host<'_>| {
            let runs = host.runs().filter(|run| run.goodput_bps().is_ok()).count();
            // Where the speed of the link was concluded from the rate, nothing is known to be full.
            let is_line_rate = |finding: &Finding| {
                finding.id == "TOP-01"
                    && finding.confidence == Confidence::High
                    && host_of(finding) == host.name()
            };

            runs > 0
                && self
                    .findings
                    .iter()
                    .filter(|(_, finding)| is_line_rate(finding))
                    .count()
                    >= runs
        };
        let full: Vec<&str> = scope.hosts.iter().filter(is_full).map(Host::name).collect();

        for (layer, finding) in &mut self.findings {
            let throughput = (Layer::Link..=Layer::Network).contains(layer)
                && finding.severity != Severity::Blocker
                && !LOWERS_LINE_RATE.contains(&finding.id.as_str());
            if throughput && full.contains(&host_of(finding)) {
                finding.severity = Severity::Info;
            }
        }
    }

    /// A remedy whose input an earlier layer changes is not printed: first repair the link, then
    /// measure windows.
    fn hold_back_remedies(&mut self) {
        let broken = self
            .findings
            .iter()
            .filter(|(layer, f)| *layer <= Layer::Link && f.severity >= Severity::High);
        let Some((first, cause)) = broken
            .min_by_key(|(layer, _)| *layer)
            .map(|(layer, f)| (*layer, f.id.clone()))
        else {
            return;
        };

        for (layer, finding) in &mut self.findings {
            if *layer > first && matches!(layer, Layer::Window | Layer::Network | Layer::Latency) {
                finding.remedy.clear();
                finding.undo.clear();
                finding.retest_after = Some(cause.clone());
            }
        }
    }
}

fn finding(rule: &Rule, subject: String, matched: Match) -> Finding {
    let has_commands = !matched.remedy.is_empty();
    Finding {
        id: rule.id.to_owned(),
        severity: matched.severity.unwrap_or(rule.severity),
        // A match can be less certain than its rule, and never more.
        confidence: matched
            .cap
            .map_or(rule.confidence, |cap| cap.min(rule.confidence)),
        subject,
        title: rule.title.to_owned(),
        evidence: matched.evidence,
        explanation: rule.explanation.to_owned(),
        remedy: matched.remedy,
        advice: matched.advice,
        undo: matched.undo,
        // Host and requirements belong to the commands; advice alone has none.
        remedy_host: matched.remedy_host.filter(|_| has_commands),
        persist: matched.persist,
        needs: if has_commands {
            matched.needs
        } else {
            Vec::new()
        },
        reference: rule.reference.to_owned(),
        retest_after: None,
    }
}

/// Adds one more outcome to a finished diagnosis.
pub(crate) fn append(
    diagnosis: &mut Diagnosis,
    (layer, rule): (Layer, &Rule),
    subject: String,
    ruling: Ruling,
) {
    let mut outcomes = Outcomes::default();
    outcomes.add(layer, rule, subject, ruling);
    diagnosis
        .findings
        .extend(outcomes.findings.into_iter().map(|(_, finding)| finding));
    diagnosis.ruled_out.append(&mut outcomes.ruled_out);
    diagnosis.not_evaluated.append(&mut outcomes.not_evaluated);
    diagnosis
        .findings
        .sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.confidence)));
}
