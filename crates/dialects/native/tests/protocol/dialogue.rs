//! Whole sessions.

use std::time::Duration;

use linerate_model::path::PhaseSpec;
use linerate_native::wire::message::{Hello, JsonText, Refusal, TokenProof, Turn};
use linerate_native::wire::server::{CloseReason, PHASES_MAX};
use linerate_native::wire::{client, server};
use proptest::prelude::*;

use crate::fuzzing::{hello, spec};
use crate::pair::{CLIENT_PROOF, Pair, sample};

pub(crate) const CLIENT: &str = "Welcome, Ready 1, Started, PhaseResult 1, Facts {\"a\":1}, Ready \
                                 2, Started, PhaseResult 2, Close";
pub(crate) const SERVER: &str =
    "Admit, OpenPhase 1, Start 1, Stop 1, SendFacts, OpenPhase 2, Start 2, Stop 2";

fn with_token(proof: u8) -> Hello {
    let proof = linerate_native::wire::hex::encode(&[proof; 32]);
    Hello {
        token: Some(TokenProof {
            name: "lab".to_owned(),
            proof,
        }),
        ..hello()
    }
}

fn with_password(password: &str) -> Hello {
    Hello {
        user: Some("mario".to_owned()),
        password: Some(password.to_owned()),
        ..hello()
    }
}

#[test]
fn a_whole_session_runs_its_phases_one_after_the_other() {
    let mut pair = Pair::new(hello());
    pair.run(usize::MAX);
    assert_eq!(pair.client_log.join(", "), CLIENT);
    assert_eq!(pair.server_log.join(", "), SERVER);
    assert_eq!(pair.closed, Some(CloseReason::Bye));
    assert_eq!(
        (pair.client.poll_timeout(), pair.server.poll_timeout()),
        (None, None)
    );
}

#[test]
fn a_token_is_proved_by_the_client_first_and_a_password_comes_after_it() {
    let mut pair = Pair::new(Hello {
        token: with_token(CLIENT_PROOF).token,
        ..with_password("secret")
    });
    pair.run(usize::MAX);
    assert_eq!(pair.client_log[0], "Welcome");
    assert_eq!(
        pair.server_log[..3].join(", "),
        "CheckProof lab, CheckLogin mario, Admit"
    );
}

#[test]
fn a_wrong_password_is_refused() {
    let mut pair = Pair::new(with_password("guess"));
    pair.run(usize::MAX);
    assert_eq!(pair.client_log.join(", "), "Refused login, Close");
    assert_eq!(pair.closed, Some(CloseReason::Unproven));
}

#[test]
fn a_server_that_does_not_prove_the_token_is_left() {
    let mut pair = Pair::new(with_token(CLIENT_PROOF));
    pair.server_obeys = false;
    pair.run(usize::MAX);
    pair.server_does(server::Input::ProofChecked(Some([9; 32])));
    pair.run(usize::MAX);

    let failed = "Failed the server does not prove knowledge of the token, Close";
    assert_eq!(pair.client_log.join(", "), failed);
    assert_eq!(pair.closed, Some(CloseReason::Left));
}

/// All that a client without the token gets of the server is a refusal.
#[test]
fn a_wrong_proof_of_the_client_is_refused_and_the_server_proves_nothing() {
    let mut pair = Pair::new(with_token(CLIENT_PROOF + 1));
    pair.run(usize::MAX);
    assert_eq!(pair.server_log.join(", "), "CheckProof lab");
    assert_eq!(pair.client_log.join(", "), "Refused token, Close");
    assert_eq!(
        (pair.closed, pair.server_frames),
        (Some(CloseReason::Unproven), 1)
    );
}

#[test]
fn a_queue_shows_its_positions_and_ends_with_admission_or_refusal() {
    let mut pair = Pair::new(hello());
    pair.server_obeys = false;
    pair.run(usize::MAX);

    for (position, after_ms) in [(3, 0), (2, 999), (1, 1)] {
        pair.pass(Duration::from_millis(after_ms));
        pair.server_does(server::Input::Queued(Turn {
            position,
            wait_ms: 1000,
        }));
        pair.run(usize::MAX);
    }

    assert_eq!(
        pair.client_log.join(", "),
        "Queued 3, Queued 1",
        "one per second"
    );
    pair.pass(Duration::from_secs(120));
    let refusal = Refusal::new("stopping", "the server stops");
    pair.server_does(server::Input::Refused(refusal));
    pair.run(usize::MAX);
    assert_eq!(pair.client_log[2..].join(", "), "Refused stopping, Close");
    assert_eq!(
        pair.closed,
        Some(CloseReason::Refused {
            clause: "stopping".to_owned()
        })
    );
}

#[test]
fn a_client_leaves_the_queue() {
    let mut pair = Pair::new(hello());
    pair.server_obeys = false;
    pair.run(usize::MAX);
    pair.server_does(server::Input::Queued(Turn {
        position: 1,
        wait_ms: 1000,
    }));
    pair.run(usize::MAX);
    pair.client_does(client::Input::Bye);
    pair.run(usize::MAX);
    assert_eq!(
        (pair.closed, pair.client_log.join(", ")),
        (Some(CloseReason::Left), "Queued 1, Close".to_owned())
    );
}

#[test]
fn impossible_phases_are_refused_with_their_clause_and_the_session_goes_on() {
    let rows = [
        (
            "streams",
            PhaseSpec {
                streams_max: 0,
                ..spec()
            },
        ),
        (
            "streams",
            PhaseSpec {
                streams_max: 129,
                ..spec()
            },
        ),
        (
            "probe_flows",
            PhaseSpec {
                probe_flows: 9,
                ..spec()
            },
        ),
        (
            "datagram_bytes",
            PhaseSpec {
                datagram_bytes: 65_508,
                ..spec()
            },
        ),
        (
            "rate",
            PhaseSpec {
                rate_bps: Some(0),
                ..spec()
            },
        ),
        (
            "duration",
            PhaseSpec {
                duration_max: Duration::ZERO,
                ..spec()
            },
        ),
        (
            "duration",
            PhaseSpec {
                duration_max: Duration::from_secs(3601),
                ..spec()
            },
        ),
    ];
    for (clause, wrong) in rows {
        let mut pair = Pair::new(hello());
        pair.client_obeys = false;
        pair.run_until("Welcome");
        pair.client_does(client::Input::OpenPhase(Box::new(wrong)));
        pair.run(usize::MAX);
        assert_eq!(
            pair.client_log.last(),
            Some(&format!("PhaseRefused {clause}"))
        );
        pair.client_obeys = true;
        pair.client_does(client::Input::OpenPhase(Box::new(spec())));
        pair.run(usize::MAX);
        assert_eq!(pair.closed, Some(CloseReason::Bye));
    }
}

#[test]
fn a_session_has_256_phases() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");

    let open = |pair: &mut Pair, spec| {
        pair.client_does(client::Input::OpenPhase(Box::new(spec)));
        pair.run(usize::MAX);
        pair.now += Duration::from_millis(20);
    };

    for _ in 0..PHASES_MAX {
        open(
            &mut pair,
            PhaseSpec {
                streams_max: 0,
                ..spec()
            },
        );
        assert_eq!(
            pair.client_log.last().map(String::as_str),
            Some("PhaseRefused streams")
        );
    }

    open(&mut pair, spec());
    assert_eq!(
        pair.client_log.last().map(String::as_str),
        Some("PhaseRefused phases")
    );
}

#[test]
fn the_owner_refuses_a_phase() {
    let mut pair = Pair::new(hello());
    pair.run_until("Welcome");
    pair.server_obeys = false;
    pair.run(usize::MAX);

    pair.server_does(server::Input::PhaseRefused(Refusal {
        limit: Some("1G".to_owned()),
        ..Refusal::new("rate", "too fast")
    }));
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log.last().map(String::as_str),
        Some("PhaseRefused rate")
    );
}

#[test]
fn clocks_pass_beside_the_phases() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.run(usize::MAX);
    pair.client_does(client::Input::Start);
    pair.run(usize::MAX);
    pair.client_does(client::Input::Clock { sent_ns: 7 });
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log[1..].join(", "),
        "Ready 1, Started, Clock 7 8 9"
    );
}

#[test]
fn requests_pass_beside_the_phases_and_only_one_at_a_time() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.client_does(request("a", "1"));
    pair.client_does(request("b", "2"));
    pair.run(usize::MAX);
    assert_eq!(pair.server_log[1..].join(", "), "OpenPhase 1, Request a 1");
    assert_eq!(pair.client_log[1..].join(", "), "Ready 1, Response [1]");
    pair.server_obeys = false;
    pair.client_does(request("b", "2"));
    pair.client_does(client::Input::Start);
    pair.run(usize::MAX);
    pair.server_does(server::Input::RequestRefused {
        clause: "request".to_owned(),
        text: "not known".to_owned(),
    });
    pair.server_does(server::Input::Response("3".to_owned()));
    pair.server_does(server::Input::Started { at_ns: 1 });
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log[3..].join(", "),
        "RequestRefused request, Started"
    );
}

fn request(name: &str, body: &str) -> client::Input {
    let body = JsonText::new(body.to_owned()).expect("JSON");
    client::Input::Request {
        name: name.to_owned(),
        body,
    }
}

#[test]
fn a_phase_that_ends_by_itself_while_the_stop_is_under_way_has_one_result() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.run(usize::MAX);
    pair.client_does(client::Input::Start);
    pair.run(usize::MAX);
    pair.client_does(client::Input::Stop);
    pair.server_does(server::Input::PhaseEnded(Box::default()));
    pair.run(usize::MAX);
    assert_eq!(
        pair.client_log[1..].join(", "),
        "Ready 1, Started, PhaseResult 0"
    );
    assert_eq!(
        (pair.closed.clone(), pair.server_log.len()),
        (None, 3),
        "{:?}",
        pair.server_log
    );
}

#[test]
fn a_phase_can_be_stopped_before_it_is_ready() {
    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.client_does(client::Input::Stop);
    pair.run(usize::MAX);
    assert_eq!(pair.server_log.join(", "), "Admit, OpenPhase 1, Stop 1");
    assert_eq!(pair.client_log.join(", "), "Welcome, PhaseResult 1");
}

#[test]
fn a_result_that_is_too_long_loses_its_lists_and_has_a_note() {
    use linerate_model::path::{EndpointPhase, StreamTotals};

    let mut pair = Pair::new(hello());
    pair.client_obeys = false;
    pair.run_until("Welcome");
    pair.client_does(client::Input::OpenPhase(Box::new(spec())));
    pair.run(usize::MAX);

    let totals = StreamTotals {
        congestion: Some("cubic".repeat(20)),
        ..StreamTotals::default()
    };
    let streams = vec![totals; 10_000];
    let result = EndpointPhase {
        load: vec![sample(1); 6001],
        streams,
        ..EndpointPhase::default()
    };
    pair.server_does(server::Input::PhaseEnded(Box::new(result)));

    let mut sent = None;
    while let Some(action) = pair.server.poll_action() {
        if let server::Action::Send(bytes) = action {
            pair.client.handle_bytes(pair.now, &bytes);
        }
    }

    while let Some(action) = pair.client.poll_action() {
        if let client::Action::PhaseResult(result) = action {
            sent = Some(result);
        }
    }

    let sent = sent.expect("the result");
    assert_eq!(
        (sent.load.len(), sent.streams.len(), sent.notes.len()),
        (6000, 0, 2),
        "{:?}",
        sent.notes
    );
}

proptest! {
    #[test]
    fn segments_of_any_size_make_the_same_session(segment in 1_usize..200) {
        let mut pair = Pair::new(with_token(CLIENT_PROOF));
        pair.segment = segment;
        pair.run(usize::MAX);
        prop_assert_eq!(pair.client_log.join(", "), CLIENT);
        prop_assert_eq!(pair.server_log.join(", "), format!("CheckProof lab, {SERVER}"));
    }
}
