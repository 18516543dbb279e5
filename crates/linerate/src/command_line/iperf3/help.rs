//! The help of the iperf3 dialect, made from the option table.

use super::options::{OPTIONS, OptionRow, Section};
use crate::command_line::help_layout;

/// Printed under every complaint about the command line.
pub const SHORT_USAGE: &str = "\
Usage: iperf3 [-s|-c host] [options]
Try `iperf3 --help' for more information.
";

/// The sections of the help in their order.
pub const SECTIONS: [(Section, &str); 4] = [
    (Section::Both, "Server or Client"),
    (Section::Server, "Server specific"),
    (Section::Client, "Client specific"),
    (Section::Added, "Added by linerate"),
];

/// The long help.
pub fn long_help() -> String {
    let mut help = String::from(
        "Usage: iperf3 [-s|-c host] [options]
       iperf3 [-h|--help] [-v|--version]
",
    );
    for (section, title) in SECTIONS {
        help.push_str(&format!("\n{title}:\n"));
        for option in OPTIONS.iter().filter(|option| option.section == section) {
            help.push_str(&entry(option));
        }
    }
    help.push_str(
        "
Where [KMGT] is shown, a number may be followed by K, M, G or T: powers of 1000 for rates, of 1024 for amounts.
Long options may be shortened as long as they stay unique.
",
    );
    help
}

fn entry(option: &OptionRow) -> String {
    help_layout::entry(option.short, option.long, &option.placeholder(), option.help)
}
