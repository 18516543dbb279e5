//! TCP in iperf 2's dialect against the original, in both roles: every mode, asserting bytes,
//! contents and exit codes.

use std::time::Duration;

use linerate_interop::iperf2::{
    Iperf2, Iperf2Server, Line, amounts, lines, near, run_iperf2, totals,
};
use linerate_interop::{Finished, Process, iperf2_modes};

const MIB: f64 = 1_048_576.0;

iperf2_modes! {
    tcp_amount_is_moved: "-n 1M -f B", "-f B" => |c, s| equal(c, s, &[MIB]);
    tcp_amount_is_exact_to_the_byte: "-n 1000001 -f B", "-f B" => |c, s| equal(c, s, &[1_000_001.0]);
    tcp_amount_is_exact_with_short_writes: "-n 100K -l 999 -f B", "-f B" => |c, s| equal(c, s, &[102_400.0]);
    tcp_reverse_moves_the_amount: "-n 1M -R -f B", "-f B" => |c, s| {
        equal(c, s, &[MIB]);
        c.expect_stdout("(reverse)");
        s.expect_stdout("(reverse)");
    };
    tcp_peer_detection_leaves_the_amount: "-n 1M -X -f B", "-f B" => |c, s| equal(c, s, &[MIB]);
    tcp_socket_options_are_reported: "-n 1M -M 1000 -N -S 0x20 -w 64K -f B", "-f B" => |c, s| {
        equal(c, s, &[MIB]);
        c.expect_stdout("MSS req size 1000 bytes").expect_stdout("WARNING: requested");
    };
    tcp_trip_times_show_delays_of_bursts: "-n 1M --trip-times -f B", "-f B" => |c, s| {
        equal(c, s, &[MIB + 80.0]);
        s.expect_stdout("Burst Latency avg/min/max/stdev");
    };
    tcp_in_both_directions_at_once: "-n 1M -d -L BACK -f B", "-f B" => |c, s| equal(c, s, &[MIB; 2]);
    tcp_in_one_direction_after_the_other: "-n 1M -r -L BACK -f B", "-f B" => |c, s| equal(c, s, &[MIB; 2]);
    tcp_more_columns_show_writes_and_window: "-n 4M -e -f B", "-f B" => |c, s| {
        same(c, s);
        c.expect_stdout("Write/Err  Rtry");
        assert!(totals(&c.stdout)[0].rest.contains('K'), "a window: {c:?}");
    };
    tcp_near_congestion_is_reported: "-n 4M --near-congestion -f B", "-f B" => |c, s| {
        // The original counts every write twice in this mode.
        let (sent, arrived) = (amounts(&c.stdout)[0], amounts(&s.stdout)[0]);
        assert!(sent == arrived || (sent - 2.0 * arrived).abs() < 131_072.0, "{c:?} {s:?}");
        c.expect_stdout("TCP near-congestion delay weight set to 0.5000");
    };
    tcp_connect_only_counts_connections: "--connect-only=3", "-f B" => |c, _| {
        assert_eq!(c.stdout.matches("connected with").count(), 3, "{c:?}");
        c.expect_stdout("TCP three-way-handshake (3WHS) only");
    };
    tcp_without_a_header_is_counted: "-n 1M -C -f B", "-f B" => |c, s| {
        assert_eq!(amounts(&c.stdout), [MIB], "{c:?}");
        // The original does not count the four bytes it reads first.
        let arrived = amounts(&s.stdout);
        assert!(arrived == [MIB] || arrived == [MIB - 4.0], "{s:?}");
    };
    tcp_bounceback_shows_one_way_delays_with_trip_times:
        "-t 0.5 --bounceback=5 --bounceback-period 0.2 --trip-times", "-f B" => |c, _| {
        c.expect_stdout("OWD Delays (ms) Cnt=");
    };
    tcp_permit_key_labels_the_lines: "-n 1M --permit-key=secret -f B", "-f B --permit-key=secret" => |c, s| {
        s.expect_stdout("Permit key is 'secret' (timeout in 20.0 seconds)");
        for report in [c, s] {
            report.expect_stdout("[secret(1)] local 127.0.0.1 port ").expect_stdout("[secret(1)] 0.0000-");
        }
        c.expect_stdout("  1048576 Bytes  ");
        // The original does not count the letters of the key.
        let arrived = ["  1048576 Bytes  ", "  1048570 Bytes  "];
        assert!(arrived.iter().any(|bytes| s.stdout.contains(bytes)), "{s:?}");
    };
    tcp_client_with_another_permit_key_is_refused: "-t 3 --permit-key=another -f B", "-f B --permit-key=secret" => |c, s| {
        c.expect_stdout("[another(1)] local 127.0.0.1 port ");
        let errors = ["write failed: ", "recv failed: "];
        assert!(errors.iter().any(|text| c.stderr.contains(text)), "{c:?}");
        assert!(!s.stdout.contains(" sec "), "no test took place: {s:?}");
        let output = format!("{}{}", s.stdout, s.stderr);
        assert!(output.contains("permit key"), "{s:?}");
    };
    timed_tcp_streams_are_summed_up: "-n 128M -P 3 -f B", "-f B" => |c, s| {
        // Long enough to be under way together: who ends before the next begins is not summed up
        // with it.
        equal(c, s, &[128.0 * MIB; 3]);
        sum_is(&s.stdout, 384.0 * MIB);
        sum_is(&c.stdout, 384.0 * MIB);
    };
    tcp_intervals_add_up: "-t 0.6 -i 0.2 -b 80m -f B", "-f B" => |c, s| {
        same(c, s);
        assert!(lines(&c.stdout).len() >= 3, "{c:?}");
        intervals_add_up(&c.stdout);
    };
    timed_tcp_keeps_a_rate: "-t 0.5 -b 80m -f B", "-f B" => |c, s| {
        same(c, s);
        near(amounts(&s.stdout)[0], 5e6, 0.15);
    };
    tcp_parallel_streams_have_a_sum: "-t 0.5 -P 4 -b 20m -f B", "-f B" => |c, s| {
        same(c, s);
        s.expect_stdout("[SUM]");
    };
    timed_tcp_full_duplex_keeps_the_rate_both_ways: "-t 0.5 --full-duplex -b 80m -f B", "-f B" => |c, s| {
        for report in [c, s] {
            let both = amounts(&report.stdout);
            assert_eq!(both.len(), 2, "{report:?}");
            both.iter().for_each(|amount| near(*amount, 5e6, 0.25));
        }
    };
    tcp_server_sums_up_both_directions_once: "-t 0.5 -d -P 2 -L BACK -b 40m -f B", "-f B" => |_, s| {
        assert_eq!(s.stdout.matches("[SUM]").count(), 1, "{s:?}");
    };
    timed_tcp_bounceback_counts_round_trips: "-t 1 --bounceback", "-f B" => |c, s| {
        // The original reads the time when it likes, so that it may make a burst more or less.
        let counted = |l: &Line| {
            let trips = l.rest.split_once('=').and_then(|(count, _)| count.parse::<u32>().ok());
            trips.is_some_and(|trips| (5..=20).contains(&trips))
        };
        assert!(totals(&c.stdout).iter().any(counted), "{c:?}");
        c.expect_stdout("rps");
        s.expect_stdout("(bb w/quickack len/hold=100/0)");
    };
    timed_tcp_isochronous_frames_keep_their_rate: "-t 0.5 --isochronous=60:8m -f B", "-f B" => |c, s| {
        same(c, s);
        // Frames that are late are left out, on a busy host some are.
        near(amounts(&s.stdout)[0], 5e5, 0.5);
        c.expect_stdout("isoch:tx/miss/slip");
    };
    timed_tcp_bursts_keep_their_rate: "-t 0.5 --burst-size 200K --burst-period 0.1 -f B", "-f B" => |c, s| {
        same(c, s);
        near(amounts(&s.stdout)[0], 5.0 * 204_800.0, 0.3);
    };
}

iperf2_modes! {
    tcp_comma_separated_values_have_the_originals_columns: "-n 1M -y C", "-y C" => |c, s| {
        for report in [c, s] {
            let row: Vec<&str> = report.stdout.trim().split(',').collect();
            assert_eq!((row.len(), row.get(7)), (9, Some(&"1048576")), "{report:?}");
        }
    };
}

#[test]
fn histograms_are_shown_by_the_end_that_measures() {
    let (_, server) = run_iperf2(
        (Iperf2::Original, Iperf2::Ours),
        "-t 1 --trip-times",
        "--histograms",
    );
    server.expect_stdout("F8(f)-PDF: bin(w=100us):cnt(");
}

#[test]
fn timed_ten_clients_at_once_are_served_at_once() {
    let server = Iperf2Server::start(Iperf2::Ours, "-f B");
    let start = |_| Iperf2::Original.client(server.port, "-t 1 -b 8m -f B");
    let clients: Vec<Process> = (0..10).map(start).collect();
    let clients: Vec<Finished> = clients.into_iter().map(Process::finish).collect();
    for client in &clients {
        assert!(client.elapsed < Duration::from_millis(2500), "{client:?}");
        assert!(client.stderr.is_empty(), "{client:?}");
    }

    let server = server.stop();
    let arrived: f64 = amounts(&server.stdout).iter().sum();
    let sent: f64 = clients
        .iter()
        .flat_map(|client| amounts(&client.stdout))
        .sum();

    assert_eq!(amounts(&server.stdout).len(), 10, "{server:?}");
    assert_eq!(arrived, sent, "{server:?}");
}

#[test]
fn timed_silent_connection_delays_no_other() {
    let server = Iperf2Server::start(Iperf2::Ours, "-f B");
    let silent =
        std::net::TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    let client = Iperf2::Original.client(server.port, "-n 1M").finish();
    assert!(client.elapsed < Duration::from_millis(1000), "{client:?}");
    drop(silent);
    assert_eq!(amounts(&server.stop().stdout), [MIB]);
}

#[test]
fn timed_the_commands_of_the_reports_work() {
    let server = Iperf2Server::start(Iperf2::Ours, "-w 1M");
    for words in ["-t 1 -i 0.5 -P 10", "-i 0.5 -l 32 -P 100 -w 1M -t 1"] {
        for program in [Iperf2::Original, Iperf2::Ours] {
            let client = program.client(server.port, words).finish();
            client.expect_code(0);
            let sums: Vec<_> = lines(&client.stdout)
                .into_iter()
                .filter(|l| l.label == "SUM")
                .collect();
            assert!(!sums.is_empty(), "{words}: {client:?}");

            // Small writes of a hundred streams are reported when they happen: two intervals and
            // the total, no more.
            if program == Iperf2::Ours {
                assert_eq!(sums.len(), 3, "{words}: {sums:?}");
                assert!(
                    sums.iter().all(|line| line.end_s < 1.5),
                    "{words}: {sums:?}"
                );
            }
        }
    }
}

#[test]
fn client_without_a_server_reports_and_ends_as_the_original() {
    let port = linerate_interop::free_port();
    for program in [Iperf2::Original, Iperf2::Ours] {
        let client = program.client(port, "-t 1").finish();
        client.expect_code(0);
        client.expect_stderr("tcp connect failed: Connection refused");
    }
}

/// Both ends counted these amounts.
fn equal(client: &Finished, server: &Finished, expected: &[f64]) {
    assert_eq!(amounts(&client.stdout), expected, "{client:?}");
    assert_eq!(amounts(&server.stdout), expected, "{server:?}");
}

/// Both ends counted the same.
fn same(client: &Finished, server: &Finished) {
    let sent = amounts(&client.stdout);
    assert!(!sent.is_empty(), "{client:?}");
    assert_eq!(sent, amounts(&server.stdout), "{client:?} {server:?}");
}

fn sum_is(report: &str, expected: f64) {
    let sum = totals(report).into_iter().find(|line| line.label == "SUM");
    assert_eq!(sum.map(|line| line.amount), Some(expected), "{report}");
}

/// The intervals of the only stream add up to its total, but for a last one that is too short to be
/// shown.
fn intervals_add_up(report: &str) {
    let lines = lines(report);
    let Some((total, intervals)) = lines.split_last() else {
        panic!("{report}")
    };
    let sum: f64 = intervals.iter().map(|line| line.amount).sum();
    assert!(sum <= total.amount && sum > 0.75 * total.amount, "{report}");
}
