//! The kernel's state of connections under conditions that a test makes for itself.

mod common;
mod namespace;

use common::{V4, accept_from, await_readable, open, tcp_pair};
use linerate_sys::socket::Protocol;
use linerate_sys::tcp_info::tcp_info;
use linerate_sys::{sockopt, stream_io};
use namespace::Namespace;

#[test]
fn ecn_is_negotiated_where_both_ends_enable_it_and_seen_once_data_came() {
    let Some(namespace) = Namespace::new() else {
        return;
    };
    for (setting, expected) in [("0", false), ("1", true)] {
        namespace.set("ipv4/tcp_ecn", setting);
        let (client, server) = namespace.run(|| {
            let client = open(V4, Protocol::Tcp);
            // Marking data as ECT is the choice of the algorithm, too.
            sockopt::set_congestion(&client, "reno").expect("every kernel has it");
            let server = accept_from(&client, V4);
            (client, server)
        });
        for end in [&client, &server] {
            let info = tcp_info(end).expect("info");
            assert_eq!(
                (info.ecn_negotiated, info.ecn_seen),
                (expected, false),
                "tcp_ecn={setting}"
            );
        }

        stream_io::send(&client, b"data").expect("send");
        await_readable(&server);
        let info = tcp_info(&server).expect("info");
        assert_eq!(
            (info.ecn_negotiated, info.ecn_seen),
            (expected, expected),
            "tcp_ecn={setting}"
        );
    }
}

#[test]
fn bytes_behind_the_peers_window_are_not_sent_and_the_socket_holds_no_more_than_the_mark() {
    let (client, _server) = tcp_pair();
    let mark_bytes = 10_000;
    sockopt::TCP_NOTSENT_LOWAT
        .set(&client, mark_bytes)
        .expect("set");
    assert_eq!(
        tcp_info(&client).expect("info").notsent_bytes.unwrap_or(0),
        0
    );

    let block = [0; 1000];
    let mut accepted = 0;
    // The server reads nothing. When its window is full, bytes stay; beyond the mark no packet is
    // begun.
    let refused = loop {
        match stream_io::send(&client, &block) {
            Ok(sent) => accepted += sent as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);

    let info = tcp_info(&client).expect("info");
    let notsent = info.notsent_bytes.expect("Linux 4.6");
    assert!(
        (1..=mark_bytes + PACKET_BYTES_MAX).contains(&notsent),
        "{notsent}"
    );
    assert!(accepted >= u64::from(notsent));
    assert!(info.delivered_segments.is_none_or(|segments| segments > 0));
    assert!(
        info.delivered_ce_segments
            .is_none_or(|segments| segments == 0)
    );
}

/// The kernel fills the last packet of the queue whatever the mark (`net/ipv4/tcp.c`,
/// `tcp_sendmsg_locked`).
const PACKET_BYTES_MAX: u32 = 65_536;
