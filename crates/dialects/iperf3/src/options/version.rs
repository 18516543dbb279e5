//! Output of `--version`.

use linerate_sys::caps::Capabilities;

use crate::version::{program_version, system_line};

/// Three lines: version, system, features. Scripts expect the first to begin with `iperf 3.`.
pub(crate) fn version_text() -> String {
    format!(
        "{}\n{}\nOptional features available: {}\n",
        program_version(),
        system_line(),
        features().join(", ")
    )
}

/// Features of this build and kernel, in the words of `iperf3 --version`.
fn features() -> Vec<&'static str> {
    let capabilities = Capabilities::probe();
    let always = [
        "CPU affinity setting",
        "IPv6 flow label",
        "TCP congestion algorithm setting",
        "sendfile / zerocopy",
        "socket pacing",
        "authentication",
        "bind to device",
        "support IPv4 don't fragment",
        "POSIX threads",
    ];

    let probed = [
        (capabilities.sctp, "SCTP"),
        (capabilities.mptcp, "MPTCP"),
        (
            capabilities.udp_gso && capabilities.udp_gro,
            "GSO/GRO support",
        ),
    ];
    always
        .into_iter()
        .chain(
            probed
                .iter()
                .filter(|(present, _)| *present)
                .map(|(_, name)| *name),
        )
        .collect()
}
