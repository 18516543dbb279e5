//! Limits of a test: the names of verdicts, the rules that explain each, and the measurement that
//! distinguishes it from others. Their texts are in [`linerate_model::limit`].

use linerate_model::limit::limit_sentence;

pub(crate) const CONFIGURED_RATE: &str = "configured-rate";
pub(crate) const QUOTA: &str = "cpu-quota";
pub(crate) const STEAL: &str = "cpu-steal";
pub(crate) const RECEIVER_WINDOW: &str = "receiver-window";
pub(crate) const SENDER_WINDOW: &str = "sender-window";
pub(crate) const OTHER_PROGRAMS: &str = "other-programs";
pub(crate) const OFFLOAD: &str = "offload";
pub(crate) const HOST_CPU: &str = "host-cpu";
pub(crate) const SENDER_CPU: &str = "sender-cpu";
pub(crate) const RECEIVER_CPU: &str = "receiver-cpu-app";
pub(crate) const RECEIVER_SOFTIRQ: &str = "receiver-cpu-softirq";
pub(crate) const APPLICATION: &str = "application-limited";
pub(crate) const FIREWALL: &str = "firewall";
pub(crate) const PATH_RATE: &str = "path-rate";
pub(crate) const PATH: &str = "path";
pub(crate) const PATH_OR_RECEIVER: &str = "path-or-receiver";
pub(crate) const NIC_QUEUE_RX: &str = "nic-queue-rx";
pub(crate) const SENDER_QUEUE: &str = "nic-queue-tx";
pub(crate) const REORDERING: &str = "reordering";
pub(crate) const LINE_RATE: &str = "line-rate";

/// Measurement that distinguishes limits that have no measurement of their own.
pub(crate) const LONGER: &str = "measure for longer (-t 30)";

/// One row of [`ALL`].
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    /// Rules that explain it, the strongest first.
    pub(crate) rules: &'static [&'static str],
    /// Its own counters or settings prove it; the others are concluded by elimination.
    pub(crate) is_certain: bool,
    /// It holds during slow start as well.
    pub(crate) holds_in_slow_start: bool,
    /// The measurement that shows whether this is the limit.
    pub(crate) experiment: &'static str,
}

/// In the order in which limits explain: the first that was found wins, the next is runner-up.
pub(crate) const ALL: &[Limit] = &[
    Limit::new(
        "invalid",
        &["META-02", "PATH-04", "QD-03", "TOOL-05", "TOOL-06"],
    )
    .during_slow_start()
    .certain(),
    Limit::new(CONFIGURED_RATE, &["QD-01"])
        .during_slow_start()
        .certain(),
    Limit::new("speed-step", &["LNK-03", "PAU-01"]).certain(),
    Limit::new("one-direction", &["PATH-15"]).certain(),
    // A link that is full at too low a speed is limited by that speed.
    Limit::new("link-speed", &["LNK-01"]).certain(),
    Limit::new(LINE_RATE, &["TOP-01"])
        .during_slow_start()
        .certain(),
    Limit::new("link", &["LNK-02", "LNK-04", "LNK-05", "LNK-08"]).certain(),
    Limit::new("slower-link", &["PATH-14"]).certain(),
    Limit::new("bond-member", &["PATH-12"]).certain(),
    Limit::new("tool-limit", &["TOOL-01", "TOOL-03", "TOOL-07"]).certain(),
    Limit::new("path-mtu", &["MTU-02", "UDP-03", "MTU-04"]).certain(),
    Limit::new("duplicate-address", &["ADDR-02"])
        .during_slow_start()
        .certain(),
    Limit::new(QUOTA, &["CPU-04"]).distinguished_by("measure without the quota"),
    Limit::new(OTHER_PROGRAMS, &["CPU-07"])
        .distinguished_by("end the other programs and measure again"),
    Limit::new(OFFLOAD, &["OFF-01"])
        .distinguished_by("switch the segmentation offload on and measure again"),
    Limit::new(HOST_CPU, &["CPU-08"]).distinguished_by("run client and server on two hosts"),
    Limit::new(APPLICATION, &["APP-01"])
        .distinguished_by("measure without a file and without a target rate"),
    Limit::new(SENDER_CPU, &["CPU-01"]).distinguished_by("measure with more streams (-P 4)"),
    Limit::new(RECEIVER_CPU, &["UDP-01", "CPU-02"])
        .distinguished_by("measure with more streams (-P 4)"),
    Limit::new(RECEIVER_SOFTIRQ, &["SOFT-01", "IRQ-01", "IRQ-02", "CPU-02"])
        .distinguished_by("spread the receive interrupts over more CPUs and measure again"),
    Limit::new(FIREWALL, &["FW-01"])
        .distinguished_by("measure with a rule that accepts the test's port first"),
    Limit::new("pcie", &["PCI-02", "PCI-03"]).certain(),
    Limit::new(NIC_QUEUE_RX, &["NIC-02", "NIC-01", "NIC-03"]).certain(),
    Limit::new("flow-control", &["PAU-03", "PAU-04"]).certain(),
    Limit::new("no-flow-control", &["PAU-06"]).certain(),
    Limit::new(SENDER_QUEUE, &["NIC-04", "QD-07", "QD-02"]).certain(),
    Limit::new(RECEIVER_WINDOW, &["WIN-01"])
        .distinguished_by("raise net.ipv4.tcp_rmem on the receiver and measure again"),
    Limit::new(SENDER_WINDOW, &["WIN-02"])
        .distinguished_by("raise net.ipv4.tcp_wmem on the sender and measure again"),
    Limit::new("fixed-window", &["WIN-03"]).distinguished_by("measure without -w"),
    Limit::new(PATH_RATE, &["PATH-09"]).distinguished_by("measure other hosts over the same path"),
    Limit::new(PATH, &["PATH-10", "PATH-11"])
        .distinguished_by("measure other hosts over the same path"),
    Limit::new(PATH_OR_RECEIVER, &["PATH-11"]),
    Limit::new("policer", &["PATH-01"]),
    Limit::new(REORDERING, &["PATH-07"]),
    Limit::new("loss-or-congestion", &["PATH-06"]),
    Limit::new("provider-allowance", &["NIC-06"]),
    Limit::new("virtual-backend", &["VIRT-01"]),
    Limit::new(STEAL, &["CPU-09"]).distinguished_by("measure on a host with reserved CPUs"),
    Limit::new("clock", &["CPU-03"]).distinguished_by("measure with the governor performance"),
    Limit::new("radio", &["LNK-09"]).distinguished_by("measure over a cable"),
    Limit::new("loss-on-path", &["PATH-13"])
        .distinguished_by("measure other hosts over the same path"),
    Limit::new("speed-reading", &["META-03"]),
];

impl Limit {
    const fn new(name: &'static str, rules: &'static [&'static str]) -> Self {
        Self {
            name,
            rules,
            is_certain: false,
            holds_in_slow_start: false,
            experiment: LONGER,
        }
    }

    const fn certain(self) -> Self {
        Self {
            is_certain: true,
            ..self
        }
    }

    const fn during_slow_start(self) -> Self {
        Self {
            holds_in_slow_start: true,
            ..self
        }
    }

    const fn distinguished_by(self, experiment: &'static str) -> Self {
        Self { experiment, ..self }
    }

    pub(crate) fn sentence(&self) -> &'static str {
        limit_sentence(self.name)
    }

    /// `None` for a verdict that names no limit.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|limit| limit.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_sentence() {
        assert_eq!(
            ALL.iter()
                .find(|limit| limit.sentence().is_empty())
                .map(|limit| limit.name),
            None
        );
    }
}
