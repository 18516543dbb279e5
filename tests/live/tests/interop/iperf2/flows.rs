//! UDP in iperf 2's dialect against the original, in both roles.

use std::net::UdpSocket;
use std::time::Duration;

use linerate_interop::iperf2::{
    Iperf2, Iperf2Server, PAIRINGS, amounts, near, run_iperf2, run_iperf2_at, totals,
};
use linerate_interop::namespaces::{DEVICE, Net, run};
use linerate_interop::{Finished, Process, iperf2_modes, udp_socket};

/// Datagrams of `-n 29400`: as many datagrams as hold it, and the one that ends the flow.
const AMOUNT: f64 = 21.0 * 1470.0;

iperf2_modes! {
    timed_udp_keeps_its_default_rate: "-u -t 0.5 -f B", "-u -f B" => |c, s| {
        report_agrees(c, s);
        near(arrived(s), 65_536.0, 0.15);
    };
    timed_udp_keeps_a_rate_in_bits: "-u -t 0.5 -b 8m -l 200 -f B", "-u -f B" => |c, s| {
        report_agrees(c, s);
        near(arrived(s), 5e5, 0.1);
    };
    timed_udp_keeps_a_rate_in_datagrams: "-u -t 0.5 -b 500pps -f B", "-u -f B" => |c, s| {
        report_agrees(c, s);
        near(arrived(s), 250.0 * 1470.0, 0.1);
    };
    timed_udp_sends_the_shortest_datagrams: "-u -t 0.5 -l 16 -f B", "-u -f B" => report_agrees;
    timed_udp_isochronous_frames_keep_their_rate: "-u -t 0.5 --isochronous=30:4m -f B", "-u -f B" => |c, s| {
        report_agrees(c, s);
        near(arrived(s), 2.5e5, 0.2);
    };
    timed_udp_flows_in_both_directions_at_once: "-u -n 29400 -d -L BACK -f B", "-u -f B" => both_directions;
    timed_udp_flows_in_one_direction_after_the_other: "-u -n 29400 -r -L BACK -f B", "-u -f B" => both_directions;
    udp_amount_ends_with_its_last_datagram: "-u -n 10000 -f B", "-u -f B" => |c, s| {
        report_agrees(c, s);
        // Seven datagrams and the one that ends the flow; the original's last one is shorter.
        s.expect_stdout(" 0/8 (0%)");
    };
    udp_reverse_moves_the_amount_to_the_client: "-u -n 29400 -R -f B", "-u -f B" => |c, s| {
        c.expect_stdout("(reverse)");
        assert_eq!((arrived(c), arrived(s)), (AMOUNT, AMOUNT), "{c:?} {s:?}");
    };
    udp_full_duplex_moves_the_amount_both_ways: "-u -n 29400 --full-duplex -f B", "-u -f B" => |c, s| {
        for report in [c, s] {
            assert_eq!(amounts(&report.stdout), [AMOUNT; 2], "{report:?}");
            assert!(!report.stdout.contains("[FD1]"), "only -e adds the two up: {report:?}");
        }
    };
    udp_full_duplex_has_a_sum_with_more_columns: "-u -n 29400 --full-duplex -e -f B", "-u -f B" => |c, _| {
        c.expect_stdout("Datagrams   PPS");
        let sum = totals(&c.stdout).into_iter().find(|line| line.label == "FD1");
        // The original adds up what it has read so far.
        near(sum.unwrap_or_else(|| panic!("{c:?}")).amount, 2.0 * AMOUNT, 0.1);
    };
    udp_trip_times_show_delays_at_both_ends: "-u -n 29400 -e --trip-times -f B", "-u -f B" => |c, s| {
        report_agrees(c, s);
        for report in [c, s] {
            report.expect_stdout("Latency avg/min/max/stdev");
        }
    };
    udp_without_a_final_exchange_has_no_server_report: "-u -n 29400 --no-udp-fin -f B", "-u -f B" => |c, s| {
        c.expect_stdout("(no-udp-fin)");
        assert!(!c.stdout.contains("Server Report"), "{c:?}");
        assert_eq!(arrived(s), AMOUNT, "{s:?}");
    };
}

/// The listener of a client has its own address: one on all addresses at the server's port would
/// take the server's datagrams on the same host. The server connects back from the address that the
/// client named, which is the only one that our client accepts.
#[test]
fn both_ends_of_a_connection_back_keep_their_addresses() {
    for client in [Iperf2::Original, Iperf2::Ours] {
        for (words, server) in [
            ("-u -n 29400 -r -B 127.0.0.5 -f B", "-u -f B"),
            ("-n 30870 -r -L BACK -B 127.0.0.5 -f B", "-f B"),
        ] {
            let pairing = (client, Iperf2::Ours);
            let (client, server) = run_iperf2_at("127.0.0.3", pairing, words, server);
            both_directions(&client, &server);
            let named = client.stdout.matches("connected with 127.0.0.3 port");
            assert_eq!(named.count(), 2, "{client:?}");
        }
    }
}

/// The original's server takes such a client for something else.
#[test]
fn udp_without_headers_is_counted() {
    for client in [Iperf2::Original, Iperf2::Ours] {
        let (client, _) = run_iperf2((client, Iperf2::Ours), "-u -n 29400 -C -f B", "-u -f B");
        assert_eq!(arrived(&client), AMOUNT, "{client:?}");
    }
}

/// A server with `-e` reports delays to its client even if that did not send its clock.
#[test]
fn a_client_shows_the_delays_of_a_server_with_more_columns() {
    for pairing in PAIRINGS {
        let (client, server) = run_iperf2(pairing, "-u -n 14700", "-u -e");
        for report in [&client, &server] {
            report.expect_stdout("Latency avg/min/max/stdev PPS  Rx/inP  NetPwr");
            report.expect_stdout(" pkts ");
        }
    }
}

#[test]
fn timed_flows_that_begin_together_are_kept_apart() {
    for client in [Iperf2::Original, Iperf2::Ours] {
        let (client, server) = run_iperf2((client, Iperf2::Ours), "-u -P 8 -t 0.5 -f B", "-u -f B");
        assert_eq!(amounts(&server.stdout).len(), 8, "{server:?}");
        assert!(!server.stdout.contains("out-of-order"), "{server:?}");

        let lossless = |line: &&linerate_interop::iperf2::Line| line.rest.contains(" 0/");
        let flows = totals(&server.stdout);
        let flows: Vec<_> = flows
            .iter()
            .filter(|line| line.label.parse::<u32>().is_ok())
            .collect();
        assert!(flows.iter().all(lossless), "{server:?}");
        assert_eq!(
            client.stdout.matches("Server Report").count(),
            8,
            "{client:?}"
        );
    }
}

iperf2_modes! {
    timed_comma_separated_values_have_the_originals_columns: "-u -t 0.5 -y C", "-u -y C" => |_, s| {
        let rows: Vec<Vec<&str>> = s.stdout.lines().map(|row| row.split(',').collect()).collect();
        assert!(!rows.is_empty() && rows.iter().all(|row| row.len() == 14), "{s:?}");
        // More than one is the original's flow taken for several, the parts of which it then
        // misses.
        if let [row] = &rows[..] {
            assert_eq!((row[10], row[13]), ("0", "0"), "nothing lost or late: {s:?}");
        }
    };
}

#[test]
fn loss_order_and_copies_are_counted_apart_and_exactly() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u -f B");
    let socket = udp_socket("127.0.0.1", server.port, Duration::from_secs(5));

    // Three are missing, two come late, two come twice; the last one ends the flow.
    for number in [1, 2, 5, 4, 6, 6, 7, 10, 9, 11, 12, 12, 14_i32] {
        socket.send(&datagram(number)).expect("loopback");
    }

    socket.send(&datagram(-15)).expect("loopback");
    let mut report = [0; 1500];
    let len = socket.recv(&mut report).expect("a report");
    assert_eq!(len, 128);

    let word = |at: usize| u32::from_be_bytes(report[at..at + 4].try_into().expect("four bytes"));
    assert_eq!(
        (word(36), word(40), word(44)),
        (3, 2, 15),
        "lost, late, sent"
    );
    let server = server.stop();
    server.expect_stdout(" 3/15 (20%)");
    server.expect_stdout("2 datagrams received out-of-order");
}

#[test]
fn a_report_that_may_be_lost_is_sent_again() {
    let server = Iperf2Server::start(Iperf2::Ours, "-u");
    let socket = udp_socket("127.0.0.1", server.port, Duration::from_secs(5));
    socket.send(&datagram(1)).expect("loopback");

    let mut report = [0; 1500];
    for last in 2..5 {
        socket.send(&datagram(-last)).expect("loopback");
        assert_eq!(socket.recv(&mut report).expect("a report"), 128);
    }

    // A client that hears nothing asks again and again.
    let deaf = UdpSocket::bind("127.0.0.1:0").expect("a port");
    deaf.set_read_timeout(Some(Duration::from_secs(10)))
        .expect("a socket");
    let port = deaf.local_addr().expect("bound").port();
    let client = Iperf2::Ours.client(port, "-u -n 1470");

    let mut last_ones = 0;
    while last_ones < 50 {
        let (_, _) = deaf.recv_from(&mut report).expect("the client asks again");
        last_ones += u32::from(report[0] == 0xff);
    }

    let client = client.finish();
    client.expect_code(0);
    client.expect_stderr("did not receive ack of last datagram");
}

#[test]
fn timed_multicast_group_reaches_its_members() {
    let Some(net) = Net::new() else { return };
    for namespace in [&net.a, &net.b] {
        run(&format!(
            "ip -n {namespace} route add 224.0.0.0/4 dev {DEVICE}"
        ));
    }

    for (client, server) in PAIRINGS {
        let server = Iperf2Server::start_inside(&net.b, server, 5001, "-u -B 239.193.7.7 -f B");
        // The way to the group is one hop long.
        let words = "-u -c 239.193.7.7 -t 0.5 -T 1 -f B";
        let client = Process::start(client.command_inside(&net.a, words)).finish();
        client.expect_clean();
        assert!(
            !client.stdout.contains("Server Report"),
            "a group has no answer: {client:?}"
        );

        // The client cannot know when the server has read the last datagram.
        server.process.wait_for_stdout(" sec ", 1);
        let server = server.stop();
        server.expect_stdout("Joining multicast group  239.193.7.7");
        server.expect_stdout("[  1] local 239.193.7.7 port 5001 connected with 10.99.0.1 port ");
        server.expect_stdout(" 0/");
        near(arrived(&server), 65_536.0, 0.15);
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

/// The client shows what the server counted, and nothing was lost. A busy original sometimes takes
/// one flow for several, each with a report of its own.
fn report_agrees(client: &Finished, server: &Finished) {
    client.expect_stdout("Server Report:");
    let reported = totals(&client.stdout).pop().expect("the server's line");
    let counted = totals(&server.stdout);
    assert!(
        counted.iter().any(|line| line.amount == reported.amount),
        "{client:?} {server:?}"
    );
    assert!(reported.rest.contains(" 0/"), "nothing is lost: {server:?}");
}

/// Bytes of the only flow, see [`report_agrees`].
fn arrived(report: &Finished) -> f64 {
    let amounts = amounts(&report.stdout);
    assert!(!amounts.is_empty(), "no amount: {report:?}");
    amounts.iter().sum()
}

/// Both directions moved the amount.
fn both_directions(client: &Finished, server: &Finished) {
    for report in [client, server] {
        assert_eq!(amounts(&report.stdout), [AMOUNT; 2], "{report:?}");
    }
}
