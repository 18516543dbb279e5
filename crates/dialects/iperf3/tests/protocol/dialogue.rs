//! A whole test, and that no end waits for ever.

use std::time::Duration;

use linerate_iperf3::wire::{
    Client, ClientAction, ClientInput, ClientSetup, Cookie, Params, Server, ServerInput,
};
use linerate_model::FailureKind;
use linerate_model::spec::ClientSpec;
use proptest::prelude::*;

use crate::items::Items;
use crate::pair::{Pair, states, test};

#[test]
fn a_whole_test_follows_the_table() {
    let mut pair = Pair::new(test());
    pair.run_until_running();
    pair.end_data();
    assert_eq!(
        states(Items::of_server(&pair.server_sent)),
        [9, 10, 1, 2, 13, 14]
    );
    assert_eq!(states(Items::of_client(&pair.client_sent)), [4, 16]);
    assert_eq!(
        pair.client_actions.join(" "),
        "Send TestAccepted Send OpenStreams StartClock StartData Send CollectResults Send \
         PeerResults ShowResults Send Close"
    );
    assert_eq!(
        pair.server_actions.join(" "),
        "Send Accepted ExpectStreams Send StartClock Send StartData StopData Send PeerResults Send \
         Close"
    );
    assert_eq!(pair.client_outcome, Some(Ok(())));
    assert_eq!(pair.server_outcome, Some(Ok(())));
    assert_eq!(
        (
            pair.client.poll_timeout(),
            pair.server.and_then(|s| s.poll_timeout())
        ),
        (None, None)
    );
}

/// The cookie of a client that continues with a connection is at the server: its parameters are the
/// first bytes.
#[test]
fn an_introduced_client_sends_its_parameters_first() {
    let spec = ClientSpec {
        test: test(),
        ..ClientSpec::default()
    };
    let params = Params::from_client(&spec, spec.test.block_len_bytes, None);
    let now = std::time::Instant::now();

    let setup = ClientSetup {
        cookie: Cookie::from_random([9; 36]),
        params,
        spec: spec.test,
    };
    let mut client = Client::introduced(now, setup);
    assert_eq!(client.poll_action(), None);
    client.handle_control(now, &[9]);
    assert_eq!(client.poll_action(), Some(ClientAction::TestAccepted));

    let Some(ClientAction::Send(bytes)) = client.poll_action() else {
        panic!("no parameters")
    };
    let length = u32::from_be_bytes(bytes[..4].try_into().expect("four bytes"));
    assert_eq!(length as usize, bytes.len() - 4);
    assert_eq!((bytes[4], client.poll_action()), (b'{', None));
}

proptest! {
    #[test]
    fn segments_of_any_size_make_the_same_test(segment in 1_usize..60) {
        let mut whole = Pair::new(test());
        whole.run_until_running();
        whole.end_data();
        let mut cut = Pair::new(test());
        cut.segment = segment;
        cut.run_until_running();
        cut.end_data();
        prop_assert_eq!(cut.client_actions, whole.client_actions);
        prop_assert_eq!(cut.server_actions, whole.server_actions);
        prop_assert_eq!(cut.client_sent, whole.client_sent);
        prop_assert_eq!(cut.server_sent, whole.server_sent);
    }

    #[test]
    fn any_events_end_a_client_exactly_once(script: Vec<u8>) {
        crate::fuzzing::client_control(&script);
    }

    #[test]
    fn any_events_end_a_server_exactly_once(script: Vec<u8>) {
        crate::fuzzing::server_control(&script);
    }
}

#[test]
fn a_connection_cut_at_any_byte_ends_both_sides() {
    let total = {
        let mut pair = Pair::new(test());
        pair.segment = 1;
        let before = pair.run(usize::MAX);
        pair.client.handle_local(pair.now, ClientInput::EndReached);
        before + pair.run(usize::MAX)
    };
    for carried in 1..total {
        let mut pair = Pair::new(test());
        pair.segment = 1;

        let left = carried - pair.run(carried);
        if left > 0 {
            pair.client.handle_local(pair.now, ClientInput::EndReached);
            pair.run(left);
        }

        pair.cut_at_client();
        pair.cut_at_server();
        assert!(
            pair.client_outcome.is_some(),
            "client, after {carried} segments"
        );

        let outcome = pair
            .server_outcome
            .unwrap_or_else(|| panic!("server, after {carried} segments"));
        if let Err(failure) = outcome {
            assert_eq!(
                failure.kind,
                FailureKind::PeerClosed,
                "after {carried} segments"
            );
            assert_eq!(
                failure.message,
                "the client has unexpectedly closed the connection"
            );
        }
    }
}

#[test]
fn a_silent_peer_is_given_up_in_every_waiting_state() {
    let mut waits = 0;
    for carried in 1..40 {
        let mut pair = Pair::new(test());
        pair.segment = 30;

        let left = carried - pair.run(carried);
        if left > 0 {
            pair.client.handle_local(pair.now, ClientInput::EndReached);
            pair.run(left);
        }

        // Everything under way is lost from now on.
        if let Some(deadline) = pair.client.poll_timeout() {
            pair.client
                .handle_timeout(deadline - Duration::from_nanos(1));
            assert!(pair.client.poll_action().is_none(), "not before its time");
            pair.client.handle_timeout(deadline);
            pair.obey();
            assert!(
                pair.client_failure()
                    .message
                    .ends_with("Connection timed out")
            );
            waits += 1;
        }

        let deadline = pair.server.as_ref().and_then(Server::poll_timeout);
        if let (Some(server), Some(deadline)) = (&mut pair.server, deadline) {
            server.handle_timeout(deadline);
            pair.obey();
            assert!(
                pair.server_outcome.is_some(),
                "server, after {carried} segments"
            );
            waits += 1;
        }
    }

    assert!(waits > 20);
}

#[test]
fn a_slow_client_is_refused_after_ten_seconds_with_the_known_numbers() {
    let mut pair = Pair::new(test());
    pair.run(1);
    pair.pass(Duration::from_secs(10));
    assert_eq!(pair.server_sent, [9, 0xfe, 0, 0, 0, 114, 0, 0, 0, 0]);
    assert_eq!(pair.server_failure().code, Some(114));
}

#[test]
fn streams_that_do_not_come_end_the_session_but_each_one_buys_time() {
    let mut pair = Pair::new(test());
    pair.client_obeys = false;
    pair.run_to_end();
    pair.pass(Duration::from_secs(9));
    pair.server_local(ServerInput::StreamOpened);
    pair.pass(Duration::from_secs(9));
    assert_eq!(pair.server_outcome, None);
    pair.pass(Duration::from_secs(1));
    assert_eq!(pair.server_failure().code, Some(204));
}

#[test]
fn the_server_starts_a_test_before_the_client_knows_its_last_stream() {
    let mut pair = Pair::new(test());
    pair.client_obeys = false;
    pair.run_to_end();

    for _ in 0..4 {
        pair.server_local(ServerInput::StreamOpened);
    }

    assert_eq!(
        pair.client_actions.last().map(String::as_str),
        Some("OpenStreams")
    );
    assert_eq!(
        pair.client.poll_timeout(),
        None,
        "opening streams is local work"
    );
    pair.client
        .handle_local(pair.now, ClientInput::StreamsOpened);
    pair.run_to_end();
    assert_eq!(
        pair.client_actions[pair.client_actions.len() - 2..],
        ["StartClock", "StartData"]
    );
}
