//! The one sentence at the top: what limits, how sure that is, and what would limit next.

use linerate_model::finding::{Confidence, Finding, Severity, Verdict};

use crate::elimination::{self, limit};
use crate::rule::Layer;
use crate::scope::{Host, Run, Scope};

/// Names of the limits, in the order in which they explain: the first that was found wins, the next is runner-up.
const LIMITS: [(&str, &[&str], &str); 28] = [
    (
        "invalid",
        &["META-02", "PATH-04", "QD-03", "TOOL-05", "TOOL-06"],
        "the measurement does not say what it seems to",
    ),
    ("configured-rate", &["QD-01"], "this host's own shaper sets the rate"),
    ("speed-step", &["LNK-03", "PAU-01"], "a step down in speed without flow control loses packets"),
    ("line-rate", &["TOP-01"], "the link is full"),
    ("link", &["LNK-02", "LNK-01", "LNK-04", "LNK-05", "LNK-08"], "the link itself is impaired"),
    ("tool-limit", &["TOOL-01", "TOOL-03", "TOOL-07"], "the test tool is the limit"),
    ("path-mtu", &["MTU-02"], "the path drops large packets"),
    (limit::QUOTA, &["CPU-04"], "a quota takes the CPUs away"),
    (limit::STEAL, &["CPU-09"], "the hypervisor gives the CPUs of the test to others"),
    (limit::OTHER_PROGRAMS, &["CPU-07"], "other programs use the CPUs of the test"),
    (limit::OFFLOAD, &["OFF-01"], "segmentation offload is off, so the sender's CPU is the limit"),
    (limit::HOST_CPU, &["CPU-08"], "the host that runs both ends is the limit"),
    (limit::APPLICATION, &["APP-01"], "the application has nothing to send"),
    (limit::SENDER_CPU, &["CPU-01"], "the sender's processor is the limit"),
    (limit::RECEIVER_CPU, &["UDP-01", "CPU-02"], "the receiving application is late"),
    (limit::RECEIVER_SOFTIRQ, &["SOFT-01", "IRQ-01", "IRQ-02", "CPU-02"], "the receiver's interrupt work is the limit"),
    (limit::FIREWALL, &["FW-01"], "the firewall of one of the two hosts drops packets"),
    ("pcie", &["PCI-02", "PCI-03"], "the bus behind the adapter is full"),
    ("nic-queue-rx", &["NIC-02", "NIC-01", "NIC-03"], "the receiver's adapter drops packets"),
    ("flow-control", &["PAU-03", "PAU-04"], "pause frames from downstream hold the sender"),
    ("nic-queue-tx", &["NIC-04", "QD-02"], "the sender's own queue drops or stalls"),
    (limit::RECEIVER_WINDOW, &["WIN-01"], "the receiver's window is too small"),
    (limit::SENDER_WINDOW, &["WIN-02"], "the sender's buffer is too small"),
    (limit::PATH, &["PATH-10"], "the path between the hosts is the limit"),
    ("policer", &["PATH-01"], "something on the path drops above a rate"),
    (limit::REORDERING, &["PATH-07"], "packets overtake each other"),
    ("loss-or-congestion", &["PATH-06"], "packets are lost on the way"),
    ("virtual-backend", &["VIRT-01", "NIC-06"], "the virtual adapter's host is the limit"),
];

/// There was load, and nothing explains it.
pub(crate) const UNKNOWN: &str = "unknown";
/// There was nothing to explain.
pub(crate) const NO_LOAD: &str = "no-load";

/// Bytes per second below which a period is idle.
const IDLE_BYTES_PER_SECOND: f64 = 125_000.0;

pub(crate) fn verdict(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Verdict {
    if let Some(refusal) = refusal(scope) {
        return Verdict { verdict: NO_LOAD.to_owned(), sentence: summary(findings, &refusal), ..Verdict::default() };
    }
    cause(scope, findings)
}

/// What limits in a part of the time; `None` where nothing happened in it.
pub(crate) fn of_slice(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Option<Verdict> {
    let tested = scope.runs().any(|run| run.goodput_bps().is_ok());
    let cause = (tested || !is_idle(scope)).then(|| cause(scope, findings))?;
    if CERTAIN.contains(&cause.verdict.as_str()) || cause.verdict == SLOW_START {
        return Some(cause);
    }
    let eliminated = scope.runs().find_map(|run| Some((elimination::limit_of(scope, &run)?, run)));
    Some(eliminated.map_or(cause, |(name, run)| {
        let is_offload = matches!(name, limit::HOST_CPU | limit::SENDER_CPU) && strongest(findings, "OFF-01").is_some();
        let name = if is_offload { limit::OFFLOAD } else { name };
        limited(name, sentence(name), Confidence::High, &run.label())
    }))
}

fn sentence(name: &str) -> &'static str {
    LIMITS.iter().find(|(row, ..)| *row == name).map_or("", |(_, _, sentence)| sentence)
}

/// Limits that their own counters or settings prove; the others are concluded by elimination.
const CERTAIN: [&str; 11] = [
    "invalid",
    "configured-rate",
    "speed-step",
    "line-rate",
    "link",
    "tool-limit",
    "path-mtu",
    "pcie",
    "nic-queue-rx",
    "flow-control",
    "nic-queue-tx",
];
pub(crate) const SLOW_START: &str = "slow-start";

/// What limits, given that there was load.
fn cause(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Verdict {
    let invalid = findings.iter().any(|(_, finding)| finding.severity == Severity::Blocker);
    if let Some(run) = scope.runs().find(Run::reaches_its_target).filter(|_| !invalid) {
        return limited("configured-rate", "the rate that was asked for is reached", Confidence::High, &run.label());
    }
    if let Some(concluded) = concluded(scope, findings) {
        return concluded;
    }
    let mut found = LIMITS.iter().filter_map(|(name, ids, sentence)| {
        let finding = ids.iter().find_map(|id| strongest(findings, id))?;
        Some((*name, *sentence, finding))
    });
    let Some((name, sentence, finding)) = found.next() else {
        return starting(scope).unwrap_or_else(|| Verdict {
            verdict: UNKNOWN.to_owned(),
            sentence: "there was load, and nothing that could be checked limits it".to_owned(),
            ..Verdict::default()
        });
    };
    if !BEFORE_SLOW_START.contains(&name)
        && let Some(starting) = starting(scope)
    {
        return starting;
    }
    let runner_up = found.next();
    Verdict {
        verdict: name.to_owned(),
        sentence: format!("{sentence} ({} on {})", finding.id, finding.subject),
        confidence: confidence(scope, finding),
        runner_up: runner_up.map(|(name, _, finding)| format!("{name} ({})", finding.id)),
        what_if: runner_up.map(|(_, sentence, _)| format!("without it: {sentence}")),
        ..Verdict::default()
    }
}

/// Limits that hold during slow start.
const BEFORE_SLOW_START: [&str; 3] = ["invalid", "configured-rate", "line-rate"];

/// A sender that is still finding out what the path carries.
fn starting(scope: &Scope<'_>) -> Option<Verdict> {
    let run = scope.runs().find(|run| run.flag("slow_start").is_ok_and(|flag| flag.value))?;
    let sentence = "the sender is still opening its window";
    Some(limited(SLOW_START, sentence, Confidence::Medium, &run.label()))
}

/// The limit of most of the time, with the finding that explains it.
fn concluded(scope: &Scope<'_>, findings: &[(Layer, Finding)]) -> Option<Verdict> {
    let name = scope.runs().find_map(|run| run.limit())?;
    let (_, ids, sentence) = LIMITS.iter().find(|(row, ..)| *row == name)?;
    let finding = ids.iter().find_map(|id| findings.iter().find(|(_, finding)| finding.id == *id))?;
    Some(limited(name, sentence, confidence(scope, &finding.1), &format!("{} on {}", finding.1.id, finding.1.subject)))
}

fn limited(name: &str, sentence: &str, confidence: Confidence, subject: &str) -> Verdict {
    Verdict { verdict: name.to_owned(), sentence: format!("{sentence} ({subject})"), confidence, ..Verdict::default() }
}

fn strongest<'a>(findings: &'a [(Layer, Finding)], id: &str) -> Option<&'a Finding> {
    findings.iter().map(|(_, finding)| finding).find(|finding| finding.id == id && finding.confidence > Confidence::Low)
}

/// One end alone cannot be more than half sure about what happens at the other.
fn confidence(scope: &Scope<'_>, finding: &Finding) -> Confidence {
    let both = scope.hosts.len() > 1 && scope.hosts.iter().all(|host| host.period.is_some());
    if both || finding.id == "TOP-01" { finding.confidence } else { finding.confidence.min(Confidence::Medium) }
}

/// Why there can be no verdict: idle counters, totals alone, or a period without spread.
fn refusal(scope: &Scope<'_>) -> Option<String> {
    if scope.runs().any(|run| run.goodput_bps().is_ok()) {
        return None;
    }
    let periods: Vec<_> = scope.hosts.iter().filter_map(|host| host.period.map(|period| (host, period))).collect();
    if periods.is_empty() {
        return Some("no load was measured: this is about settings and totals only".to_owned());
    }
    if periods.iter().all(|(_, period)| period.intervals < 2) {
        return Some("two readings have no spread: take more with --window".to_owned());
    }
    is_idle(scope).then(|| "the interfaces were idle during the window".to_owned())
}

/// Whether nothing worth explaining crossed an interface of any host.
pub(crate) fn is_idle(scope: &Scope<'_>) -> bool {
    let periods = scope.hosts.iter().filter_map(|host| Some((host, host.period?)));
    periods.into_iter().all(|(host, period)| bytes(host) < IDLE_BYTES_PER_SECOND * period.seconds)
}

fn bytes(host: &Host<'_>) -> f64 {
    host.nics().flat_map(|nic| [nic.bytes("rx"), nic.bytes("tx")]).flatten().sum()
}

fn summary(findings: &[(Layer, Finding)], refusal: &str) -> String {
    let mut serious = findings.iter().filter(|(_, finding)| finding.severity >= Severity::Medium);
    match (serious.next(), serious.count()) {
        (None, _) => format!("nothing stands out; {refusal}"),
        (Some((_, first)), 0) => format!("{} on {}; {refusal}", first.title, first.subject),
        (Some((_, first)), more) => format!("{} on {}, and {more} more; {refusal}", first.title, first.subject),
    }
}
