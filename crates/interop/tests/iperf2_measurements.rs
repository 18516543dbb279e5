//! What iperf 2 reports measure is the path, not the program: delays, jitter and sizes of reads beside the original's.

use linerate_interop::iperf2::{Iperf2, run_iperf2, totals};
use linerate_interop::{Finished, patiently};

/// The kernel's pacing of a sender is no delay of the path. Of two segments of a block the second would wait for 100 ms.
#[test]
fn a_rate_over_tcp_does_not_appear_as_delay_of_the_path() {
    patiently(|| {
        for server in [Iperf2::Original, Iperf2::Ours] {
            let (_, server) = run_iperf2((Iperf2::Ours, server), "-b 4m -t 1 --trip-times", "-e");
            let delay_ms = mean_delay_ms(&server);
            assert!(delay_ms < 20.0, "{delay_ms} ms: {server:?}");
        }
    });
}

/// The banner names the length of a write, so a rate must not change it: small writes show as many small reads.
#[test]
fn a_rate_over_tcp_does_not_change_the_length_of_a_write() {
    patiently(|| {
        let (client, server) = run_iperf2((Iperf2::Ours, Iperf2::Original), "-b 20m -t 1 -e", "-e");
        let writes: u32 = number_before(&totals(&client.stdout)[0].rest, '/');
        let reads: u32 = number_before(&totals(&server.stdout)[0].rest, '=');
        assert!(writes > 10 && reads < 8 * writes, "{writes} writes: {server:?}");
    });
}

/// The mean of the delays of a receiver's line, which are its only four numbers with slashes.
fn mean_delay_ms(report: &Finished) -> f64 {
    delays_ms(report)[0]
}

/// Mean, least, greatest and deviation.
fn delays_ms(report: &Finished) -> [f64; 4] {
    let line = totals(&report.stdout).into_iter().next();
    let rest = line.unwrap_or_else(|| panic!("no line: {report:?}")).rest;
    let series = |word: &str| {
        let numbers: Vec<f64> = word.split('/').filter_map(|number| number.parse().ok()).collect();
        <[f64; 4]>::try_from(numbers).ok()
    };
    let found = rest.split_whitespace().find_map(series);
    found.unwrap_or_else(|| panic!("no delays: {report:?}"))
}

fn number_before(text: &str, sign: char) -> u32 {
    let number = text.split(sign).next().and_then(|number| number.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no number before {sign:?}: {text:?}"))
}
