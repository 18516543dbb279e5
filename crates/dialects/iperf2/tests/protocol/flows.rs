//! A UDP flow from both ends over a link that loses, reorders and copies.

use std::time::{Duration, Instant};

use linerate_iperf2::wire::client::{
    FIRST_DATAGRAMS_MAX, FlowClient, FlowClientSetup, LAST_DATAGRAMS_MAX, REPORT_WAIT,
};
use linerate_iperf2::wire::datagram::NumberWidth;
use linerate_iperf2::wire::machine::{Action, Input};
use linerate_iperf2::wire::server::{FlowServer, REPORT_SILENCE, REPORTS_MAX};
use linerate_iperf2::wire::{DatagramHead, Mode, Policy};
use linerate_model::FailureKind;

use crate::streams::{clock, header};

fn client(now: Instant, mode: Mode) -> FlowClient {
    let setup = FlowClientSetup {
        header: Some(header(mode)),
        datagram_bytes: 1470,
        time_limit: Some(Duration::from_secs(1)),
        wants_report: true,
    };
    FlowClient::new(now, clock(), setup)
}

/// Datagram `number` of a flow.
fn datagram(client: &FlowClient, number: i64) -> Vec<u8> {
    let mut bytes = client.template();
    DatagramHead {
        number,
        sent: clock(),
    }
    .write(&mut bytes);
    bytes
}

fn server(now: Instant, client: &FlowClient) -> FlowServer {
    FlowServer::new(now, clock(), Policy::default(), &datagram(client, 1), false).expect("a flow")
}

fn server_actions(server: &mut FlowServer) -> Vec<Action> {
    std::iter::from_fn(|| server.poll_action()).collect()
}

fn client_actions(client: &mut FlowClient) -> Vec<Action> {
    std::iter::from_fn(|| client.poll_action()).collect()
}

#[test]
fn every_last_datagram_has_a_number_of_its_own_until_the_client_gives_up() {
    let mut now = Instant::now();
    let mut client = client(now, Mode::Forward);
    assert_eq!(client_actions(&mut client), [Action::StartSending]);
    client.handle_local(now, clock(), Input::SendingDone { next_number: 8 });

    let mut numbers = Vec::new();
    loop {
        for action in client_actions(&mut client) {
            match action {
                Action::Send(bytes) => {
                    assert_eq!(bytes.len(), 1470);
                    numbers.push(
                        DatagramHead::parse(&bytes, NumberWidth::Wide)
                            .expect("a head")
                            .number,
                    );
                }
                Action::NoReport => {}
                other => {
                    assert_eq!(other, Action::Close(Ok(())));
                    assert_eq!(numbers.len(), LAST_DATAGRAMS_MAX as usize);
                    assert_eq!(numbers[..3], [-8, -9, -10]);
                    return;
                }
            }
        }

        now += REPORT_WAIT;
        client.handle_timeout(now, clock());
    }
}

#[test]
fn a_report_is_repeated_until_the_client_is_silent() {
    let now = Instant::now();
    let client = client(now, Mode::Forward);
    let last = || Input::LastArrived(Box::default());

    let sent = |actions: &[Action]| {
        actions
            .iter()
            .filter(|a| matches!(a, Action::Send(_)))
            .count()
    };

    let mut received = server(now, &client);
    received.handle_local(now, last());
    received.handle_local(now, last());
    assert_eq!(sent(&server_actions(&mut received)), 2);
    assert_eq!(received.poll_timeout(), Some(now + REPORT_SILENCE));
    received.handle_timeout(now + REPORT_SILENCE);
    assert_eq!(server_actions(&mut received), [Action::Close(Ok(()))]);

    let mut deaf = server(now, &client);
    for _ in 0..50 {
        deaf.handle_local(now, last());
    }

    let actions = server_actions(&mut deaf);
    assert_eq!(sent(&actions), REPORTS_MAX as usize);
    let end = [Action::ReportUnconfirmed, Action::Close(Ok(()))];
    assert!(actions.ends_with(&end));
}

#[test]
fn a_flow_whose_client_vanished_ends() {
    let now = Instant::now();
    let mut server = server(now, &client(now, Mode::Forward));
    drop(server_actions(&mut server));

    let later = now + Duration::from_secs(5);
    server.handle_local(later, Input::DataArrived);
    let deadline = server.poll_timeout().expect("a limit");
    assert_eq!(deadline, later + Policy::default().idle_timeout);
    server.handle_timeout(deadline);

    let actions = server_actions(&mut server);
    let [Action::StopReceiving, Action::Close(Err(failure))] = actions.as_slice() else {
        panic!("{actions:?}")
    };
    assert_eq!(failure.kind, FailureKind::PeerClosed);
}

#[test]
fn forged_datagram_starts_no_stream() {
    for mode in [Mode::Reverse, Mode::FullDuplex, Mode::Dual] {
        let now = Instant::now();
        let mut server = server(now, &client(now, mode));

        let acts = |actions: &[Action]| {
            let sends = |a: &Action| matches!(a, Action::StartSending | Action::ConnectBack { .. });
            actions.iter().any(sends)
        };
        assert!(!acts(&server_actions(&mut server)), "{mode:?}");
        server.handle_local(now, Input::DataArrived);
        assert!(acts(&server_actions(&mut server)), "{mode:?}");
    }
}

#[test]
fn a_client_repeats_its_first_datagram_until_data_arrive() {
    let mut now = Instant::now();
    let mut client = client(now, Mode::Reverse);
    let mut asked = 0;

    for _ in 0..5 {
        for action in client_actions(&mut client) {
            if let Action::Send(bytes) = action {
                let head = DatagramHead::parse(&bytes, NumberWidth::Wide).expect("a head");
                assert_eq!((head.number, bytes.len()), (1, 1470));
                asked += 1;
            }
        }

        now = client.poll_timeout().expect("it asks again");
        client.handle_timeout(now, clock());
    }

    assert_eq!(asked, 5);
    client.handle_local(now, clock(), Input::DataArrived);
    drop(client_actions(&mut client));
    client.handle_local(now, clock(), Input::LastArrived(Box::default()));
    assert_eq!(client_actions(&mut client), [Action::Close(Ok(()))]);
}

#[test]
fn a_server_that_never_sends_is_given_up() {
    let mut now = Instant::now();
    let mut client = client(now, Mode::Reverse);
    let mut asked = 0;

    while let Some(deadline) = client.poll_timeout() {
        asked += client_actions(&mut client)
            .iter()
            .filter(|a| matches!(a, Action::Send(_)))
            .count();
        now = deadline;
        client.handle_timeout(now, clock());
    }

    assert_eq!(asked, FIRST_DATAGRAMS_MAX as usize);
    assert!(matches!(
        client_actions(&mut client).last(),
        Some(Action::Close(Err(_)))
    ));
}

#[test]
fn both_directions_of_a_flow_end_without_a_report() {
    let now = Instant::now();
    let mut client = client(now, Mode::FullDuplex);
    let mut server = server(now, &client);
    server.handle_local(now, Input::DataArrived);
    server.handle_local(now, Input::LastArrived(Box::default()));

    let actions = server_actions(&mut server);
    assert!(
        !actions
            .iter()
            .any(|a| matches!(a, Action::Send(_) | Action::Close(_))),
        "{actions:?}"
    );
    server.handle_local(now, Input::SendingDone { next_number: 0 });
    assert_eq!(server_actions(&mut server), [Action::Close(Ok(()))]);

    client.handle_local(now, clock(), Input::SendingDone { next_number: 9 });
    let actions = client_actions(&mut client);
    assert!(
        !actions.iter().any(|a| matches!(a, Action::Close(_))),
        "{actions:?}"
    );
    client.handle_local(now, clock(), Input::LastArrived(Box::default()));
    assert_eq!(client_actions(&mut client), [Action::Close(Ok(()))]);
}

#[test]
fn a_group_is_never_answered() {
    let now = Instant::now();
    let client = client(now, Mode::Forward);
    let mut server = FlowServer::new(now, clock(), Policy::default(), &datagram(&client, 1), true)
        .expect("a flow");
    server.handle_local(now, Input::LastArrived(Box::default()));

    let actions = server_actions(&mut server);
    assert!(
        !actions.iter().any(|a| matches!(a, Action::Send(_))),
        "{actions:?}"
    );
    assert_eq!(actions.last(), Some(&Action::Close(Ok(()))));
}

#[test]
fn the_end_of_a_forgotten_flow_begins_no_new_one() {
    let now = Instant::now();
    let client = client(now, Mode::Forward);

    for number in [0, -1, -9] {
        let stale = datagram(&client, number);
        assert!(
            FlowServer::new(now, clock(), Policy::default(), &stale, false).is_err(),
            "{number}"
        );
    }
}

#[test]
fn short_datagrams_begin_with_the_whole_header() {
    let now = Instant::now();
    let setup = FlowClientSetup {
        header: Some(header(Mode::Reverse)),
        datagram_bytes: 16,
        time_limit: None,
        wants_report: true,
    };
    let mut client = FlowClient::new(now, clock(), setup);
    let first = client_actions(&mut client)
        .into_iter()
        .find_map(|action| match action {
            Action::Send(bytes) => Some(bytes),
            _ => None,
        });
    let first = first.expect("it asks");
    assert_eq!(first.len(), 76);
    assert!(FlowServer::new(now, clock(), Policy::default(), &first, false).is_ok());
    assert_eq!(client.template().len(), 16);
}
