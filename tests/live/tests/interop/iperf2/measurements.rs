//! Reports of iperf 2 measure the path, not the program: delays, jitter and sizes of reads
//! beside the original's.

use linerate_interop::iperf2::{Iperf2, Iperf2Server, run_iperf2, totals};
use linerate_interop::{Finished, Process, Server, Signal, original, ours};

/// The kernel's pacing of a sender is no delay of the path. Of two segments of a block the second
/// would wait for 100 ms.
#[test]
fn timed_a_rate_over_tcp_does_not_appear_as_delay_of_the_path() {
    for server in [Iperf2::Original, Iperf2::Ours] {
        let (_, server) = run_iperf2((Iperf2::Ours, server), "-b 4m -t 1 --trip-times", "-e");
        let delay_ms = delays_ms(&server)[0];
        assert!(delay_ms < 20.0, "{delay_ms} ms: {server:?}");
    }
}

/// The banner names the length of a write, so a rate must not change it: small writes show as many
/// small reads.
#[test]
fn timed_a_rate_over_tcp_does_not_change_the_length_of_a_write() {
    let (client, server) = run_iperf2((Iperf2::Ours, Iperf2::Original), "-b 20m -t 1 -e", "-e");
    let writes: u32 = number_before(&totals(&client.stdout)[0].rest, '/');
    let reads: u32 = number_before(&totals(&server.stdout)[0].rest, '=');
    assert!(
        writes > 10 && reads < 8 * writes,
        "{writes} writes: {server:?}"
    );
}

/// A datagram arrives when the kernel receives it: a receiver that is held up for half a second
/// measures the path all the same.
#[test]
fn timed_delayed_receiver_measures_no_delay_of_datagrams() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u -e");
    let client = Iperf2::Original.client(server.port, "-u -t 1.5 -i 0.5 -b 1m --trip-times -e");
    hold_up(&server.process, &client);
    client.finish().expect_code(0);

    let server = server.stop();
    let greatest_ms = delays_ms(&server)[2];
    assert!(greatest_ms < 100.0, "{greatest_ms} ms: {server:?}");
}

/// The same for iperf3, whose jitter keeps a disturbance for some sixteen datagrams.
#[test]
fn timed_delayed_receiver_measures_no_jitter_of_datagrams() {
    let server = Server::start(ours(), &[]);
    let words = [
        "-u",
        "-t",
        "2",
        "-i",
        "0.5",
        "-b",
        "200K",
        "-l",
        "1000",
        "--forceflush",
    ];
    let client = server.client(original(), "127.0.0.1", &words);
    hold_up(&server.process, &client);

    let client = client.finish();
    client.expect_code(0);
    let receiver = client
        .stdout
        .lines()
        .find(|line| line.ends_with("receiver"));
    let words: Vec<&str> = receiver
        .unwrap_or_else(|| panic!("{client:?}"))
        .split_whitespace()
        .collect();
    let at = words
        .iter()
        .rposition(|word| *word == "ms")
        .unwrap_or_else(|| panic!("{client:?}"));
    let jitter_ms: f64 = words[at - 1].parse().expect("a number before its unit");
    assert!(jitter_ms < 3.0, "{jitter_ms} ms: {client:?}");
}

/// Stops `server` from the first interval of `client` to the second, half a second of data.
fn hold_up(server: &Process, client: &Process) {
    client.wait_for_stdout(" sec ", 1);
    server.signal(Signal::Stop);
    client.wait_for_stdout(" sec ", 2);
    server.signal(Signal::Continue);
}

/// The rows of the intervals of a server add up to that of the whole test: none is missing.
#[test]
fn timed_the_last_interval_has_its_row_of_comma_separated_values() {
    for transport in ["", "-u"] {
        let words = format!("{transport} -t 0.9 -b 20m");
        let pairing = (Iperf2::Original, Iperf2::Ours);
        let (_, server) = run_iperf2(pairing, &words, &format!("{transport} -i 0.5 -y C"));
        let rows: Vec<Vec<&str>> = server
            .stdout
            .lines()
            .map(|row| row.split(',').collect())
            .collect();
        let bytes: Vec<u64> = rows
            .iter()
            .filter_map(|row| row.get(7)?.parse().ok())
            .collect();
        let Some((total, intervals)) = bytes.split_last() else {
            panic!("{server:?}")
        };
        assert_eq!(
            (intervals.len(), intervals.iter().sum::<u64>()),
            (2, *total),
            "{server:?}"
        );
    }
}

/// Mean, least, greatest and deviation of the delays of a receiver's line, which are its only four
/// numbers with slashes.
fn delays_ms(report: &Finished) -> [f64; 4] {
    let line = totals(&report.stdout).into_iter().next();
    let rest = line.unwrap_or_else(|| panic!("no line: {report:?}")).rest;

    let series = |word: &str| {
        let numbers: Vec<f64> = word
            .split('/')
            .filter_map(|number| number.parse().ok())
            .collect();
        <[f64; 4]>::try_from(numbers).ok()
    };
    let found = rest.split_whitespace().find_map(series);
    found.unwrap_or_else(|| panic!("no delays: {report:?}"))
}

fn number_before(text: &str, sign: char) -> u32 {
    let number = text
        .split(sign)
        .next()
        .and_then(|number| number.trim().parse().ok());
    number.unwrap_or_else(|| panic!("no number before {sign:?}: {text:?}"))
}
