//! The iperf3 dialect as a command, for its manual page and its completions.

use clap::Command;
use linerate::command_line::iperf3::option_groups;

use crate::dialect_options::with_options;

/// The command, with the options of the table.
pub(crate) fn command() -> Command {
    let command = Command::new("iperf3")
        .about("measure network throughput with the options of iperf3")
        .long_about(ABOUT)
        .override_usage("linerate iperf3 -s [OPTIONS]\nlinerate iperf3 -c HOST [OPTIONS]")
        .after_help(NOTES);
    with_options(command, &option_groups())
}

const ABOUT: &str = "\
One end runs as the server, the other as the client. The client opens one or more data streams to the server, moves data
for a while, and both ends report what arrived.

The options, the protocol and the reports are those of iperf3 3.22, so either end may be iperf3 from version 3.12 on.
Called by the name iperf3, linerate is this command; `linerate links` makes such a name.

Options act in the order they are given; where one is repeated the last one counts. Long options may be shortened as long
as they stay unique. Arguments that are no options are ignored.

Where [KMGT] is shown, a number may be followed by K, M, G or T: powers of 1000 for rates, of 1024 for amounts.";

const NOTES: &str = "\
Environment:
  IPERF3_PASSWORD  Password for a server that requires a login.

Exit codes: 0 when the test was completed, 1 when it was not or the command line was wrong.

Examples:
  linerate iperf3 -s  Serve tests on port 5201 until interrupted.
  linerate iperf3 -c 192.0.2.7  Send TCP to that server for 10 seconds.
  linerate iperf3 -c 192.0.2.7 -R -P 4 -t 30  Receive on 4 TCP streams for 30 seconds.
  linerate iperf3 -c 192.0.2.7 --bidir  Send and receive at the same time.
  linerate iperf3 -c 192.0.2.7 -u -b 100M -l 1400  Send UDP datagrams of 1400 bytes at 100 Mbit/s, and report jitter and loss.
  linerate iperf3 -c 192.0.2.7 -n 1G -O 2  Send 1 GiB after a warm-up of 2 seconds.
  linerate iperf3 -c 192.0.2.7 -J > result.json  Write the report as one JSON document.
  linerate iperf3 -c 192.0.2.7 -C bbr -w 4M  Use the congestion control algorithm bbr and socket buffers of 4 MiB.
  linerate iperf3 -c 192.0.2.7 --username mario --rsa-public-key-path public.pem  Log in; see linerate-logins(7).
  linerate iperf3 -c 192.0.2.7 --lr-doctor  Report after the test what limited it.";
