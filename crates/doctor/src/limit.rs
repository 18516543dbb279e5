//! What can limit a test: the names of verdicts, the rules that explain each, and the measurement that distinguishes it from others.

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
pub(crate) const PATH: &str = "path";
pub(crate) const REORDERING: &str = "reordering";

/// What distinguishes limits that have no measurement of their own.
pub(crate) const LONGER: &str = "measure for longer (-t 30)";

/// One row of [`ALL`].
#[derive(Debug)]
pub(crate) struct Limit {
    pub(crate) name: &'static str,
    /// Rules that explain it, the strongest first.
    pub(crate) rules: &'static [&'static str],
    pub(crate) sentence: &'static str,
    /// Its own counters or settings prove it; the others are concluded by elimination.
    pub(crate) is_certain: bool,
    /// It holds during slow start as well.
    pub(crate) holds_in_slow_start: bool,
    /// The measurement that shows whether this is the limit.
    pub(crate) experiment: &'static str,
}

/// In the order in which limits explain: the first that was found wins, the next is runner-up.
pub(crate) const ALL: &[Limit] = &[
    Limit::new("invalid", &["META-02", "PATH-04", "QD-03", "TOOL-05", "TOOL-06"], "the measurement is not valid")
        .during_slow_start()
        .certain(),
    Limit::new(CONFIGURED_RATE, &["QD-01"], "this host's own shaper sets the rate").during_slow_start().certain(),
    Limit::new("speed-step", &["LNK-03", "PAU-01"], "a step down in speed without flow control loses packets")
        .certain(),
    Limit::new("line-rate", &["TOP-01"], "the link is full").during_slow_start().certain(),
    Limit::new("link", &["LNK-02", "LNK-01", "LNK-04", "LNK-05", "LNK-08"], "the link itself is impaired").certain(),
    Limit::new("tool-limit", &["TOOL-01", "TOOL-03", "TOOL-07"], "the test tool is the limit").certain(),
    Limit::new("path-mtu", &["MTU-02"], "the path drops large packets").certain(),
    Limit::new(QUOTA, &["CPU-04"], "a CPU quota throttles the test").distinguished_by("measure without the quota"),
    Limit::new(OTHER_PROGRAMS, &["CPU-07"], "other programs use the CPUs of the test")
        .distinguished_by("end the other programs and measure again"),
    Limit::new(OFFLOAD, &["OFF-01"], "segmentation offload is off, so the sender's CPU is the limit")
        .distinguished_by("switch the segmentation offload on and measure again"),
    Limit::new(HOST_CPU, &["CPU-08"], "the host that runs both ends is the limit")
        .distinguished_by("run client and server on two hosts"),
    Limit::new(APPLICATION, &["APP-01"], "the application has nothing to send")
        .distinguished_by("measure without a file and without a target rate"),
    Limit::new(SENDER_CPU, &["CPU-01"], "the sender's CPU is the limit")
        .distinguished_by("measure with larger writes (-l 1M) or more streams (-P 4)"),
    Limit::new(RECEIVER_CPU, &["UDP-01", "CPU-02"], "the receiving application is too slow")
        .distinguished_by("measure with more streams (-P 4)"),
    Limit::new(
        RECEIVER_SOFTIRQ,
        &["SOFT-01", "IRQ-01", "IRQ-02", "CPU-02"],
        "the receiver's interrupt work is the limit",
    )
    .distinguished_by("spread the receive interrupts over more CPUs and measure again"),
    Limit::new(FIREWALL, &["FW-01"], "the firewall of one of the two hosts drops packets")
        .distinguished_by("measure with a rule that accepts the test's port first"),
    Limit::new("pcie", &["PCI-02", "PCI-03"], "the PCIe slot of the NIC is full").certain(),
    Limit::new("nic-queue-rx", &["NIC-02", "NIC-01", "NIC-03"], "the receiver's NIC drops packets").certain(),
    Limit::new("flow-control", &["PAU-03", "PAU-04"], "pause frames from downstream stop the sender").certain(),
    Limit::new("nic-queue-tx", &["NIC-04", "QD-02"], "the sender's own queue drops or stalls").certain(),
    Limit::new(RECEIVER_WINDOW, &["WIN-01"], "the receiver's window is too small")
        .distinguished_by("raise net.ipv4.tcp_rmem on the receiver and measure again"),
    Limit::new(SENDER_WINDOW, &["WIN-02"], "the sender's buffer is too small")
        .distinguished_by("raise net.ipv4.tcp_wmem on the sender and measure again"),
    Limit::new(PATH, &["PATH-10"], "the path between the hosts is the limit")
        .distinguished_by("measure other hosts over the same path"),
    Limit::new("policer", &["PATH-01"], "a policer on the path drops packets above its rate"),
    Limit::new(REORDERING, &["PATH-07"], "packets are reordered"),
    Limit::new("loss-or-congestion", &["PATH-06"], "packets are lost on the path"),
    Limit::new("virtual-backend", &["VIRT-01", "NIC-06"], "the host of the virtual NIC is the limit"),
    Limit::new(STEAL, &["CPU-09"], "the hypervisor gives the CPUs of the test to other guests")
        .distinguished_by("measure on a host with reserved CPUs"),
];

impl Limit {
    const fn new(name: &'static str, rules: &'static [&'static str], sentence: &'static str) -> Self {
        Self { name, rules, sentence, is_certain: false, holds_in_slow_start: false, experiment: LONGER }
    }

    const fn certain(self) -> Self {
        Self { is_certain: true, ..self }
    }

    const fn during_slow_start(self) -> Self {
        Self { holds_in_slow_start: true, ..self }
    }

    const fn distinguished_by(self, experiment: &'static str) -> Self {
        Self { experiment, ..self }
    }

    /// `None` for a verdict that names no limit.
    pub(crate) fn of(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|limit| limit.name == name)
    }
}
