//! Texts of the findings about a fleet.

use linerate_model::finding::{Confidence, Evidence, Finding, Severity};

/// First line of a report without a finding.
pub const NO_FINDING: &str = "no host or pair is an outlier";

/// A finding before it has a subject.
pub(super) struct Template {
    pub id: &'static str,
    severity: Severity,
    title: &'static str,
    explanation: &'static str,
    reference: &'static str,
}

pub(super) const HOST: Template = Template {
    id: "FLT-01",
    severity: Severity::High,
    title: "A host is slow to all and from all",
    explanation: "All other hosts are fast with each other. What all paths of this host share is \
                  its port, its cable, its NIC and its CPUs.",
    reference: "ethtool(8)",
};

pub(super) const RECEIVES: Template = Template {
    id: "FLT-02",
    severity: Severity::High,
    title: "A host is slow to receive",
    explanation: "It sends as fast as the others. What all paths to it share is the egress queue \
                  of its switch port and its receive path.",
    reference: "kernel networking/scaling",
};

pub(super) const SENDS: Template = Template {
    id: "FLT-03",
    severity: Severity::High,
    title: "A host is slow to send",
    explanation: "It receives as fast as the others. What all paths from it share is its queueing \
                  discipline, its segmentation offloads and its sending CPU.",
    reference: "tc(8), ethtool(8)",
};

pub(super) const PAIR: Template = Template {
    id: "FLT-04",
    severity: Severity::Medium,
    title: "A pair is slow, and its hosts are not",
    explanation: "Both hosts are fast with others. A switch may send this pair over another link: \
                  one member of a LAG or of an ECMP group.",
    reference: "IEEE 802.1AX; RFC 2992",
};

pub(super) const UPLINK: Template = Template {
    id: "FLT-05",
    severity: Severity::High,
    title: "The uplink of a rack is slow",
    explanation: "These hosts are fast within their racks and slow between them. What these paths \
                  share is the uplink.",
    reference: "RFC 8238, section 2; port counters of the switches",
};

pub(super) const POISON: Template = Template {
    id: "FLT-08",
    severity: Severity::High,
    title: "A slow host slows the others down",
    explanation: "Without it the others gain more than its share. Frames for it block those behind \
                  them: a shared queue, or PAUSE frames that stop a whole port.",
    reference: "IEEE 802.3 annex 31B",
};

pub(super) const UNFAIR: Template = Template {
    id: "FLT-09",
    severity: Severity::Medium,
    title: "Hosts share a link unfairly",
    explanation: "Each of them is fast alone. Together some have far less than others.",
    reference: "Jain, Chiu and Hawe, DEC-TR-301 (1984)",
};

pub(super) const QUEUES: Template = Template {
    id: "FLT-10",
    severity: Severity::Medium,
    title: "Flows share queues",
    explanation: "The sums are whole multiples of the rate of one flow. A hash puts several flows \
                  on one queue and leaves others empty.",
    reference: "kernel networking/scaling, networking/multiqueue",
};

pub(super) const GROUPS: Template = Template {
    id: "FLT-11",
    severity: Severity::Medium,
    title: "Hosts form two groups",
    explanation: "The gap between the groups is far wider than the spread inside. The hosts of a \
                  group have something in common.",
    reference: "linerate doctor --diff",
};

pub(super) const SHARED_SLOT: Template = Template {
    id: "FLT-12",
    severity: Severity::Medium,
    title: "Pairs are slower through one card of a forwarding host",
    explanation: "Both ports of these pairs are behind one slot of the bus, which carries each \
                  packet twice. Pairs whose ports are on two cards are faster.",
    reference: "PCI Express Base Specification; linerate doctor, PCI-03",
};

pub(super) const SHARED_PORT: Template = Template {
    id: "FLT-13",
    severity: Severity::High,
    title: "Tests use the port of the control connection",
    explanation: "The inventory has a network of its own for control. Tests that fill this port \
                  delay the control connection, whose lease may expire, and what the control \
                  connection carries is missing in their rates.",
    reference: "ip-route(8)",
};

pub(super) const CLOCK: Template = Template {
    id: "FLT-15",
    severity: Severity::Medium,
    title: "Clock uncertainty too large for synchronised starts",
    explanation: "The estimate is half of the shortest round trip of the control connection. Tests \
                  of these hosts start at different times, and only the period that they have in \
                  common is compared.",
    reference: "RFC 5905, section 8",
};

pub(super) const SAME_MACHINE: Template = Template {
    id: "FLT-16",
    severity: Severity::Medium,
    title: "Two entries are one machine",
    explanation: "Their machine, boot and network namespace are equal. A test between them never \
                  leaves the machine, and both would run at the same time.",
    reference: "machine-id(5)",
};

pub(super) const PATH_MTU: Template = Template {
    id: "FLT-17",
    severity: Severity::Medium,
    title: "The path MTU differs between hosts",
    explanation: "Hosts with different MTU send segments of different sizes. Where a switch \
                  carries only the smaller one, large packets are lost without a message.",
    reference: "RFC 4821; linerate doctor, MTU-01",
};

pub(super) const ASYMMETRY: Template = Template {
    id: "FLT-14",
    severity: Severity::Medium,
    title: "One direction of a host carries less than the other",
    explanation: "The link is the same in both directions. The slow one has a limit of its own: \
                  queues, PAUSE frames, a shaper.",
    reference: "IEEE 802.3 annex 31B; kernel networking/scaling",
};

impl Template {
    pub(super) fn about(
        &self,
        subject: impl Into<String>,
        confidence: Confidence,
        next: impl Into<String>,
    ) -> Finding {
        Finding {
            id: self.id.to_owned(),
            severity: self.severity,
            confidence,
            subject: subject.into(),
            title: self.title.to_owned(),
            evidence: Vec::new(),
            explanation: self.explanation.to_owned(),
            remedy: Vec::new(),
            advice: Some(next.into()),
            undo: Vec::new(),
            remedy_host: None,
            persist: None,
            needs: Vec::new(),
            reference: self.reference.to_owned(),
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
