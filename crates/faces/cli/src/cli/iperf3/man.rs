//! The manual page of the iperf3 dialect, made from the option table.

use crate::cli::roff::{Page, bold};
use linerate::command_line::iperf3::option_groups;

const EXAMPLES: [(&str, &str); 10] = [
    (
        "linerate iperf3 -s",
        "Serve tests on port 5201 until interrupted.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7",
        "Send TCP to that server for 10 seconds.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 -R -P 4 -t 30",
        "Receive on 4 TCP streams for 30 seconds.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 --bidir",
        "Send and receive at the same time.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 -u -b 100M -l 1400",
        "Send UDP datagrams of 1400 bytes at 100 Mbit/s, and report jitter and loss.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 -n 1G -O 2",
        "Send 1 GiB after a warm-up of 2 seconds.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 -J > result.json",
        "Write the report as one JSON document.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 -C bbr -w 4M",
        "Use the congestion control algorithm bbr and socket buffers of 4 MiB.",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 --username mario --rsa-public-key-path public.pem",
        "Log in; see linerate-logins(7).",
    ),
    (
        "linerate iperf3 -c 192.0.2.7 --lr-doctor",
        "Report after the test what limited it.",
    ),
];

/// The page in the roff language of man(7).
pub(crate) fn man_page() -> String {
    let mut page = Page::new(
        &["linerate-iperf3", "iperf3"],
        1,
        "measure network throughput with the options of iperf3",
    );
    page.section("Synopsis");

    for role in ["-s", "-c HOST"] {
        page.paragraphs(&format!("`linerate iperf3 {role}` [OPTIONS]"));
    }

    page.section("Description");
    page.paragraphs(
        "One end runs as the server, the other as the client. The client opens one or more data \
         streams to the server, moves data for a while, and both ends report what arrived.\n\n\
         The options, the protocol and the reports are those of iperf3 3.22, so either end may be \
         iperf3 from version 3.12 on. Called by the name iperf3, linerate is this command; \
         `linerate links` makes such a name.\n\n\
         Options act in the order they are given; where one is repeated the last one counts. Long \
         options may be shortened as long as they stay unique. Words that are no options are \
         ignored.\n\n\
         Where [KMGT] is shown, a number may be followed by K, M, G or T: powers of 1000 for \
         rates, of 1024 for amounts.",
    );
    option_groups()
        .iter()
        .for_each(|group| page.options(group.title, &group.options));
    page.section("Environment");
    page.item(
        &bold("IPERF3_PASSWORD"),
        "Password for a server that requires a login.",
    );
    page.section("Exit status");
    page.paragraphs(
        "0 when the test was completed, 1 when it was not or the command line was wrong.",
    );
    page.section("Examples");

    for (command, text) in EXAMPLES {
        page.item(&bold(command), text);
    }

    page.references(&["linerate(1)", "linerate-serve(1)", "linerate-logins(7)"].map(String::from));
    page.finish()
}
