//! TCP in iperf 2's dialect against the original, in both roles: every mode, asserting bytes, contents and exit codes.

use std::time::Duration;

use linerate_interop::iperf2::{Iperf2, Iperf2Server, PAIRINGS, amounts, lines, run_iperf2, totals};
use linerate_interop::{Finished, Process, each_case};

/// What is run, and what must be seen in the client's report and the server's.
struct Case {
    client: &'static str,
    server: &'static str,
    check: fn(&Finished, &Finished),
}

const fn case(client: &'static str, check: fn(&Finished, &Finished)) -> Case {
    Case {
        client,
        server: "-f B",
        check,
    }
}

const MIB: f64 = 1_048_576.0;

const CASES: &[Case] = &[
    case("-n 1M -f B", |c, s| equal(c, s, &[MIB])),
    case("-n 1000001 -f B", |c, s| equal(c, s, &[1_000_001.0])),
    case("-n 100K -l 999 -f B", |c, s| equal(c, s, &[102_400.0])),
    case("-n 128M -P 3 -f B", |c, s| {
        // Long enough to be under way together: who ends before the next begins is not summed up with it.
        equal(c, s, &[128.0 * MIB; 3]);
        sum_is(&s.stdout, 384.0 * MIB);
        sum_is(&c.stdout, 384.0 * MIB);
    }),
    case("-n 1M -R -f B", |c, s| {
        equal(c, s, &[MIB]);
        contains(c, "(reverse)");
        contains(s, "(reverse)");
    }),
    case("-n 1M -X -f B", |c, s| equal(c, s, &[MIB])),
    case("-n 1M -M 1000 -N -S 0x20 -w 64K -f B", |c, s| {
        equal(c, s, &[MIB]);
        contains(c, "MSS req size 1000 bytes");
        contains(c, "WARNING: requested");
    }),
    case("-n 1M --trip-times -f B", |c, s| {
        equal(c, s, &[MIB + 80.0]);
        contains(s, "Burst Latency avg/min/max/stdev");
    }),
    case("-t 1 -i 0.5 -f B", |c, s| {
        same(c, s);
        assert!(lines(&c.stdout).len() >= 3, "{c:?}");
        intervals_add_up(&c.stdout);
    }),
    case("-t 1 -b 80m -f B", |c, s| {
        same(c, s);
        near(amounts(&s.stdout)[0], 1e7, 0.1);
    }),
    case("-t 1 -P 4 -i 0.5 -f B", |c, s| {
        same(c, s);
        contains(s, "[SUM]");
    }),
    case("-t 1 --full-duplex -b 80m -f B", |c, s| {
        for report in [c, s] {
            let both = amounts(&report.stdout);
            assert_eq!(both.len(), 2, "{report:?}");
            both.iter().for_each(|amount| near(*amount, 1e7, 0.2));
        }
    }),
    case("-t 1 -d -L BACK -b 80m -f B", back),
    case("-t 1 -d -P 2 -L BACK -b 40m -f B", |_, s| {
        assert_eq!(s.stdout.matches("[SUM]").count(), 1, "{s:?}");
    }),
    case("-t 1 -r -L BACK -b 80m -f B", back),
    case("-t 1 -e -i 0.5 -b 80m -f B", |c, s| {
        same(c, s);
        contains(c, "Write/Err  Rtry");
        assert!(totals(&c.stdout)[0].rest.contains('K'), "a window: {c:?}");
    }),
    case("-t 2 --bounceback", |c, s| {
        let trips: Vec<_> = totals(&c.stdout).into_iter().filter(|l| l.rest.contains('=')).collect();
        // The original looks at the time when it likes, so that it may make a burst more or less.
        let counted = |l: &linerate_interop::iperf2::Line| {
            let trips = l.rest.split('=').next().and_then(|count| count.parse::<u32>().ok());
            trips.is_some_and(|trips| (10..=30).contains(&trips))
        };
        assert!(trips.iter().any(counted), "{c:?}");
        contains(c, "rps");
        contains(s, "(bb w/quickack len/hold=100/0)");
    }),
    case("-t 1 --bounceback=5 --bounceback-period 0.2 --trip-times", |c, _| {
        contains(c, "OWD Delays (ms) Cnt=");
    }),
    case("-t 1 --isochronous=60:8m -f B", |c, s| {
        same(c, s);
        // Frames that are late are left out, on a busy host some are.
        near(amounts(&s.stdout)[0], 1e6, 0.5);
        contains(c, "isoch:tx/miss/slip");
    }),
    case("-t 1 --near-congestion -f B", |c, s| {
        // The original counts every write twice in this mode.
        let (sent, arrived) = (amounts(&c.stdout)[0], amounts(&s.stdout)[0]);
        assert!(
            sent == arrived || (sent - 2.0 * arrived).abs() < 131_072.0,
            "{c:?} {s:?}"
        );
        contains(c, "TCP near-congestion delay weight set to 0.5000");
    }),
    case("--connect-only=3", |c, _| {
        assert_eq!(c.stdout.matches("connected with").count(), 3, "{c:?}");
        contains(c, "TCP three-way-handshake (3WHS) only");
    }),
    case("-n 1M -C -f B", |c, s| {
        assert_eq!(amounts(&c.stdout), [MIB], "{c:?}");
        // The original does not count the four bytes it looks at.
        let arrived = amounts(&s.stdout);
        assert!(arrived == [MIB] || arrived == [MIB - 4.0], "{s:?}");
    }),
    case("-t 1 --burst-size 200K --burst-period 0.1 -f B", |c, s| {
        same(c, s);
        near(amounts(&s.stdout)[0], 10.0 * 204_800.0, 0.3);
    }),
    Case {
        client: "-n 1M --permit-key=secret -f B",
        server: "-f B --permit-key=secret",
        check: |c, s| {
            contains(s, "Permit key is 'secret' (timeout in 20.0 seconds)");
            for report in [c, s] {
                contains(report, "[secret(1)] local 127.0.0.1 port ");
                contains(report, "[secret(1)] 0.0000-");
            }
            contains(c, "  1048576 Bytes  ");
            // The original does not count the letters of the key.
            let arrived = ["  1048576 Bytes  ", "  1048570 Bytes  "];
            assert!(arrived.iter().any(|bytes| s.stdout.contains(bytes)), "{s:?}");
        },
    },
    Case {
        client: "-t 3 --permit-key=another -f B",
        server: "-f B --permit-key=secret",
        check: |c, s| {
            contains(c, "[another(1)] local 127.0.0.1 port ");
            let reported = ["write failed: ", "recv failed: "];
            assert!(reported.iter().any(|text| c.stderr.contains(text)), "{c:?}");
            assert!(!s.stdout.contains(" sec "), "no test took place: {s:?}");
            let output = format!("{}{}", s.stdout, s.stderr);
            assert!(output.contains("permit key"), "{s:?}");
        },
    },
];

#[test]
fn timed_every_mode_works_with_the_original_on_either_side() {
    let all: Vec<_> = CASES
        .iter()
        .flat_map(|case| PAIRINGS.map(|pairing| (case, pairing)))
        .collect();
    each_case(
        &all,
        |(case, (client, server))| format!("{client:?} client, {server:?} server, {}", case.client),
        |(case, pairing)| {
            let (client, server) = run_iperf2(*pairing, case.client, case.server);
            (case.check)(&client, &server);
        },
    );
}

#[test]
fn comma_separated_values_have_the_originals_columns() {
    each_case(
        &PAIRINGS,
        |pairing| format!("{pairing:?}"),
        |pairing| {
            let (client, server) = run_iperf2(*pairing, "-n 1M -y C", "-y C");
            for report in [client, server] {
                let row: Vec<&str> = report.stdout.trim().split(',').collect();
                assert_eq!(row.len(), 9, "{report:?}");
                assert_eq!(row[7], "1048576", "{report:?}");
            }
        },
    );
}

#[test]
fn histograms_are_shown_by_the_end_that_measures() {
    let (_, server) = run_iperf2((Iperf2::Original, Iperf2::Ours), "-t 1 --trip-times", "--histograms");
    assert!(server.stdout.contains("F8(f)-PDF: bin(w=100us):cnt("), "{server:?}");
}

#[test]
fn timed_ten_clients_at_once_are_served_at_once() {
    let server = Iperf2Server::start(Iperf2::Ours, "-f B");
    let words = format!("-c 127.0.0.1 -p {} -t 1 -b 8m -f B", server.port);
    let clients: Vec<Process> = (0..10)
        .map(|_| Process::start(Iperf2::Original.command(&words)))
        .collect();
    let clients: Vec<Finished> = clients.into_iter().map(Process::finish).collect();
    for client in &clients {
        assert!(client.elapsed < Duration::from_millis(2500), "{client:?}");
        assert!(client.stderr.is_empty(), "{client:?}");
    }
    let server = server.stop();
    let arrived: f64 = amounts(&server.stdout).iter().sum();
    let sent: f64 = clients.iter().flat_map(|client| amounts(&client.stdout)).sum();
    assert_eq!(amounts(&server.stdout).len(), 10, "{server:?}");
    assert_eq!(arrived, sent, "{server:?}");
}

#[test]
fn timed_silent_connection_delays_no_other() {
    let server = Iperf2Server::start(Iperf2::Ours, "-f B");
    let silent = std::net::TcpStream::connect(("127.0.0.1", server.port)).expect("the server listens");
    let client = Process::start(Iperf2::Original.command(&format!("-c 127.0.0.1 -p {} -n 1M", server.port))).finish();
    assert!(client.elapsed < Duration::from_millis(1000), "{client:?}");
    drop(silent);
    assert_eq!(amounts(&server.stop().stdout), [MIB]);
}

#[test]
fn timed_the_commands_of_the_reports_work() {
    let server = Iperf2Server::start(Iperf2::Ours, "-w 1M");
    for words in ["-t 2 -i 1 -P 10", "-i 1 -l 32 -P 100 -w 1M -t 2"] {
        for program in [Iperf2::Original, Iperf2::Ours] {
            let client = Process::start(program.command(&format!("-c 127.0.0.1 -p {} {words}", server.port)));
            let client = client.finish_within(Duration::from_secs(30));
            client.expect_code(0);
            let sums = totals(&client.stdout);
            assert!(sums.iter().any(|line| line.label == "SUM"), "{words}: {client:?}");
        }
    }
    // Small writes of a hundred streams are reported when they happen: two intervals and the total, no more.
    let client =
        Process::start(Iperf2::Ours.command(&format!("-c 127.0.0.1 -p {} -i 1 -l 32 -P 100 -w 1M -t 2", server.port)))
            .finish();
    let sums: Vec<_> = lines(&client.stdout).into_iter().filter(|l| l.label == "SUM").collect();
    assert_eq!(sums.len(), 3, "{sums:?}");
    assert!(sums.iter().all(|line| line.end_s < 2.5), "{sums:?}");
}

#[test]
fn client_without_a_server_reports_and_ends_as_the_original() {
    let port = linerate_interop::free_port();
    for program in [Iperf2::Original, Iperf2::Ours] {
        let client = Process::start(program.command(&format!("-c 127.0.0.1 -p {port} -t 1"))).finish();
        client.expect_code(0);
        assert!(
            client.stderr.contains("tcp connect failed: Connection refused"),
            "{client:?}"
        );
    }
}

fn contains(report: &Finished, text: &str) {
    assert!(report.stdout.contains(text), "{text:?} in {report:?}");
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

fn near(amount: f64, expected: f64, tolerance: f64) {
    assert!(
        (amount / expected - 1.0).abs() <= tolerance,
        "{amount} is not about {expected}"
    );
}

/// Both directions moved about ten megabytes.
fn back(client: &Finished, server: &Finished) {
    for report in [client, server] {
        let both = amounts(&report.stdout);
        assert_eq!(both.len(), 2, "{report:?}");
        // The way back begins when it has been opened.
        both.iter().for_each(|amount| near(*amount, 1e7, 0.7));
    }
}

/// The intervals of the only stream add up to its total, but for a last one that is too short to be shown.
fn intervals_add_up(report: &str) {
    let lines = lines(report);
    let Some((total, intervals)) = lines.split_last() else {
        panic!("{report}")
    };
    let sum: f64 = intervals.iter().map(|line| line.amount).sum();
    assert!(sum <= total.amount && sum > 0.75 * total.amount, "{report}");
}
