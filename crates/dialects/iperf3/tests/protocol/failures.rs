//! Messages of both ends after a failure.

use std::time::{Duration, Instant};

use linerate_iperf3::wire::auth::Refusal;
use linerate_iperf3::wire::framing::frame;
use linerate_iperf3::wire::server::OVERTIME;
use linerate_iperf3::wire::{
    ClientAction, ClientInput, Cookie, ErrorCode, Policy, Results, Server, ServerAction,
    ServerInput, ServerSetup, State,
};
use linerate_model::spec::BitrateLimit;
use linerate_model::{EndCondition, FailureKind, TestSpec, Transport};

use crate::items::Items;
use crate::pair::{Pair, results, states, test};

#[test]
fn errors_of_the_server_reach_the_client_as_text() {
    let mut pair = Pair::new(test());
    pair.server_obeys = false;
    pair.run_to_end();
    pair.server_local(ServerInput::Failed {
        code: ErrorCode::SetMss,
        errno: 22,
        cause: None,
    });

    let failure = pair.client_failure();
    assert_eq!(
        failure.message,
        "unable to set TCP/SCTP MSS: Invalid argument"
    );
    assert_eq!(failure.code, Some(123));

    let errno_text = Some("Invalid argument".to_owned());
    assert_eq!(
        failure.kind,
        FailureKind::Peer {
            errno: 22,
            errno_text
        }
    );
    assert_eq!(
        pair.server_failure().message,
        "unable to set TCP/SCTP MSS: Invalid argument"
    );
}

#[test]
fn missing_numbers_are_not_invented() {
    let rows: &[(&[u8], Option<i32>, &str)] = &[
        (&[0xfe], None, "server error"),
        (&[0xfe, 0, 0, 0], None, "server error"),
        (
            &[0xfe, 0, 0, 0, 142],
            Some(142),
            "test authorization failed",
        ),
        (
            &[0xfe, 0, 0, 0, 123, 0, 0],
            Some(123),
            "unable to set TCP/SCTP MSS: ",
        ),
        (&[0xfe, 0, 0, 3, 0xe7], Some(999), "int_errno=999: "),
    ];
    for (bytes, code, message) in rows {
        let mut pair = Pair::new(test());
        pair.client.handle_control(pair.now, &[9]);
        pair.client.handle_control(pair.now, bytes);
        pair.cut_at_client();
        assert_eq!(
            (
                pair.client_failure().code,
                pair.client_failure().message.as_str()
            ),
            (*code, *message)
        );
        assert!(matches!(
            pair.client_failure().kind,
            FailureKind::Peer { errno: 0, .. }
        ));
    }
}

#[test]
fn only_the_first_of_two_server_errors_counts() {
    let mut pair = Pair::new(test());
    let error = [0xfe, 0, 0, 0, 27, 0, 0, 0, 0];
    pair.client
        .handle_control(pair.now, &[&[9][..], &error, &error].concat());
    pair.cut_at_client();
    assert_eq!(pair.client_failure().code, Some(27));
    assert_eq!(
        states(Items::of_client(&pair.client_sent)),
        [0_i8; 0],
        "the connection is closed, so no good-bye is sent"
    );
}

#[test]
fn an_error_in_place_of_results_is_understood() {
    let rows: &[(&[u8], FailureKind, i32)] = &[
        (
            &[0xfe, 0, 0, 0, 117, 0, 0, 0, 0],
            FailureKind::Peer {
                errno: 0,
                errno_text: None,
            },
            117,
        ),
        (&[0x0b], FailureKind::PeerTerminated, 120),
        (&[], FailureKind::Error, 117),
        (&[0x40, 0, 0, 0], FailureKind::Error, 117),
    ];
    for (bytes, kind, code) in rows {
        let mut pair = Pair::new(test());
        pair.server_obeys = false;
        pair.client.handle_control(pair.now, &[9, 10]);
        pair.client
            .handle_local(pair.now, ClientInput::StreamsOpened);
        pair.client.handle_control(pair.now, &[1, 2]);
        pair.client.handle_local(pair.now, ClientInput::EndReached);
        pair.client.handle_control(pair.now, &[13]);
        pair.client
            .handle_local(pair.now, ClientInput::Results(Box::new(results())));
        pair.client.handle_control(pair.now, bytes);
        pair.client.handle_control_eof(pair.now);

        while let Some(action) = pair.client.poll_action() {
            if let ClientAction::Close(outcome) = action {
                pair.client_outcome = Some(outcome);
            }
        }

        assert_eq!(
            (&pair.client_failure().kind, pair.client_failure().code),
            (kind, Some(*code)),
            "{bytes:?}"
        );
    }
}

#[test]
fn a_server_that_closes_after_the_parameters_gives_a_hint() {
    for (token, hint) in [
        (None, "may want credentials"),
        (Some("dG9rZW4=".to_owned()), "wrong credentials or padding?"),
    ] {
        let mut pair = Pair::with_token(test(), token);
        pair.client.handle_control(pair.now, &[9]);
        pair.cut_at_client();

        let failure = pair.client_failure();
        assert_eq!(failure.code, Some(109));
        assert!(
            failure
                .message
                .starts_with("control socket has closed unexpectedly"),
            "{failure}"
        );
        assert!(failure.message.contains(hint), "{failure}");
    }
}

#[test]
fn a_test_that_overruns_is_ended_by_the_server() {
    let mut spec = test();
    spec.end = EndCondition::Duration(Duration::from_secs(5));
    spec.omit = Duration::from_secs(2);

    let mut pair = Pair::new(spec);
    pair.run_until_running();
    pair.pass(Duration::from_secs(7) + OVERTIME - Duration::from_millis(1));
    assert_eq!(pair.server_outcome, None);
    pair.pass(Duration::from_millis(1));
    pair.run_to_end();
    assert_eq!(pair.client_failure().code, Some(160));
    assert_eq!(
        pair.server_failure().message,
        "server test duration expired - test is terminated by the server"
    );
}

#[test]
fn a_test_without_time_limit_may_run_for_ever() {
    let mut test = test();
    test.end = EndCondition::Bytes(1 << 40);
    let mut pair = Pair::new(test);
    pair.run_until_running();
    assert_eq!(pair.server.as_ref().and_then(Server::poll_timeout), None);
    assert_eq!(pair.client.poll_timeout(), None);
}

#[test]
fn the_server_keeps_its_limits() {
    let limit = |rate_bps| {
        Some(BitrateLimit {
            rate_bps,
            window: Duration::from_secs(5),
        })
    };
    let second = Duration::from_secs(1);
    let timed = |seconds: u32, omit: u32| {
        let mut test = test();
        test.end = EndCondition::Duration(second * seconds);
        test.omit = second * omit;
        test
    };

    let mut paced = test();
    paced.pacing.rate_bps = Some(30_000_000);
    let mut kernel_paced = test();
    kernel_paced.pacing.fq_rate_bps = Some(30_000_000);

    let udp = TestSpec {
        transport: Transport::Udp,
        block_len_bytes: 1000,
        ..TestSpec::default()
    };

    let rows: Vec<(&str, TestSpec, Policy, Option<i32>)> = vec![
        (
            "as long as allowed",
            timed(8, 2),
            Policy {
                max_duration: Some(second * 10),
                ..Policy::default()
            },
            None,
        ),
        (
            "too long",
            timed(9, 2),
            Policy {
                max_duration: Some(second * 10),
                ..Policy::default()
            },
            Some(37),
        ),
        (
            "no time limit",
            timed(0, 0),
            Policy {
                max_duration: Some(second * 10),
                ..Policy::default()
            },
            Some(37),
        ),
        (
            "four streams fit",
            paced.clone(),
            Policy {
                bitrate_limit: limit(120_000_000),
                ..Policy::default()
            },
            None,
        ),
        (
            "four streams do not",
            paced,
            Policy {
                bitrate_limit: limit(119_999_999),
                ..Policy::default()
            },
            Some(27),
        ),
        (
            "kernel pacing",
            kernel_paced,
            Policy {
                bitrate_limit: limit(119_999_999),
                ..Policy::default()
            },
            Some(27),
        ),
        (
            "UDP into a file",
            udp.clone(),
            Policy {
                udp_refused: true,
                ..Policy::default()
            },
            Some(34),
        ),
        ("UDP", udp, Policy::default(), None),
    ];
    for (name, spec, policy, code) in rows {
        let mut pair = Pair::new(spec);
        pair.policy = policy;
        pair.client_obeys = false;
        pair.run_to_end();

        let refused = pair
            .client_outcome
            .as_ref()
            .map(|outcome| outcome.as_ref().expect_err(name).code);
        assert_eq!(refused, code.map(Some), "{name}");
    }
}

#[test]
fn messages_that_make_no_sense_end_the_test() {
    for byte in [0, 3, 5, 15, 99, 1, 13, 14] {
        let mut pair = Pair::new(test());
        pair.client.handle_control(pair.now, &[byte]);
        pair.obey();
        assert_eq!(pair.client_failure().code, Some(110), "client, {byte}");

        let mut pair = Pair::new(test());
        pair.run_until_running();
        let server = pair.server.as_mut().expect("a session");
        server.handle_control(pair.now, &[byte]);
        pair.obey();
        assert_eq!(pair.server_failure().code, Some(110), "server, {byte}");
        assert!(
            pair.server_sent
                .ends_with(&[0xfe, 0, 0, 0, 110, 0, 0, 0, 0])
        );
    }
}

#[test]
fn a_client_may_say_good_bye_at_any_time() {
    let mut pair = Pair::new(test());
    pair.client_obeys = false;
    pair.run_to_end();
    pair.client.handle_local(
        pair.now,
        ClientInput::Failed(ErrorCode::StreamConnect.failure(Some("refused"))),
    );
    pair.run_to_end();
    assert_eq!(
        pair.client_failure().message,
        "unable to connect stream: refused"
    );
    assert_eq!(
        pair.server_outcome,
        Some(Ok(())),
        "nothing was measured, nothing is missing"
    );

    let mut pair = Pair::new(test());
    pair.run_until_running();
    pair.client.handle_local(
        pair.now,
        ClientInput::Failed(ErrorCode::StreamWrite.failure(None)),
    );
    pair.run_to_end();
    assert_eq!(pair.server_failure().kind, FailureKind::PeerClosed);
}

#[test]
fn unknown_streams_are_refused_by_both_sides() {
    let mut foreign = crate::fuzzing::sample_results();
    foreign.streams[0].wire_id = 7;
    let mut pair = Pair::new(test());
    pair.client_results = foreign.clone();
    pair.run_until_running();
    pair.end_data();
    assert_eq!(pair.server_failure().code, Some(208));
    assert!(matches!(
        pair.client_failure().kind,
        FailureKind::Peer { .. }
    ));

    let mut pair = Pair::new(test());
    pair.server_results = foreign;
    pair.run_until_running();
    pair.end_data();
    assert_eq!(pair.client_failure().kind, FailureKind::Error);
    assert_eq!(pair.client_failure().code, Some(208));
    assert_eq!(
        pair.server_outcome,
        Some(Ok(())),
        "everything had been sent"
    );
}

#[test]
fn oversized_and_empty_parameters_are_refused_before_they_arrive() {
    for length in [0_u32, 8193, 0x8000_0000, u32::MAX] {
        let setup = ServerSetup {
            cookie: Cookie::from_random([0; 36]),
            policy: Policy::default(),
            unix_s: 0,
        };
        let now = Instant::now();
        let mut server = Server::new(now, setup);
        server.handle_control(now, &length.to_be_bytes());

        let actions: Vec<ServerAction> = std::iter::from_fn(|| server.poll_action()).collect();
        assert!(
            actions.contains(&ServerAction::Send(vec![0xfe, 0, 0, 0, 114, 0, 0, 0, 0])),
            "{length}"
        );
        assert!(matches!(actions.last(), Some(ServerAction::Close(Err(_)))));
    }
}

#[test]
fn a_server_that_stays_after_the_good_bye_does_not_hold_the_client() {
    let mut pair = Pair::new(test());
    pair.run_until_running();
    pair.end_data();
    assert_eq!(pair.client_outcome, Some(Ok(())));
    pair.client
        .handle_control(pair.now, &[0xfe, 0, 0, 0, 205, 0, 0, 0, 0]);
    pair.client.handle_control_eof(pair.now);
    assert!(
        pair.client.poll_action().is_none(),
        "stale words are ignored"
    );
}

#[test]
fn a_client_that_stays_after_the_results_does_not_hold_the_server() {
    let mut pair = Pair::new(test());
    pair.run_until_running();
    pair.client.handle_local(pair.now, ClientInput::EndReached);
    pair.obey();

    // The client's machine has ended by itself; only its good-bye is held back.
    while pair.server_outcome.is_none() && pair.carry_one() {
        pair.obey();
        if pair.client_sent.last() == Some(&16) {
            break;
        }
    }

    assert_eq!(pair.server_outcome, None);
    pair.pass(Duration::from_secs(10));
    assert_eq!(pair.server_outcome, Some(Ok(())));
}

/// A pair whose server wants a login and allows one second.
fn pair_with_login(token: Option<&str>) -> Pair {
    let mut long = test();
    long.end = EndCondition::Duration(Duration::from_secs(100));
    let mut pair = Pair::with_token(long, token.map(str::to_owned));
    pair.policy.max_duration = Some(Duration::from_secs(1));
    pair.policy.login_required = true;
    pair
}

#[test]
fn failed_login_is_refused_without_revealing_limits() {
    let mut pair = pair_with_login(None);
    pair.run_to_end();
    assert_eq!(
        pair.server.as_ref().and_then(Server::refusal),
        Some(&Refusal::NoToken)
    );
    expect_refused_login(&pair);

    let mut pair = pair_with_login(Some("token"));
    pair.run_to_end();
    assert_eq!(
        pair.server_actions,
        ["Send", "CheckLogin"],
        "the answer waits for the check"
    );
    pair.server_local(ServerInput::LoginChecked(Err(Refusal::UnknownUser)));
    expect_refused_login(&pair);
}

fn expect_refused_login(pair: &Pair) {
    assert_eq!(pair.server_sent, [9, 0xfe, 0, 0, 0, 142, 0, 0, 0, 0]);
    assert_eq!(pair.client_failure().message, "test authorization failed");
    assert_eq!(pair.server_failure().message, "test authorization failed");
}

#[test]
fn a_checked_login_is_followed_by_the_limits_or_by_the_test() {
    let mut pair = pair_with_login(Some("token"));
    pair.run_to_end();
    pair.server_local(ServerInput::LoginChecked(Ok("mario".to_owned())));
    assert_eq!(pair.server_sent[..6], [9, 0xfe, 0, 0, 0, 37]);

    let mut pair = pair_with_login(Some("token"));
    pair.policy.max_duration = None;
    pair.run_to_end();
    pair.pass(Duration::from_secs(60));
    assert_eq!(
        pair.server_outcome, None,
        "the check is this end's work and has no deadline"
    );
    pair.server_local(ServerInput::LoginChecked(Ok("mario".to_owned())));
    assert_eq!(pair.server_actions[2], "Accepted");
}

#[test]
fn long_results_are_parsed_elsewhere_and_what_follows_them_is_kept() {
    let mut pair = Pair::new(test());
    pair.run_until_running();
    let server = pair.server.as_mut().expect("a session");
    server.handle_control(pair.now, &[State::TestEnd.byte()]);
    server.handle_local(
        pair.now,
        ServerInput::Results(Box::new(pair.server_results.clone())),
    );

    let mut text = pair.client_results.to_json();
    text.resize(1 << 20, b' ');
    let all = [frame(&text), vec![State::IperfDone.byte()]].concat();
    server.handle_control(pair.now, &all);

    let actions: Vec<ServerAction> = std::iter::from_fn(|| server.poll_action()).collect();
    assert_eq!(
        actions.last(),
        Some(&ServerAction::ParseResults(text.clone()))
    );
    let parsed = Results::parse(&text).map(Box::new);
    server.handle_local(pair.now, ServerInput::ResultsParsed(parsed));

    let actions: Vec<ServerAction> = std::iter::from_fn(|| server.poll_action()).collect();
    assert!(matches!(
        actions[..],
        [
            ServerAction::PeerResults(_),
            ServerAction::Send(_),
            ServerAction::Close(Ok(()))
        ]
    ));
}

#[test]
fn a_client_that_floods_while_its_login_is_checked_is_refused() {
    let mut pair = pair_with_login(Some("token"));
    pair.run_to_end();
    let server = pair.server.as_mut().expect("a session");

    for _ in 0..3 {
        server.handle_control(pair.now, &[0; 8 << 10]);
    }

    pair.obey();
    assert_eq!(
        pair.server_failure().code,
        Some(ErrorCode::Message.number())
    );
}
