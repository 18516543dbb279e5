//! The iperf 2 dialect as a command, for its manual page.

use clap::Command;
use linerate::command_line::OptionGroup;
use linerate::command_line::iperf2::{option_groups, options_without_effect, variables};

use crate::dialect_options::with_options;

/// The command, with the options of the table.
pub(crate) fn command() -> Command {
    let mut groups = option_groups();
    let refused = groups.pop().map(|group| group.options).unwrap_or_default();
    groups.push(OptionGroup {
        title: "Refused or without effect",
        options: [options_without_effect(), refused].concat(),
    });
    let mut notes = NOTES.to_owned();
    for (variable, long) in variables() {
        notes.push_str(&format!("\n  {variable}  The default of --{long}."));
    }

    let command = Command::new("iperf2")
        .about("measure network throughput and latency with the options of iperf 2")
        .long_about(ABOUT)
        .override_usage("linerate iperf2 -s [OPTIONS]\nlinerate iperf2 -c HOST [OPTIONS]")
        .after_help(notes);
    with_options(command, &groups)
}

const ABOUT: &str = "\
One end runs as the server, the other as the client. The client opens one or more connections or flows to the server,
moves data for a while, and both ends report what arrived.

The options, the protocol and the reports are those of iperf 2.1.8 and 2.2.1, so either end may be one of these. Called
by the name iperf or iperf2, linerate is this command; `linerate links` makes such names.

Where [kmgKMG] is shown, a number may be followed by a letter: k, m and g are powers of 1000, K, M and G of 1024. Values
that may be left out need the sign: --bounceback=5, not --bounceback 5. Long options may be shortened as long as they stay
unique.";

const NOTES: &str = "\
Exit codes: 0, even when a test failed, as with iperf 2; 1 when the command line was wrong.

Examples:
  linerate iperf2 -s  Serve TCP tests on port 5001 until interrupted.
  linerate iperf2 -s -u -i 1  Serve UDP tests, and report every second.
  linerate iperf2 -c 192.0.2.7 -i 1  Send TCP to that server for 10 seconds.
  linerate iperf2 -c 192.0.2.7 -P 4 -R  Receive on 4 TCP streams.
  linerate iperf2 -c 192.0.2.7 -u -b 100m -l 1400  Send UDP datagrams of 1400 bytes at 100 Mbit/s, and show the server's report.
  linerate iperf2 -c 192.0.2.7 -e --trip-times  Report more columns, and one-way delays on the server; the clocks must agree.
  linerate iperf2 -c 192.0.2.7 --bounceback=20  Measure the round-trip time of 20 requests per second.
  linerate iperf2 -c 192.0.2.7 -u --isochronous=60:20m,2m  Send 60 video frames per second at 20 Mbit/s.
  linerate iperf2 -c 192.0.2.7 -y C  Report as comma-separated values.

The variables of the environment hold defaults of options; the command line has precedence. For an option without a value
the presence of its variable is enough.

Environment:";
