//! The help of the iperf3 dialect, made from the option table.

use linerate_model::command_line::table::{OptionGroup, listing};
use linerate_sys::caps::Capabilities;

use crate::version::{program_version, system_line};

/// Printed under every complaint about the command line.
pub(crate) const SHORT_USAGE: &str = "\
Usage: iperf3 [-s|-c host] [options]
Try `iperf3 --help' for more information.
";

/// The long help of these options.
pub(crate) fn long_help(options: &[OptionGroup]) -> String {
    let mut help = String::from(
        "Usage: iperf3 [-s|-c host] [options]
       iperf3 [-h|--help] [-v|--version]
",
    );
    help.push_str(&listing(options));
    help.push_str(
        "
Where [KMGT] is shown, a number may be followed by K, M, G or T: powers of 1000 for rates, of 1024 for amounts.
Long options may be shortened as long as they stay unique.
",
    );

    help
}

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
