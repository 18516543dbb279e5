//! UDP in iperf 2's dialect against the original, in both roles.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_interop::iperf2::{Iperf2, Iperf2Server, PAIRINGS, amounts, run_iperf2, totals};
use linerate_interop::namespaces::{DEVICE, Net, run};
use linerate_interop::{Finished, Process, each_case};

/// What is run, and what must be seen in the client's report and the server's.
struct Case {
    client: &'static str,
    check: fn(&Finished, &Finished),
}

const fn case(client: &'static str, check: fn(&Finished, &Finished)) -> Case {
    Case { client, check }
}

const CASES: &[Case] = &[
    case("-u -t 1 -f B", |c, s| {
        report_agrees(c, s);
        near(arrived(s), 131_072.0, 0.05);
    }),
    case("-u -n 10000 -f B", |c, s| {
        report_agrees(c, s);
        // Seven datagrams and the one that ends the flow; the original's last one is shorter.
        contains(s, " 0/8 (0%)");
    }),
    case("-u -t 1 -b 8m -l 200 -f B", |c, s| {
        report_agrees(c, s);
        near(arrived(s), 1e6, 0.05);
    }),
    case("-u -t 1 -b 500pps -f B", |c, s| {
        report_agrees(c, s);
        near(arrived(s), 500.0 * 1470.0, 0.05);
    }),
    case("-u -t 1 -l 16 -f B", report_agrees),
    case("-u -t 1 -R -f B", |c, s| {
        contains(c, "(reverse)");
        near(arrived(c), 131_072.0, 0.05);
        near(arrived(s), 131_072.0, 0.05);
    }),
    case("-u -t 1 --full-duplex -f B", |c, s| {
        for report in [c, s] {
            assert_eq!(amounts(&report.stdout).len(), 2, "{report:?}");
            assert!(!report.stdout.contains("[FD1]"), "only -e adds the two up: {report:?}");
        }
    }),
    case("-u -t 1 --full-duplex -e -f B", |c, _| {
        contains(c, "Datagrams   PPS");
        let both: f64 = amounts(&c.stdout).iter().sum();
        let line = totals(&c.stdout).into_iter().find(|line| line.label == "FD1");
        let together = line.unwrap_or_else(|| panic!("{c:?}")).amount;
        // The original adds up what it has read so far.
        near(together, both, 0.1);
    }),
    case("-u -t 1 -d -L BACK -f B", back),
    case("-u -t 1 -r -L BACK -f B", back),
    case("-u -t 1 -e --trip-times -f B", |c, s| {
        report_agrees(c, s);
        contains(s, "Latency avg/min/max/stdev");
        contains(c, "Latency avg/min/max/stdev");
    }),
    case("-u -t 1 --isochronous=30:4m -f B", |c, s| {
        report_agrees(c, s);
        near(arrived(s), 5e5, 0.15);
    }),
    case("-u -t 1 --no-udp-fin -f B", |c, s| {
        contains(c, "(no-udp-fin)");
        assert!(!c.stdout.contains("Server Report"), "{c:?}");
        near(arrived(s), 131_072.0, 0.1);
    }),
    case("-u -t 1 -C -f B", |c, _| {
        near(arrived(c), 131_072.0, 0.1);
    }),
];

#[test]
fn timed_every_mode_works_with_the_original_on_either_side() {
    let all: Vec<_> = CASES
        .iter()
        .flat_map(|case| PAIRINGS.map(|pairing| (case, pairing)))
        .collect();
    // The original takes a client without a header for something else.
    let is_fair =
        |(case, (_, server)): &(&Case, (Iperf2, Iperf2))| !case.client.contains("-C") || *server == Iperf2::Ours;
    let all: Vec<_> = all.into_iter().filter(is_fair).collect();
    each_case(
        &all,
        |(case, (client, server))| format!("{client:?} client, {server:?} server, {}", case.client),
        |(case, pairing)| {
            let (client, server) = run_iperf2(*pairing, case.client, "-u -f B");
            (case.check)(&client, &server);
        },
    );
}

/// A server with `-e` reports delays to its client even if that did not send its clock.
#[test]
fn a_client_shows_the_delays_of_a_server_with_more_columns() {
    for pairing in PAIRINGS {
        let (client, server) = run_iperf2(pairing, "-u -n 14700", "-u -e");
        for report in [&client, &server] {
            contains(report, "Latency avg/min/max/stdev PPS  Rx/inP  NetPwr");
            contains(report, " pkts ");
        }
    }
}

#[test]
fn timed_flows_that_begin_together_are_kept_apart() {
    for client in [Iperf2::Original, Iperf2::Ours] {
        let (client, server) = run_iperf2((client, Iperf2::Ours), "-u -P 8 -t 1 -f B", "-u -f B");
        assert_eq!(amounts(&server.stdout).len(), 8, "{server:?}");
        assert!(!server.stdout.contains("out-of-order"), "{server:?}");
        let lossless = |line: &&linerate_interop::iperf2::Line| line.rest.contains(" 0/");
        let flows = totals(&server.stdout);
        let flows: Vec<_> = flows.iter().filter(|line| line.label.parse::<u32>().is_ok()).collect();
        assert!(flows.iter().all(lossless), "{server:?}");
        assert_eq!(client.stdout.matches("Server Report").count(), 8, "{client:?}");
    }
}

#[test]
fn timed_comma_separated_values_have_the_originals_columns() {
    for pairing in PAIRINGS {
        let (_, server) = run_iperf2(pairing, "-u -t 1 -y C", "-u -y C");
        let rows: Vec<Vec<&str>> = server.stdout.lines().map(|row| row.split(',').collect()).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == 14), "{server:?}");
        // More than one is the original's flow taken for several, the parts of which it then misses.
        if let [row] = &rows[..] {
            assert_eq!((row[10], row[13]), ("0", "0"), "nothing lost or late: {server:?}");
        }
    }
}

#[test]
fn loss_order_and_copies_are_counted_apart_and_exactly() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u -f B");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(("127.0.0.1", server.port)).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    // Three are missing, two come late, two come twice; the last one ends the flow.
    for number in [1, 2, 5, 4, 6, 6, 7, 10, 9, 11, 12, 12, 14_i32] {
        socket.send(&datagram(number)).expect("loopback");
    }
    socket.send(&datagram(-15)).expect("loopback");
    let mut report = [0; 1500];
    let len = socket.recv(&mut report).expect("a report");
    assert_eq!(len, 128);
    let word = |at: usize| u32::from_be_bytes(report[at..at + 4].try_into().expect("four bytes"));
    assert_eq!((word(36), word(40), word(44)), (3, 2, 15), "lost, late, sent");
    let server = server.stop();
    assert!(server.stdout.contains(" 3/15 (20%)"), "{server:?}");
    assert!(
        server.stdout.contains("2 datagrams received out-of-order"),
        "{server:?}"
    );
}

#[test]
fn a_report_that_may_be_lost_is_sent_again() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.connect(("127.0.0.1", server.port)).expect("loopback");
    socket.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
    socket.send(&datagram(1)).expect("loopback");
    let mut report = [0; 1500];
    for last in 2..5 {
        socket.send(&datagram(-last)).expect("loopback");
        assert_eq!(socket.recv(&mut report).expect("a report"), 128);
    }
    // A client that hears nothing asks again and again.
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    deaf.set_read_timeout(Some(Duration::from_secs(10))).expect("a socket");
    let port = deaf.local_addr().expect("bound").port();
    let client = Process::start(Iperf2::Ours.command(&format!("-u -c 127.0.0.1 -p {port} -n 1470")));
    let mut last_ones = 0;
    while last_ones < 50 {
        let (_, _) = deaf.recv_from(&mut report).expect("the client goes on asking");
        last_ones += u32::from(report[0] == 0xff);
    }
    let client = client.finish();
    client.expect_code(0);
    assert!(
        client.stderr.contains("did not receive ack of last datagram"),
        "{client:?}"
    );
}

#[test]
fn timed_multicast_group_reaches_its_members() {
    let Some(net) = Net::new() else { return };
    for namespace in [&net.a, &net.b] {
        run("ip", &["-n", namespace, "route", "add", "224.0.0.0/4", "dev", DEVICE]);
    }
    for (client, server) in PAIRINGS {
        let server = Iperf2Server::start_inside(&net.b, server, 5001, "-u -B 239.193.7.7 -f B");
        // The way to the group is one hop long.
        let words = "-u -c 239.193.7.7 -t 1 -T 1 -f B";
        let client = Process::start(client.command_inside(&net.a, words)).finish();
        client.expect_clean();
        assert!(
            !client.stdout.contains("Server Report"),
            "nobody answers for a group: {client:?}"
        );
        // The client cannot know when the server has read the last datagram.
        server.process.wait_for_stdout(" sec ", 1);
        let server = server.stop();
        contains(&server, "Joining multicast group  239.193.7.7");
        contains(
            &server,
            "[  1] local 239.193.7.7 port 5001 connected with 10.99.0.1 port ",
        );
        contains(&server, " 0/");
        near(arrived(&server), 131_072.0, 0.1);
    }
}

/// Without a header: number, time, and digits behind.
fn datagram(number: i32) -> [u8; 64] {
    let mut bytes = [b'9'; 64];
    bytes[..4].copy_from_slice(&number.to_be_bytes());
    bytes[4..8].copy_from_slice(&1_800_000_000_u32.to_be_bytes());
    bytes[8..12].copy_from_slice(&0_u32.to_be_bytes());
    bytes
}

fn contains(report: &Finished, text: &str) {
    assert!(report.stdout.contains(text), "{text:?} in {report:?}");
}

/// The client shows what the server counted, and nothing was lost. A busy original sometimes takes one flow for several,
/// each with a report of its own.
fn report_agrees(client: &Finished, server: &Finished) {
    contains(client, "Server Report:");
    let reported = totals(&client.stdout).pop().expect("the server's line");
    let counted = totals(&server.stdout);
    assert!(
        counted.iter().any(|line| line.amount == reported.amount),
        "{client:?} {server:?}"
    );
    assert!(reported.rest.contains(" 0/"), "nothing is lost: {server:?}");
}

/// What the only flow moved, see [`report_agrees`].
fn arrived(report: &Finished) -> f64 {
    let amounts = amounts(&report.stdout);
    assert!(!amounts.is_empty(), "no amount: {report:?}");
    amounts.iter().sum()
}

fn near(amount: f64, expected: f64, tolerance: f64) {
    assert!(
        (amount / expected - 1.0).abs() <= tolerance,
        "{amount} is not about {expected}"
    );
}

/// Both directions moved what a second brings.
fn back(client: &Finished, server: &Finished) {
    for report in [client, server] {
        let mut both = amounts(&report.stdout);
        both.sort_by(|a, b| b.total_cmp(a));
        assert!(both.len() >= 2, "{report:?}");
        both.iter().take(2).for_each(|amount| near(*amount, 131_072.0, 0.7));
    }
}
