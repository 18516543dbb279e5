//! The texts of what can limit a test.

/// Name of a verdict, what it names in words, and the sentence that concludes it.
const LIMITS: [(&str, &str, &str); 42] = [
    ("invalid", "invalid", "the measurement is not valid"),
    (
        "configured-rate",
        "the configured rate",
        "this host's own shaper sets the rate",
    ),
    (
        "speed-step",
        "a speed step",
        "a step down in speed without flow control loses packets",
    ),
    (
        "one-direction",
        "one direction",
        "one direction is much slower than the other, and loses segments",
    ),
    (
        "link-speed",
        "the speed of the link",
        "the link runs at a lower speed than its ends can do",
    ),
    ("line-rate", "the link's rate", "the link is full"),
    ("radio", "the radio link", "the radio link sets the rate"),
    (
        "bond-member",
        "a member of a bond",
        "all streams share one member of the bond",
    ),
    ("link", "the link", "the link itself is impaired"),
    (
        "slower-link",
        "a slower link",
        "the rate is that of a slower link: a hop on the path, or another interface of this host",
    ),
    ("tool-limit", "the test tool", "the test tool is the limit"),
    ("path-mtu", "the path MTU", "the path drops large packets"),
    (
        "duplicate-address",
        "a duplicate address",
        "two hosts use one address",
    ),
    ("cpu-quota", "a CPU quota", "a CPU quota throttles the test"),
    (
        "other-programs",
        "other programs",
        "other programs use the CPUs of the test",
    ),
    (
        "offload",
        "missing offloads",
        "segmentation offload is off, so the sender's CPU is the limit",
    ),
    (
        "host-cpu",
        "the CPUs of this host",
        "the host that runs both ends is the limit",
    ),
    (
        "application-limited",
        "the application",
        "the application has nothing to send",
    ),
    (
        "sender-cpu",
        "the sender's CPU",
        "the sender's CPU is the limit",
    ),
    (
        "receiver-cpu-app",
        "the receiver's CPU",
        "the receiving application is too slow",
    ),
    (
        "receiver-cpu-softirq",
        "the receiver's soft interrupts",
        "the receiver's interrupt work is the limit",
    ),
    (
        "firewall",
        "a firewall",
        "the firewall of one of the two hosts drops packets",
    ),
    ("pcie", "PCIe", "the PCIe slot of the NIC is full"),
    (
        "nic-queue-rx",
        "the receiver's NIC",
        "the receiver's NIC drops packets",
    ),
    (
        "flow-control",
        "pause frames",
        "pause frames from downstream stop the sender",
    ),
    (
        "no-flow-control",
        "missing flow control",
        "the NIC drops frames that flow control would hold back",
    ),
    (
        "nic-queue-tx",
        "the sender's queue",
        "the sender's own queue drops or stalls",
    ),
    (
        "receiver-window",
        "the receive window",
        "the receiver's window is too small",
    ),
    (
        "sender-window",
        "the send buffer",
        "the sender's buffer is too small",
    ),
    (
        "fixed-window",
        "a fixed window",
        "a window of fixed size sets the rate",
    ),
    (
        "path-rate",
        "the narrowest hop of the path",
        "the narrowest hop of the path sets the rate",
    ),
    (
        "path",
        "the path",
        "the path between the hosts is the limit",
    ),
    (
        "path-or-receiver",
        "the path or the receiver",
        "undecided between the path and the receiver: compare `nstat -az UdpRcvbufErrors` on the \
         receiver before and after a test to tell them apart",
    ),
    (
        "loss-on-path",
        "loss on the path",
        "probes are lost on the path",
    ),
    (
        "policer",
        "a policer",
        "a policer on the path drops packets above its rate",
    ),
    ("reordering", "reordering", "packets are reordered"),
    ("loss-or-congestion", "loss", "packets are lost on the path"),
    (
        "virtual-backend",
        "the virtual NIC's host",
        "the host of the virtual NIC is the limit",
    ),
    (
        "provider-allowance",
        "an allowance of the provider",
        "the provider's allowance for this machine is exceeded",
    ),
    (
        "clock",
        "the clock of the CPU",
        "power saving holds the clock of the CPU down",
    ),
    (
        "speed-reading",
        "the reading of the link speed",
        "no limit found, and the reading of the link speed is contradicted",
    ),
    (
        "cpu-steal",
        "the hypervisor",
        "the hypervisor gives the CPUs of the test to other guests",
    ),
];

fn text(verdict: &str) -> Option<&'static (&'static str, &'static str, &'static str)> {
    LIMITS.iter().find(|(name, ..)| *name == verdict)
}

/// The limit that a verdict names, in words; a verdict that names none by its own name.
#[must_use]
pub fn limit_name(verdict: &str) -> String {
    text(verdict).map_or_else(
        || verdict.replace('-', " "),
        |(_, words, _)| (*words).to_owned(),
    )
}

/// The sentence of a verdict; empty for one that names no limit.
#[must_use]
pub fn limit_sentence(verdict: &str) -> &'static str {
    text(verdict).map_or("", |(.., sentence)| sentence)
}
