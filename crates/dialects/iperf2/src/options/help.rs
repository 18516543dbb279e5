//! The help and the version of the iperf 2 dialect, made from the option table.

use std::ffi::OsStr;

use linerate_model::command_line::table::listing;

use super::table::option_groups;
use crate::report::Layout;

/// Printed without an option that selects client or server.
pub(crate) fn short_usage(program: &OsStr) -> Vec<u8> {
    let program = program.as_encoded_bytes();
    let lines: [&[u8]; 5] = [
        b"Usage: ",
        program,
        b" [-s|-c host] [options]\nTry `",
        program,
        b" --help' for more information.\n",
    ];
    lines.concat()
}

/// The version in the form scripts know.
pub(crate) fn version(layout: Layout) -> String {
    let release = match layout {
        Layout::V2_1 => "2.1.8",
        Layout::V2_2 => "2.2.1",
    };
    format!(
        "iperf version {release} (linerate {}) pthreads\n",
        env!("CARGO_PKG_VERSION")
    )
}

/// The long help.
pub(crate) fn long_help() -> String {
    let mut help = String::from(
        "Usage: iperf [-s|-c host] [options]
       iperf [-h|--help] [-v|--version]
",
    );
    help.push_str(&listing(&option_groups()));
    help.push_str(
        "
Where [kmgKMG] is shown, a number may be followed by a letter: k, m and g are powers of 1000, K, M and G of 1024.
Values that may be left out need the sign: --bounceback=5, not --bounceback 5.
Long options may be shortened as long as they stay unique. The environment may hold defaults: TCP_WINDOW_SIZE for -w,
IPERF_ and the long name in capitals for most others, such as IPERF_BANDWIDTH.
",
    );

    help
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_options_are_not_offered() {
        let help = long_help();
        let (offered, refused) = help
            .split_once("\nKnown and refused:\n")
            .expect("a section of its own");

        for name in [
            "--realtime",
            "--tcp-tx-delay",
            "--sum-dstip",
            "--jitter-histograms",
        ] {
            assert!(!offered.contains(name) && refused.contains(name), "{name}");
        }

        assert!(!offered.contains("N[kmgKMG][,DEV] | Npps"));
    }
}
