//! Sessions whose control connection breaks.

use std::time::Duration;

use linerate_native::wire::message::{ClientMessage, JsonText, Resume};
use linerate_native::wire::server::{CloseReason, ResumeError};
use linerate_native::wire::{client, server};

use crate::dialogue::{CLIENT, SERVER};
use crate::fuzzing::{hello, spec};
use crate::pair::Pair;

const SECOND: Duration = Duration::from_secs(1);

/// The log without what concerns the connection only.
fn events(log: &[String]) -> String {
    let is_event =
        |entry: &&String| !matches!(entry.as_str(), "ConnectAgain" | "Resumed" | "ControlLost");
    log.iter()
        .filter(is_event)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ")
}

#[test]
fn a_session_cut_after_any_segment_loses_nothing_and_does_nothing_twice() {
    let segments = |segment| {
        let mut pair = Pair::new(hello());
        pair.segment = segment;
        pair.run(usize::MAX)
    };
    let mut resumed = 0;

    for segment in [50, 120, usize::MAX] {
        for carried in 0..segments(segment) {
            let mut pair = Pair::new(hello());
            pair.segment = segment;
            assert_eq!(pair.run(carried), carried);
            pair.cut();
            pair.run(usize::MAX);

            if pair.client_log.first().map(String::as_str) != Some("Welcome") {
                let failed = "Failed the server closed the connection, Close";
                assert_eq!(pair.client_log.join(", "), failed, "{segment} {carried}");
                pair.pass(SECOND * 60);
                assert!(
                    matches!(pair.closed, Some(CloseReason::Left | CloseReason::Lost)),
                    "{:?}",
                    pair.closed
                );
                continue;
            }

            assert_eq!(events(&pair.client_log), CLIENT, "{segment} {carried}");
            assert_eq!(events(&pair.server_log), SERVER, "{segment} {carried}");
            resumed += usize::from(pair.client_log.iter().any(|entry| entry == "Resumed"));
            pair.pass(SECOND * 60);
            assert!(
                matches!(pair.closed, Some(CloseReason::Bye | CloseReason::Lost)),
                "{:?}",
                pair.closed
            );
        }
    }

    assert!(resumed > 50, "{resumed}");
}

#[test]
fn a_session_cut_twice_loses_nothing() {
    for first in 8..20 {
        for second in 1..12 {
            let mut pair = Pair::new(hello());
            pair.segment = 70;
            pair.run(first);
            pair.cut();
            pair.run(second);
            pair.cut();
            pair.run(usize::MAX);
            pair.pass(SECOND * 2);

            if pair.client_log.first().map(String::as_str) == Some("Welcome") {
                assert_eq!(events(&pair.client_log), CLIENT, "{first} {second}");
                assert_eq!(events(&pair.server_log), SERVER, "{first} {second}");
            }
        }
    }
}

/// A session whose first phase runs and whose client does nothing by itself.
fn running() -> Pair {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.run(usize::MAX);
    pair.client_does(client::Input::Start);
    pair.run(usize::MAX);
    assert_eq!(pair.client_log.last().map(String::as_str), Some("Started"));

    pair
}

#[test]
fn inputs_without_a_connection_take_effect_after_the_resumption() {
    let mut pair = running();
    pair.is_reachable = false;
    pair.cut();
    pair.client_does(client::Input::Stop);
    pair.pass(SECOND * 10);
    assert_eq!(
        pair.client_log.last().map(String::as_str),
        Some("ConnectAgain")
    );
    pair.is_reachable = true;
    pair.client.control_lost(pair.now);
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log[3..].join(", "),
        "ConnectAgain, ConnectAgain, Resumed, PhaseResult 1"
    );
}

#[test]
fn a_request_cut_after_any_segment_is_handled_once() {
    for carried in 0..12 {
        let mut pair = running();
        pair.segment = 30;
        let body = JsonText::new("7".to_owned()).expect("JSON");
        pair.client_does(client::Input::Request {
            name: "a".to_owned(),
            body,
        });
        pair.run(carried);
        pair.cut();
        pair.run(usize::MAX);

        let is_event = |entry: &&String| entry.starts_with("Re") && *entry != "Resumed";
        let seen = |log: &[String]| {
            log.iter()
                .skip(1)
                .filter(is_event)
                .cloned()
                .collect::<Vec<_>>()
                .join(", ")
        };
        assert_eq!(seen(&pair.server_log), "Request a 7", "{carried}");
        assert_eq!(seen(&pair.client_log[1..]), "Response [7]", "{carried}");
    }
}

#[test]
fn a_session_without_a_connection_is_over_after_30_s_at_both_ends() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.is_reachable = false;
    pair.cut();
    pair.pass(SECOND * 30 - Duration::from_nanos(1));
    assert_eq!(
        (
            pair.closed.clone(),
            pair.client_log.last().map(String::as_str)
        ),
        (None, Some("ConnectAgain"))
    );
    pair.pass(Duration::from_nanos(1));
    assert_eq!(pair.closed, Some(CloseReason::Lost));

    let failed = "Failed control connection lost and not replaced within 30 s";
    assert_eq!(
        pair.client_log[pair.client_log.len() - 2..],
        [failed, "Close"]
    );
    assert_eq!(
        (pair.client.poll_timeout(), pair.server.poll_timeout()),
        (None, None)
    );
}

#[test]
fn a_connection_that_only_the_client_knows_to_be_lost_is_replaced() {
    let mut pair = running();
    pair.cut_at_client();
    pair.run(usize::MAX);
    pair.client_does(client::Input::Stop);
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log[3..].join(", "),
        "ConnectAgain, Resumed, PhaseResult 1"
    );
    assert!(!pair.server_log.iter().any(|entry| entry == "ControlLost"));
}

#[test]
fn a_resumption_directly_after_another_is_refused_and_the_client_keeps_its_distance() {
    let mut pair = running();
    pair.cut_at_client();
    pair.run(usize::MAX);

    let again = Resume {
        session: "s1".to_owned(),
        number: 3,
        received: 3,
        proof: String::new(),
    };
    assert_eq!(
        pair.server.resume(pair.now, &again),
        Err(ResumeError::TooSoon)
    );
    pair.cut_at_client();
    pair.run(usize::MAX);
    assert_eq!(pair.client_log[3..].join(", "), "ConnectAgain, Resumed");
    pair.pass(SECOND);
    assert_eq!(
        pair.client_log[3..].join(", "),
        "ConnectAgain, Resumed, ConnectAgain, Resumed"
    );
}

#[test]
fn impossible_numbers_and_sessions_that_do_not_exist_are_refused() {
    let mut pair = running();
    pair.server.control_lost(pair.now);

    let resume = |number, received| Resume {
        session: "s1".to_owned(),
        number,
        received,
        proof: String::new(),
    };
    for (number, received) in [(2, 3), (3, 4), (3, u64::MAX), (0, 0)] {
        assert_eq!(
            pair.server.resume(pair.now, &resume(number, received)),
            Err(ResumeError::Numbers)
        );
        assert!(!pair.server.is_connected());
    }

    assert_eq!(pair.server.resume(pair.now, &resume(3, 3)), Ok(()));
    let mut fresh = server::Machine::new(pair.now);
    assert_eq!(
        fresh.resume(pair.now, &resume(0, 0)),
        Err(ResumeError::NoSession)
    );
}

#[test]
fn a_server_that_forgot_the_session_ends_it_at_the_client() {
    let mut pair = running();
    pair.server_does(server::Input::Stopping("restart".to_owned()));
    while pair.server.poll_action().is_some() {}
    pair.cut_at_client();
    pair.run(usize::MAX);

    let failed = "Failed the server does not continue the session: unknown session";
    assert_eq!(
        pair.client_log[3..].join(", "),
        format!("ConnectAgain, {failed}, Close")
    );
}

#[test]
fn a_server_that_does_not_answer_the_resumption_is_tried_again() {
    let mut client = running().client;
    let now = std::time::Instant::now() + SECOND;
    client.control_lost(now);
    client.resume(now, &[0; 32]);
    client.handle_timeout(now + SECOND * 5);

    let actions: Vec<_> = std::iter::from_fn(|| client.poll_action()).collect();
    assert_eq!(actions, [client::Action::ConnectAgain]);
    assert_eq!(client.poll_timeout(), Some(now + SECOND * 30));
}

#[test]
fn a_second_hello_on_a_new_connection_does_not_touch_the_session() {
    let mut pair = running();
    let mut other = server::Machine::new(pair.now);

    let keep = linerate_native::wire::message::Envelope {
        number: 0,
        received: 0,
        message: ClientMessage::Keep,
    };
    other.handle_bytes(
        pair.now,
        &linerate_native::wire::message::encode(&keep).expect("short"),
    );
    assert!(other.poll_action().is_none());
    other.handle_timeout(pair.now + server::HELLO_TIMEOUT);

    let last = std::iter::from_fn(|| other.poll_action()).last();
    assert_eq!(last, Some(server::Action::Close(CloseReason::Timeout)));
    pair.client_does(client::Input::Stop);
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log.last().map(String::as_str),
        Some("PhaseResult 1")
    );
}
