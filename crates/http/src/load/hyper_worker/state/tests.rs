//! Goal: a worker over hyper assigns every due request exactly once, and none is in flight at the end.
//! Method: states at the beginning of a load, without connections or executor; the test takes the part of the tasks.

use linerate_model::http::Arrivals;
use oneshot::Receiver;
use oneshot::error::TryRecvError;

use super::*;
use crate::load::message::WorkerCommand;
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
        sends_first_request: false,
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

/// A state whose load began just now, and its specification.
struct Load {
    state: WorkerState,
    spec: LoadSpec,
    begin_ns: u64,
}

impl Load {
    fn begin(mode: Mode, connections: u32, streams: u32) -> Self {
        let mut load = Self::ramp(mode, connections, streams);
        assert_eq!(load.step(), Some(Transition::Ramped));
        let Some(Transition::Begin(window)) = load.step() else {
            panic!("it was commanded to begin");
        };
        load.state.recorder.set_window(window);
        load.state.pace = Pace::new(&load.spec, window.begin_ns, (0, 1));
        load
    }

    /// All connections are open.
    fn ramp(mode: Mode, connections: u32, streams: u32) -> Self {
        let (spec, begin_ns) = (spec(mode, connections, streams), clock::monotonic_ns());
        let commands = Arc::new(CommandSlot::new().expect("a descriptor"));
        commands.send(WorkerCommand::Begin { at_ns: begin_ns });
        let mut state = WorkerState::new(&spec, (0, 1), commands, begin_ns);
        while let Some(number) = state.ramp.take(begin_ns) {
            assert!(state.arrived(number, 1), "for the first time");
        }
        Self { state, spec, begin_ns }
    }

    fn step(&mut self) -> Option<Transition> {
        self.state.step(&self.spec, self.begin_ns)
    }

    /// Milliseconds after the beginning.
    fn at(&self, ms: u64) -> u64 {
        self.begin_ns + ms * MS
    }

    fn send_due(&mut self, ms: u64) {
        let now_ns = self.at(ms);
        self.state.send_due(&self.spec, now_ns);
    }

    /// A free slot waits for its next request.
    fn wait(&mut self, slot: u32) -> Receiver<u64> {
        match self.state.next(slot, false) {
            Next::Later(due) => due,
            Next::Now(_) => panic!("nothing is to be sent now"),
        }
    }

    /// A free slot has a request at once.
    fn take(&mut self, slot: u32) -> u64 {
        match self.state.next(slot, false) {
            Next::Now(due_ns) => due_ns,
            Next::Later(_) => panic!("a closed loop does not wait"),
        }
    }

    /// Unsent requests, of all requests.
    fn unsent(&self) -> (u64, u64) {
        let stats = &self.state.recorder.stats;
        (stats.errors.count(ErrorClass::Unsent), stats.requests)
    }
}

fn well() -> ReceivedResponse {
    ReceivedResponse {
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
fn due_requests_go_to_the_slots_idle_longest() {
    let mut load = Load::begin(OPEN, 3, 1);
    let [mut last, mut first, mut second] = [2, 0, 1].map(|slot| load.wait(slot));
    load.send_due(1);
    assert_eq!(last.try_recv(), Ok(load.at(0)), "it came first");
    assert_eq!(first.try_recv(), Ok(load.at(1)));
    assert_eq!(second.try_recv(), Err(TryRecvError::Empty), "nothing else is due");
    assert_eq!(load.state.in_flight, 2);
    load.send_due(2);
    assert_eq!(second.try_recv(), Ok(load.at(2)));
}

#[test]
fn unsent_request_goes_first_and_keeps_its_due_time() {
    let mut load = Load::begin(OPEN, 3, 1);
    let mut given = load.wait(0);
    load.send_due(0);
    let due_ns = given.try_recv().expect("due at the beginning");
    assert!(load.state.sending(0, due_ns));
    load.state.return_request(0);
    load.state.gone(0);
    assert_eq!(load.state.in_flight, 0);
    let (mut next, mut one_more) = (load.wait(1), load.wait(2));
    load.send_due(1);
    assert_eq!(next.try_recv(), Ok(load.at(0)), "the one that came back");
    assert_eq!(one_more.try_recv(), Ok(load.at(1)));
}

#[test]
fn ended_slot_gets_no_request() {
    let mut load = Load::begin(OPEN, 3, 1);
    let mut of_lost_connection = load.wait(0);
    load.state.gone(0);
    drop(load.wait(1));
    let mut alive = load.wait(2);
    load.send_due(0);
    assert_eq!(of_lost_connection.try_recv(), Err(TryRecvError::Closed));
    assert_eq!(alive.try_recv(), Ok(load.at(0)));
    assert_eq!((load.state.in_flight, load.state.open_count()), (1, 2));
}

#[test]
fn unsustainable_rate_ends_the_window() {
    let mut load = Load::begin(OPEN, 1, 1);
    load.send_due(1_000);
    assert!(load.state.run_state.window().is_some(), "a response may take that long");
    load.send_due(1_001);
    assert!(load.state.recorder.stats.is_overloaded && load.state.run_state.window().is_none());
    assert_eq!(load.unsent(), (1_001, 1_001), "what was due before the cut");
    let mut too_late = load.wait(0);
    load.send_due(1_002);
    assert_eq!(
        too_late.try_recv(),
        Err(TryRecvError::Empty),
        "nothing is sent any more"
    );
    load.step();
    assert!(load.state.run_state.is_over(), "nothing is under way");
}

#[test]
fn request_returned_during_the_drain_is_unsent() {
    let mut load = Load::begin(OPEN, 1, 1);
    let mut given = load.wait(0);
    load.send_due(0);
    let due_ns = given.try_recv().expect("due at the beginning");
    assert!(load.state.sending(0, due_ns));
    let end_ns = load.begin_ns + DURATION_NS;
    load.state.end_load(&load.spec, end_ns, false);
    load.state.return_request(0);
    load.state.close(end_ns);
    assert_eq!(load.unsent(), (10_000, 10_000), "every one that was due");
}

#[test]
fn connections_are_open_after_their_first_response() {
    let mut load = Load::ramp(CLOSED, 1, 1);
    load.state.begin_first_request();
    assert_eq!(
        (load.step(), load.state.in_flight),
        (None, 1),
        "it waits for the response"
    );
    assert!(load.state.sending(0, load.begin_ns));
    load.state.response_complete(0, &well());
    load.state.end_first_request();
    assert_eq!((load.step(), load.state.in_flight), (Some(Transition::Ramped), 0));
    assert_eq!(load.state.recorder.stats.requests, 0, "it does not count");
}

#[test]
fn nothing_is_in_flight_when_every_request_has_ended() {
    type End = (&'static str, fn(&mut WorkerState, u32), u64);
    let ends: [End; 4] = [
        ("completed", |state, slot| state.response_complete(slot, &well()), 2),
        ("failed", |state, slot| state.failed(slot, &reset()), 2),
        ("given back", WorkerState::return_request, 0),
        ("closed", |state, _| state.close(clock::monotonic_ns()), 2),
    ];
    for (name, end, requests) in ends {
        let mut load = Load::begin(CLOSED, 2, 2);
        // Both streams of the second connection.
        for slot in load.state.slots_of(1) {
            let due_ns = load.take(slot);
            assert!(load.state.sending(slot, due_ns), "{name}");
        }
        assert_eq!(load.state.in_flight, 2, "{name}");
        for slot in load.state.slots_of(1) {
            end(&mut load.state, slot);
            end(&mut load.state, slot);
        }
        assert_eq!(load.state.in_flight, 0, "{name}");
        assert_eq!(load.state.recorder.stats.requests, requests, "{name}");
    }
}

#[test]
fn closed_loop_sends_nothing_after_the_window() {
    let mut load = Load::begin(CLOSED, 2, 1);
    let due_ns = load.take(0);
    // The window ends meanwhile.
    load.state.run_state.cut(load.begin_ns);
    assert!(!load.state.sending(0, due_ns));
    assert_eq!(load.state.in_flight, 0);
    let mut never = load.wait(1);
    load.send_due(1);
    assert_eq!(never.try_recv(), Err(TryRecvError::Empty));
    load.state.close(clock::monotonic_ns());
    assert_eq!(load.state.recorder.stats.requests, 0);
}

#[test]
fn think_time_precedes_the_next_request() {
    let mode = Mode::Closed {
        pipeline: 1,
        think_ns: 5_000 * MS,
    };
    let mut load = Load::begin(mode, 1, 1);
    let mut due = match load.state.next(0, true) {
        Next::Later(due) => due,
        Next::Now(_) => panic!("a pause comes first"),
    };
    load.send_due(4_999);
    assert_eq!(due.try_recv(), Err(TryRecvError::Empty));
    // The pause began a moment after the load.
    load.send_due(9_999);
    assert_eq!((due.try_recv(), load.state.in_flight), (Ok(load.at(9_999)), 1));
}
