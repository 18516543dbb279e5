//! Every transport, direction, stream count and address family, against the original in both roles
//! and against ourselves: both ends must succeed in silence, and their reports must agree with each
//! other and with the rate asked.

use linerate_interop::{Pair, Pairing, Report, each_case, has_ipv6, run_pair_at, unsupported};

/// Per stream. Low enough that a slow host keeps it with four streams both ways.
const RATE_BPS: f64 = 5_000_000.0;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Tcp,
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Direction {
    Forward,
    Reverse,
    Bidirectional,
}

#[derive(Debug, Clone, Copy)]
struct Case {
    transport: Transport,
    direction: Direction,
    streams: u32,
    host: &'static str,
    pairing: Pairing,
}

macro_rules! both_ends_agree {
    ($($name:ident: $transport:ident, $direction:ident;)*) => {$(
        #[test]
        fn $name() {
            each_case(&cases(Transport::$transport, Direction::$direction), |case| check(*case));
        }
    )*};
}

both_ends_agree! {
    timed_tcp_forward: Tcp, Forward;
    timed_tcp_reverse: Tcp, Reverse;
    timed_tcp_bidirectional: Tcp, Bidirectional;
    timed_udp_forward: Udp, Forward;
    timed_udp_reverse: Udp, Reverse;
    timed_udp_bidirectional: Udp, Bidirectional;
}

/// Every number of streams, address family and pairing.
fn cases(transport: Transport, direction: Direction) -> Vec<Case> {
    let mut hosts = vec!["127.0.0.1"];
    if has_ipv6() {
        hosts.push("::1");
    } else {
        unsupported("no IPv6 loopback on this host: IPv6 rows of the matrix");
    }

    let of = |pairing, streams, host| Case {
        transport,
        direction,
        streams,
        host,
        pairing,
    };
    let streams = [1, 4].into_iter();
    let rows = streams.flat_map(|streams| Pairing::ALL.map(|pairing| (streams, pairing)));

    rows.flat_map(|(streams, pairing)| hosts.iter().map(move |host| of(pairing, streams, *host)))
        .collect()
}

fn check(case: Case) {
    let streams = case.streams.to_string();
    let mut options = vec!["-J", "-t", "1", "-b", "5M", "-P", &streams];
    options.extend(case.transport.option());
    options.extend(case.direction.option());

    let pair = run_pair_at(
        case.host,
        (case.pairing.server(), &["-J"]),
        (case.pairing.client(), &options),
    );
    pair.client.expect_clean();
    pair.server.expect_clean();
    check_reports(case, &pair);
}

fn check_reports(case: Case, pair: &Pair) {
    let client = Report::parse(&pair.client.stdout);
    let server = Report::parse(&pair.server.stdout);

    let expected = case.streams as usize
        * if case.direction == Direction::Bidirectional {
            2
        } else {
            1
        };
    for report in [&client, &server] {
        assert_eq!(report.array("/start/connected").len(), expected);
        assert_eq!(report.array("/end/streams").len(), expected);
        assert!(report.get("/error").is_none());
    }

    if case.direction != Direction::Reverse {
        check_direction(
            case,
            &client,
            &server,
            "sum_sent",
            "sum_received",
            "sum_received",
        );
    }

    if case.direction == Direction::Reverse {
        check_direction(
            case,
            &client,
            &server,
            "sum_sent",
            "sum_received",
            "sum_sent",
        );
    }

    if case.direction == Direction::Bidirectional {
        let (sent, received) = ("sum_sent_bidir_reverse", "sum_received_bidir_reverse");
        check_direction(case, &client, &server, sent, received, sent);
    }
}

/// Checks one direction of data. `seen` is the aggregate the server measured itself; the client
/// learnt it from the server's results, so both must state the same.
fn check_direction(
    case: Case,
    client: &Report,
    server: &Report,
    sent: &str,
    received: &str,
    seen: &str,
) {
    let value = |report: &Report, sum: &str, key: &str| report.number(&format!("/end/{sum}/{key}"));
    let (sent_bytes, received_bytes) = (
        value(client, sent, "bytes"),
        value(client, received, "bytes"),
    );
    assert!(received_bytes > 0.0, "{case:?}: nothing received");
    assert!(
        received_bytes <= sent_bytes,
        "{case:?}: received {received_bytes} of {sent_bytes} sent"
    );
    assert!(
        received_bytes >= 0.9 * sent_bytes,
        "{case:?}: received {received_bytes} of {sent_bytes} sent"
    );

    let at_client = value(client, seen, "bytes");
    let at_server = value(server, seen, "bytes");
    assert!(
        (at_client - at_server).abs() < 0.5,
        "{case:?}: {seen} is {at_client} at the client, {at_server} at the server"
    );

    let wanted = RATE_BPS * f64::from(case.streams);
    for sum in [sent, received] {
        let rate = value(client, sum, "bits_per_second");
        assert!(
            (0.8..1.2).contains(&(rate / wanted)),
            "{case:?}: {sum} at {rate} bit/s instead of {wanted}"
        );
    }

    if case.transport == Transport::Udp {
        let lost = value(client, received, "lost_packets");
        assert!(
            lost.abs() < 0.5,
            "{case:?}: {lost} datagrams lost on loopback"
        );
        assert!(
            value(client, received, "packets") > 0.0,
            "{case:?}: no datagrams"
        );
    }
}

impl Transport {
    /// UDP names its block length, because the loopback default of 32 KiB makes a rate of 5 Mbit/s
    /// coarse.
    fn option(self) -> &'static [&'static str] {
        match self {
            Self::Tcp => &["-l", "8K"],
            Self::Udp => &["-u", "-l", "1400"],
        }
    }
}

impl Direction {
    fn option(self) -> Option<&'static str> {
        match self {
            Self::Forward => None,
            Self::Reverse => Some("-R"),
            Self::Bidirectional => Some("--bidir"),
        }
    }
}
