//! The help of the iperf3 dialect, made from the option table.

use linerate_model::command_line::table::{OptionGroup, listing};

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
