//! Peers that are silent, vanish or send what is wrong.

use std::time::Duration;

use linerate_native::wire::message::{
    ClientMessage, ClockReply, Envelope, Fault, JsonText, Message, ServerMessage, Turn, encode,
};
use linerate_native::wire::server::CloseReason;
use linerate_native::wire::{client, server};

use crate::fuzzing::{hello, ready, spec, welcome};
use crate::pair::Pair;

const SECOND: Duration = Duration::from_secs(1);

fn frame<M: Message>(number: u64, message: M) -> Vec<u8> {
    encode(&Envelope {
        number,
        received: 0,
        message,
    })
    .expect("short enough")
}

fn open(phase: u32) -> ClientMessage {
    ClientMessage::OpenPhase {
        phase,
        spec: spec(),
    }
}

fn request(name: &str) -> ClientMessage {
    ClientMessage::Request {
        name: name.to_owned(),
        body: JsonText::null(),
    }
}

/// The server's fault, and what the client sees of it.
fn faulted(pair: &Pair) -> Fault {
    let Some(CloseReason::Fault(fault)) = &pair.closed else {
        panic!("no fault: {:?}", pair.closed)
    };
    let failed = format!("Failed the server refuses a message: {fault}");
    assert_eq!(
        pair.client_log[pair.client_log.len() - 2..],
        [failed, "Close".to_owned()]
    );

    fault.clone()
}

#[test]
fn messages_out_of_state_end_the_session_with_a_fault() {
    let hello_again = || ClientMessage::Hello(Box::new(hello()));
    let opened = || vec![open(1)];

    let rows: Vec<(&str, Vec<ClientMessage>, &str)> = vec![
        ("second hello", vec![hello_again()], "type"),
        (
            "start without a phase",
            vec![ClientMessage::Start { phase: 1 }],
            "type",
        ),
        (
            "stop without a phase",
            vec![ClientMessage::Stop { phase: 1 }],
            "type",
        ),
        (
            "two phases at once",
            [opened(), vec![open(2)]].concat(),
            "type",
        ),
        ("phase number 0", vec![open(0)], "phase"),
        (
            "start of another phase",
            [opened(), vec![ClientMessage::Start { phase: 2 }]].concat(),
            "phase",
        ),
        (
            "stop of another phase",
            [opened(), vec![ClientMessage::Stop { phase: 2 }]].concat(),
            "phase",
        ),
        (
            "start twice",
            [opened(), vec![ClientMessage::Start { phase: 1 }; 2]].concat(),
            "type",
        ),
    ];
    for (name, messages, member) in rows {
        let mut pair = Pair::new(hello());
        pair.client_obeys = false;
        pair.run_until("Welcome");

        for (message, number) in messages.into_iter().zip(2..) {
            pair.inject(&frame(number, message));
            pair.client_log
                .retain(|entry| !entry.starts_with("Failed wrong"));
        }

        let Some(CloseReason::Fault(fault)) = &pair.closed else {
            panic!("{name}: {:?}", pair.closed)
        };
        assert_eq!(fault.member, member, "{name}: {fault}");
        assert_eq!(pair.server.poll_timeout(), None, "{name}");
    }
}

#[test]
fn a_phase_number_is_not_used_again() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.client_does(client::Input::Stop);
    pair.run(usize::MAX);
    pair.inject(&frame(4, open(1)));

    let expected = Fault {
        member: "phase".to_owned(),
        text: "1 is not above 1".to_owned(),
    };
    assert_eq!(pair.closed, Some(CloseReason::Fault(expected)));
}

#[test]
fn a_second_request_before_the_response_ends_the_session_with_a_fault() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.server_obeys = false;
    pair.inject(&frame(2, request("a")));
    assert_eq!(pair.closed, None);
    pair.inject(&frame(3, request("b")));

    let expected = Fault {
        member: "type".to_owned(),
        text: "request while another one is pending".to_owned(),
    };
    assert_eq!(pair.closed, Some(CloseReason::Fault(expected)));
    assert_eq!(
        pair.server_log.last().map(String::as_str),
        Some("Request a null")
    );
}

#[test]
fn a_response_that_is_no_json_or_too_long_is_a_refusal() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.server_obeys = false;

    for response in [
        "{".to_owned(),
        format!("\"{}\"", "x".repeat(1 << 20)),
        "[".repeat(16) + &"]".repeat(16),
    ] {
        pair.client_does(client::Input::Request {
            name: "a".to_owned(),
            body: JsonText::null(),
        });
        pair.run(usize::MAX);
        pair.server_does(server::Input::Response(response));
        pair.run(usize::MAX);
        assert_eq!(
            pair.client_log.last().map(String::as_str),
            Some("RequestRefused response")
        );
    }

    assert_eq!((pair.closed.clone(), pair.client_log.len()), (None, 4));
}

#[test]
fn wrong_frames_end_the_session_with_a_fault_that_names_the_member() {
    let deep = format!(
        "{{\"type\":\"keep\",\"x\":{}{}}}",
        "[".repeat(16),
        "]".repeat(16)
    );
    let framed = |text: &[u8]| [&(text.len() as u32).to_be_bytes()[..], text].concat();
    let rows: Vec<(&str, Vec<u8>, &str)> = vec![
        ("16 KiB and one byte", vec![0, 0, 0x40, 1], "length"),
        ("empty frame", vec![0, 0, 0, 0], "length"),
        ("not UTF-8", framed(b"{\"type\":\"\xff\"}"), "type"),
        (
            "17 levels",
            framed(deep.as_bytes()),
            "x.0.0.0.0.0.0.0.0.0.0.0.0.0.0",
        ),
        (
            "not finite",
            framed(b"{\"type\":\"clock\",\"sent_ns\":1e999}"),
            "sent_ns",
        ),
        (
            "wrong type of a value",
            framed(b"{\"type\":\"clock\",\"sent_ns\":\"1\"}"),
            "sent_ns",
        ),
        ("unknown type", framed(b"{\"type\":\"explode\"}"), "type"),
        ("number of the future", frame(9, ClientMessage::Bye), "n"),
    ];
    for (name, bytes, member) in rows {
        let mut pair = Pair::new(hello());
        pair.client_obeys = false;
        pair.run_until("Welcome");
        pair.inject(&bytes);

        let fault = faulted(&pair);
        assert!(fault.member.starts_with(member), "{name}: {fault}");
    }
}

#[test]
fn the_65th_message_of_a_second_ends_the_session() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.now += SECOND * 2;

    let keep = frame(0, ClientMessage::Keep);
    pair.inject(&keep.repeat(64));
    assert_eq!(pair.closed, None);
    pair.inject(&keep);
    assert_eq!(faulted(&pair).member, "message");
}

#[test]
fn the_first_message_is_hello_or_resume() {
    for message in [
        open(1),
        request("a"),
        ClientMessage::WantFacts,
        ClientMessage::Clock { sent_ns: 1 },
    ] {
        let mut server = server::Machine::new(std::time::Instant::now());
        let number = u64::from(message.is_numbered());
        server.handle_bytes(std::time::Instant::now(), &frame(number, message));

        let last = std::iter::from_fn(|| server.poll_action()).last();
        assert!(
            matches!(last, Some(server::Action::Close(CloseReason::Fault(_)))),
            "{last:?}"
        );
    }
}

#[test]
fn a_client_that_vanishes_before_its_session_leaves_nothing() {
    for segment in [1, 30, 80] {
        for carried in 0.. {
            let mut pair = Pair::new(hello());
            pair.segment = segment;
            pair.run(carried);

            if pair.server.is_session() {
                break;
            }

            pair.server.control_lost(pair.now);
            pair.obey();
            assert_eq!(
                pair.closed,
                Some(CloseReason::Left),
                "after {carried} segments"
            );
            assert_eq!(pair.server.poll_timeout(), None);
        }
    }
}

#[test]
fn a_client_that_sends_no_hello_has_5_s() {
    let now = std::time::Instant::now();
    let mut server = server::Machine::new(now);
    server.handle_bytes(now + SECOND * 4, &[0, 0]);
    assert_eq!(server.poll_timeout(), Some(now + SECOND * 5));
    server.handle_timeout(now + SECOND * 5);

    let last = std::iter::from_fn(|| server.poll_action()).last();
    assert_eq!(last, Some(server::Action::Close(CloseReason::Timeout)));
}

#[test]
fn a_server_that_is_silent_is_left_in_every_waiting_state() {
    let (mut seen, mut waits) = (String::new(), 0);
    for carried in 1..60 {
        let mut pair = Pair::new(hello());
        pair.segment = 40;
        pair.run(carried);

        if pair.client.poll_timeout().is_none() {
            continue;
        }

        // Everything under way is lost from now on, and no new connection comes.
        pair.is_reachable = false;
        for _ in 0..100 {
            let Some(at) = pair.client.poll_timeout() else {
                break;
            };
            pair.client.handle_timeout(at - Duration::from_nanos(1));
            pair.client.handle_timeout(at);

            while let Some(action) = pair.client.poll_action() {
                if let client::Action::Failed(failure) = action {
                    seen += &failure.to_string();
                    waits += 1;
                }
            }
        }

        assert_eq!(pair.client.poll_timeout(), None, "after {carried} segments");
    }

    assert!(waits > 20, "{waits}");
    for awaited in ["answer to hello", "ready", "started", "phase_result"] {
        assert!(seen.contains(awaited), "{awaited}: {seen}");
    }
}

#[test]
fn both_ends_keep_an_idle_session_alive() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.pass(SECOND * 50);
    assert_eq!(
        (pair.closed.clone(), pair.client_log.len()),
        (None, 1),
        "{:?}",
        pair.client_log
    );
}

#[test]
fn a_silent_connection_is_lost_after_20_s() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");

    // The link carries nothing: each end passes its own time.
    for (at, end) in [
        (SECOND * 20 - Duration::from_nanos(1), false),
        (SECOND * 20, true),
    ] {
        pair.server.handle_timeout(pair.now + at);
        pair.client.handle_timeout(pair.now + at);
        let server_actions: Vec<_> = std::iter::from_fn(|| pair.server.poll_action()).collect();
        let client_actions: Vec<_> = std::iter::from_fn(|| pair.client.poll_action()).collect();

        assert_eq!(server_actions.contains(&server::Action::ControlLost), end);
        assert_eq!(client_actions.contains(&client::Action::ConnectAgain), end);
        assert!(
            !server_actions
                .iter()
                .any(|action| matches!(action, server::Action::Close(_)))
        );
    }
}

#[test]
fn a_result_that_does_not_come_in_3_s_ends_the_session() {
    let mut pair = Pair::new(hello());
    pair.run_until("Started");
    pair.server_obeys = false;
    pair.run(usize::MAX);
    pair.pass(SECOND * 3);
    assert_eq!(pair.closed, Some(CloseReason::ResultLate));
    assert_eq!(
        pair.client_log[pair.client_log.len() - 2..],
        [
            "Failed the server ended the session: the server has no result",
            "Close"
        ]
    );
}

#[test]
fn a_phase_ends_10_s_and_a_session_60_s_after_the_agreed_time() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.pass(SECOND * 119);
    assert_eq!(pair.closed, None);
    pair.pass(SECOND);
    assert_eq!(
        pair.closed,
        Some(CloseReason::TimeLimit),
        "a session of 60 s"
    );

    let mut pair = Pair::new(hello());
    pair.run_until("Ready");
    pair.client_obeys = false;
    pair.run_until("Started");
    pair.pass(SECOND * 17);
    assert_eq!(pair.closed, None);
    pair.pass(SECOND);
    assert_eq!(pair.closed, Some(CloseReason::TimeLimit), "a phase of 8 s");
}

#[test]
fn messages_of_the_server_out_of_state_fail_the_session() {
    let result = || ServerMessage::PhaseResult {
        phase: 1,
        result: Box::default(),
    };
    let refused = || ServerMessage::RequestRefused {
        clause: "a".to_owned(),
        text: "b".to_owned(),
    };
    let began = || vec![ServerMessage::Welcome(Box::new(welcome()))];

    let rows: Vec<(&str, Vec<ServerMessage>)> = vec![
        (
            "proof without a token",
            vec![ServerMessage::Prove {
                proof: "07".repeat(32),
            }],
        ),
        ("result before the session", vec![result()]),
        ("welcome twice", [began(), began()].concat()),
        (
            "ready without a phase",
            [began(), vec![ServerMessage::Ready(ready(1))]].concat(),
        ),
        (
            "started without a phase",
            [began(), vec![ServerMessage::Started { phase: 1, at_ns: 1 }]].concat(),
        ),
        ("result without a phase", [began(), vec![result()]].concat()),
        (
            "response without a request",
            [
                began(),
                vec![ServerMessage::Response {
                    body: JsonText::null(),
                }],
            ]
            .concat(),
        ),
        (
            "refusal without a request",
            [began(), vec![refused()]].concat(),
        ),
        (
            "response before the session",
            vec![ServerMessage::Response {
                body: JsonText::null(),
            }],
        ),
        (
            "resumed without a loss",
            [began(), vec![ServerMessage::Resumed { received: 0 }]].concat(),
        ),
    ];
    for (name, messages) in rows {
        let now = std::time::Instant::now();
        let mut client = client::Machine::new(now);
        client.handle_local(
            now,
            client::Input::Hello {
                hello: Box::new(hello()),
                server_proof: None,
            },
        );

        let mut number = 0;
        for message in messages {
            number += u64::from(message.is_numbered());
            let n = if message.is_numbered() { number } else { 0 };
            client.handle_bytes(now, &frame(n, message));
        }

        let actions: Vec<_> = std::iter::from_fn(|| client.poll_action()).collect();
        let failed = actions.iter().find_map(|action| match action {
            client::Action::Failed(client::ProtocolFailure::Wrong(fault)) => {
                Some(fault.member.as_str())
            }
            _ => None,
        });
        assert_eq!(failed, Some("type"), "{name}: {actions:?}");
        assert_eq!(actions.last(), Some(&client::Action::Close), "{name}");
    }
}

#[test]
fn a_welcome_before_the_proof_of_the_token_is_no_session() {
    let now = std::time::Instant::now();
    for message in [
        ServerMessage::Welcome(Box::new(welcome())),
        ServerMessage::Turn(Turn {
            position: 1,
            wait_ms: 1,
        }),
    ] {
        let mut client = client::Machine::new(now);
        client.handle_local(
            now,
            client::Input::Hello {
                hello: Box::new(hello()),
                server_proof: Some([1; 32]),
            },
        );
        client.handle_bytes(now, &frame(1, message));

        let actions: Vec<_> = std::iter::from_fn(|| client.poll_action())
            .skip(1)
            .collect();
        assert_eq!(
            actions,
            [
                client::Action::Failed(client::ProtocolFailure::Unproven),
                client::Action::Close
            ]
        );
    }
}

#[test]
fn endless_messages_fail_the_session_and_a_burst_behind_a_full_queue_does_not() {
    let mut pair = Pair::new(hello());
    pair.run_until("Ready");
    pair.client_obeys = false;
    pair.run_until("Started");
    pair.now += SECOND * 5;

    let clock = server::Input::Clock(ClockReply {
        sent_ns: 1,
        received_ns: 2,
        replied_ns: 3,
    });
    (0..200).for_each(|_| pair.server_does(clock.clone()));
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log
            .iter()
            .filter(|entry| entry.starts_with("Clock"))
            .count(),
        200
    );
    (0..100).for_each(|_| pair.server_does(clock.clone()));
    pair.run(usize::MAX);

    let failed = "Failed wrong message of the server: message: more than 64 per second";
    assert_eq!(
        pair.client_log[pair.client_log.len() - 2..],
        [failed, "Close"]
    );
    assert!(matches!(pair.closed, Some(CloseReason::PeerFault(_))));
}

#[test]
fn facts_that_do_not_come_are_absent() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.server_obeys = false;
    pair.client_does(client::Input::WantFacts);
    pair.run(usize::MAX);
    pair.pass(SECOND * 10);
    pair.server_does(server::Input::Facts("{}".to_owned()));
    pair.run(usize::MAX);
    assert_eq!(pair.client_log.join(", "), "Welcome, Facts null");
    pair.client_does(client::Input::WantFacts);
    pair.run(usize::MAX);
    pair.server_does(server::Input::Facts("no JSON".to_owned()));
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log.join(", "),
        "Welcome, Facts null, Facts null"
    );
}
