//! Goal: a worker assigns every due request exactly once, and none is in flight at the end.
//! Method: workers at the beginning of a load, with a transport that records what it is to send.

use std::sync::mpsc::{Receiver, channel};

use linerate_model::http::{Arrivals, Ports};

use super::*;
use crate::load::run_state::WorkerCommand;
use crate::load::stats::LoadStats;
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

fn spec(mode: Mode, connections: u32) -> LoadSpec {
    LoadSpec {
        destinations: Vec::new(),
        sources: Vec::new(),
        ports: Ports::Auto,
        request: Vec::new(),
        is_head: false,
        protocol: Protocol::default(),
        streams: 1,
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

/// The slots that are free, and the requests they were given with their due times.
#[derive(Default)]
struct Recording {
    free: Vec<u32>,
    assigned: Vec<(u32, u64)>,
}

impl Transport for Recording {
    fn assign(&mut self, slot: u32, due_ns: u64, worker: &mut LoadWorker) -> bool {
        let is_free = self.free.contains(&slot);
        if is_free {
            self.free.retain(|other| *other != slot);
            self.assigned.push((slot, due_ns));
            worker.begin(1);
        }
        is_free
    }
}

/// A worker whose load began just now.
struct Load {
    worker: LoadWorker,
    transport: Recording,
    messages: Receiver<Message>,
    begin_ns: u64,
}

impl Load {
    fn begin(mode: Mode, connections: u32) -> Self {
        let mut load = Self::ramp(&spec(mode, connections));
        // The end of the ramp, then the beginning.
        for _ in 0..2 {
            load.worker.advance_run(load.begin_ns, &mut load.transport);
        }

        assert!(
            load.worker.run_state.window().is_some(),
            "it was commanded to begin"
        );
        load
    }

    /// All connections are open.
    fn ramp(spec: &LoadSpec) -> Self {
        let begin_ns = clock::monotonic_ns();
        let commands = Arc::new(CommandSlot::new().expect("a descriptor"));
        commands.send(WorkerCommand::Begin { at_ns: begin_ns });

        let (reports, messages) = channel();
        let mut worker = LoadWorker::new(Arc::new(spec.clone()), (0, 1), commands, reports);
        while let Some(number) = worker.ramp.take(clock::monotonic_ns()) {
            assert_eq!(worker.arrived(number, 1), spec.sends_first_request);
        }

        Self {
            worker,
            transport: Recording::default(),
            messages,
            begin_ns,
        }
    }

    /// Milliseconds after the beginning.
    fn at(&self, ms: u64) -> u64 {
        self.begin_ns + ms * MS
    }

    fn release(&mut self, slots: &[u32]) {
        self.transport.free.extend(slots);
        for slot in slots {
            self.worker.release(*slot, false, self.begin_ns);
        }
    }

    /// Requests assigned at this time.
    fn send_due(&mut self, ms: u64) -> Vec<(u32, u64)> {
        self.worker.send_due(self.at(ms), &mut self.transport);
        std::mem::take(&mut self.transport.assigned)
    }

    /// Sends the only request that is due.
    fn send_one(&mut self) -> Sent {
        self.release(&[0]);
        let assigned = self.send_due(0);
        assert_eq!(assigned, [(0, self.begin_ns)]);
        self.worker
            .sending(self.begin_ns)
            .expect("within the window")
    }

    /// The statistics at the end.
    fn finish(mut self, outstanding: impl IntoIterator<Item = Sent>) -> LoadStats {
        self.worker.finish(outstanding);
        assert_eq!(self.worker.in_flight, 0);

        match self.messages.try_iter().last() {
            Some(Message::Finished(stats)) => *stats,
            other => panic!("not the statistics: {other:?}"),
        }
    }
}

fn ok() -> ReceivedResponse {
    ReceivedResponse {
        status: 200,
        keeps_alive: true,
        has_retry_after: false,
        head_bytes: None,
        body_bytes: 1,
        hash: 0,
    }
}

#[test]
fn due_requests_go_to_the_slots_idle_longest() {
    let mut load = Load::begin(OPEN, 3);
    load.release(&[2, 0, 1]);
    assert_eq!(load.send_due(1), [(2, load.at(0)), (0, load.at(1))]);
    assert_eq!(load.worker.in_flight, 2);
    assert_eq!(load.send_due(2), [(1, load.at(2))]);
}

#[test]
fn unsent_request_goes_first_and_keeps_its_due_time() {
    let mut load = Load::begin(OPEN, 3);
    let sent = load.send_one();
    load.worker.return_request(0, sent);
    load.worker.lose(0, Loss::Unannounced);
    assert_eq!(
        (load.worker.in_flight, load.worker.count(|one| one.is_open)),
        (0, 2)
    );
    load.release(&[1, 2]);
    assert_eq!(load.send_due(1), [(1, load.at(0)), (2, load.at(1))]);
}

#[test]
fn ended_slot_gets_no_request() {
    let mut load = Load::begin(OPEN, 3);
    load.release(&[0, 1, 2]);
    load.transport.free = vec![2];
    assert_eq!(load.send_due(0), [(2, load.at(0))]);
    assert_eq!(load.worker.in_flight, 1);
}

#[test]
fn unsustainable_rate_ends_the_window() {
    let mut load = Load::begin(OPEN, 1);
    load.send_due(1_000);
    assert!(
        load.worker.run_state.window().is_some(),
        "a response may take that long"
    );
    load.send_due(1_001);
    assert!(load.worker.recorder.stats.is_overloaded && load.worker.run_state.window().is_none());
    load.release(&[0]);
    assert_eq!(load.send_due(1_002), [], "nothing is sent any more");
    load.worker.advance_run(load.at(1_002), &mut load.transport);
    assert!(load.worker.run_state.is_over(), "nothing is in flight");

    let stats = load.finish([]);
    let unsent = stats.errors.count(ErrorClass::Unsent);
    assert_eq!(
        (unsent, stats.requests),
        (1_001, 1_001),
        "what was due before the cut"
    );
}

#[test]
fn request_returned_during_the_drain_is_unsent() {
    let mut load = Load::begin(OPEN, 1);
    let sent = load.send_one();
    load.worker
        .advance_run(load.begin_ns + DURATION_NS, &mut load.transport);
    load.worker.return_request(0, sent);

    let stats = load.finish([]);
    let unsent = stats.errors.count(ErrorClass::Unsent);
    assert_eq!(
        (unsent, stats.requests),
        (10_000, 10_000),
        "every one that was due"
    );
}

#[test]
fn connections_are_open_after_their_first_response() {
    let spec = LoadSpec {
        sends_first_request: true,
        ..spec(CLOSED, 1)
    };
    let mut load = Load::ramp(&spec);
    load.worker.begin(1);
    assert_eq!(
        load.worker.step(load.begin_ns),
        None,
        "it waits for the response"
    );

    let sent = load.worker.sending(load.begin_ns).expect("before the load");
    load.worker.response_complete(0, sent, &ok());
    assert_eq!(load.worker.step(load.begin_ns), Some(Transition::Ramped));

    let requests = load.worker.recorder.stats.requests;
    assert_eq!(
        (load.worker.in_flight, requests),
        (0, 0),
        "it does not count"
    );
}

#[test]
fn first_request_without_a_response_is_a_failed_connection_that_is_not_answered() {
    let mode = Mode::Idle { heartbeat_ns: None };
    let spec = LoadSpec {
        sends_first_request: true,
        ..spec(mode, 2)
    };
    let mut load = Load::ramp(&spec);
    let sent = [0, 1].map(|number| {
        (
            number,
            load.worker.sending(load.begin_ns).expect("before the load"),
        )
    });

    load.worker.begin(2);
    load.worker.response_complete(0, sent[0].1, &ok());
    load.worker
        .failed(1, [sent[1].1], ErrorClass::Timeout, "no response in time");
    load.worker.lose(1, Loss::Unanswered);

    // The end of the ramp, the beginning, and the end of the window.
    for at_ns in [load.begin_ns, load.begin_ns, load.begin_ns + DURATION_NS] {
        load.worker.advance_run(at_ns, &mut load.transport);
    }

    let stats = load.finish([]);
    let connections = stats.connections;
    assert_eq!(
        (
            connections.opened,
            connections.open_at_end,
            connections.answered_at_end
        ),
        (1, 1, Some(1))
    );
    assert_eq!(
        (stats.errors.count(ErrorClass::Timeout), stats.requests),
        (1, 0)
    );
}

#[test]
fn every_end_of_a_request_is_counted_once() {
    type End = (
        &'static str,
        fn(&mut LoadWorker, Sent) -> Option<Sent>,
        (u64, u64, u64),
    );

    let ends: [End; 4] = [
        (
            "completed",
            |worker, sent| (worker.response_complete(0, sent, &ok()), None).1,
            (1, 1, 0),
        ),
        (
            "failed",
            |worker, sent| (worker.failed(0, [sent], ErrorClass::Eof, "closed"), None).1,
            (1, 0, 1),
        ),
        (
            "returned",
            |worker, sent| (worker.return_request(0, sent), None).1,
            (0, 0, 0),
        ),
        ("without a response", |_, sent| Some(sent), (1, 0, 1)),
    ];
    for (name, end, expected) in ends {
        let mut load = Load::begin(CLOSED, 1);
        load.release(&[0]);
        assert_eq!(load.send_due(0).len(), 1, "{name}");

        let sent = load
            .worker
            .sending(load.begin_ns)
            .expect("within the window");
        let outstanding = end(&mut load.worker, sent);
        let stats = load.finish(outstanding);
        assert_eq!(
            (stats.requests, stats.ok, stats.errors.total()),
            expected,
            "{name}"
        );
    }
}

#[test]
fn closed_loop_sends_at_once_and_nothing_after_the_window() {
    let mut load = Load::begin(CLOSED, 2);
    assert!(load.worker.sends_at_once(load.begin_ns));
    load.release(&[0]);
    assert_eq!(load.send_due(0).len(), 1);

    // The window ends before the request is sent.
    load.worker.run_state.cut(load.begin_ns);
    assert_eq!(load.worker.sending(load.begin_ns), None);
    load.worker.end(1);
    assert!(!load.worker.sends_at_once(load.begin_ns));
    load.release(&[1]);
    assert_eq!(load.send_due(1), []);
    assert_eq!(load.finish([]).requests, 0);
}

#[test]
fn think_time_precedes_the_next_request() {
    let mode = Mode::Closed {
        pipeline: 1,
        think_ns: 5_000 * MS,
    };
    let mut load = Load::begin(mode, 1);
    load.transport.free = vec![0];
    load.worker.release(0, true, load.begin_ns);
    assert_eq!(load.send_due(4_999), []);
    assert_eq!(load.send_due(5_000), [(0, load.at(5_000))]);
}

#[test]
fn backlog_is_recorded_and_its_requests_are_starved() {
    let mut load = Load::begin(OPEN, 1);
    load.send_due(5);

    let second = load
        .worker
        .recorder
        .last_second()
        .expect("there is a window");
    assert_eq!(second.backlog_ns, 5 * MS, "age of the oldest");

    for (ms, is_starved) in [(4, true), (5, false)] {
        let sent = load.worker.sending(load.at(ms)).expect("within the window");
        assert_eq!(sent.is_starved, is_starved, "due after {ms} ms");
    }
}
