//! Peers that vanish, fall silent or speak another language.

use linerate_iperf2::wire::client::HEADER_TIMEOUT;
use linerate_iperf2::wire::machine::{Action, Input};
use linerate_iperf2::wire::{Mode, Policy};
use linerate_model::{Failure, FailureKind};

use crate::streams::{Pair, clock, header};

/// A server that has received these bytes and nothing more.
fn server_after(bytes: &[u8]) -> Pair {
    let mut pair = Pair::new(None, Policy::default());
    pair.server.handle_bytes(clock(), bytes);
    pair
}

fn server_failure(pair: &Pair) -> &Failure {
    pair.server_outcome()
        .expect("closed")
        .as_ref()
        .expect_err("a failure")
}

#[test]
fn silent_peer_ends_a_session_in_any_state() {
    let header = header(Mode::Forward).emit_tcp();
    let beginnings: [&[u8]; 5] = [
        b"",
        &header[..1],
        &header[..3],
        &header[..30],
        &header[..59],
    ];
    for beginning in beginnings {
        let mut pair = server_after(beginning);
        let deadline = pair.server.poll_timeout().expect("a limit");
        assert_eq!(deadline, pair.now + Policy::default().handshake_timeout);
        pair.server.handle_timeout(deadline);
        pair.run();
        assert_eq!(
            server_failure(&pair).kind,
            FailureKind::PeerClosed,
            "{} bytes",
            beginning.len()
        );
    }
}

#[test]
fn early_close_differs_from_failure() {
    for beginning in [&b""[..], &[0x40, 0x01]] {
        let mut pair = server_after(beginning);
        pair.server.handle_eof(pair.now);
        pair.run();
        assert_eq!(server_failure(&pair).kind, FailureKind::PeerClosed);
    }

    let mut pair = server_after(&header(Mode::Forward).emit_tcp());
    pair.server.handle_local(
        pair.now,
        Input::Failed(Failure::new(FailureKind::Error, "Connection reset by peer")),
    );
    pair.run();
    assert_eq!(server_failure(&pair).message, "Connection reset by peer");
}

#[test]
fn other_protocols_are_refused_at_their_first_bytes() {
    let others: [&[u8]; 5] = [
        b"GET / HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n",
        &[0x16, 0x03, 0x01, 0x02],
        b"abcdefghijklmnopqrstuvwxyz2345672345\0",
        &[0xff; 4],
    ];
    for other in others {
        let mut pair = server_after(other);
        pair.run();
        assert!(
            pair.server_outcome().is_some_and(Result::is_err),
            "{other:02x?}"
        );
        assert!(
            !pair.server_did(|a| matches!(a, Action::Send(_))),
            "{other:02x?}"
        );
    }
}

#[test]
fn a_header_whose_version_or_length_is_wrong_is_refused() {
    let good = header(Mode::Forward).emit_tcp();
    for (at, byte) in [
        (3, 0x10),
        (36, 7),
        (37, 3),
        (41, 0xff),
        (43, 0x13),
        (2, 0x02),
    ] {
        let mut bad = good.clone();
        bad[at] = byte;
        let mut pair = server_after(&bad);
        pair.run();

        let accepted = pair.server_did(|a| matches!(a, Action::Accepted(_)));
        // A patch number may be any; everything else must agree.
        assert_eq!(accepted, at == 41, "byte {at} = {byte:02x}");
    }
}

#[test]
fn terminated_server_reports_it_once() {
    let mut pair = server_after(&header(Mode::Forward).emit_tcp());
    pair.server.handle_local(pair.now, Input::Interrupted);
    pair.server.handle_local(pair.now, Input::Interrupted);
    pair.server.handle_eof(pair.now);
    pair.run();

    let closings = pair
        .server_actions
        .iter()
        .filter(|a| matches!(a, Action::Close(_)));
    assert_eq!(closings.count(), 1);
}

#[test]
fn a_client_does_not_wait_for_ever_for_framed_data() {
    let header = linerate_iperf2::wire::Header {
        trip_times: true,
        start: Some(clock()),
        ..header(Mode::Reverse)
    };
    let mut pair = Pair::new(Some(header.clone()), Policy::default());
    assert_eq!(pair.client.poll_timeout(), Some(pair.now + HEADER_TIMEOUT));
    pair.client.handle_timeout(pair.now + HEADER_TIMEOUT);
    pair.client_actions
        .extend(std::iter::from_fn(|| pair.client.poll_action()));
    assert!(matches!(pair.client_outcome(), Some(Err(_))));

    // A server that sends plain data although frames were agreed.
    let mut pair = Pair::new(Some(header), Policy::default());
    pair.client.handle_bytes(pair.now, clock(), b"0123456789");
    pair.client_actions
        .extend(std::iter::from_fn(|| pair.client.poll_action()));
    assert!(matches!(pair.client_outcome(), Some(Err(_))));
    assert!(!pair.client_did(|a| matches!(a, Action::StartReceiving { .. })));
}
