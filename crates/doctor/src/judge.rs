//! From snapshots to a diagnosis: asks every rule about everything it applies to, resolves contradictions, orders.

use std::collections::BTreeMap;

use linerate_model::finding::{DOCTOR_SCHEMA, Diagnosis, Finding, NotEvaluated, RuledOut, Severity};
use linerate_model::snapshot::Snapshot;

use crate::derive::derive;
use crate::rule::{Firing, Judge, Phase, Rule, Ruling, Stop};
use crate::rules;
use crate::scope::{Host, World};
use crate::slices::{Slice, slices};
use crate::verdict;
use crate::vote;
use crate::window::Window;

/// One host as it was observed.
#[derive(Debug, Clone)]
pub struct Observed {
    /// Its facts. Of several readings, the last.
    pub snapshot: Snapshot,
    /// How its counters grew meanwhile, if they were read more than once. Counters of the other end of a test may be
    /// added to it.
    pub window: Option<Window>,
}

impl Observed {
    /// A host that was read once.
    #[must_use]
    pub const fn once(snapshot: Snapshot) -> Self {
        Self { snapshot, window: None }
    }
}

/// Judges hosts. `only` names the rules to ask; empty means all.
#[must_use]
pub fn diagnose(observed: &[Observed], only: &[String]) -> Diagnosis {
    let slices = slices(observed, &[]);
    diagnose_with(observed, only, &slices)
}

/// Judges hosts as a whole, and again in every slice of the time for the verdict.
pub(crate) fn diagnose_with(observed: &[Observed], only: &[String], slices: &[Slice]) -> Diagnosis {
    let (answers, verdict) = judged(observed, only, verdict::verdict);
    let votes = slices.iter().filter_map(|slice| {
        let (_, verdict) = judged(&slice.observed, only, verdict::of_slice);
        Some((slice.seconds, verdict?))
    });
    let watched = observed.iter().any(|one| one.window.is_some());
    Diagnosis {
        schema: DOCTOR_SCHEMA.to_owned(),
        hosts: observed.iter().map(|one| one.snapshot.host.clone()).collect(),
        verdict: vote::decide(verdict, votes.collect(), watched),
        findings: answers.findings.into_iter().map(|(_, finding)| finding).collect(),
        ruled_out: answers.ruled_out,
        not_evaluated: answers.not_evaluated,
        loss: Vec::new(),
        differences: None,
        comparison: None,
        unread: Vec::new(),
    }
}

/// The answers of all rules, and what `verdict` makes of them.
fn judged<T>(
    observed: &[Observed],
    only: &[String],
    verdict: impl FnOnce(&World<'_>, &[(Phase, Finding)]) -> T,
) -> (Answers, T) {
    let snapshots: Vec<Snapshot> = observed.iter().map(|one| derive(one.snapshot.clone())).collect();
    let windows: Vec<Option<&Window>> = observed.iter().map(|one| one.window.as_ref()).collect();
    let world = world(&snapshots, &windows);
    let mut answers = Answers::default();
    for rule in rules::all().filter(|rule| only.is_empty() || only.iter().any(|id| id.eq_ignore_ascii_case(rule.id))) {
        for (subject, ruling) in ask(rule, &world) {
            answers.add(rule, subject, ruling);
        }
    }
    answers.resolve(&world);
    let verdict = verdict(&world, &answers.findings);
    (answers, verdict)
}

/// Joins snapshots that were derived already.
pub(crate) fn world<'a>(snapshots: &'a [Snapshot], windows: &[Option<&'a Window>]) -> World<'a> {
    let other = |index: usize| (snapshots.len() == 2).then(|| &snapshots[1 - index]);
    let host = |(index, snapshot)| Host {
        snapshot,
        window: windows.get(index).copied().flatten(),
        other: other(index),
    };
    World {
        hosts: snapshots.iter().enumerate().map(host).collect(),
    }
}

fn ask(rule: &Rule, world: &World<'_>) -> Vec<(String, Ruling)> {
    match rule.judge {
        Judge::Nic(judge) => world.nics().map(|nic| (nic.subject(), judge(&nic))).collect(),
        Judge::Host(judge) => world
            .hosts
            .iter()
            .map(|host| (host.name().to_owned(), judge(host)))
            .collect(),
        Judge::Run(judge) => {
            let runs = world.runs();
            runs.map(|run| (format!("{} {}", run.host.name(), run.label()), judge(&run)))
                .collect()
        }
        Judge::World(judge) => judge(world),
    }
}

/// Findings that explain another one away: on the same host, and flow control anywhere.
const EXPLAINS: [(&str, &str); 10] = [
    // A step in speed, or pause frames, lose and delay packets as a policer does.
    ("LNK-03", "PATH-01"),
    ("PAU-03", "PATH-01"),
    // The queue in front of this host's own shaper grows and drops.
    ("QD-01", "PATH-02"),
    ("QD-01", "QD-02"),
    // A network somebody emulates is what it was told to be.
    ("QD-03", "PATH-01"),
    ("QD-03", "PATH-02"),
    ("QD-03", "PATH-06"),
    // Who waits for a processor has nothing to send.
    ("TOOL-03", "APP-01"),
    ("TOOL-03", "WIN-06"),
    // Nothing can be switched on that the host does not offer.
    ("VIRT-01", "OFF-01"),
];

/// Subjects begin with the host.
fn host_of(finding: &Finding) -> &str {
    finding.subject.split(' ').next().unwrap_or_default()
}

#[derive(Debug, Default)]
struct Answers {
    findings: Vec<(Phase, Finding)>,
    ruled_out: Vec<RuledOut>,
    not_evaluated: Vec<NotEvaluated>,
}

impl Answers {
    fn add(&mut self, rule: &Rule, subject: String, ruling: Ruling) {
        let id = rule.id.to_owned();
        match ruling {
            Ok(firing) => self.findings.push((rule.phase, finding(rule, subject, firing))),
            Err(Stop::Clear(reason)) => self.ruled_out.push(RuledOut { id, subject, reason }),
            Err(Stop::Unknown(unknown)) => {
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

    fn resolve(&mut self, world: &World<'_>) {
        self.suppress();
        self.demote_behind_line_rate(world);
        self.hold_back_remedies();
        self.findings.sort_by(|(left_phase, left), (right_phase, right)| {
            let strength = |finding: &Finding| (finding.severity, finding.confidence);
            strength(right).cmp(&strength(left)).then(left_phase.cmp(right_phase))
        });
    }

    /// What another finding explains is no finding of its own.
    fn suppress(&mut self) {
        for (cause, explained) in EXPLAINS {
            let causes = self.findings.iter().filter(|(_, finding)| finding.id == cause);
            let hosts: Vec<String> = causes.map(|(_, cause)| host_of(cause).to_owned()).collect();
            let is_explained = |(_, finding): &(Phase, Finding)| {
                let here = hosts.iter().any(|host| host == host_of(finding));
                finding.id == explained
                    && !hosts.is_empty()
                    && (here || cause.starts_with("PAU") || cause.starts_with("LNK"))
            };
            let findings = std::mem::take(&mut self.findings);
            let (gone, kept): (Vec<_>, Vec<_>) = findings.into_iter().partition(is_explained);
            self.findings = kept;
            self.ruled_out.extend(gone.into_iter().map(|(_, finding)| RuledOut {
                id: finding.id,
                subject: finding.subject,
                reason: format!("explained by {cause}"),
            }));
        }
    }

    /// Where every test reached line rate, nothing holds throughput back.
    fn demote_behind_line_rate(&mut self, world: &World<'_>) {
        let full: BTreeMap<&str, usize> =
            self.findings
                .iter()
                .filter(|(_, f)| f.id == "TOP-01")
                .fold(BTreeMap::new(), |mut map, (_, f)| {
                    *map.entry(f.subject.split(' ').next().unwrap_or_default()).or_default() += 1;
                    map
                });
        let all_full: Vec<String> = world
            .hosts
            .iter()
            .filter(|host| {
                let runs = host.runs().filter(|run| run.goodput_bps().is_ok()).count();
                runs > 0 && full.get(host.name()).copied().unwrap_or(0) >= runs
            })
            .map(|host| host.name().to_owned())
            .collect();
        for (phase, finding) in &mut self.findings {
            let throughput = (Phase::Link..=Phase::Network).contains(phase) && finding.severity != Severity::Blocker;
            if throughput && all_full.iter().any(|host| finding.subject.starts_with(host.as_str())) {
                finding.severity = Severity::Info;
            }
        }
    }

    /// A remedy whose input an earlier layer changes is not printed: first repair the link, then measure windows.
    fn hold_back_remedies(&mut self) {
        let broken = self
            .findings
            .iter()
            .filter(|(phase, f)| *phase <= Phase::Link && f.severity >= Severity::High);
        let Some((first, cause)) = broken
            .min_by_key(|(phase, _)| *phase)
            .map(|(phase, f)| (*phase, f.id.clone()))
        else {
            return;
        };
        for (phase, finding) in &mut self.findings {
            if *phase > first && matches!(phase, Phase::Window | Phase::Network) {
                finding.remedy.clear();
                finding.undo.clear();
                finding.retest_after = Some(cause.clone());
            }
        }
    }
}

fn finding(rule: &Rule, subject: String, firing: Firing) -> Finding {
    let needs = if firing.remedy.is_empty() {
        Vec::new()
    } else {
        firing.needs
    };
    Finding {
        id: rule.id.to_owned(),
        severity: firing.severity.unwrap_or(rule.severity),
        confidence: firing.cap.map_or(rule.confidence, |cap| cap.min(rule.confidence)),
        subject,
        title: rule.title.to_owned(),
        evidence: firing.evidence,
        explanation: rule.explanation.to_owned(),
        remedy: firing.remedy,
        advice: firing.advice,
        undo: firing.undo,
        persist: firing.persist,
        needs,
        reference: rule.reference.to_owned(),
        retest_after: None,
    }
}

/// Adds one more answer to a finished diagnosis.
pub(crate) fn append(diagnosis: &mut Diagnosis, rule: &Rule, subject: String, ruling: Ruling) {
    let mut answers = Answers::default();
    answers.add(rule, subject, ruling);
    diagnosis
        .findings
        .extend(answers.findings.into_iter().map(|(_, finding)| finding));
    diagnosis.ruled_out.append(&mut answers.ruled_out);
    diagnosis.not_evaluated.append(&mut answers.not_evaluated);
    diagnosis
        .findings
        .sort_by_key(|finding| std::cmp::Reverse((finding.severity, finding.confidence)));
}
