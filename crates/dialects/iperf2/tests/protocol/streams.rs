//! A TCP connection from both ends, joined in memory.

use std::time::{Duration, Instant};

use linerate_iperf2::wire::amount::Amount;
use linerate_iperf2::wire::client::{ACK_TIMEOUT, DRAIN_TIMEOUT, StreamClientSetup};
use linerate_iperf2::wire::machine::{Action, Input};
use linerate_iperf2::wire::{Header, Mode, Policy, StreamClient, StreamServer, Timestamp, Version};
use linerate_model::Failure;
use proptest::prelude::*;

/// Two machines and the bytes between them.
pub(crate) struct Pair {
    pub now: Instant,
    pub client: StreamClient,
    pub server: StreamServer,
    /// Bytes that arrive at once.
    pub segment: usize,
    pub client_actions: Vec<Action>,
    pub server_actions: Vec<Action>,
    /// Bytes behind headers.
    pub client_data: Vec<u8>,
    pub server_data: Vec<u8>,
}

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn clock() -> Timestamp {
    Timestamp::from_unix_ns(1_795_286_916_000_000_000)
}

pub(crate) fn header(mode: Mode) -> Header {
    Header {
        mode,
        ..Header::new(Version::V2_1_8, 5001, Amount::Ticks(100))
    }
}

impl Pair {
    pub(crate) fn new(header: Option<Header>, policy: Policy) -> Self {
        let now = Instant::now();
        let setup = StreamClientSetup {
            header,
            time_limit: Some(SECOND),
        };
        Self {
            now,
            client: StreamClient::new(now, setup),
            server: StreamServer::new(now, clock(), policy),
            segment: usize::MAX,
            client_actions: Vec::new(),
            server_actions: Vec::new(),
            client_data: Vec::new(),
            server_data: Vec::new(),
        }
    }

    /// Carries what the machines say until both are silent.
    pub(crate) fn run(&mut self) {
        loop {
            let mut to_server = Vec::new();
            let mut to_client = Vec::new();

            while let Some(action) = self.client.poll_action() {
                if let Action::SendPayload(bytes) = &action {
                    to_server.extend(bytes);
                }
                self.client_actions.push(action);
            }

            while let Some(action) = self.server.poll_action() {
                if let Action::Send(bytes) | Action::SendPayload(bytes) = &action {
                    to_client.extend(bytes);
                }

                self.server_actions.push(action);
            }

            if to_server.is_empty() && to_client.is_empty() {
                return;
            }

            for segment in to_server.chunks(self.segment) {
                self.server_data
                    .extend(self.server.handle_bytes(clock(), segment));
            }

            for segment in to_client.chunks(self.segment) {
                self.client_data
                    .extend(self.client.handle_bytes(self.now, clock(), segment));
            }
        }
    }

    /// The client has sent everything; its end of the connection closes, then the server's.
    fn finish_client(&mut self) {
        self.client
            .handle_local(self.now, Input::SendingDone { next_number: 0 });
        self.run();
        self.server.handle_eof(self.now);
        self.run();
    }

    fn finish_server(&mut self) {
        self.server
            .handle_local(self.now, Input::SendingDone { next_number: 0 });
        self.run();
        self.client.handle_eof(self.now);
        self.run();
        self.server.handle_eof(self.now);
        self.run();
    }

    pub(crate) fn client_outcome(&self) -> Option<&Result<(), Failure>> {
        match self.client_actions.last() {
            Some(Action::Close(outcome)) => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn server_outcome(&self) -> Option<&Result<(), Failure>> {
        match self.server_actions.last() {
            Some(Action::Close(outcome)) => Some(outcome),
            _ => None,
        }
    }

    pub(crate) fn server_did(&self, wanted: impl Fn(&Action) -> bool) -> bool {
        self.server_actions.iter().any(wanted)
    }

    pub(crate) fn client_did(&self, wanted: impl Fn(&Action) -> bool) -> bool {
        self.client_actions.iter().any(wanted)
    }
}

#[test]
fn a_forward_test_is_answered_drained_and_closed() {
    let mut pair = Pair::new(Some(header(Mode::Forward)), Policy::default());
    pair.run();
    assert!(pair.server_did(|a| *a == Action::StartReceiving { header_bytes: 0 }));
    assert!(pair.client_did(|a| *a == Action::StartSending));
    pair.finish_client();
    assert_eq!(pair.server_outcome(), Some(&Ok(())));
    assert_eq!(
        pair.client_outcome(),
        None,
        "the server may still have something to say"
    );
    pair.client.handle_eof(pair.now);
    pair.run();
    assert_eq!(pair.client_outcome(), Some(&Ok(())));
    assert!(pair.client_data.is_empty(), "the answer is no data");
}

#[test]
fn a_server_that_never_closes_is_not_waited_for() {
    let mut pair = Pair::new(Some(header(Mode::Forward)), Policy::default());
    pair.run();
    pair.client
        .handle_local(pair.now, Input::SendingDone { next_number: 0 });

    let deadline = pair.client.poll_timeout().expect("a limit");
    assert_eq!(deadline, pair.now + DRAIN_TIMEOUT);
    pair.client.handle_timeout(deadline);
    pair.run();
    assert_eq!(pair.client_outcome(), Some(&Ok(())));
}

#[test]
fn a_reverse_test_ends_with_the_server() {
    let mut pair = Pair::new(Some(header(Mode::Reverse)), Policy::default());
    pair.run();
    assert!(pair.client_did(|a| *a == Action::StartReceiving { header_bytes: 0 }));
    assert!(!pair.client_did(|a| *a == Action::StartSending));
    assert!(
        !pair.server_did(|a| matches!(a, Action::Send(_))),
        "no answer before data"
    );
    assert_eq!(pair.client.wanted(), None);
    assert_eq!(
        pair.client.poll_timeout(),
        Some(pair.now + SECOND + DRAIN_TIMEOUT)
    );
    pair.server
        .handle_local(pair.now, Input::SendingDone { next_number: 0 });
    pair.run();
    assert_eq!(
        pair.server_outcome(),
        None,
        "the time of the data is not known before the client has them"
    );
    pair.finish_server();
    assert_eq!(
        (pair.client_outcome(), pair.server_outcome()),
        (Some(&Ok(())), Some(&Ok(())))
    );
}

#[test]
fn a_client_that_never_closes_is_not_waited_for() {
    let mut pair = Pair::new(Some(header(Mode::Reverse)), Policy::default());
    pair.run();
    pair.server
        .handle_local(pair.now, Input::SendingDone { next_number: 0 });

    let deadline = pair.server.poll_timeout().expect("a limit");
    pair.server.handle_timeout(deadline);
    pair.run();
    assert_eq!(pair.server_outcome(), Some(&Ok(())));
}

#[test]
fn a_client_that_has_closed_is_not_waited_for() {
    let mut pair = Pair::new(Some(header(Mode::Reverse)), Policy::default());
    pair.run();
    pair.server.handle_eof(pair.now);
    pair.server
        .handle_local(pair.now, Input::SendingDone { next_number: 0 });
    pair.run();
    assert_eq!(pair.server_outcome(), Some(&Ok(())));
}

#[test]
fn a_reverse_test_with_trip_times_begins_with_the_servers_header() {
    let header = Header {
        trip_times: true,
        start: Some(clock()),
        ..header(Mode::Reverse)
    };
    let mut pair = Pair::new(Some(header), Policy::default());
    pair.run();
    assert!(pair.client_did(|a| *a == Action::StartReceiving { header_bytes: 80 }));
}

#[test]
fn both_directions_of_one_connection_end_on_their_own() {
    for server_first in [false, true] {
        let mut pair = Pair::new(Some(header(Mode::FullDuplex)), Policy::default());
        pair.run();

        if server_first {
            pair.finish_server();
            assert_eq!(pair.client_outcome(), None);
            pair.finish_client();
        } else {
            pair.finish_client();
            assert_eq!(pair.server_outcome(), None);
            pair.finish_server();
        }

        assert_eq!(
            (pair.client_outcome(), pair.server_outcome()),
            (Some(&Ok(())), Some(&Ok(())))
        );
    }
}

#[test]
fn peer_detection_waits_for_the_answer_and_returns_the_version() {
    let header = Header {
        detect_peer: true,
        trip_times: true,
        start: Some(clock()),
        ..header(Mode::Forward)
    };
    let mut pair = Pair::new(Some(header.clone()), Policy::default());
    pair.client_actions
        .extend(std::iter::from_fn(|| pair.client.poll_action()));
    assert!(
        !pair.client_did(|a| *a == Action::StartSending),
        "not before the answer"
    );

    let Action::SendPayload(bytes) = &pair.client_actions[0] else {
        panic!("no header")
    };
    pair.server.handle_bytes(clock(), bytes);
    pair.run();
    assert!(pair.client_did(|a| *a == Action::StartSending));
    assert!(pair.client_did(|a| matches!(a, Action::ClockCheck(_))));

    // A server of the 2.0 series never answers.
    let mut silent = Pair::new(Some(header), Policy::default());
    assert_eq!(silent.client.poll_timeout(), Some(silent.now + ACK_TIMEOUT));
    silent.client.handle_timeout(silent.now + ACK_TIMEOUT);
    silent
        .client_actions
        .extend(std::iter::from_fn(|| silent.client.poll_action()));
    assert!(silent.client_outcome().is_some_and(Result::is_err));
}

#[test]
fn connections_back_go_to_the_announced_port() {
    for (mode, afterwards) in [(Mode::Dual, false), (Mode::TradeOff, true)] {
        let header = Header {
            port: 6101,
            ..header(mode)
        };
        let mut pair = Pair::new(Some(header.clone()), Policy::default());
        pair.run();

        let back = |a: &Action| matches!(a, Action::ConnectBack { port: 6101, .. });
        assert_eq!(pair.server_did(back), !afterwards);
        pair.finish_client();
        assert!(pair.server_did(back));

        let policy = Policy {
            may_connect_back: false,
            ..Policy::default()
        };
        let mut refused = Pair::new(Some(header), policy);
        refused.run();
        refused.finish_client();
        assert!(!refused.server_did(|a| matches!(a, Action::ConnectBack { .. })));
        assert_eq!(
            refused.server_outcome(),
            Some(&Ok(())),
            "the forward half is served"
        );
    }
}

#[test]
fn only_the_permit_key_opens_a_guarded_server() {
    let policy = || Policy {
        permit_key: Some(b"secret123".to_vec()),
        ..Policy::default()
    };
    for (key, served) in [
        (None, false),
        (Some("secret12"), false),
        (Some("secret124"), false),
        (Some("secret123"), true),
    ] {
        let header = Header {
            permit_key: key.map(|key| key.as_bytes().to_vec()),
            ..header(Mode::Forward)
        };
        let mut pair = Pair::new(Some(header), policy());
        pair.run();
        assert_eq!(
            pair.server_did(|a| *a == Action::StartReceiving { header_bytes: 0 }),
            served,
            "{key:?}"
        );
        assert_eq!(pair.server_outcome().is_some(), !served, "{key:?}");
    }

    let mut bare = Pair::new(None, policy());
    bare.server.handle_bytes(clock(), b"0123456789");
    bare.run();
    assert!(
        bare.server_outcome().is_some_and(Result::is_err),
        "data alone are no key"
    );
}

#[test]
fn clocks_too_far_apart_switch_delays_off_and_nothing_else() {
    let header = Header {
        trip_times: true,
        start: Some(Timestamp::from_unix_ns(1_700_000_000_000_000_000)),
        ..header(Mode::Forward)
    };
    let mut pair = Pair::new(Some(header), Policy::default());
    pair.run();

    let Some(Action::Accepted(test)) = pair.server_actions.first() else {
        panic!("not accepted")
    };
    assert!(test.clocks_disagree && !test.spec.workload.trip_times);
    assert!(
        test.header.as_ref().is_some_and(Header::frames_tcp_data),
        "the data are framed all the same"
    );
}

#[test]
fn a_connection_without_header_counts_from_its_first_byte() {
    for bytes in [
        &b"012345678901"[..],
        &[0, 0, 0, 0, 0, 0, 0, 1],
        &[0x80, 0, 0, 1, 0, 0, 0, 1],
    ] {
        let mut pair = Pair::new(None, Policy::default());
        let mut data = 0;

        for byte in bytes {
            data += pair
                .server
                .handle_bytes(clock(), std::slice::from_ref(byte))
                .len();
        }

        pair.run();
        let Some(Action::Accepted(test)) = pair.server_actions.first() else {
            panic!("not accepted")
        };
        assert_eq!(test.payload_bytes + data, bytes.len());
        assert!(!pair.server_did(|a| matches!(a, Action::Send(_))));
    }
}

#[test]
fn bounce_back_is_handed_over_with_its_first_head() {
    let bounce = linerate_model::workload::BounceBack {
        request_bytes: 100,
        reply_bytes: Some(500),
        burst: 1,
        period: Duration::ZERO,
        hold: Duration::from_millis(5),
        quick_ack: true,
        load: None,
    };

    let head =
        linerate_iperf2::wire::settings::bounce_head(&bounce, &linerate_model::TestSpec::default());
    let request = head.message(100);
    let mut pair = Pair::new(None, Policy::default());
    let rest = pair.server.handle_bytes(clock(), &request).to_vec();

    pair.run();
    let Some(Action::StartBouncing { received }) = pair.server_actions.last() else {
        panic!("{:?}", pair.server_actions)
    };
    assert_eq!([received.as_slice(), &rest].concat(), request);
}

proptest! {
    #[test]
    fn segments_of_any_size_make_the_same_test(segment in 1_usize..130, mode in 0_usize..5, trip_times: bool) {
        let mode = [Mode::Forward, Mode::Reverse, Mode::FullDuplex, Mode::Dual, Mode::TradeOff][mode];
        let header = Header {
            trip_times,
            start: trip_times.then(clock),
            permit_key: (segment % 2 == 0).then(|| b"key4".to_vec()),
            ..header(mode)
        };
        let mut whole = Pair::new(Some(header.clone()), Policy::default());
        whole.run();
        let mut cut = Pair::new(Some(header), Policy::default());
        cut.segment = segment;
        cut.run();
        prop_assert_eq!(cut.client_actions, whole.client_actions);
        prop_assert_eq!(cut.server_actions, whole.server_actions);
    }
}
