//! The help and the version of the iperf 2 dialect, made from the option table.

use std::ffi::OsStr;

use super::args::Layout;
use super::options::{OPTIONS, OptionRow, Section};
use crate::command_line::help_layout;

/// The sections of the help in their order.
pub const SECTIONS: [(Section, &str); 5] = [
    (Section::Both, "Client or server"),
    (Section::Server, "Server"),
    (Section::Client, "Client"),
    (Section::Reports, "Reports"),
    (Section::Added, "Added by linerate"),
];

/// Printed without an option that selects client or server.
pub fn short_usage(program: &OsStr) -> Vec<u8> {
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
pub fn version(layout: Layout) -> String {
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
pub fn long_help() -> String {
    let mut help = String::from(
        "Usage: iperf [-s|-c host] [options]
       iperf [-h|--help] [-v|--version]
",
    );
    for (section, title) in SECTIONS {
        help.push_str(&format!("\n{title}:\n"));
        for option in OPTIONS.iter().filter(|option| option.section == section) {
            help.push_str(&entry(option));
        }
    }
    help.push_str("\nKnown and refused:\n");
    for option in OPTIONS.iter().filter(|option| option.section == Section::Refused) {
        help.push_str(&entry(option));
    }
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

fn entry(option: &OptionRow) -> String {
    help_layout::entry(option.short, option.long, &option.placeholder(), option.help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refused_options_are_not_offered() {
        let help = long_help();
        let (offered, refused) = help.split_once("\nKnown and refused:\n").expect("a section of its own");
        for name in ["--realtime", "--tcp-tx-delay", "--sum-dstip", "--jitter-histograms"] {
            assert!(!offered.contains(name) && refused.contains(name), "{name}");
        }
        assert!(!offered.contains("N[kmgKMG][,DEV] | Npps"));
    }
}
