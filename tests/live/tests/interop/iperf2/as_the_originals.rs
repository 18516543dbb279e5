//! Where a report or a refusal of ours differed from that of the original: windows, rates of
//! frames, last intervals, sums of both ways, what a server has delivered, keys, delayed starts,
//! short datagrams with clocks, TOS bytes.

use std::process::Command;
use std::time::Duration;

use linerate_interop::iperf2::{
    Iperf2, Iperf2Server, Line, PAIRINGS, lines, near, run_iperf2, totals,
};
use linerate_interop::namespaces::{DEVICE, Net, SERVER, run};
use linerate_interop::{Process, TIMEOUT, each_case, wait_for};

#[test]
fn window_of_0_is_the_default() {
    each_case(&PAIRINGS, |pairing| {
        let (client, server) = run_iperf2(*pairing, "-w 0 -n 1M", "-w 0");
        for report in [&client, &server] {
            let window = report
                .stdout
                .lines()
                .find(|line| line.starts_with("TCP window size:"));
            assert!(
                window.is_some_and(|window| window.ends_with("(default)")),
                "{report:?}"
            );
            report.expect_stderr("WARNING: TCP window size set to 0 bytes");
        }
    });
}

#[test]
fn rates_of_frames_may_be_in_datagrams() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u");
    let client = Iperf2::Ours
        .client(server.port, "-u --isochronous=60:10p,0 -t 1")
        .finish();

    // 10 datagrams of 1470 bytes, 60 times a second.
    client
        .expect_code(0)
        .expect_stdout("Isochronous: 60.00 frames/sec mean=7.06 Mbit/s");
    let refused = Iperf2::Ours
        .client(server.port, "--isochronous=60:10p -t 1")
        .finish();
    refused
        .expect_code(1)
        .expect_stderr("ERROR: Invalid --isochronous units of 'p' with TCP must be bytes");
}

#[test]
fn errors_of_the_schedule_of_frames_go_to_standard_error() {
    for transport in ["-u", ""] {
        let server = Iperf2Server::start(Iperf2::Ours, transport);
        let words = format!("{transport} --isochronous=60:4m -t 0.5 --lr-format 2.2");
        let client = Iperf2::Ours.client(server.port, &words).finish();

        let line = "[  1] Isoch schedule errors (mean/min/max/stdev) = ";
        let values = client
            .stderr
            .lines()
            .find_map(|text| text.strip_prefix(line)?.strip_suffix(" ms"));
        let values: Vec<f64> = values
            .unwrap_or_default()
            .split('/')
            .flat_map(str::parse)
            .collect();
        let [mean, min, max, _] = values[..] else {
            panic!("{client:?}")
        };
        assert!(
            min <= mean && mean <= max && max < 1000.0 / 60.0,
            "{client:?}"
        );
    }
}

/// Start and end of rows.
type Intervals = &'static [(u32, u32)];

/// Options of both ends, and the intervals of a stream's rows on the client and on the server, in
/// tenths of a second.
const INTERVALS: [(&str, &str, Intervals, Intervals); 4] = [
    (
        "-t 1.6 -i 1 -b 20m",
        "-i 1",
        &[(0, 10), (10, 16), (0, 16)],
        &[(0, 10), (10, 16), (0, 16)],
    ),
    // A rest of less than a quarter has no row.
    (
        "-t 1.2 -i 1 -b 20m",
        "-i 1",
        &[(0, 10), (0, 12)],
        &[(0, 10), (0, 12)],
    ),
    ("-t 1.7 -i 0.5 -b 20m -P 2", "-i 0.5", LONG, LONG),
    // A sender of datagrams has no row of the rest.
    (
        "-u -t 1.6 -i 1",
        "-u -i 1",
        &[(0, 10), (0, 16)],
        &[(0, 10), (10, 16), (0, 16)],
    ),
];
const LONG: Intervals = &[(0, 5), (5, 10), (10, 15), (15, 17), (0, 17)];

#[test]
fn timed_last_interval_is_the_rest_behind_the_grid() {
    each_case(
        &INTERVALS,
        |(client_words, server_words, on_client, on_server)| {
            let (client, server) =
                run_iperf2((Iperf2::Ours, Iperf2::Ours), client_words, server_words);
            for (report, expected) in [(client, on_client), (server, on_server)] {
                let rows = report
                    .stdout
                    .split("Server Report:")
                    .next()
                    .map(lines)
                    .unwrap_or_default();
                let tenths = |seconds: f64| (seconds * 10.0).round() as u32;
                let found: Vec<(u32, u32)> = rows
                    .iter()
                    .filter(|row| row.label == "1")
                    .map(|row| (tenths(row.start_s), tenths(row.end_s)))
                    .collect();
                assert_eq!(&found[..], *expected, "{report:?}");
            }
        },
    );
}

/// Both ends of a path of 50 Mbit/s with a deep queue.
fn over_a_slow_path(client: &str) -> Option<(Vec<Line>, Vec<Line>)> {
    let net = Net::new()?;
    for namespace in [&net.a, &net.b] {
        run(&format!(
            "tc -n {namespace} qdisc add dev {DEVICE} root tbf rate 50mbit burst 32k limit 1m"
        ));
    }

    let server = Iperf2Server::start_inside(&net.b, Iperf2::Ours, 5001, "-i 1 -f b");
    let words = format!("-c {SERVER} -i 1 -f b {client}");
    let client = Process::start(Iperf2::Ours.command_inside(&net.a, &words)).finish();
    client.expect_code(0);

    let server = server.stop();
    Some((lines(&client.stdout), lines(&server.stdout)))
}

#[test]
fn timed_server_that_sends_counts_what_was_delivered() {
    let Some((client, server)) = over_a_slow_path("-R -t 3") else {
        return;
    };
    let total = |rows: &[Line]| rows.last().map_or(0.0, |row| row.rate);
    near(total(&server), total(&client), 0.02);
    assert!(total(&server) < 50e6, "{server:#?}");
}

#[test]
fn timed_queues_that_drain_have_no_rows_of_their_own() {
    for words in ["-P 2 -t 2.3", "-d -t 2.3"] {
        let Some((client, server)) = over_a_slow_path(words) else {
            return;
        };
        let empty = client
            .iter()
            .chain(&server)
            .filter(|row| row.amount == 0.0)
            .count();
        assert_eq!(empty, 0, "{words}: {client:#?} {server:#?}");
    }
}

#[test]
fn sums_of_flows_in_both_directions_count_datagrams() {
    let (client, server) = run_iperf2(
        (Iperf2::Ours, Iperf2::Ours),
        "-u --full-duplex -P 2 -i 1 -t 1 -b 2m",
        "-u -i 1",
    );
    for report in [&client, &server] {
        report.expect_stdout("[ ID] Interval       Transfer     Bandwidth    Datagrams   PPS");
        let sums: Vec<Line> = lines(&report.stdout)
            .into_iter()
            .filter(|row| row.label == "SUM")
            .collect();
        assert!(
            !sums.is_empty() && sums.iter().all(|row| row.rest.ends_with(" pps")),
            "{report:?}"
        );
    }

    client.expect_stdout("[SUM-4] Sent ");
    assert!(!server.stdout.contains("[SUM-4]"), "{server:?}");
}

#[test]
fn a_key_that_the_server_has_not_is_refused() {
    each_case(&[Iperf2::Original, Iperf2::Ours], |client| {
        let server = Iperf2Server::start(Iperf2::Ours, "");
        let client = client
            .client(server.port, "--permit-key=secret123 -t 1 -b 2m")
            .finish();
        client.expect_stderr("write failed");

        let server = server.stop();
        assert!(totals(&server.stdout).is_empty(), "{server:?}");
    });
}

#[test]
fn the_start_of_a_delayed_test_is_announced() {
    let server = Iperf2Server::start(Iperf2::Ours, "");
    let client = Iperf2::Ours
        .client(server.port, "--txdelay-time 1 -t 0.2 -b 20m")
        .finish();
    client
        .expect_stdout("[  1] Client traffic to start in 1 seconds at ")
        .expect_stdout(" current time is ");
}

#[test]
fn short_datagrams_have_the_time_at_which_the_test_began() {
    each_case(&PAIRINGS, |pairing| {
        for words in [
            "-u --trip-times -l 100 -t 0.3",
            "-u --trip-times -l 92 -t 0.3",
        ] {
            let (_, server) = run_iperf2(*pairing, words, "-u -e");
            server.expect_stdout("(trip-times)");
            assert!(!server.stderr.contains("ignore --trip-times"), "{server:?}");
        }
    });
}

#[test]
fn tos_of_a_server_reaches_the_wire() {
    let server = Iperf2Server::start(Iperf2::Ours, "--tos-override 0xb8");
    let client = Iperf2::Ours.client(server.port, "-R -t 10 -b 1m -l 1000");
    let filter = format!("sport = :{}", server.port);
    let tos = wait_for(TIMEOUT, || {
        let sockets = Command::new("ss")
            .args(["-tnH", "--tos", &filter])
            .output()
            .expect("ss runs");
        let text = String::from_utf8_lossy(&sockets.stdout).into_owned();
        text.contains("tos:").then_some(text)
    });
    assert!(
        tos.as_ref().is_some_and(|text| text.contains("tos:0xb8")),
        "{tos:?}"
    );
    drop(client);
}

/// 2.2.1 shows them unasked.
#[test]
fn requests_and_replies_with_clocks_have_distributions_of_both_ways() {
    let server = Iperf2Server::start(Iperf2::Ours, "");
    let words = "--lr-format 2.2 --bounceback --trip-times -t 1";
    let client = Iperf2::Ours
        .client(server.port, words)
        .finish_within(Duration::from_secs(20));

    for distribution in ["OWD-TX(f)-PDF: ", "OWD-RX(f)-PDF: ", "BB8(f)-PDF: "] {
        client.expect_stdout(distribution);
    }
}

/// A server ignores the option, as the original does.
#[test]
fn a_hold_of_the_server_changes_nothing() {
    each_case(&PAIRINGS, |pairing| {
        let (client, server) = run_iperf2(*pairing, "--bounceback -t 1", "--bounceback-hold 500");
        client
            .expect_stdout("server hold req=0 usecs")
            .expect_stdout(" 10=");
        assert_eq!(server.stderr, "", "{server:?}");
    });
}
