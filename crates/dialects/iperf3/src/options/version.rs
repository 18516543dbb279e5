//! Output of `--version`.

use linerate_sys::caps::Capabilities;

macro_rules! follows {
    () => {
        "3.22"
    };
}

/// The iperf3 release whose command line and messages this dialect follows.
pub const FOLLOWS: &str = follows!();

/// Name and version as reports show them.
const PROGRAM_VERSION: &str = concat!(
    "iperf ",
    follows!(),
    " (linerate ",
    env!("CARGO_PKG_VERSION"),
    ")"
);

/// Three lines: version, system, features. Scripts expect the first to begin with `iperf 3.`.
pub(crate) fn version_text() -> String {
    format!(
        "{}\n{}\nOptional features available: {}\n",
        program_version(),
        system_line(),
        features().join(", ")
    )
}

/// Name and version as reports show them.
#[must_use]
pub fn program_version() -> String {
    PROGRAM_VERSION.to_owned()
}

/// The system as `uname -a` names it, without the operating system's title.
#[must_use]
pub fn system_line() -> String {
    linerate_sys::process::uname().to_string()
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
