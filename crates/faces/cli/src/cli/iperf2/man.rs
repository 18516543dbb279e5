//! The manual page of the iperf 2 dialect, made from the option table.

use crate::cli::roff::{Page, bold};
use linerate::command_line::iperf2::{option_groups, options_without_effect, variables};

const EXAMPLES: [(&str, &str); 9] = [
    (
        "linerate iperf2 -s",
        "Serve TCP tests on port 5001 until interrupted.",
    ),
    (
        "linerate iperf2 -s -u -i 1",
        "Serve UDP tests, and report every second.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 -i 1",
        "Send TCP to that server for 10 seconds.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 -P 4 -R",
        "Receive on 4 TCP streams.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 -u -b 100m -l 1400",
        "Send UDP datagrams of 1400 bytes at 100 Mbit/s, and show the server's report.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 -e --trip-times",
        "Report more columns, and one-way delays on the server; the clocks must agree.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 --bounceback=20",
        "Measure the round-trip time of 20 requests per second.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 -u --isochronous=60:20m,2m",
        "Send 60 video frames per second at 20 Mbit/s.",
    ),
    (
        "linerate iperf2 -c 192.0.2.7 -y C",
        "Report as comma-separated values.",
    ),
];

/// The page in the roff language of man(7).
pub(crate) fn man_page() -> String {
    let mut page = Page::new(
        &["linerate-iperf2", "iperf", "iperf2"],
        1,
        "measure network throughput and latency with the options of iperf 2",
    );
    page.section("Synopsis");

    for role in ["-s", "-c HOST"] {
        page.paragraphs(&format!("`linerate iperf2 {role}` [OPTIONS]"));
    }

    page.section("Description");
    page.paragraphs(
        "One end runs as the server, the other as the client. The client opens one or more \
         connections or flows to the server, moves data for a while, and both ends report what \
         arrived.\n\n\
         The options, the protocol and the reports are those of iperf 2.1.8 and 2.2.1, so either \
         end may be one of these. Called by the name iperf or iperf2, linerate is this command; \
         `linerate links` makes such names.\n\n\
         Where [kmgKMG] is shown, a number may be followed by a letter: k, m and g are powers of \
         1000, K, M and G of 1024. Values that may be left out need the sign: --bounceback=5, not \
         --bounceback 5. Long options may be shortened as long as they stay unique.",
    );
    let mut groups = option_groups();
    let refused = groups.pop().map(|group| group.options).unwrap_or_default();

    groups
        .iter()
        .for_each(|group| page.options(group.title, &group.options));
    page.options(
        "Refused or without effect",
        &[options_without_effect(), refused].concat(),
    );
    page.section("Environment");
    page.paragraphs(
        "These variables hold defaults of options; the command line has precedence. For an option \
         without a value the presence of its variable is enough.",
    );

    for (variable, long) in variables() {
        page.item(&bold(variable), &format!("The default of --{long}."));
    }

    page.section("Exit status");
    page.paragraphs(
        "0, even when a test failed, as with iperf 2; 1 when the command line was wrong.",
    );
    page.section("Examples");

    for (command, text) in EXAMPLES {
        page.item(&bold(command), text);
    }

    page.references(&["linerate(1)", "linerate-serve(1)"].map(String::from));
    page.finish()
}
