use super::*;

use linerate_iperf3::framing::frame;
use linerate_iperf3::server::Policy;
use linerate_model::sharing::Limits;
use proptest::prelude::*;

/// A desk and everything a server does for it.
struct Shop {
    desk: Desk,
    now: Instant,
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

fn admitting(admission: Admission) -> Sharing {
    Sharing {
        admission,
        ..Sharing::default()
    }
}

impl Shop {
    fn new(sharing: &Sharing) -> Self {
        Self {
            desk: Desk::new(sharing, false),
            now: Instant::now(),
        }
    }

    /// Guest `n` comes from the address with this last byte.
    fn arrive(&mut self, n: u8, last: u8) -> Arrival {
        let arrival = self.desk.arrive(self.now, n.into(), peer(last), cookie(n));
        if arrival == Arrival::Seat {
            self.desk.seat(self.now, n.into(), setup(n));
        }
        arrival
    }

    fn params(&mut self, n: u8, json: &str) {
        self.desk.handle_control(self.now, n.into(), &frame(json.as_bytes()));
    }

    /// All actions of a guest, with `Accepted` answered at once; the connection is dropped when the guest is through.
    fn actions(&mut self, n: u8) -> Vec<ServerAction> {
        let mut all = Vec::new();
        while let Some(action) = self.desk.poll_action(n.into()) {
            if matches!(action, ServerAction::Accepted(_)) {
                self.desk.handle_local(self.now, n.into(), ServerInput::Prepared);
            }
            all.push(action);
        }
        if let Some(ServerAction::Close(_)) = all.last() {
            self.desk.depart(self.now, n.into());
        }
        all
    }

    fn sent(&mut self, n: u8) -> Vec<u8> {
        let sent = |action| match action {
            ServerAction::Send(bytes) => Some(bytes),
            _ => None,
        };
        self.actions(n).into_iter().filter_map(sent).flatten().collect()
    }

    fn open_stream(&mut self, n: u8) {
        self.desk.handle_local(self.now, n.into(), ServerInput::StreamOpened);
    }
}

const TCP: &str = r#"{"tcp":true,"time":10,"parallel":1}"#;
const UDP: &str = r#"{"udp":true,"time":10,"parallel":2,"len":1000}"#;

#[test]
fn data_connections_go_to_the_test_they_name() {
    let mut shop = Shop::new(&Sharing::default());
    for n in [1, 2] {
        assert_eq!(shop.arrive(n, n), Arrival::Seat);
        shop.params(n, TCP);
        assert_eq!(shop.sent(n), [9, 10]);
    }
    let connect = |shop: &mut Shop, n: u8| shop.desk.arrive(shop.now, 50, peer(9), cookie(n));
    assert_eq!(connect(&mut shop, 2), Arrival::Stream(2));
    shop.open_stream(2);
    assert_eq!(shop.sent(2), [1, 2]);
    assert_eq!(connect(&mut shop, 1), Arrival::Stream(1));
    let late = Arrival::Refused(RefusalReason::DuplicateCookie);
    assert_eq!(connect(&mut shop, 2), late, "a running test takes no more streams");
}

#[test]
fn udp_tests_of_one_address_open_their_streams_one_after_the_other() {
    let mut shop = Shop::new(&Sharing::default());
    for (n, last) in [(1, 1), (2, 1), (3, 2)] {
        shop.arrive(n, last);
        shop.params(n, UDP);
    }
    assert_eq!(shop.sent(1), [9, 10]);
    assert_eq!(shop.sent(2), [9], "the other one of this address goes first");
    assert_eq!(shop.sent(3), [9, 10], "another address need not wait");
    shop.open_stream(1);
    assert_eq!(shop.desk.claimant(peer(1).ip()), Some(1));
    assert!(shop.sent(2).is_empty());
    shop.open_stream(1);
    assert_eq!(shop.sent(2), [10]);
    assert_eq!(shop.desk.claimant(peer(1).ip()), Some(2));
    assert_eq!(
        shop.desk.claimant(peer(7).ip()),
        None,
        "nobody expects anything from there"
    );
}

#[test]
fn who_never_opens_its_streams_does_not_hold_up_others_for_ever() {
    let mut shop = Shop::new(&Sharing::default());
    for n in [1, 2] {
        shop.arrive(n, 1);
        shop.params(n, UDP);
        shop.actions(n);
    }
    shop.open_stream(1);
    let began = shop.now;
    shop.now = shop.desk.next_timeout().expect("a deadline");
    assert_eq!(shop.now - began, UDP_TURN);
    shop.desk.handle_timeout(shop.now);
    assert!(matches!(shop.actions(1).last(), Some(ServerAction::Close(Err(_)))));
    assert_eq!(shop.sent(2), [10]);
}

#[test]
fn with_split_addresses_only_one_test_at_all_opens_udp_streams() {
    let mut shop = Shop::new(&Sharing {
        allow_split_address: true,
        ..Sharing::default()
    });
    for n in [1, 2] {
        shop.arrive(n, n);
        shop.params(n, UDP);
    }
    assert_eq!((shop.sent(1), shop.sent(2)), (vec![9, 10], vec![9]));
    assert_eq!(shop.desk.claimant(peer(200).ip()), Some(1));
}

/// Of all clients, so that one that opens a stream now and then would keep everybody else waiting.
#[test]
fn with_split_addresses_a_turn_takes_two_seconds_whatever_is_opened_in_it() {
    let mut shop = Shop::new(&Sharing {
        allow_split_address: true,
        ..Sharing::default()
    });
    for n in [1, 2] {
        shop.arrive(n, n);
        shop.params(n, r#"{"udp":true,"time":10,"parallel":100,"len":1000}"#);
        shop.actions(n);
    }
    let began = shop.now;
    while shop.desk.claimant(peer(200).ip()) == Some(1) {
        shop.open_stream(1);
        shop.now += Duration::from_millis(100);
        shop.desk.handle_timeout(shop.now);
        shop.actions(1);
        assert!(shop.now - began <= UDP_TURN);
    }
    assert_eq!(shop.desk.claimant(peer(200).ip()), Some(2));
}

#[test]
fn a_server_sends_to_no_address_that_may_be_forged() {
    let mut shop = Shop::new(&Sharing {
        allow_split_address: true,
        ..Sharing::default()
    });
    for (n, direction) in [(1, "reverse"), (2, "bidirectional")] {
        shop.arrive(n, n);
        shop.params(
            n,
            &format!(r#"{{"udp":true,"time":10,"parallel":1,"len":1000,"{direction}":true}}"#),
        );
        shop.actions(n);
        let own = shop.desk.claimant(peer(n).ip());
        assert_eq!(
            (own, shop.desk.claimant(peer(200).ip())),
            (Some(n.into()), None),
            "{direction}"
        );
        shop.desk.depart(shop.now, n.into());
    }
}

#[test]
fn an_exclusive_server_is_busy_and_listens_only_while_streams_are_missing() {
    let mut shop = Shop::new(&admitting(Admission::Exclusive));
    assert!(!shop.desk.refuses_unheard());
    shop.arrive(1, 1);
    assert!(shop.desk.refuses_unheard());
    assert_eq!(shop.arrive(2, 2), Arrival::Refused(RefusalReason::Busy));
    shop.params(1, TCP);
    shop.actions(1);
    assert!(!shop.desk.refuses_unheard());
    shop.open_stream(1);
    shop.actions(1);
    assert!(shop.desk.refuses_unheard());
}

#[test]
fn a_server_for_one_test_is_exclusive() {
    let mut desk = Desk::new(&Sharing::default(), true);
    let now = Instant::now();
    assert_eq!(desk.arrive(now, 1, peer(1), cookie(1)), Arrival::Seat);
    assert!(desk.refuses_unheard());
}

#[test]
fn places_are_taken_by_tests_not_by_cookies() {
    let mut shop = Shop::new(&admitting(Admission::Parallel { tests_max: 1 }));
    for n in 1..=3 {
        assert_eq!(shop.arrive(n, n), Arrival::Seat, "a cookie alone takes no place");
        assert_eq!(shop.sent(n), [9]);
    }
    shop.params(2, TCP);
    assert_eq!(shop.sent(2), [10]);
    shop.params(1, TCP);
    assert_eq!(shop.sent(1), [0xFF]);
    assert_eq!(shop.arrive(4, 4), Arrival::Refused(RefusalReason::Busy));
}

#[test]
fn waiting_clients_are_asked_in_their_order() {
    let queue = Admission::Queue {
        tests_max: 1,
        patience: Duration::from_secs(25),
    };
    let mut shop = Shop::new(&admitting(queue));
    assert_eq!(shop.arrive(1, 1), Arrival::Seat);
    shop.params(1, TCP);
    shop.actions(1);
    assert_eq!(shop.arrive(2, 2), Arrival::Wait);
    assert_eq!(shop.arrive(3, 3), Arrival::Wait);
    assert_eq!(
        shop.arrive(4, 4),
        Arrival::Refused(RefusalReason::QueueTooLong),
        "30 s are too long"
    );
    assert!(shop.sent(2).is_empty(), "a stock client waits silently for this byte");
    assert_eq!(shop.desk.next_turn(), None);
    shop.desk.handle_control_eof(shop.now, 1);
    shop.actions(1);
    shop.desk.handle_control_eof(shop.now, 2);
    assert!(
        matches!(shop.actions(2)[..], [ServerAction::Close(Err(_))]),
        "who gave up is forgotten"
    );
    assert_eq!(shop.desk.next_turn(), Some(3));
    shop.desk.seat(shop.now, 3, setup(3));
    assert_eq!(shop.sent(3), [9]);
}

#[test]
fn the_patience_of_a_waiting_client_ends_in_a_clear_answer() {
    let queue = Admission::Queue {
        tests_max: 1,
        patience: Duration::from_secs(25),
    };
    let mut shop = Shop::new(&admitting(queue));
    shop.arrive(1, 1);
    shop.params(1, r#"{"tcp":true,"time":0}"#);
    shop.actions(1);
    shop.open_stream(1);
    shop.actions(1);
    assert_eq!(
        shop.arrive(2, 2),
        Arrival::Wait,
        "nobody knows how long the other one takes"
    );
    shop.now += Duration::from_secs(25);
    shop.desk.handle_timeout(shop.now);
    assert_eq!(shop.desk.refusal(2), Some(RefusalReason::QueueTooLong));
    assert_eq!(shop.sent(2), [0xFF]);
}

#[test]
fn limits_answer_with_words_a_stock_client_knows() {
    let limits = Limits {
        streams: Some(2),
        duration: Some(Duration::from_secs(20)),
        rate_bps: Some(1_000_000),
        ..Limits::default()
    };
    let mut sharing = Sharing::default();
    sharing.limits.address = limits;
    let rows: [(&str, RefusalReason, u8); 4] = [
        (r#"{"parallel":3,"bandwidth":1}"#, RefusalReason::Streams, 6),
        (r#"{"time":21,"bandwidth":1}"#, RefusalReason::Duration, 37),
        (r#"{"time":0,"bandwidth":1}"#, RefusalReason::Duration, 37),
        (r#"{"bandwidth":600000,"parallel":2}"#, RefusalReason::Rate, 27),
    ];
    for (json, reason, code) in rows {
        let mut shop = Shop::new(&sharing);
        shop.arrive(1, 1);
        shop.actions(1);
        shop.params(1, json);
        assert_eq!(shop.desk.refusal(1), Some(reason), "{json}");
        assert_eq!(shop.sent(1), [0xFE, 0, 0, 0, code, 0, 0, 0, 0], "{json}");
    }
}

#[test]
fn a_stop_reaches_everybody_also_those_who_wait() {
    let queue = Admission::Queue {
        tests_max: 1,
        patience: Duration::from_secs(25),
    };
    let mut shop = Shop::new(&admitting(queue));
    shop.arrive(1, 1);
    shop.actions(1);
    shop.arrive(2, 2);
    shop.desk.terminate(shop.now, "Terminated(15)");
    assert_eq!((shop.sent(1), shop.sent(2)), (vec![11], vec![11]));
}

#[test]
fn running_tests_are_shown_with_different_numbers() {
    let mut shop = Shop::new(&Sharing::default());
    for n in 1..=3 {
        shop.arrive(n, n);
        shop.params(n, r#"{"tcp":true,"parallel":4}"#);
        shop.actions(n);
    }
    let first: Vec<u32> = (1..=3).map(|n| shop.desk.first_position(n)).collect();
    assert_eq!(first, [0, 4, 8]);
}

/// The scripts below are worth something: they lead to tests that run, also to several in one script.
/// A guest whose login waits for its check.
fn log_in(shop: &mut Shop, n: u8, last: u8) {
    assert_eq!(
        shop.desk.arrive(shop.now, n.into(), peer(last), cookie(n)),
        Arrival::Seat
    );
    let mut setup = setup(n);
    setup.policy.login_required = true;
    shop.desk.seat(shop.now, n.into(), setup);
    shop.params(n, r#"{"tcp":true,"time":10,"parallel":1,"authtoken":"token"}"#);
    assert_eq!(shop.sent(n), [9]);
}

fn next_worker(shop: &mut Shop) -> Option<u64> {
    shop.desk.next_work(shop.now).map(|(id, _)| id)
}

fn answer(shop: &mut Shop, n: u64, verdict: Result<&str, Refusal>) {
    let verdict = verdict.map(str::to_owned);
    shop.desk
        .handle_outcome(shop.now, n, ServerInput::LoginChecked(verdict));
}

#[test]
fn others_are_served_while_logins_are_checked() {
    let mut shop = Shop::new(&Sharing::default());
    for n in 1..=5 {
        log_in(&mut shop, n, 1);
    }
    assert_eq!(next_worker(&mut shop), Some(1));
    assert!(
        shop.desk.has_work(1) && shop.sent(1).is_empty(),
        "the check is under way"
    );
    assert_eq!(shop.arrive(10, 2), Arrival::Seat);
    shop.params(10, TCP);
    assert_eq!(shop.sent(10), [9, 10], "a client without a login is served meanwhile");
    log_in(&mut shop, 11, 3);
    assert_eq!(next_worker(&mut shop), Some(2));
    assert_eq!(next_worker(&mut shop), Some(11), "addresses take turns");
    answer(&mut shop, 1, Ok("mario"));
    assert_eq!(shop.sent(1), [10]);
    assert!(!shop.desk.has_work(1));
}

#[test]
fn many_logins_at_once_are_no_more_guesses_than_in_succession() {
    let mut shop = Shop::new(&Sharing::default());
    for n in 1..=30 {
        log_in(&mut shop, n, 1);
    }
    let mut guesses = 0;
    while let Some(n) = next_worker(&mut shop) {
        guesses += 1;
        answer(&mut shop, n, Err(Refusal::WrongPassword));
    }
    assert_eq!(guesses, 10);
    assert_eq!(shop.desk.login_failure(30), Some(&Refusal::LockedOut));
}

#[test]
fn a_refused_login_is_answered_after_a_multiple_of_a_fixed_time() {
    for (check_ms, answer_ms) in [(0, 250), (249, 250), (250, 500), (1_700, 1_750)] {
        let mut shop = Shop::new(&Sharing::default());
        log_in(&mut shop, 1, 1);
        assert_eq!(next_worker(&mut shop), Some(1));
        let asked_at = shop.now;
        shop.now = asked_at + Duration::from_millis(check_ms);
        answer(&mut shop, 1, Err(Refusal::UnknownUser));
        assert!(shop.sent(1).is_empty(), "{check_ms}");
        let due = asked_at + Duration::from_millis(answer_ms);
        assert_eq!(shop.desk.next_timeout(), Some(due), "{check_ms}");
        shop.now = due;
        shop.desk.handle_timeout(due);
        assert_eq!(shop.sent(1), [0xfe, 0, 0, 0, 142, 0, 0, 0, 0], "{check_ms}");
    }
}

#[test]
fn work_of_a_guest_that_left_is_not_done() {
    let mut shop = Shop::new(&Sharing::default());
    log_in(&mut shop, 1, 1);
    shop.desk.turn_out(shop.now, 1, RefusalReason::Crowded);
    assert_eq!(shop.sent(1), [0xff]);
    assert_eq!(next_worker(&mut shop), None);
    answer(&mut shop, 1, Ok("mario"));
}

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
    fn sessions_do_not_know_of_each_other(script in proptest::collection::vec(any::<u8>(), 0..400)) {
        crate::fuzzing::independence(&script);
    }

    #[test]
    fn any_events_on_any_sessions_keep_the_rules(script in proptest::collection::vec(any::<u8>(), 0..400)) {
        crate::fuzzing::sessions(&script);
    }
}
