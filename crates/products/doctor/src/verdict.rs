//! The one sentence at the top: what limits, how sure that is, and what would limit next.

use linerate_model::finding::{Confidence, Finding, Severity, Verdict};

use crate::elimination;
use crate::judge::host_of;
use crate::limit::{self, Limit, limit_sentence};
use crate::rule::Layer;
use crate::rules::{narrowest_hop, socket_took_the_loss};
use crate::ruling::NoMatch;
use crate::scope::{Facts, Host, Run, Scope};

/// There was load, and nothing explains it.
pub(crate) const UNKNOWN: &str = "unknown";
/// There was nothing to explain.
pub(crate) const NO_LOAD: &str = "no-load";

/// A test ran and no byte of it arrived, which is a problem whatever the counters show.
pub(crate) const NO_DATA: &str = "the test moved no data";

/// Bytes per second below which a period is idle.
const IDLE_BYTES_PER_SECOND: f64 = 125_000.0;

pub(crate) fn verdict(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Verdict {
    // A path that drops every large packet leaves the interfaces idle, and its cause is known all
    // the same.
    if let Some(refusal) = refusal(scope).filter(|_| !is_blocked(scope, findings)) {
        let verdict = Verdict {
            verdict: NO_LOAD.to_owned(),
            sentence: summary(findings, &refusal),
            ..Verdict::default()
        };
        return verdict;
    }
    cause(scope, findings)
}

/// Limit in a part of the time; `None` where nothing happened in it.
pub(crate) fn of_slice(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Option<Verdict> {
    let tested = scope.runs().any(|run| run.goodput_bps().is_ok());
    let cause = (tested || !is_idle(scope)).then(|| cause(scope, findings))?;
    // Counters or settings prove these limits. Elimination is for the others, and for loss.
    let is_certain = Limit::of(&cause.verdict).is_some_and(|limit| limit.is_certain)
        || cause.verdict == SLOW_START;
    if is_certain && !scope.runs().any(|run| is_about_loss(&cause, &run)) {
        return Some(cause);
    }

    let eliminated = scope
        .runs()
        .find_map(|run| Some((elimination::limit_of(scope, &run)?, run)));
    let eliminated =
        eliminated.and_then(|(name, run)| Some((more_specific(scope, findings, name, &run)?, run)));
    Some(eliminated.map_or(cause, |(name, run)| {
        if name == limit::CONFIGURED_RATE {
            return limited(name, TARGET_REACHED, Confidence::High, &run.label());
        }

        let confidence = match name {
            // Without counters of the receiver its host cannot be distinguished from the path.
            limit::PATH_OR_RECEIVER => Confidence::Low,
            _ if elimination::are_rivals_measured(scope, &run) => Confidence::High,
            _ => Confidence::Medium,
        };
        limited(name, limit_sentence(name), confidence, &run.label())
    }))
}

/// Limit of the loads of an examination by the path between the hosts, as a whole: a steady rate is
/// that of its narrowest hop. One name for all of the time, since slices of it can lack what shows
/// the hop. `None` for other tests.
pub(crate) fn path_of_examination(scope: &Scope<'_>) -> Option<Verdict> {
    let mut loads = scope.runs().filter(Run::is_examined).peekable();
    let label = loads.peek()?.label();

    let name = if loads.any(|run| narrowest_hop(scope, &run).is_ok()) {
        limit::PATH_RATE
    } else {
        limit::PATH
    };
    Some(limited(
        name,
        limit_sentence(name),
        Confidence::High,
        &label,
    ))
}

/// That the loads of an examination reach the rate that the user set; `None` where one does not.
pub(crate) fn target_of_examination(scope: &Scope<'_>) -> Option<Verdict> {
    let mut loads = scope.runs().filter(Run::is_examined).peekable();
    let label = loads.peek()?.label();
    let is_reached = loads.all(|run| run.reaches_its_target());
    is_reached.then(|| {
        limited(
            limit::CONFIGURED_RATE,
            TARGET_REACHED,
            Confidence::High,
            &label,
        )
    })
}

/// The limit that was found by elimination, or what explains it. `None` for the path of an
/// examination in which facts are missing that could show another limit.
fn more_specific(
    scope: &Scope<'_>,
    findings: &[(Layer, Finding)],
    name: &'static str,
    run: &Run<'_>,
) -> Option<&'static str> {
    match name {
        // Without segmentation offload each packet crosses the stack by itself, which fills the
        // CPU.
        limit::HOST_CPU | limit::SENDER_CPU if strongest(findings, "OFF-01").is_some() => {
            Some(limit::OFFLOAD)
        }
        limit::PATH if run.is_examined() => match narrowest_hop(scope, run) {
            Ok(_) => Some(limit::PATH_RATE),
            Err(NoMatch::Unknown(_)) => None,
            Err(_) => Some(limit::PATH),
        },
        name => Some(name),
    }
}

/// True if the place that lost most datagrams decides instead of this cause: a rate that was
/// reached, or drops of any number.
fn is_about_loss(cause: &Verdict, run: &Run<'_>) -> bool {
    let is_rate = cause.verdict == limit::CONFIGURED_RATE && run.reaches_its_target();
    let is_drops = [limit::SENDER_QUEUE, limit::NIC_QUEUE_RX].contains(&cause.verdict.as_str());
    (is_rate || is_drops) && elimination::place_of_loss(run).is_some()
}

/// The sentence of a rate that the user set.
const TARGET_REACHED: &str = "the target rate is reached";

pub(crate) const SLOW_START: &str = "slow-start";

/// Limit, given that there was load.
fn cause(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Verdict {
    let invalid = findings
        .iter()
        .any(|(_, finding)| finding.severity == Severity::Blocker);
    // A sender of datagrams reaches its rate whatever becomes of them.
    let is_reached = |run: &Run<'_>| {
        run.reaches_its_target()
            && run.datagram_loss().is_none()
            && run
                .limit()
                .is_none_or(|limit| limit == limit::CONFIGURED_RATE)
    };
    if let Some(run) = scope.runs().find(is_reached).filter(|_| !invalid) {
        return limited(
            limit::CONFIGURED_RATE,
            TARGET_REACHED,
            Confidence::High,
            &run.label(),
        );
    }
    if let Some(concluded) = concluded(scope, findings) {
        return concluded;
    }

    let mut found = candidates(scope, findings).into_iter();
    let Some((limit, finding)) = found.next() else {
        return starting(scope)
            .or_else(|| unplaced_loss(findings))
            .unwrap_or_else(|| Verdict {
                verdict: UNKNOWN.to_owned(),
                sentence: "no limit found among what could be checked".to_owned(),
                ..Verdict::default()
            });
    };
    if !limit.holds_in_slow_start
        && let Some(starting) = starting(scope)
    {
        return starting;
    }

    let runner_up = found.next();

    Verdict {
        verdict: limit.name.to_owned(),
        sentence: format!("{} ({} on {})", limit.sentence, finding.id, finding.subject),
        confidence: confidence(scope, limit, finding),
        runner_up: runner_up.map(|(limit, finding)| format!("{} ({})", limit.name, finding.id)),
        what_if: runner_up.map(|(limit, _)| format!("without it: {}", limit.sentence)),
        ..Verdict::default()
    }
}

/// Datagrams that a report lost, on the path or in the receiver.
fn unplaced_loss(findings: &[(Layer, Finding)]) -> Option<Verdict> {
    let (_, finding) = findings
        .iter()
        .find(|(_, finding)| finding.id == "PATH-11")?;
    let name = limit::PATH_OR_RECEIVER;
    let subject = format!("{} on {}", finding.id, finding.subject);

    Some(limited(
        name,
        limit_sentence(name),
        Confidence::Low,
        &subject,
    ))
}

/// Limits with the finding that explains each, the best explanation first: what was measured in the
/// order of the limits, then what totals in a pasted text suggest, then guesses. A guess never
/// outranks a counter.
fn candidates<'a>(
    scope: &Scope<'_>,
    findings: &'a [(Layer, Finding)],
) -> Vec<(&'static Limit, &'a Finding)> {
    let is_pasted = scope.hosts.iter().all(Host::is_pasted);
    let here: Vec<&Finding> = findings
        .iter()
        .map(|(_, finding)| finding)
        .filter(|finding| !is_elsewhere(scope, finding))
        .collect();

    let mut found: Vec<(u8, &'static Limit, &'a Finding)> = Vec::new();
    for limit in limit::ALL.iter() {
        let ranked = |id: &&str| {
            let of_rule = here
                .iter()
                .copied()
                .filter(|finding| finding.id == **id && explains(limit, finding))
                .filter(|finding| !has_other_part(scope, limit, finding));
            of_rule
                .filter_map(|finding| Some((rank(limit, finding, is_pasted)?, finding)))
                .min_by_key(|(rank, _)| *rank)
        };
        let best = limit
            .rules
            .iter()
            .filter_map(ranked)
            .min_by_key(|(rank, _)| *rank);
        found.extend(best.map(|(rank, finding)| (rank, limit, finding)));
    }

    // The sort is stable: limits of one rank keep the order in which they explain.
    found.sort_by_key(|(rank, ..)| *rank);
    found
        .into_iter()
        .map(|(_, limit, finding)| (limit, finding))
        .collect()
}

/// Place of a finding among the candidates; `None` where it explains nothing.
fn rank(limit: &Limit, finding: &Finding, is_pasted: bool) -> Option<u8> {
    let is_total = || {
        finding
            .evidence
            .iter()
            .any(|seen| seen.threshold.starts_with("total since boot"))
    };
    match finding.confidence {
        // The speed of the link was concluded from the rate alone.
        Confidence::Medium if limit.name == limit::LINE_RATE => Some(2),
        Confidence::Medium | Confidence::High => Some(0),
        // Who pastes a text has a problem, which totals since boot may show.
        Confidence::Low if !is_pasted => None,
        Confidence::Low if is_total() => Some(1),
        Confidence::Low => Some(3),
    }
}

/// True if a finding is about an interface that no test used.
fn is_elsewhere(scope: &Scope<'_>, finding: &Finding) -> bool {
    let nic = scope.nics().find(|nic| nic.subject() == finding.subject);
    // The data of a test passes software interfaces on its way, as an ifb with a shaper.
    let Some(nic) = nic.filter(|nic| nic.wired().is_ok()) else {
        return false;
    };
    let mut runs = nic.host.runs().peekable();
    let members = |used: &str| nic.text_is("net.master", used);

    runs.peek().is_some()
        && runs.all(|run| {
            run.nic()
                .is_some_and(|used| used.name != nic.name && !members(used.name))
        })
}

/// True if the limit is about the sender and the host of the finding only receives, or the reverse:
/// acknowledgements that it drops are not the data.
fn has_other_part(scope: &Scope<'_>, limit: &Limit, finding: &Finding) -> bool {
    let Some(part) = limit.part else {
        return false;
    };
    let hosts = scope.hosts.iter();
    let mut runs = hosts
        .filter(|host| host.name() == host_of(finding))
        .flat_map(Host::runs)
        .peekable();

    let receives = part == "receiver";
    runs.peek().is_some() && runs.all(|run| run.receives() == Some(!receives))
}

/// True if a finding explains this of two limits of one rule: a thread that reads too slowly, or
/// interrupt work; loss between the hosts, or one whose place is not known; drops of the receiver's
/// kernel that no other rule counts, as that of a queueing discipline does.
fn explains(limit: &Limit, finding: &Finding) -> bool {
    // CPU-02 matches for the thread or for interrupt work; its first fact shows which.
    let is_softirq = finding
        .evidence
        .first()
        .is_some_and(|seen| seen.fact.ends_with(".softirq"));
    let is_unplaced = !finding
        .evidence
        .iter()
        .any(|seen| seen.fact.contains("lost_in_"));
    let is_of_other = (limit.name == limit::RECEIVER_CPU && finding.id == "CPU-02" && is_softirq)
        || (limit.name == limit::PATH && finding.id == "PATH-11" && is_unplaced)
        || (finding.id == "DROP-01" && finding.severity < Severity::Medium);

    !is_of_other
}

/// A sender that is still finding out what the path carries.
fn starting(scope: &Scope<'_>) -> Option<Verdict> {
    let run = scope.runs().find(|run| run.is("slow_start"))?;
    let sentence = "the sender is in slow start";
    Some(limited(
        SLOW_START,
        sentence,
        Confidence::Medium,
        &run.label(),
    ))
}

/// The limit of most of the time, with the finding that explains it. `None` where that is the path,
/// and a shaper of these hosts has its rate.
fn concluded(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Option<Verdict> {
    let name = scope.runs().find_map(|run| run.limit())?;
    // Parts of a second have more or less than the rate of a shaper; the whole test has it.
    if name == limit::PATH && strongest(findings, "QD-01").is_some() {
        return None;
    }

    let limit = Limit::of(name)?;
    let (_, finding) = limit
        .rules
        .iter()
        .find_map(|id| findings.iter().find(|(_, finding)| finding.id == *id))?;
    let subject = format!("{} on {}", finding.id, finding.subject);

    Some(limited(
        name,
        limit.sentence,
        confidence(scope, limit, finding),
        &subject,
    ))
}

fn limited(name: &str, sentence: &str, confidence: Confidence, subject: &str) -> Verdict {
    Verdict {
        verdict: name.to_owned(),
        sentence: format!("{sentence} ({subject})"),
        confidence,
        ..Verdict::default()
    }
}

fn strongest<'a>(findings: &'a [(Layer, Finding)], id: &str) -> Option<&'a Finding> {
    findings
        .iter()
        .map(|(_, finding)| finding)
        .find(|finding| finding.id == id && finding.confidence > Confidence::Low)
}

/// One end alone cannot be more than half sure about what happens at the other, and no limit is
/// certain by elimination while one of its rivals was not measured.
fn confidence(scope: &Scope<'_>, limit: &Limit, finding: &Finding) -> Confidence {
    let are_observed =
        scope.hosts.len() > 1 && scope.hosts.iter().all(|host| host.period.is_some());
    let is_proven = || {
        limit.is_certain
            || scope
                .runs()
                .all(|run| elimination::are_rivals_measured(scope, &run))
    };
    let both = are_observed && is_proven();

    // Datagrams that were lost in the receiver's buffer were not lost elsewhere.
    let is_all_of_it = finding.id == "UDP-01" && scope.runs().any(|run| socket_took_the_loss(&run));
    if both || is_all_of_it || finding.id == "TOP-01" {
        finding.confidence
    } else {
        finding.confidence.min(Confidence::Medium)
    }
}

/// Why there can be no verdict: idle counters, totals alone, or a period without spread.
fn refusal(scope: &Scope<'_>) -> Option<String> {
    if scope.runs().any(|run| run.goodput_bps().is_ok()) {
        return None;
    }
    if scope.runs().any(|run| run.moved_nothing()) {
        return Some(NO_DATA.to_owned());
    }

    let periods: Vec<_> = scope
        .hosts
        .iter()
        .filter_map(|host| host.period.map(|period| (host, period)))
        .collect();
    if periods.is_empty() {
        return Some("no load was measured: only settings and totals were checked".to_owned());
    }
    if periods.iter().all(|(_, period)| period.intervals < 2) {
        return Some("two samples have no spread: use a longer --window".to_owned());
    }

    is_idle(scope).then(|| "the interfaces were idle during the window".to_owned())
}

/// True if a test moved nothing because of a cause that is certain.
fn is_blocked(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> bool {
    let is_found = |limit: &Limit| {
        limit
            .rules
            .iter()
            .any(|id| strongest(findings, id).is_some())
    };
    scope.runs().next().is_some()
        && limit::ALL
            .iter()
            .any(|limit| limit.is_certain && is_found(limit))
}

/// True if nothing worth explaining crossed an interface of any host.
pub(crate) fn is_idle(scope: &Scope<'_>) -> bool {
    let periods = scope
        .hosts
        .iter()
        .filter_map(|host| Some((host, host.period?)));
    periods
        .into_iter()
        .all(|(host, period)| bytes(host) < IDLE_BYTES_PER_SECOND * period.seconds)
}

fn bytes(host: &Host<'_>) -> f64 {
    host.nics()
        .flat_map(|nic| [nic.bytes("rx"), nic.bytes("tx")])
        .flatten()
        .sum()
}

fn summary(findings: &[(Layer, Finding)], refusal: &str) -> String {
    let serious: Vec<&Finding> = findings
        .iter()
        .map(|(_, finding)| finding)
        .filter(|finding| finding.severity >= Severity::Medium)
        .collect();
    match serious.as_slice() {
        [] if refusal == NO_DATA => {
            format!("{refusal}, and no cause was found among what could be checked")
        }
        [] => format!("no problem found; {refusal}"),
        [first, second] if first.title == second.title => {
            format!(
                "{} on {} and {}; {refusal}",
                first.title, first.subject, second.subject
            )
        }
        [only] => format!("{} on {}; {refusal}", only.title, only.subject),
        [first, second] => {
            let second_title = without_capital(&second.title);
            format!(
                "{} on {}, and {second_title} on {}; {refusal}",
                first.title, first.subject, second.subject
            )
        }
        [first, others @ ..] => {
            format!(
                "{} on {}, and {} more; {refusal}",
                first.title,
                first.subject,
                others.len()
            )
        }
    }
}

/// A title within a sentence: `The link flaps`, but not `TCP memory pressure`.
fn without_capital(title: &str) -> String {
    let mut characters = title.chars();
    let first = characters.next();
    let is_word = !characters
        .clone()
        .next()
        .is_some_and(|second| second.is_uppercase());
    let lowered = first
        .filter(|_| is_word)
        .into_iter()
        .flat_map(char::to_lowercase);

    if is_word {
        lowered.chain(characters).collect()
    } else {
        title.to_owned()
    }
}
