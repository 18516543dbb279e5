//! Periodic bursts over TCP: their number, the writes that make them, and a row of the server's
//! report for each.

use linerate_interop::iperf2::{Iperf2, Line, PAIRINGS, lines, run_iperf2, totals};
use linerate_interop::{Finished, each_case};

const WORDS: &str = "--burst-size 1M --burst-period 0.25 -t 1 -i 1 -f B";

#[test]
fn a_burst_is_not_sent_when_the_time_is_up_and_consists_of_blocks() {
    for server in [Iperf2::Original, Iperf2::Ours] {
        let (client, _) = run_iperf2((Iperf2::Ours, server), WORDS, "-f B");
        let total = total(&client);
        assert_eq!(bursts(&total), 4, "{client:?}");
        assert!(total.rest.starts_with("32/0 "), "{client:?}");
    }
}

#[test]
fn a_server_has_one_row_for_each_burst() {
    each_case(&PAIRINGS, |pairing| {
        let (_, server) = run_iperf2(*pairing, WORDS, "-i 0.5 -f B");
        let mut rows = lines(&server.stdout);
        let last = rows.pop().unwrap_or_else(|| panic!("{server:?}"));
        assert_eq!(bursts(&last), 4, "{server:?}");
        assert_eq!(rows.len(), 4, "{server:?}");
        assert!(rows.iter().all(|row| bursts(row) == 1), "{server:?}");

        // The original's rows of 2.1.8 all begin at 0.
        if pairing.1 == Iperf2::Ours {
            let is_apart = |pair: &[Line]| pair[0].end_s <= pair[1].start_s;
            assert!(rows.windows(2).all(is_apart), "{server:?}");
        }
    });
}

/// Whole bursts of a line; the header of the test may come on top.
fn bursts(line: &Line) -> u32 {
    (line.amount / 1_048_576.0) as u32
}

fn total(report: &Finished) -> Line {
    totals(&report.stdout)
        .pop()
        .unwrap_or_else(|| panic!("{report:?}"))
}
