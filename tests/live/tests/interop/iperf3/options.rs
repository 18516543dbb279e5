//! One test per option that changes what a test does: the effect must show in the reports.

use linerate_interop::{Pairing, Report, each_case, has_ipv6, run_pair_at, unsupported, words};

const MIB: f64 = 1_048_576.0;

/// A test for each row: what the client is given, and what must be seen in its report and the
/// server's, whichever program is on which side.
macro_rules! options {
    ($($name:ident: $words:literal => $check:expr;)*) => {$(
        #[test]
        fn $name() {
            in_all_pairings("127.0.0.1", $words, "", $check);
        }
    )*};
}

options! {
    n_ends_at_the_byte_count: "-n 1M" => |client, server, pairing| {
        between(sent(client), MIB, MIB + 131_072.0);
        arrived(client, server, pairing);
        equal(client.number("/start/test_start/bytes"), MIB);
    };
    n_in_reverse_ends_at_the_byte_count: "-R -n 1M" => |client, _, _| {
        between(received(client), MIB, MIB + 4.0 * 131_072.0);
    };
    k_ends_at_the_block_count: "-k 20" => |client, server, pairing| {
        equal(sent(client), 20.0 * 131_072.0);
        arrived(client, server, pairing);
        equal(client.number("/start/test_start/blocks"), 20.0);
    };
    l_sets_the_block_length: "-l 1000 -k 100" => |client, server, pairing| {
        equal(sent(client), 100_000.0);
        arrived(client, server, pairing);
        equal(server.number("/start/test_start/blksize"), 1000.0);
    };
    l_takes_the_largest_block: "-l 1M -k 3" => |client, _, _| equal(sent(client), 3.0 * MIB);
    w_sets_the_socket_buffers: "-w 64K -n 1M" => |client, server, _| {
        for report in [client, server] {
            equal(report.number("/start/sock_bufsize"), 65_536.0);
            // Linux grants twice what is asked (socket(7)).
            between(report.number("/start/sndbuf_actual"), 65_536.0, 131_072.0);
            between(report.number("/start/rcvbuf_actual"), 65_536.0, 131_072.0);
        }
    };
    m_sets_the_segment_size: "-M 1000 -n 1M" => |client, _, _| equal(client.number("/start/tcp_mss"), 1000.0);
    c_chooses_the_congestion_control: "-C reno -n 1M" => |client, _, _| {
        assert_eq!(client.text("/end/sender_tcp_congestion"), "reno");
    };
    c_holds_for_the_reverse_direction: "-C reno -n 1M -R" => |client, server, _| {
        assert_eq!(client.text("/end/sender_tcp_congestion"), "reno");
        assert_eq!(server.text("/end/sender_tcp_congestion"), "reno");
    };
    dscp_takes_names: "--dscp af11 -n 1M" => |client, server, _| {
        equal(client.number("/start/test_start/tos"), 40.0);
        equal(server.number("/start/test_start/tos"), 40.0);
    };
    z_sends_without_copying: "-Z -n 8M" => arrived;
    z_holds_for_the_reverse_direction: "-Z -R -n 8M" => |client, _, _| between(received(client), 8.0 * MIB, 64.0 * MIB);
    repeating_payload_arrives: "--repeating-payload -n 1M" => arrived;
    n_sets_no_delay: "-N -l 32 -k 1000" => |client, server, pairing| {
        equal(sent(client), 32_000.0);
        arrived(client, server, pairing);
    };
    title_and_extra_data_reach_both_reports: "-T title --extra-data words -n 1M" => |client, server, _| {
        for report in [client, server] {
            assert_eq!(report.text("/title"), "title");
            assert_eq!(report.text("/extra_data"), "words");
        }
    };
    server_output_is_carried_in_json: "--get-server-output -n 1M" => |client, server, _| {
        equal(client.number("/server_output_json/end/sum_received/bytes"), received(server));
        assert!(client.get("/server_output_json/start/accepted_connection").is_some());
    };
    b_binds_the_data_and_control_connections: "-B 127.0.0.2 -n 1M" => |client, server, _| {
        assert_eq!(client.text("/start/connected/0/local_host"), "127.0.0.2");
        assert_eq!(server.text("/start/accepted_connection/host"), "127.0.0.2");
        assert_eq!(server.text("/start/connected/0/remote_host"), "127.0.0.2");
    };
    b_binds_udp: "-B 127.0.0.2 -u -l 1400 -b 5M -k 20" => |_, server, _| {
        assert_eq!(server.text("/start/connected/0/remote_host"), "127.0.0.2");
    };
    four_keeps_to_ipv4: "-4 -n 1M" => |client, _, _| {
        assert_eq!(client.text("/start/connected/0/local_host"), "127.0.0.1");
    };
    dont_fragment_loses_nothing: "-u --dont-fragment -l 1400 -b 5M -k 100" => |client, _, _| {
        equal(client.number("/end/sum_received/lost_packets"), 0.0);
    };
    timed_warm_up_stays_out_of_the_summary: "-O 1 -t 1 -b 20M -i 0.5" => |client, server, _| {
        for report in [client, server] {
            equal(report.number("/start/test_start/omit"), 1.0);
            between(report.number("/end/sum_received/seconds"), 0.9, 1.3);
        }
        let omitted = |interval: &&serde_json::Value| interval["sum"]["omitted"] == true;
        between(count(client.array("/intervals").iter().filter(omitted).count()), 1.0, 3.0);
        between(sent(client), 1.7 * MIB, 3.2 * MIB);
    };
    timed_warm_up_of_udp_stays_out_of_the_summary: "-u -l 1400 -O 1 -t 1 -b 5M" => |client, _, _| {
        between(received(client), 400_000.0, 900_000.0);
        equal(client.number("/end/sum_received/lost_packets"), 0.0);
    };
    timed_64_bit_counters: "-u --udp-counters-64bit -l 1400 -b 5M -t 1" => |client, server, _| {
        equal(client.number("/end/sum_received/lost_packets"), 0.0);
        equal(server.number("/end/streams/0/udp/out_of_order"), 0.0);
        between(client.number("/end/sum_received/packets"), 350.0, 550.0);
    };
    timed_64_bit_counters_in_reverse: "-u --udp-counters-64bit -l 1400 -b 5M -t 1 -R" => |client, _, _| {
        equal(client.number("/end/sum_received/lost_packets"), 0.0);
        between(client.number("/end/sum_received/packets"), 350.0, 550.0);
    };
    timed_rate_with_a_burst_is_kept: "-u -l 1400 -b 5M/20 -t 1" => |client, _, _| {
        between(client.number("/end/sum_sent/bits_per_second"), 4e6, 6e6);
    };
    timed_fq_rate_lets_the_kernel_pace: "--fq-rate 20M -t 1" => |client, _, _| {
        between(client.number("/end/sum_received/bits_per_second"), 10e6, 30e6);
    };
    timed_i_sets_the_interval: "-i 0.1 -t 1 -b 20M" => |client, server, _| {
        between(count(client.array("/intervals").len()), 9.0, 11.0);
        between(count(server.array("/intervals").len()), 1.0, 2.0);
    };
    timed_i_0_reports_once: "-i 0 -t 1 -b 20M" => |client, _, _| {
        equal(count(client.array("/intervals").len()), 1.0);
    };
}

#[test]
fn b_binds_the_server() {
    in_all_pairings("127.0.0.3", "-n 1M", "-B 127.0.0.3", |client, _, _| {
        assert_eq!(client.text("/start/connected/0/remote_host"), "127.0.0.3");
    });
}

#[test]
fn ipv6_is_used_and_takes_a_type_of_service() {
    if !has_ipv6() {
        return unsupported("this host has no IPv6");
    }

    in_all_pairings("::1", "-6 -S 0x20 -n 1M", "-6", |client, server, _| {
        assert_eq!(client.text("/start/connected/0/local_host"), "::1");
        assert_eq!(server.text("/start/connected/0/remote_host"), "::1");
        equal(client.number("/start/test_start/tos"), 32.0);
    });
}

/// Runs a test in all pairings, both ends with reports in JSON, and checks the client's report and
/// the server's.
fn in_all_pairings(host: &str, client: &str, server: &str, check: fn(&Report, &Report, Pairing)) {
    each_case(&Pairing::ALL, |pairing| {
        let (server, client) = (
            [words(server), vec!["-J"]].concat(),
            [words(client), vec!["-J"]].concat(),
        );
        let pair = run_pair_at(
            host,
            (pairing.server(), &server),
            (pairing.client(), &client),
        );
        let [client, server] =
            [pair.client, pair.server].map(|end| Report::parse(&end.expect_clean().stdout));
        check(&client, &server, *pairing);
    });
}

#[track_caller]
fn between(value: f64, low: f64, high: f64) {
    assert!(
        (low..=high).contains(&value),
        "{value} is not between {low} and {high}"
    );
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

/// Bytes that were sent must be counted as received. The original's server stops reading when the
/// client says that it is done and loses what is still under way, on a busy host all of it; ours
/// must not.
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
