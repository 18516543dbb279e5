//! A diagnosis: findings with their evidence, rules that were ruled out, and rules that could not
//! be checked.

use std::fmt;

use linerate_macros::{sparse, stored};

use crate::placement::Placement;

/// Schema name of a [`Diagnosis`] on disk.
pub const DOCTOR_SCHEMA: &str = "linerate.doctor/1";

/// Severity of a finding.
#[stored(Copy, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know; no fault.
    Info,
    /// A small or rare effect.
    Low,
    /// A visible effect.
    Medium,
    /// Probably what the user is looking for.
    High,
    /// A result under this condition must not be published without saying so.
    Blocker,
}

/// Confidence of a finding.
#[stored(Copy, Eq, PartialOrd, Ord, Default)]
pub enum Confidence {
    /// An inference without a direct measurement, or totals since boot.
    #[default]
    Low,
    /// One end seen, or a narrow margin.
    Medium,
    /// Measured directly.
    High,
}

/// A fact that made a rule fire.
#[stored(Eq)]
pub struct Evidence {
    /// Key of the fact or counter, or what was measured in words.
    pub fact: String,
    /// Its value; empty where `fact` is a whole statement.
    pub value: String,
    /// What was expected instead, or what the value is; empty where its presence alone counts.
    pub threshold: String,
}

impl Evidence {
    /// The value of a fact, and what it was compared with.
    pub fn new(
        fact: impl Into<String>,
        value: impl Into<String>,
        threshold: impl Into<String>,
    ) -> Self {
        Self {
            fact: fact.into(),
            value: value.into(),
            threshold: threshold.into(),
        }
    }

    /// A statement with its values in it.
    pub fn statement(text: impl Into<String>) -> Self {
        Self {
            fact: text.into(),
            value: String::new(),
            threshold: String::new(),
        }
    }
}

/// `busiest thread of the server 0.98, at least 0.95`
impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            fact,
            value,
            threshold,
        } = self;
        match (value.is_empty(), threshold.is_empty()) {
            (true, _) => write!(f, "{fact}"),
            (false, true) => write!(f, "{fact}: {value}"),
            (false, false) => write!(f, "{fact} {value}, {threshold}"),
        }
    }
}

/// Evidence as `[{"text": "…"}]`, the form of the HTTP lab.
pub(crate) mod evidence_texts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Evidence;

    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
    pub(crate) struct Text {
        text: String,
    }

    pub(crate) fn serialize<S: Serializer>(
        evidence: &[Evidence],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(evidence.iter().map(|one| Text {
            text: one.to_string(),
        }))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Vec<Evidence>, D::Error> {
        let texts = Vec::<Text>::deserialize(deserializer)?;
        Ok(texts
            .into_iter()
            // The parts of a sentence are not separable again: all of it is the statement.
            .map(|one| Evidence::statement(one.text))
            .collect())
    }
}

/// One explained observation.
#[sparse]
#[stored(Eq)]
pub struct Finding {
    /// Stable name of the rule: `NIC-01`.
    pub id: String,
    /// Its severity here.
    pub severity: Severity,
    /// Its confidence here.
    pub confidence: Confidence,
    /// Subject: host and interface, a run, a comparison.
    pub subject: String,
    /// The rule's title.
    pub title: String,
    /// Value that was read, and the one it was compared with.
    pub evidence: Vec<Evidence>,
    /// Why this matters, in two sentences.
    pub explanation: String,
    /// Commands that change it, ready to paste. Empty where no command helps.
    pub remedy: Vec<String>,
    /// Advice where a command is not enough.
    pub advice: Option<String>,
    /// Commands that restore what was found.
    pub undo: Vec<String>,
    /// The host that the commands are for, where it is not the host of `subject`.
    pub remedy_host: Option<String>,
    /// Way to keep the change over a reboot.
    pub persist: Option<String>,
    /// The right or the disturbance the commands need: `CAP_NET_ADMIN`, `link flap of about 2 s`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
    /// Manual page, standard or document.
    pub reference: String,
    /// Why the remedy is held back: another finding changes its input first.
    pub retest_after: Option<String>,
}

/// A rule that was checked and is not the explanation.
#[stored(Eq)]
pub struct RuledOut {
    /// Stable name of the rule.
    pub id: String,
    /// Its subject.
    pub subject: String,
    /// Which facts speak against it.
    pub reason: String,
    /// Scope that the rule does not apply to; `None` for a rule that applies and was checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inapplicable: Option<Inapplicable>,
}

/// Scope that a rule does not apply to.
#[stored(Copy, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum Inapplicable {
    /// An interface without a link.
    VirtualInterface,
    /// The device or its driver lacks what the rule is about.
    Device,
    /// The test is of another kind.
    Test,
    /// Another finding explains what the rule found.
    Explained,
}

/// A rule that could not be checked.
#[stored(Eq)]
pub struct NotEvaluated {
    /// Stable name of the rule.
    pub id: String,
    /// Its subject.
    pub subject: String,
    /// Keys of the facts it would need.
    pub missing: Vec<String>,
    /// Why they are missing, in the order of `missing`.
    pub reasons: Vec<String>,
    /// Indications of the known facts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suspicion: Option<String>,
}

/// One thing that differs between two snapshots.
#[stored(Eq)]
pub struct Difference {
    /// Key of the fact, the interface written as its role.
    pub key: String,
    /// Value in the first snapshot; `None` when only the second has it.
    pub a: Option<String>,
    /// Value in the second snapshot; `None` when only the first has it.
    pub b: Option<String>,
    /// Effect on throughput and latency, 0 (none) to 3.
    pub impact: u8,
    /// Why it can matter.
    pub why: String,
}

impl Difference {
    /// A difference of the key `key` with an effect of 0 (none) to 3; neither value is known.
    pub fn new(key: impl Into<String>, impact: u8, why: impl Into<String>) -> Self {
        Self {
            key: key.into(),
            a: None,
            b: None,
            impact,
            why: why.into(),
        }
    }
}

/// Differences between two hosts or two moments.
#[stored(Default, Eq)]
pub struct Comparison {
    /// Rules that fire on the first only.
    pub rules_only_a: Vec<String>,
    /// Rules that fire on the second only.
    pub rules_only_b: Vec<String>,
    /// Rules that fire on both and so explain no difference.
    pub rules_both: Vec<String>,
    /// Differences, strongest effect first.
    pub changed: Vec<Difference>,
    /// Keys only the first knows.
    pub only_a: Vec<String>,
    /// Keys only the second knows.
    pub only_b: Vec<String>,
    /// Number of equal keys.
    pub same_count: usize,
}

/// Areas by the prefixes of their rules' ids, in the order of a report.
const AREAS: [(&[&str], &str); 23] = [
    (&["WIN"], "windows"),
    (&["UDP"], "UDP buffers"),
    (&["CPU"], "CPUs"),
    (&["APP"], "application"),
    (&["TOOL"], "test tool"),
    (&["LNK"], "link"),
    (&["PAU"], "flow control"),
    (&["NIC"], "NIC rings"),
    (&["CHN"], "NIC queues"),
    (&["IRQ"], "interrupts"),
    (&["SOFT"], "packet backlog"),
    (&["QD"], "queues and shapers"),
    (&["OFF", "VIRT"], "offloads"),
    (&["FW"], "firewall"),
    (&["PCI"], "PCIe"),
    (&["MTU"], "MTU"),
    (&["ADDR"], "addresses"),
    (&["DROP"], "drops by reason"),
    (&["PATH"], "path"),
    (&["LAT"], "delay under load"),
    (&["ECN"], "ECN and DSCP"),
    (&["SYS"], "sockets and ports"),
    (&["HTTP"], "HTTP load"),
];

/// Prefixes and name of every area: `(["WIN"], "windows")`.
pub fn areas() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    AREAS.into_iter()
}

/// The one sentence at the top.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct Verdict {
    /// Name of the verdict: the limit that was found, `unknown`, or `no-load`.
    pub verdict: String,
    /// The same as a sentence.
    pub sentence: String,
    /// Its confidence.
    pub confidence: Confidence,
    /// The next best explanation.
    pub runner_up: Option<String>,
    /// The next ceiling, should this limit be removed.
    pub what_if: Option<String>,
    /// Part of the time in which this was the limit, percent; `None` where no time was watched in
    /// intervals.
    pub share_of_time_percent: Option<u32>,
    /// Limits over time, in order.
    pub timeline: Vec<LimitPeriod>,
}

/// Consecutive intervals with the same limit.
#[stored(Eq)]
pub struct LimitPeriod {
    /// Load of an examined path: `down`, `up` or `both`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// Name of the limit, as in [`Verdict::verdict`].
    pub verdict: String,
    /// Length in ms.
    pub length_ms: u64,
}

/// The lost datagrams of one direction of a test, by the place that lost them. `None`: its counters
/// were not read, so its part, if there is one, is in `network`.
#[stored(Default, Eq)]
pub struct LossSplit {
    /// Which test and direction.
    pub label: String,
    /// Data that the receiver missed.
    pub lost: u64,
    /// Refused by the sender's own socket or queueing discipline.
    pub sender: Option<u64>,
    /// Dropped by the receiver's NIC.
    #[serde(rename = "adapter")]
    pub nic: Option<u64>,
    /// Dropped because the packet backlog of a CPU of the receiver was full.
    #[serde(default)]
    pub backlog: Option<u64>,
    /// Dropped because the receiver's socket buffer was full.
    pub socket: Option<u64>,
    /// Dropped by rules of the receiver's firewall.
    #[serde(default)]
    pub firewall: Option<u64>,
    /// Dropped elsewhere by the receiver's kernel, by the reasons of its drops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<u64>,
    /// The rest: lost between the hosts.
    pub network: u64,
}

/// Packets that the kernel of a host dropped for one reason in one function.
#[stored(Eq)]
pub struct KernelDrop {
    /// The host, or its end of the test.
    pub host: String,
    /// Name of the reason (`enum skb_drop_reason`); `None` where the kernel has none, before 5.17.
    pub reason: Option<String>,
    /// Function that dropped; `None` where the kernel hides the names of addresses.
    pub function: Option<String>,
    /// Packets.
    pub packets: u64,
    /// Half of the 95 % interval of `packets` where they are an estimate from a sample.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<u64>,
    /// Part of the host that dropped: `firewall`, `socket buffer`; `None` where it is no loss, such
    /// as a duplicate.
    pub place: Option<String>,
    /// Meaning of the reason.
    pub meaning: String,
    /// What to do or to compare.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

impl KernelDrop {
    /// Key of the counter: `drops.SOCKET_RCVBUFF.udp_queue_rcv_one_skb`.
    pub fn key(&self) -> String {
        let [reason, function] =
            [&self.reason, &self.function].map(|name| name.as_deref().unwrap_or("unknown"));
        format!("drops.{reason}.{function}")
    }
}

/// What a CPU of a host did, by samples of its stacks.
#[stored]
pub struct CpuWork {
    /// The host, or its end of the test.
    pub host: String,
    /// Number of the CPU.
    pub cpu: u32,
    /// Part of the time in which it was not idle, percent.
    pub busy_percent: f64,
    /// Classes of work, the largest first.
    pub classes: Vec<WorkShare>,
}

/// One class of the work of a CPU.
#[stored]
pub struct WorkShare {
    /// Name of the class: `copy`, `netfilter`, `program`.
    pub class: String,
    /// Its part of the time in which the CPU was not idle, percent.
    pub percent: f64,
    /// Function or module with most samples of it, where that distinguishes causes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
}

/// A test that a pasted text or a report of another program has, in one direction.
#[stored(Eq)]
pub struct ReadTest {
    /// The host that reported it, and its command.
    pub subject: String,
    /// Its values: rates, length, loss.
    pub values: Vec<Evidence>,
}

/// A whole diagnosis.
#[sparse]
#[stored(Default)]
pub struct Diagnosis {
    /// Always [`DOCTOR_SCHEMA`].
    pub schema: String,
    /// The hosts that were judged.
    pub hosts: Vec<String>,
    /// The one sentence.
    pub verdict: Verdict,
    /// Findings, strongest first.
    pub findings: Vec<Finding>,
    /// Checks that excluded an explanation, in the order of the phases.
    pub ruled_out: Vec<RuledOut>,
    /// Checks that were not possible.
    pub not_evaluated: Vec<NotEvaluated>,
    /// Where the datagrams of a UDP test were lost, one entry per direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub loss: Vec<LossSplit>,
    /// Packets that the kernels of the hosts dropped meanwhile: of the test where there was one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<KernelDrop>,
    /// What the busiest CPUs did meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work: Vec<CpuWork>,
    /// Why the CPUs of a host were not sampled: `server: needs CAP_PERFMON (root)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub work_unknown: Vec<String>,
    /// The tests that were read, where the facts are not of a test of this program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tests: Vec<ReadTest>,
    /// On which CPUs each end of a test ran, where that was observed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub placement: Vec<Placement>,
    /// Differences between two snapshots, when two were compared.
    pub differences: Option<Vec<Difference>>,
    /// The whole comparison.
    pub comparison: Option<Comparison>,
    /// Unknown lines of an import, with their number; of very many the first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<String>,
    /// Number of unknown lines of an import; 0 where nothing was imported.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unread_count: usize,
    /// Prefixes of the rules that unknown lines concern: `QD`. Of nothing that these rules check is
    /// known that it is fine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unread_subjects: Vec<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl Diagnosis {
    /// A diagnosis of no host, with a verdict.
    pub fn new(verdict: Verdict) -> Self {
        Self {
            schema: DOCTOR_SCHEMA.to_owned(),
            verdict,
            ..Self::default()
        }
    }
}
