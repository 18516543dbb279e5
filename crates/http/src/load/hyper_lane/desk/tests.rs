//! Goal: a lane over hyper gives out every request that is due exactly once, and knows at the end that none is under way.
//! Method: desks at the beginning of a load, without a connection or an executor: the test is their tasks.

use linerate_model::http::Arrivals;
use oneshot::Receiver;
use oneshot::error::TryRecvError;

use super::*;
use crate::load::message::Order;
use crate::load::ports::PortChoice;
use crate::protocol::Protocol;

const MS: u64 = 1_000_000;
const TIMEOUT_NS: u64 = 1_000 * MS;
const DURATION_NS: u64 = 10_000 * MS;

/// A request is due every millisecond.
const OPEN: Mode = Mode::Open {
    rate_per_s: 1_000.0,
    arrivals: Arrivals::Uniform,
};
const CLOSED: Mode = Mode::Closed {
    pipeline: 1,
    think_ns: 0,
};

fn spec(mode: Mode, connections: u32, streams: u32) -> LoadSpec {
    LoadSpec {
        destinations: Vec::new(),
        sources: Vec::new(),
        ports: PortChoice::Auto,
        request: Vec::new(),
        is_head: false,
        protocol: Protocol::default(),
        streams,
        mode,
        connections,
        touches: false,
        ramp_per_s: None,
        connects_in_flight: connections,
        connect_timeout_ns: TIMEOUT_NS,
        timeout_ns: TIMEOUT_NS,
        warmup_ns: 0,
        duration_ns: DURATION_NS,
        reconnects_max: 0,
        resets_at_end: false,
        verifies: false,
        spins: false,
        tcp_keepalive_s: None,
        seed: 1,
        port_range: None,
        ports_skipped: Vec::new(),
    }
}

/// A desk whose load began just now, and what it is asked with.
struct Load {
    desk: Desk,
    spec: LoadSpec,
    begin_ns: u64,
}

impl Load {
    fn begin(mode: Mode, connections: u32, streams: u32) -> Self {
        let mut load = Self::ramp(mode, connections, streams);
        assert_eq!(load.step(), Some(Turn::Ramped));
        let Some(Turn::Begin(window)) = load.step() else {
            panic!("it was ordered to begin");
        };
        load.desk.recorder.set_window(window);
        load.desk.pace = Pace::new(&load.spec, window.begin_ns, (0, 1));
        load
    }

    /// All connections are open.
    fn ramp(mode: Mode, connections: u32, streams: u32) -> Self {
        let (spec, begin_ns) = (spec(mode, connections, streams), clock::monotonic_ns());
        let orders = Arc::new(Orders::new().expect("a descriptor"));
        orders.give(Order::Begin { at_ns: begin_ns });
        let mut desk = Desk::new(&spec, (0, 1), orders, begin_ns);
        while let Some(number) = desk.ramp.take(begin_ns) {
            assert!(desk.arrived(number, 1), "for the first time");
        }
        Self { desk, spec, begin_ns }
    }

    fn step(&mut self) -> Option<Turn> {
        self.desk.step(&self.spec, self.begin_ns)
    }

    /// The time this many milliseconds after the beginning.
    fn at(&self, ms: u64) -> u64 {
        self.begin_ns + ms * MS
    }

    fn send_due(&mut self, ms: u64) {
        let now_ns = self.at(ms);
        self.desk.send_due(&self.spec, now_ns);
    }

    /// A slot that is free waits for its next request.
    fn wait(&mut self, slot: u32) -> Receiver<u64> {
        match self.desk.next(slot, false) {
            Next::Later(due) => due,
            Next::Now(_) => panic!("nothing is to be sent now"),
        }
    }

    /// A slot that is free has something to do at once.
    fn take(&mut self, slot: u32) -> u64 {
        match self.desk.next(slot, false) {
            Next::Now(due_ns) => due_ns,
            Next::Later(_) => panic!("a closed loop does not wait"),
        }
    }

    /// How many requests never left, of so many in all.
    fn unsent(&self) -> (u64, u64) {
        let tally = &self.desk.recorder.tally;
        (tally.errors.count(ErrorClass::Unsent), tally.requests)
    }
}

fn well() -> Answer {
    Answer {
        status: 200,
        keeps_alive: true,
        has_retry_after: false,
        head_bytes: None,
        body_bytes: 1,
        hash: 0,
    }
}

fn reset() -> Failure {
    Failure {
        class: ErrorClass::ResetBeforeAnswer,
        text: "reset".to_owned(),
    }
}

#[test]
fn what_is_due_goes_to_the_slots_that_have_waited_longest() {
    let mut load = Load::begin(OPEN, 3, 1);
    let [mut last, mut first, mut second] = [2, 0, 1].map(|slot| load.wait(slot));
    load.send_due(1);
    assert_eq!(last.try_recv(), Ok(load.at(0)), "it came first");
    assert_eq!(first.try_recv(), Ok(load.at(1)));
    assert_eq!(second.try_recv(), Err(TryRecvError::Empty), "nothing else is due");
    assert_eq!(load.desk.in_flight, 2);
    load.send_due(2);
    assert_eq!(second.try_recv(), Ok(load.at(2)));
}

#[test]
fn a_request_that_never_left_goes_first_and_is_due_when_it_was() {
    let mut load = Load::begin(OPEN, 3, 1);
    let mut given = load.wait(0);
    load.send_due(0);
    let due_ns = given.try_recv().expect("due at the beginning");
    assert!(load.desk.sending(0, due_ns));
    load.desk.give_back(0);
    load.desk.gone(0);
    assert_eq!(load.desk.in_flight, 0);
    let (mut next, mut one_more) = (load.wait(1), load.wait(2));
    load.send_due(1);
    assert_eq!(next.try_recv(), Ok(load.at(0)), "the one that came back");
    assert_eq!(one_more.try_recv(), Ok(load.at(1)));
}

#[test]
fn a_request_is_not_given_to_a_slot_that_is_gone() {
    let mut load = Load::begin(OPEN, 3, 1);
    let mut of_lost_connection = load.wait(0);
    load.desk.gone(0);
    drop(load.wait(1));
    let mut alive = load.wait(2);
    load.send_due(0);
    assert_eq!(of_lost_connection.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(alive.try_recv(), Ok(load.at(0)));
    assert_eq!((load.desk.in_flight, load.desk.open_count()), (1, 2));
}

#[test]
fn a_rate_that_cannot_be_sustained_is_cut_and_what_was_due_counts() {
    let mut load = Load::begin(OPEN, 1, 1);
    load.send_due(1_000);
    assert!(load.desk.course.window().is_some(), "an answer may take that long");
    load.send_due(1_001);
    assert!(load.desk.recorder.tally.is_overloaded && load.desk.course.window().is_none());
    assert_eq!(load.unsent(), (1_001, 1_001), "what was due before the cut");
    let mut too_late = load.wait(0);
    load.send_due(1_002);
    assert_eq!(
        too_late.try_recv(),
        Err(TryRecvError::Empty),
        "nothing is sent any more"
    );
    load.step();
    assert!(load.desk.course.is_over(), "nothing is under way");
}

#[test]
fn a_request_that_comes_back_while_others_are_waited_for_is_counted_as_unsent() {
    let mut load = Load::begin(OPEN, 1, 1);
    let mut given = load.wait(0);
    load.send_due(0);
    let due_ns = given.try_recv().expect("due at the beginning");
    assert!(load.desk.sending(0, due_ns));
    let end_ns = load.begin_ns + DURATION_NS;
    load.desk.end_load(&load.spec, end_ns, false);
    load.desk.give_back(0);
    load.desk.close(end_ns);
    assert_eq!(load.unsent(), (10_000, 10_000), "every one that was due");
}

#[test]
fn connections_are_open_when_their_first_request_has_its_answer() {
    let mut load = Load::ramp(CLOSED, 1, 1);
    load.desk.begin_touch();
    assert_eq!((load.step(), load.desk.in_flight), (None, 1), "it waits for the answer");
    assert!(load.desk.sending(0, load.begin_ns));
    load.desk.answered(0, &well());
    load.desk.end_touch();
    assert_eq!((load.step(), load.desk.in_flight), (Some(Turn::Ramped), 0));
    assert_eq!(load.desk.recorder.tally.requests, 0, "it does not count");
}

#[test]
fn nothing_is_under_way_when_every_request_has_ended_however() {
    type End = (&'static str, fn(&mut Desk, u32), u64);
    let ends: [End; 4] = [
        ("answered", |desk, slot| desk.answered(slot, &well()), 2),
        ("failed", |desk, slot| desk.failed(slot, &reset()), 2),
        ("given back", Desk::give_back, 0),
        ("closed", |desk, _| desk.close(clock::monotonic_ns()), 2),
    ];
    for (name, end, requests) in ends {
        let mut load = Load::begin(CLOSED, 2, 2);
        // Both streams of the second connection.
        for slot in load.desk.slots_of(1) {
            let due_ns = load.take(slot);
            assert!(load.desk.sending(slot, due_ns), "{name}");
        }
        assert_eq!(load.desk.in_flight, 2, "{name}");
        for slot in load.desk.slots_of(1) {
            end(&mut load.desk, slot);
            end(&mut load.desk, slot);
        }
        assert_eq!(load.desk.in_flight, 0, "{name}");
        assert_eq!(load.desk.recorder.tally.requests, requests, "{name}");
    }
}

#[test]
fn a_closed_loop_sends_nothing_after_its_end() {
    let mut load = Load::begin(CLOSED, 2, 1);
    let due_ns = load.take(0);
    // The end comes while it is decided.
    load.desk.course.cut(load.begin_ns);
    assert!(!load.desk.sending(0, due_ns));
    assert_eq!(load.desk.in_flight, 0);
    let mut never = load.wait(1);
    load.send_due(1);
    assert_eq!(never.try_recv(), Err(TryRecvError::Empty));
    load.desk.close(clock::monotonic_ns());
    assert_eq!(load.desk.recorder.tally.requests, 0);
}

#[test]
fn a_user_who_thinks_asks_again_after_the_pause() {
    let mode = Mode::Closed {
        pipeline: 1,
        think_ns: 5_000 * MS,
    };
    let mut load = Load::begin(mode, 1, 1);
    let mut due = match load.desk.next(0, true) {
        Next::Later(due) => due,
        Next::Now(_) => panic!("a pause comes first"),
    };
    load.send_due(4_999);
    assert_eq!(due.try_recv(), Err(TryRecvError::Empty));
    // The pause began a moment after the load.
    load.send_due(9_999);
    assert_eq!((due.try_recv(), load.desk.in_flight), (Ok(load.at(9_999)), 1));
}
