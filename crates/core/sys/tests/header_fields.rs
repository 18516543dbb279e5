//! What packets carry beside their data: type of service, time to live, time of receipt.

mod common;

use std::os::fd::{AsFd, OwnedFd};

use common::{TIMEOUT, V4, V6, address, await_readable, open, set_ttl, udp_pair};
use linerate_sys::clock::{self, RealtimeOffset};
use linerate_sys::socket::{self, Protocol};
use linerate_sys::sockopt;
use linerate_sys::udp::{self, Message, RecvBatch};

/// Sender and receiver of each kind: IPv4, IPv6, and both ends IPv6 sockets that use mapped
/// addresses.
fn pairs() -> [(&'static str, OwnedFd, OwnedFd); 3] {
    let ((v4, to_v4), (v6, to_v6), (mapped, to_mapped)) =
        (udp_pair(V4), udp_pair(V6), mapped_pair());
    [
        ("IPv4", v4, to_v4),
        ("IPv6", v6, to_v6),
        ("mapped", mapped, to_mapped),
    ]
}

fn mapped_pair() -> (OwnedFd, OwnedFd) {
    let dual = || {
        let fd = open(V6, Protocol::Udp);
        sockopt::IPV6_V6ONLY.set(&fd, false).expect("set");
        fd
    };
    let (sender, receiver) = (dual(), dual());
    socket::bind(&receiver, &address("[::]:0")).expect("bind");

    let port = socket::local_addr(&receiver).expect("address").port();
    socket::connect(&sender, &address(&format!("[::ffff:127.0.0.1]:{port}"))).expect("connect");
    (sender, receiver)
}

fn receive<'a>(fd: impl AsFd, buffer: &'a mut [u8]) -> Message<'a> {
    await_readable(&fd);
    udp::recv_message(&fd, buffer).expect("recv")
}

#[test]
fn each_datagram_arrives_with_its_own_tos_and_the_socket_keeps_its_own() {
    // Expedited forwarding (RFC 3246), ECT(0), ECT(1), CE (RFC 3168), CS1 with ECT(1), everything.
    let marks = [0xb8, 0x02, 0x01, 0x03, 0x21, 0xff, 0x00];
    let mut buffer = [0; 64];

    for (kind, sender, receiver) in pairs() {
        sockopt::set_receive_tos(&receiver, true).expect("set");
        sockopt::set_tos(&sender, 0x48).expect("set");

        for mark in marks {
            assert_eq!(
                udp::send_with_tos(&sender, b"marked", mark).expect("send"),
                6
            );
            let message = receive(&receiver, &mut buffer);
            assert_eq!(
                (message.data, message.tos, message.ttl),
                (&b"marked"[..], Some(mark), None),
                "{kind} {mark:#x}"
            );
        }

        udp::send(&sender, b"").expect("send");
        assert_eq!(receive(&receiver, &mut buffer).tos, Some(0x48), "{kind}");
    }
}

#[test]
fn ttl_arrives_as_it_was_set() {
    let mut buffer = [0; 64];
    for (kind, sender, receiver) in pairs() {
        sockopt::set_receive_ttl(&receiver, true).expect("set");
        for ttl in [1_u8, 64, 255] {
            set_ttl(&sender, ttl.into());
            udp::send(&sender, b"x").expect("send");
            let message = receive(&receiver, &mut buffer);
            assert_eq!((message.ttl, message.tos), (Some(ttl), None), "{kind}");
        }

        sockopt::set_receive_ttl(&receiver, false).expect("set");
        udp::send(&sender, b"x").expect("send");
        assert_eq!(receive(&receiver, &mut buffer).ttl, None, "{kind}");
    }
}

#[test]
fn a_batch_holds_what_each_packet_carried() {
    for (kind, sender, receiver) in pairs() {
        sockopt::set_receive_tos(&receiver, true).expect("set");
        sockopt::set_receive_ttl(&receiver, true).expect("set");
        sockopt::SO_TIMESTAMPNS.set(&receiver, true).expect("set");

        // The longest sum of control messages: not every kernel joins trains.
        let _ = sockopt::UDP_GRO.set(&receiver, true);
        set_ttl(&sender, 33);
        let mut batch = RecvBatch::new(4, 100).expect("memory");

        udp::send_with_tos(&sender, b"one", 0x01).expect("send");
        udp::send_with_tos(&sender, b"two", 0xb8).expect("send");
        await_readable(&receiver);
        assert_eq!(batch.recv(&receiver).expect("recv"), 2);

        for (index, tos) in [0x01, 0xb8].into_iter().enumerate() {
            let message = batch.message(index);
            assert_eq!(
                (message.tos, message.ttl),
                (Some(tos), Some(33)),
                "{kind} {index}"
            );
            assert!(message.stamped_unix_ns.is_some(), "{kind} {index}");
        }
    }
}

#[test]
fn a_single_message_has_source_length_and_time_between_two_readings() {
    let (sender, receiver) = udp_pair(V4);
    let mut buffer = [0; 4];
    sockopt::SO_TIMESTAMPNS.set(&receiver, true).expect("set");

    let offset = RealtimeOffset::read();
    let deadline_ns = clock::monotonic_ns() + clock::as_ns(TIMEOUT.expect("a timeout"));

    loop {
        let sent_ns = clock::monotonic_ns();
        udp::send(&sender, b"longer").expect("send");
        // On loopback the datagram is in the queue when the call returns.
        let queued_ns = clock::monotonic_ns();
        let message = receive(&receiver, &mut buffer);
        assert_eq!((message.data, message.full_len), (&b"long"[..], 6));
        assert_eq!(message.from, socket::local_addr(&sender).ok());

        let arrival_ns = message.arrival_ns(offset, clock::monotonic_ns());
        // The kernel switches its clock on a little later, for the first socket of the host with
        // stamps; the two clocks are compared with an error of microseconds.
        if (sent_ns - 50_000..=queued_ns + 50_000).contains(&arrival_ns) {
            break;
        }

        assert!(
            clock::monotonic_ns() < deadline_ns,
            "{sent_ns} {arrival_ns} {queued_ns}"
        );
    }
}

#[test]
fn a_message_that_fits_is_whole_and_an_empty_queue_would_block() {
    let (sender, receiver) = udp_pair(V6);
    let mut buffer = [0; 6];
    let error = udp::recv_message(&receiver, &mut buffer).expect_err("nothing was sent");
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);

    for data in [&b"longer"[..], b""] {
        udp::send(&sender, data).expect("send");
        let message = receive(&receiver, &mut buffer);
        assert_eq!((message.data, message.full_len), (data, data.len()));
        assert_eq!(
            (
                message.stamped_unix_ns,
                message.tos,
                message.ttl,
                message.datagrams()
            ),
            (None, None, None, 1)
        );
    }
}
