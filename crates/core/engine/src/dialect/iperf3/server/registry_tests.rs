use std::time::Duration;

use super::turn_times::UDP_TURN;
use super::*;

use linerate_iperf3::wire::framing::frame;
use linerate_iperf3::wire::server::Policy;
use linerate_model::policy::{self, Limits, ServerPolicy};
use proptest::prelude::*;

/// A registry and everything a server does for it.
struct Harness {
    registry: SessionRegistry,
    admission: Admission,
    now: Instant,
    /// The rule that ended the last client that is gone.
    refused: Option<RefusalReason>,
}

fn peer(last: u8) -> SocketAddr {
    ([192, 0, 2, last], 40_000).into()
}

fn cookie(n: u8) -> Cookie {
    Cookie::from_random([n; 36])
}

fn setup(n: u8) -> ServerSetup {
    ServerSetup {
        cookie: cookie(n),
        policy: Policy::default(),
        unix_s: 0,
    }
}

fn with_split_addresses() -> ServerPolicy {
    ServerPolicy {
        allow_split_address: true,
        ..ServerPolicy::default()
    }
}

fn admitting(admission: policy::Admission) -> ServerPolicy {
    ServerPolicy {
        admission,
        ..ServerPolicy::default()
    }
}

const ONE_AT_A_TIME: policy::Admission = policy::Admission::Queue {
    tests_max: 1,
    wait_max: Duration::from_secs(25),
};

impl Harness {
    fn new(policy: &ServerPolicy) -> Self {
        Self {
            registry: SessionRegistry::new(policy.allow_split_address),
            admission: Admission::new(policy, false),
            now: Instant::now(),
            refused: None,
        }
    }

    /// Client `n` comes from the address with this last byte.
    fn admit_connection(&mut self, n: u8, last: u8) -> AdmissionDecision {
        let arrival = self.connect(n.into(), last, n);
        if arrival == AdmissionDecision::Admitted {
            self.registry.begin(self.now, n.into(), setup(n));
        }
        arrival
    }

    /// Client `n` comes from the address with this last byte and sends its parameters, which are
    /// accepted.
    fn start(&mut self, n: u8, last: u8, json: &str) {
        self.admit_connection(n, last);
        self.params(n, json);
        self.actions(n);
    }

    /// The connection `id` from the address with this last byte sends the cookie of client `n`.
    fn connect(&mut self, id: u64, last: u8, n: u8) -> AdmissionDecision {
        let peer = peer(last);
        self.registry
            .admit_connection(self.now, id, peer, cookie(n), &mut self.admission)
    }

    fn udp_stream_owner(&self, last: u8) -> Option<u64> {
        self.registry.udp_stream_owner(peer(last).ip())
    }

    fn params(&mut self, n: u8, json: &str) {
        self.registry
            .handle_control(self.now, n.into(), &frame(json.as_bytes()));
    }

    /// All actions of a client, with `Accepted` answered at once; the connection is dropped when
    /// the client has finished.
    fn actions(&mut self, n: u8) -> Vec<ServerAction> {
        let mut all = Vec::new();
        while let Some(action) = self.registry.poll_action(n.into()) {
            if let ServerAction::Accepted(test) = &action {
                if !self
                    .registry
                    .agree(self.now, n.into(), test, &mut self.admission)
                {
                    continue;
                }

                self.registry
                    .handle_local(self.now, n.into(), ServerInput::Prepared);
            }

            all.push(action);
        }

        if let Some(ServerAction::Close(_)) = all.last() {
            self.refused = self.registry.refusal(n.into());
            self.remove(n);
        }

        all
    }

    fn remove(&mut self, n: u8) {
        self.registry
            .remove(self.now, n.into(), &mut self.admission);
    }

    fn sent(&mut self, n: u8) -> Vec<u8> {
        let sent = |action| match action {
            ServerAction::Send(bytes) => Some(bytes),
            _ => None,
        };
        self.actions(n)
            .into_iter()
            .filter_map(sent)
            .flatten()
            .collect()
    }

    fn open_stream(&mut self, n: u8) {
        self.registry
            .handle_local(self.now, n.into(), ServerInput::StreamOpened);
    }
}

const TCP: &str = r#"{"tcp":true,"time":10,"parallel":1}"#;
const UDP: &str = r#"{"udp":true,"time":10,"parallel":2,"len":1000}"#;

#[test]
fn data_connections_go_to_the_test_they_name() {
    let mut harness = Harness::new(&ServerPolicy::default());
    for n in [1, 2] {
        assert_eq!(harness.admit_connection(n, n), AdmissionDecision::Admitted);
        harness.params(n, TCP);
        assert_eq!(harness.sent(n), [9, 10]);
    }

    assert_eq!(harness.connect(50, 9, 2), AdmissionDecision::Stream(2));
    harness.open_stream(2);
    assert_eq!(harness.sent(2), [1, 2]);
    assert_eq!(harness.connect(50, 9, 1), AdmissionDecision::Stream(1));

    let late = AdmissionDecision::Refused(RefusalReason::DuplicateCookie);
    assert_eq!(
        harness.connect(50, 9, 2),
        late,
        "a running test takes no more streams"
    );
}

#[test]
fn udp_tests_of_one_address_open_their_streams_one_after_the_other() {
    let mut harness = Harness::new(&ServerPolicy::default());
    for (n, last) in [(1, 1), (2, 1), (3, 2)] {
        harness.admit_connection(n, last);
        harness.params(n, UDP);
    }

    assert_eq!(harness.sent(1), [9, 10]);
    assert_eq!(
        harness.sent(2),
        [9],
        "the other one of this address goes first"
    );
    assert_eq!(harness.sent(3), [9, 10], "another address need not wait");
    harness.open_stream(1);
    assert_eq!(harness.udp_stream_owner(1), Some(1));
    assert!(harness.sent(2).is_empty());
    harness.open_stream(1);
    assert_eq!(harness.sent(2), [10]);
    assert_eq!(harness.udp_stream_owner(1), Some(2));
    assert_eq!(
        harness.udp_stream_owner(7),
        None,
        "no client expects a stream from there"
    );
}

#[test]
fn client_without_streams_loses_its_udp_turn() {
    let mut harness = Harness::new(&ServerPolicy::default());
    for n in [1, 2] {
        harness.start(n, 1, UDP);
    }

    harness.open_stream(1);
    let began = harness.now;
    harness.now = harness.registry.next_timeout().expect("a deadline");
    assert_eq!(harness.now - began, UDP_TURN);
    harness.registry.handle_timeout(harness.now);
    assert!(matches!(
        harness.actions(1).last(),
        Some(ServerAction::Close(Err(_)))
    ));
    assert_eq!(harness.sent(2), [10]);
}

#[test]
fn with_split_addresses_only_one_test_at_all_opens_udp_streams() {
    let mut harness = Harness::new(&with_split_addresses());
    for n in [1, 2] {
        harness.admit_connection(n, n);
        harness.params(n, UDP);
    }

    assert_eq!((harness.sent(1), harness.sent(2)), (vec![9, 10], vec![9]));
    assert_eq!(harness.udp_stream_owner(200), Some(1));
}

/// All clients share one turn, so that one that opens a stream now and then would block all others.
#[test]
fn with_split_addresses_a_turn_takes_two_seconds_whatever_is_opened_in_it() {
    let mut harness = Harness::new(&with_split_addresses());
    for n in [1, 2] {
        harness.start(n, n, r#"{"udp":true,"time":10,"parallel":100,"len":1000}"#);
    }

    let began = harness.now;
    while harness.udp_stream_owner(200) == Some(1) {
        harness.open_stream(1);
        harness.now += Duration::from_millis(100);
        harness.registry.handle_timeout(harness.now);
        harness.actions(1);
        assert!(harness.now - began <= UDP_TURN);
    }

    assert_eq!(harness.udp_stream_owner(200), Some(2));
}

/// Lets time pass until another client opens its streams; returns that client and how long it took.
fn next_opener(harness: &mut Harness, clients: &[u8]) -> (Option<u64>, Duration) {
    let (opener, began) = (harness.udp_stream_owner(200), harness.now);
    while harness.udp_stream_owner(200) == opener {
        harness.now = harness
            .registry
            .next_timeout()
            .expect("a turn has an end")
            .max(harness.now);
        harness.registry.handle_timeout(harness.now);

        for n in clients {
            harness.actions(*n);
        }
    }

    (harness.udp_stream_owner(200), harness.now - began)
}

/// Thirty connections of one address would otherwise delay others by a minute.
#[test]
fn with_split_addresses_a_client_of_another_address_waits_for_one_turn() {
    let mut harness = Harness::new(&with_split_addresses());
    harness.admission = Admission::new(
        &admitting(policy::Admission::Parallel { tests_max: 400 }),
        false,
    );

    for n in 1..=30 {
        harness.start(n, 1, UDP);
    }

    harness.start(31, 2, UDP);
    let clients: Vec<u8> = (1..=31).collect();
    assert_eq!(harness.udp_stream_owner(200), Some(1));
    assert_eq!(next_opener(&mut harness, &clients), (Some(31), UDP_TURN));
}

#[test]
fn with_split_addresses_the_addresses_take_turns() {
    let mut harness = Harness::new(&with_split_addresses());
    for (n, last) in [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 3)] {
        harness.start(n, last, UDP);
    }

    let mut order = vec![1];
    while order.len() < 6 {
        order.extend(next_opener(&mut harness, &[1, 2, 3, 4, 5, 6]).0);
    }

    assert_eq!(order, [1, 4, 6, 2, 5, 3]);
}

#[test]
fn with_split_addresses_an_address_that_has_taken_its_time_gives_way_at_once() {
    let mut harness = Harness::new(&with_split_addresses());
    for (n, last) in [(1, 1), (2, 1), (3, 2)] {
        harness.start(n, last, UDP);
    }

    assert_eq!(next_opener(&mut harness, &[1, 2, 3]).0, Some(3));
    for _ in 0..2 {
        harness.open_stream(3);
    }

    harness.actions(3);
    assert_eq!(harness.udp_stream_owner(200), Some(2), "there is no other");
    harness.start(4, 3, UDP);
    assert_eq!(
        next_opener(&mut harness, &[2, 4]),
        (Some(4), Duration::ZERO)
    );
    harness.remove(4);

    harness.now += Duration::from_secs(60);
    harness.start(5, 1, UDP);
    harness.start(6, 3, UDP);
    assert_eq!(
        next_opener(&mut harness, &[5, 6]),
        (Some(6), UDP_TURN),
        "a minute later it has a turn again"
    );
}

#[test]
fn a_server_sends_to_no_address_that_may_be_forged() {
    let mut harness = Harness::new(&with_split_addresses());
    for (n, direction) in [(1, "reverse"), (2, "bidirectional")] {
        harness.start(
            n,
            n,
            &format!(r#"{{"udp":true,"time":10,"parallel":1,"len":1000,"{direction}":true}}"#),
        );
        let own = harness.udp_stream_owner(n);
        assert_eq!(
            (own, harness.udp_stream_owner(200)),
            (Some(n.into()), None),
            "{direction}"
        );
        harness.remove(n);
    }
}

#[test]
fn an_exclusive_server_is_busy_and_listens_only_while_streams_are_missing() {
    let mut harness = Harness::new(&admitting(policy::Admission::Exclusive));
    assert!(!harness.registry.is_busy(&harness.admission));
    harness.admit_connection(1, 1);
    assert!(harness.registry.is_busy(&harness.admission));
    assert_eq!(
        harness.admit_connection(2, 2),
        AdmissionDecision::Refused(RefusalReason::Busy)
    );
    harness.params(1, TCP);
    harness.actions(1);
    assert!(!harness.registry.is_busy(&harness.admission));
    harness.open_stream(1);
    harness.actions(1);
    assert!(harness.registry.is_busy(&harness.admission));
}

#[test]
fn a_server_for_one_test_is_exclusive() {
    let mut harness = Harness::new(&ServerPolicy::default());
    harness.admission = Admission::new(&ServerPolicy::default(), true);
    assert_eq!(harness.admit_connection(1, 1), AdmissionDecision::Admitted);
    assert!(harness.registry.is_busy(&harness.admission));
}

#[test]
fn places_are_taken_by_tests_not_by_cookies() {
    let mut harness = Harness::new(&admitting(policy::Admission::Parallel { tests_max: 1 }));
    for n in 1..=3 {
        assert_eq!(
            harness.admit_connection(n, n),
            AdmissionDecision::Admitted,
            "a cookie alone takes no place"
        );
        assert_eq!(harness.sent(n), [9]);
    }

    harness.params(2, TCP);
    assert_eq!(harness.sent(2), [10]);
    harness.params(1, TCP);
    assert_eq!(harness.sent(1), [0xFF]);
    assert_eq!(
        harness.admit_connection(4, 4),
        AdmissionDecision::Refused(RefusalReason::Busy)
    );
}

#[test]
fn queued_clients_start_in_order() {
    let mut harness = Harness::new(&admitting(ONE_AT_A_TIME));
    assert_eq!(harness.admit_connection(1, 1), AdmissionDecision::Admitted);
    harness.params(1, TCP);
    harness.actions(1);
    assert_eq!(harness.admit_connection(2, 2), AdmissionDecision::Queued);
    assert_eq!(harness.admit_connection(3, 3), AdmissionDecision::Queued);
    assert_eq!(
        harness.admit_connection(4, 4),
        AdmissionDecision::Refused(RefusalReason::QueueTooLong),
        "30 s are too long"
    );
    assert!(
        harness.sent(2).is_empty(),
        "a stock client waits silently for this byte"
    );
    assert_eq!(harness.registry.next_turn(&mut harness.admission), None);
    harness.registry.handle_control_eof(harness.now, 1);
    harness.actions(1);
    harness.registry.handle_control_eof(harness.now, 2);
    assert!(
        matches!(harness.actions(2)[..], [ServerAction::Close(Err(_))]),
        "who gave up is forgotten"
    );
    assert_eq!(harness.registry.next_turn(&mut harness.admission), Some(3));
    harness.registry.begin(harness.now, 3, setup(3));
    assert_eq!(harness.sent(3), [9]);
}

#[test]
fn queued_client_is_refused_after_the_timeout() {
    let mut harness = Harness::new(&admitting(ONE_AT_A_TIME));
    harness.start(1, 1, r#"{"tcp":true,"time":0}"#);
    harness.open_stream(1);
    harness.actions(1);
    assert_eq!(
        harness.admit_connection(2, 2),
        AdmissionDecision::Queued,
        "the time left of the other test is unknown"
    );
    harness.now += Duration::from_secs(25);
    harness.registry.handle_timeout(harness.now);
    assert_eq!(
        harness.registry.refusal(2),
        Some(RefusalReason::QueueTooLong)
    );
    assert_eq!(harness.sent(2), [0xFF]);
}

#[test]
fn limits_refuse_with_errors_of_stock_servers() {
    let limits = Limits {
        streams: Some(2),
        duration: Some(Duration::from_secs(20)),
        rate_bps: Some(1_000_000),
        ..Limits::default()
    };

    let mut policy = ServerPolicy::default();
    policy.limits.address = limits;

    let rows: [(&str, RefusalReason, u8); 4] = [
        (r#"{"parallel":3,"bandwidth":1}"#, RefusalReason::Streams, 6),
        (r#"{"time":21,"bandwidth":1}"#, RefusalReason::Duration, 37),
        (r#"{"time":0,"bandwidth":1}"#, RefusalReason::Duration, 37),
        (
            r#"{"bandwidth":600000,"parallel":2}"#,
            RefusalReason::Rate,
            27,
        ),
    ];
    for (json, reason, code) in rows {
        let mut harness = Harness::new(&policy);
        harness.admit_connection(1, 1);
        harness.actions(1);
        harness.params(1, json);
        assert_eq!(harness.sent(1), [0xFE, 0, 0, 0, code, 0, 0, 0, 0], "{json}");
        assert_eq!(harness.refused, Some(reason), "{json}");
    }
}

#[test]
fn termination_reaches_running_and_queued_clients() {
    let mut harness = Harness::new(&admitting(ONE_AT_A_TIME));
    harness.admit_connection(1, 1);
    harness.actions(1);
    harness.admit_connection(2, 2);
    harness.registry.terminate(harness.now, "Terminated(15)");
    assert_eq!((harness.sent(1), harness.sent(2)), (vec![11], vec![11]));
}

#[test]
fn running_tests_are_shown_with_different_numbers() {
    let mut harness = Harness::new(&ServerPolicy::default());
    for n in 1..=3 {
        harness.start(n, n, r#"{"tcp":true,"parallel":4}"#);
    }

    let first: Vec<u32> = (1..=3)
        .map(|n| harness.registry.first_position(n))
        .collect();
    assert_eq!(first, [0, 4, 8]);
}

/// A client whose login waits for its check.
fn log_in(harness: &mut Harness, n: u8, last: u8) {
    assert_eq!(
        harness.connect(n.into(), last, n),
        AdmissionDecision::Admitted
    );
    let mut setup = setup(n);
    setup.policy.login_required = true;
    harness.registry.begin(harness.now, n.into(), setup);
    harness.params(
        n,
        r#"{"tcp":true,"time":10,"parallel":1,"authtoken":"token"}"#,
    );
    assert_eq!(harness.sent(n), [9]);
}

fn next_worker(harness: &mut Harness) -> Option<u64> {
    harness.registry.next_work(harness.now).map(|(id, _)| id)
}

fn answer(harness: &mut Harness, n: u64, checked: Result<&str, Refusal>) {
    let checked = checked.map(str::to_owned);
    harness
        .registry
        .handle_outcome(harness.now, n, ServerInput::LoginChecked(checked));
}

#[test]
fn others_are_served_while_logins_are_checked() {
    let mut harness = Harness::new(&ServerPolicy::default());
    for n in 1..=5 {
        log_in(&mut harness, n, 1);
    }

    assert_eq!(next_worker(&mut harness), Some(1));
    assert!(
        harness.registry.has_work(1) && harness.sent(1).is_empty(),
        "the check is under way"
    );
    assert_eq!(harness.admit_connection(10, 2), AdmissionDecision::Admitted);
    harness.params(10, TCP);
    assert_eq!(
        harness.sent(10),
        [9, 10],
        "a client without a login is served meanwhile"
    );
    log_in(&mut harness, 11, 3);
    assert_eq!(next_worker(&mut harness), Some(2));
    assert_eq!(next_worker(&mut harness), Some(11), "addresses take turns");
    answer(&mut harness, 1, Ok("mario"));
    assert_eq!(harness.sent(1), [10]);
    assert!(!harness.registry.has_work(1));
}

#[test]
fn concurrent_logins_count_like_successive_ones() {
    let mut harness = Harness::new(&ServerPolicy::default());
    for n in 1..=30 {
        log_in(&mut harness, n, 1);
    }

    let mut guesses = 0;
    while let Some(n) = next_worker(&mut harness) {
        guesses += 1;
        answer(&mut harness, n, Err(Refusal::WrongPassword));
    }

    assert_eq!(guesses, 10);
    assert_eq!(
        harness.registry.login_failure(30),
        Some(&Refusal::LockedOut)
    );
}

#[test]
fn a_refused_login_is_answered_after_a_multiple_of_a_fixed_time() {
    for (check_ms, answer_ms) in [(0, 250), (249, 250), (250, 500), (1_700, 1_750)] {
        let mut harness = Harness::new(&ServerPolicy::default());
        log_in(&mut harness, 1, 1);
        assert_eq!(next_worker(&mut harness), Some(1));

        let asked_at = harness.now;
        harness.now = asked_at + Duration::from_millis(check_ms);
        answer(&mut harness, 1, Err(Refusal::UnknownUser));
        assert!(harness.sent(1).is_empty(), "{check_ms}");

        let due = asked_at + Duration::from_millis(answer_ms);
        assert_eq!(harness.registry.next_timeout(), Some(due), "{check_ms}");
        harness.now = due;
        harness.registry.handle_timeout(due);
        assert_eq!(
            harness.sent(1),
            [0xfe, 0, 0, 0, 142, 0, 0, 0, 0],
            "{check_ms}"
        );
    }
}

#[test]
fn work_of_a_removed_client_is_not_done() {
    let mut harness = Harness::new(&ServerPolicy::default());
    log_in(&mut harness, 1, 1);
    harness
        .registry
        .evict(harness.now, 1, RefusalReason::Crowded);
    assert_eq!(harness.sent(1), [0xff]);
    assert_eq!(next_worker(&mut harness), None);
    answer(&mut harness, 1, Ok("mario"));
}

/// The scripts below lead to tests that run, also to several in one script.
#[test]
fn arbitrary_scripts_reach_running_tests() {
    let mut state = 1_u32;
    let mut byte = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    let ran: Vec<usize> = (0..500)
        .map(|_| crate::fuzzing::sessions(&(0..400).map(|_| byte()).collect::<Vec<_>>()))
        .collect();
    assert!(ran.iter().filter(|n| **n >= 2).count() > 100, "{ran:?}");
    assert!(ran.iter().any(|n| *n >= 3), "{ran:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// No order of events on one session changes another.
    #[test]
    fn sessions_are_independent(script in proptest::collection::vec(any::<u8>(), 0..400)) {
        crate::fuzzing::independence(&script);
    }

    #[test]
    fn any_events_on_any_sessions_keep_the_rules(script in proptest::collection::vec(any::<u8>(), 0..400)) {
        crate::fuzzing::sessions(&script);
    }
}
