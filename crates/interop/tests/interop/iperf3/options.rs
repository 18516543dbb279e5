//! One case per option that changes what a test does: the effect must show in the reports, whichever program is on
//! which side.

use linerate_interop::{Pair, Pairing, Report, each_case, has_ipv6, run_pair_at};

const MIB: f64 = 1_048_576.0;

/// Looks at the client's report and the server's.
type Check = fn(&Report, &Report, Pairing);

/// An option, what it is given with, and what must be seen. Both ends report in JSON.
struct Case {
    name: &'static str,
    host: &'static str,
    client: &'static str,
    server: &'static str,
    check: Check,
}

const fn tcp(name: &'static str, client: &'static str, check: Check) -> Case {
    Case {
        name,
        host: "127.0.0.1",
        client,
        server: "",
        check,
    }
}

const CASES: [Case; 25] = [
    tcp("-n ends at the byte count", "-n 1M", |client, server, pairing| {
        between(sent(client), MIB, MIB + 131_072.0);
        arrived(client, server, pairing);
        equal(client.number("/start/test_start/bytes"), MIB);
    }),
    tcp("-n with -R ends at the byte count", "-R -n 1M", |client, _, _| {
        between(received(client), MIB, MIB + 4.0 * 131_072.0);
    }),
    tcp("-k ends at the block count", "-k 20", |client, server, pairing| {
        equal(sent(client), 20.0 * 131_072.0);
        arrived(client, server, pairing);
        equal(client.number("/start/test_start/blocks"), 20.0);
    }),
    tcp(
        "-l sets the block length",
        "-l 1000 -k 100",
        |client, server, pairing| {
            equal(sent(client), 100_000.0);
            arrived(client, server, pairing);
            equal(server.number("/start/test_start/blksize"), 1000.0);
        },
    ),
    tcp("-l of the largest block", "-l 1M -k 3", |client, _, _| {
        equal(sent(client), 3.0 * MIB);
    }),
    tcp("-w sets the socket buffers", "-w 64K -n 1M", |client, server, _| {
        for report in [client, server] {
            equal(report.number("/start/sock_bufsize"), 65_536.0);
            // Linux grants twice what is asked (socket(7)).
            between(report.number("/start/sndbuf_actual"), 65_536.0, 131_072.0);
            between(report.number("/start/rcvbuf_actual"), 65_536.0, 131_072.0);
        }
    }),
    tcp("-M sets the segment size", "-M 1000 -n 1M", |client, _, _| {
        equal(client.number("/start/tcp_mss"), 1000.0);
    }),
    tcp("-C chooses the congestion control", "-C reno -n 1M", |client, _, _| {
        assert_eq!(client.text("/end/sender_tcp_congestion"), "reno");
    }),
    tcp(
        "-C holds for the reverse direction",
        "-C reno -n 1M -R",
        |client, server, _| {
            assert_eq!(client.text("/end/sender_tcp_congestion"), "reno");
            assert_eq!(server.text("/end/sender_tcp_congestion"), "reno");
        },
    ),
    tcp("--dscp takes names", "--dscp af11 -n 1M", |client, server, _| {
        equal(client.number("/start/test_start/tos"), 40.0);
        equal(server.number("/start/test_start/tos"), 40.0);
    }),
    tcp(
        "-O keeps the warm-up out of the summary",
        "-O 1 -t 1 -b 20M -i 0.5",
        |client, server, _| {
            for report in [client, server] {
                equal(report.number("/start/test_start/omit"), 1.0);
                between(report.number("/end/sum_received/seconds"), 0.9, 1.3);
            }
            let omitted = |interval: &&serde_json::Value| interval["sum"]["omitted"] == true;
            let omitted = client.array("/intervals").iter().filter(omitted).count();
            between(count(omitted), 1.0, 3.0);
            between(sent(client), 1.7 * MIB, 3.2 * MIB);
        },
    ),
    tcp("-O with UDP", "-u -l 1400 -O 1 -t 1 -b 5M", |client, _, _| {
        between(received(client), 400_000.0, 900_000.0);
        equal(client.number("/end/sum_received/lost_packets"), 0.0);
    }),
    tcp("-Z sends without copying", "-Z -n 8M", |client, server, pairing| {
        arrived(client, server, pairing);
    }),
    tcp("-Z holds for the reverse direction", "-Z -R -n 8M", |client, _, _| {
        between(received(client), 8.0 * MIB, 64.0 * MIB);
    }),
    tcp(
        "--repeating-payload",
        "--repeating-payload -n 1M",
        |client, server, pairing| {
            arrived(client, server, pairing);
        },
    ),
    tcp("-N", "-N -l 32 -k 1000", |client, server, pairing| {
        equal(sent(client), 32_000.0);
        arrived(client, server, pairing);
    }),
    tcp(
        "64-bit counters",
        "-u --udp-counters-64bit -l 1400 -b 5M -t 1",
        |client, server, _| {
            equal(client.number("/end/sum_received/lost_packets"), 0.0);
            equal(server.number("/end/streams/0/udp/out_of_order"), 0.0);
            between(client.number("/end/sum_received/packets"), 350.0, 550.0);
        },
    ),
    tcp(
        "64-bit counters, reverse",
        "-u --udp-counters-64bit -l 1400 -b 5M -t 1 -R",
        |client, _, _| {
            equal(client.number("/end/sum_received/lost_packets"), 0.0);
            between(client.number("/end/sum_received/packets"), 350.0, 550.0);
        },
    ),
    tcp(
        "-T and --extra-data reach both reports",
        "-T title --extra-data words -n 1M",
        |client, server, _| {
            for report in [client, server] {
                assert_eq!(report.text("/title"), "title");
                assert_eq!(report.text("/extra_data"), "words");
            }
        },
    ),
    tcp(
        "--get-server-output between JSON reports",
        "--get-server-output -n 1M",
        |client, server, _| {
            let carried = |pointer: &str| client.number(&format!("/server_output_json{pointer}"));
            equal(carried("/end/sum_received/bytes"), received(server));
            assert!(client.get("/server_output_json/start/accepted_connection").is_some());
        },
    ),
    tcp(
        "-b with a burst keeps the rate",
        "-u -l 1400 -b 5M/20 -t 1",
        |client, _, _| {
            between(client.number("/end/sum_sent/bits_per_second"), 4e6, 6e6);
        },
    ),
    tcp(
        "--fq-rate lets the kernel pace",
        "--fq-rate 20M -t 1",
        |client, _, _| {
            between(client.number("/end/sum_received/bits_per_second"), 10e6, 30e6);
        },
    ),
    tcp("-i sets the interval", "-i 0.1 -t 1 -b 20M", |client, server, _| {
        between(count(client.array("/intervals").len()), 9.0, 11.0);
        between(count(server.array("/intervals").len()), 1.0, 2.0);
    }),
    tcp("-i 0 reports once", "-i 0 -t 1 -b 20M", |client, _, _| {
        equal(count(client.array("/intervals").len()), 1.0);
    }),
    tcp("--dont-fragment", "-u --dont-fragment -l 1400 -t 1", |client, _, _| {
        equal(client.number("/end/sum_received/lost_packets"), 0.0);
    }),
];

const ADDRESSES: [Case; 4] = [
    tcp(
        "-B binds the data and control connections",
        "-B 127.0.0.2 -n 1M",
        |client, server, _| {
            assert_eq!(client.text("/start/connected/0/local_host"), "127.0.0.2");
            assert_eq!(server.text("/start/accepted_connection/host"), "127.0.0.2");
            assert_eq!(server.text("/start/connected/0/remote_host"), "127.0.0.2");
        },
    ),
    tcp("-B binds UDP", "-B 127.0.0.2 -u -t 1", |_, server, _| {
        assert_eq!(server.text("/start/connected/0/remote_host"), "127.0.0.2");
    }),
    tcp("-4", "-4 -n 1M", |client, _, _| {
        assert_eq!(client.text("/start/connected/0/local_host"), "127.0.0.1");
    }),
    Case {
        name: "-B on the server",
        host: "127.0.0.3",
        client: "-n 1M",
        server: "-B 127.0.0.3",
        check: |client, _, _| assert_eq!(client.text("/start/connected/0/remote_host"), "127.0.0.3"),
    },
];

const IPV6: [Case; 2] = [
    Case {
        name: "-6",
        host: "::1",
        client: "-6 -n 1M",
        server: "-6",
        check: |client, server, _| {
            assert_eq!(client.text("/start/connected/0/local_host"), "::1");
            assert_eq!(server.text("/start/connected/0/remote_host"), "::1");
        },
    },
    Case {
        name: "-S on IPv6",
        host: "::1",
        client: "-S 0x20 -n 1M",
        server: "",
        check: |client, _, _| equal(client.number("/start/test_start/tos"), 32.0),
    },
];

#[test]
fn every_option_has_its_effect_in_all_pairings() {
    let families = IPV6.iter().filter(|_| has_ipv6());
    let all = CASES.iter().chain(&ADDRESSES).chain(families);
    let cases: Vec<_> = all
        .flat_map(|case| Pairing::ALL.map(|pairing| (case, pairing)))
        .collect();
    each_case(
        &cases,
        |(case, pairing)| format!("{}, {pairing}", case.name),
        |(case, pairing)| {
            let pair = run(case, *pairing);
            let (client, server) = (Report::parse(&pair.client.stdout), Report::parse(&pair.server.stdout));
            (case.check)(&client, &server, *pairing);
        },
    );
}

fn run(case: &Case, pairing: Pairing) -> Pair {
    let words = |text: &'static str| text.split_whitespace().chain(["-J"]).collect::<Vec<_>>();
    let (client, server) = (words(case.client), words(case.server));
    let pair = run_pair_at(case.host, (pairing.server(), &server), (pairing.client(), &client));
    pair.client.expect_clean();
    pair.server.expect_clean();
    pair
}

#[track_caller]
fn between(value: f64, low: f64, high: f64) {
    assert!((low..=high).contains(&value), "{value} is not between {low} and {high}");
}

#[track_caller]
fn equal(value: f64, expected: f64) {
    assert!((value - expected).abs() < 1e-6, "{value} is not {expected}");
}

#[track_caller]
fn sent(report: &Report) -> f64 {
    report.number("/end/sum_sent/bytes")
}

#[track_caller]
fn received(report: &Report) -> f64 {
    report.number("/end/sum_received/bytes")
}

/// What was sent must be counted as received. The original's server stops reading when the client says that it is done
/// and loses what is still under way, on a busy host all of it; ours must not.
#[track_caller]
fn arrived(client: &Report, server: &Report, pairing: Pairing) {
    if pairing.server().is_original() {
        between(received(server), 0.0, sent(client));
    } else {
        equal(received(server), sent(client));
    }
    equal(received(client), received(server));
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(f64::INFINITY, f64::from)
}
