//! Connections whose data run on one clock: the test of a client, or what a server does for one
//! client at a time.
//!
//! A session has a descriptor that becomes readable when it has something to do, and a deadline.
//! Its owner calls [`Session::advance`] then and gets back what only an owner can do.

mod final_report;
mod totals;

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_model::event::ClockCheck;
use linerate_model::spec::LocalOptions;
use linerate_model::workload::Start;
use linerate_model::{
    Direction, Event, Failure, FailureKind, StreamId, StreamRole, Summary, TestSpec, Transport,
};
use linerate_sys::error::io_text;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{OsError, clock, socket};

use super::burst_reports;
use super::connection::Connection;
use super::machine::{Action, Machine};
use super::sockets::{self, DeviceCache};
use crate::data::quota::Quota;
use crate::data::run::{RunEvent, RunSettings, TestRun};
use crate::reporter::Reporter;
use crate::wait::time_until;
use final_report::final_report;

/// Data on one clock.
pub(super) struct Session {
    is_client: bool,
    pub spec: TestSpec,
    pub run: TestRun,
    pub connections: Vec<Connection>,
    epoll: Epoll,
    next_id: u32,
    devices: DeviceCache,
    /// Nothing starts before this.
    not_before: Option<Instant>,
    /// Where the clock begins, if that is later than the data.
    clock_start_ns: Option<u64>,
    has_data: bool,
    pub summary: Option<Summary>,
    failure: Option<Failure>,
}

/// A request to the owner of a session.
pub(super) enum Request {
    /// Open a connection or flow to this port of the client.
    ConnectBack {
        port: u16,
        /// Data to send; absent where they follow from the test of the session.
        spec: Option<Box<TestSpec>>,
    },
}

const NOTICE: u64 = u64::MAX;
/// Poll period for the first datagrams.
const POLL: Duration = Duration::from_millis(2);
/// Poll period for bursts that have arrived.
const BURST_POLL: Duration = Duration::from_millis(20);
/// Turns in a row, so that a busy session leaves others their turn.
const TURNS_MAX: u32 = 64;

impl Session {
    /// With `decides_end` this end keeps the time of the test.
    pub(super) fn new(
        is_client: bool,
        spec: TestSpec,
        local: &LocalOptions,
        decides_end: bool,
    ) -> Result<Self, OsError> {
        let run = TestRun::new(RunSettings {
            spec: spec.clone(),
            local: local.clone(),
            decides_end,
            independent: true,
            keeps_grid: true,
            ..RunSettings::default()
        })?;
        let epoll = Epoll::new()?;
        epoll.add(run.notice_fd(), NOTICE, Interest::READ)?;

        Ok(Self {
            is_client,
            spec,
            run,
            connections: Vec::new(),
            epoll,
            next_id: 0,
            devices: DeviceCache::default(),
            not_before: None,
            clock_start_ns: None,
            has_data: false,
            summary: None,
            failure: None,
        })
    }

    /// See [`TestRun::limit`].
    pub(super) fn limit(&mut self, quota: Quota) {
        self.run.limit(quota);
    }

    /// Its streams are numbered behind those of `other`, which is reported by the same writer.
    pub(super) fn following(mut self, other: &Self) -> Self {
        self.next_id = other.next_id;
        self
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    /// Nothing starts before this time.
    pub(super) fn wait_until(&mut self, start: Start) {
        let wait = match start {
            Start::Now => return,
            Start::After(time) => time,
            Start::At(time) => time.saturating_sub(Duration::from_nanos(clock::unix_ns())),
            Start::AtMonotonic(time) => {
                time.saturating_sub(Duration::from_nanos(clock::monotonic_ns()))
            }
        };
        self.not_before = Instant::now().checked_add(wait);
    }

    /// The clock of this session shows 0 at this time, whatever arrives before.
    pub(super) fn count_from(&mut self, start_ns: u64) {
        self.clock_start_ns = Some(start_ns);
    }

    /// Adds a connection and announces its streams, unless the peer has to identify itself first.
    pub(super) fn add(&mut self, mut connection: Connection, reporter: &mut Reporter<'_>) {
        connection.create_directions(self.is_client, self.next_id);
        self.next_id += connection.directions().count() as u32;
        // The line of the report names the peer's version, which its acknowledgement has.
        let waits_for_ack =
            self.is_client && connection.spec.workload.detect_peer && !connection.is_back;
        if !waits_for_ack {
            announce(&mut connection, &mut self.devices, reporter);
        }

        self.connections.push(connection);
    }

    /// All connections have finished.
    pub(super) fn is_over(&self) -> bool {
        self.connections
            .iter()
            .all(|connection| connection.closed.is_some())
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let open = || self.connections.iter().filter(|c| c.closed.is_none());
        let machines = open().filter_map(|c| c.machine.deadline());
        // Polled: datagrams of a flow are counted by its worker, which has no event for this loop.
        let look = open()
            .any(|c| c.machine.awaits_data())
            .then(|| Instant::now() + POLL);
        let run = self.run.next_deadline_ns();
        let run = run.map(|at_ns| Instant::now() + time_until(at_ns));
        let bursts = open()
            .any(|c| c.bursts().is_some())
            .then(|| Instant::now() + BURST_POLL);
        let start = self.not_before.filter(|_| !self.run.has_started());

        machines
            .chain(look)
            .chain(run)
            .chain(bursts)
            .chain(start)
            .min()
    }

    /// Does what is to be done now.
    pub(super) fn advance(&mut self, reporter: &mut Reporter<'_>) -> Vec<Request> {
        let mut requests = Vec::new();
        // An action may lead to an event of another connection of the session; bounded, so that
        // other sessions get their turn.
        for _ in 0..TURNS_MAX {
            let events = self.epoll.ready();
            for event in &events {
                if let Some(connection) = self
                    .connections
                    .get_mut(usize::try_from(event.token).unwrap_or(usize::MAX))
                {
                    connection.on_ready();
                }
            }

            self.count_datagrams();
            self.on_time();
            self.end_back_flows();
            burst_reports::report(&self.connections, &self.run, reporter);

            let happened = self.on_run(reporter);
            let done = self.execute_actions(reporter, &mut requests);
            let started = self.start_ready(reporter);

            for (token, connection) in self.connections.iter_mut().enumerate() {
                connection.watch(&self.epoll, token as u64);
            }

            if !(happened || done || started) && events.iter().all(|e| e.token == NOTICE) {
                break;
            }
        }

        requests
    }

    /// A flow whose data go through a worker is alive as long as they do.
    fn count_datagrams(&mut self) {
        for connection in self.connections.iter_mut().filter(|c| c.closed.is_none()) {
            if connection.spec.transport != Transport::Udp {
                continue;
            }

            let Some(direction) = &connection.receiver else {
                continue;
            };
            let datagrams = self.run.counts(direction.stream.id).blocks;
            let unpublished = datagrams.saturating_sub(connection.seen_datagrams);

            connection.seen_datagrams = datagrams;
            (0..unpublished.min(2)).for_each(|_| connection.machine.data_arrived());
        }
    }

    /// Data towards a client that is gone end.
    fn end_back_flows(&mut self) {
        let is_gone = |c: &Connection| !c.is_back && matches!(c.closed, Some(Err(_)));
        let is_udp = self.spec.transport == Transport::Udp;
        if self.is_client || !is_udp || !self.connections.iter().any(is_gone) {
            return;
        }

        for connection in self
            .connections
            .iter_mut()
            .filter(|c| c.is_back && c.closed.is_none())
        {
            connection.machine.failed("the client is gone");
        }
    }

    fn on_time(&mut self) {
        let now = Instant::now();
        for connection in self.connections.iter_mut().filter(|c| c.closed.is_none()) {
            if connection.machine.deadline().is_some_and(|t| t <= now) {
                connection.machine.on_time();
            }
        }
    }

    fn on_run(&mut self, reporter: &mut Reporter<'_>) -> bool {
        let events = self.run.poll(clock::monotonic_ns(), reporter);
        let happened = !events.is_empty();

        for event in events {
            match event {
                RunEvent::EndReached => self.run.stop_senders(),
                RunEvent::Stopped => self.senders_done(),
                RunEvent::StreamEnded { id, error } => self.on_stream_end(id, error.as_ref()),
                RunEvent::Failed(_) => {}
            }
        }

        happened
    }

    fn senders_done(&mut self) {
        let ids: Vec<StreamId> = self
            .connections
            .iter()
            .filter_map(|c| {
                c.sender
                    .as_ref()
                    .filter(|p| p.started_ns.is_some() && !p.is_over)
            })
            .map(|p| p.stream.id)
            .collect();
        ids.into_iter().for_each(|id| self.on_stream_end(id, None));
    }

    fn on_stream_end(&mut self, id: StreamId, error: Option<&std::io::Error>) {
        let counts = self.run.counts(id);
        let of_stream = |c: &&mut Connection| c.directions().any(|p| p.stream.id == id);
        let Some(connection) = self.connections.iter_mut().find(of_stream) else {
            return;
        };
        let Some(direction) = connection
            .directions_mut()
            .find(|p| p.stream.id == id && !p.is_over)
        else {
            return;
        };
        direction.is_over = true;

        let role = direction.stream.role;
        let is_udp = connection.spec.transport == Transport::Udp;
        match (role, error) {
            // The peer's port is closed; the end of the flow reports it.
            (StreamRole::Sender, Some(error)) if !is_udp => {
                connection
                    .machine
                    .failed(&format!("write failed: {}", io_text(error)));
            }
            (StreamRole::Receiver, Some(error)) => {
                connection
                    .machine
                    .failed(&format!("recv failed: {}", io_text(error)));
            }
            (StreamRole::Sender, _) => {
                if is_udp {
                    // The datagram that ends the flow is one of it; the exchange that follows is
                    // not.
                    self.run
                        .count_last(id, u64::from(connection.spec.block_len_bytes));
                    self.run.end_stream(id);
                }

                if matches!(connection.machine, Machine::FlowServer(_)) && error.is_none() {
                    connection.send_last(counts.packets);
                }

                connection.machine.sending_done(counts.packets);
            }
            (StreamRole::Receiver, None) if is_udp => {
                self.run.end_stream(id);
                let report = final_report(connection, counts.bytes);
                connection.machine.last_arrived(report);
            }
            (StreamRole::Receiver, None) => {
                // Who answers requests has sent all when there are no more.
                if connection.is_bouncing() {
                    connection.machine.sending_done(0);
                }
                connection.machine.eof();
            }
        }
    }

    /// Executes the actions of the machines; true if there were any.
    fn execute_actions(
        &mut self,
        reporter: &mut Reporter<'_>,
        requests: &mut Vec<Request>,
    ) -> bool {
        let mut any = false;
        for connection in &mut self.connections {
            while let Some(action) = connection.machine.next() {
                any = true;
                if connection.closed.is_some() {
                    continue;
                }

                match action {
                    Action::Accepted(test) => connection.accept(*test),
                    Action::Send(bytes) => connection.send(&bytes, false),
                    Action::SendPayload(bytes) => connection.send(&bytes, true),
                    Action::StartSending => connection.want_sending(),
                    Action::StartReceiving { header_bytes } => {
                        connection.want_receiving(header_bytes);
                    }
                    Action::StartBouncing { received } => connection.want_bouncing(received),
                    Action::ConnectBack { port, spec } => {
                        requests.push(Request::ConnectBack { port, spec });
                    }
                    Action::FinishSending => {
                        // A peer that is gone needs no good-bye.
                        let _ = socket::shutdown_write(connection.socket());
                    }
                    Action::StopReceiving => {}
                    Action::ServerAck(ack) => {
                        connection.peer_version = Some(ack.version.to_string());
                        announce(connection, &mut self.devices, reporter);
                    }
                    Action::ClockCheck(check) => {
                        let check = ClockCheck {
                            number: connection.number,
                            request_ns: check.send_ns,
                            response_ns: check.ack_ns,
                        };
                        reporter.emit(&Event::ClockCheck(check));
                    }
                    Action::Report(report) => connection.report = Some(*report),
                    Action::NoReport => reporter.emit(&Event::Warning(format!(
                        "[{:3}] WARNING: did not receive ack of last datagram after 10 tries.",
                        connection.number
                    ))),
                    Action::ReportUnconfirmed => reporter.emit(&Event::Warning(format!(
                        "[{:3}] WARNING: ack of last datagram failed.",
                        connection.number
                    ))),
                    Action::Close(outcome) => {
                        connection
                            .directions()
                            .for_each(|direction| self.run.end_stream(direction.stream.id));
                        if let Err(failure) = &outcome
                            && failure.kind != FailureKind::Interrupted
                        {
                            reporter.emit(&Event::Warning(failure.message.clone()));
                            self.failure.get_or_insert_with(|| failure.clone());
                        }

                        connection.close(outcome);
                    }
                }
            }
        }

        any
    }

    /// Starts the data of all connections that are ready. Those of a client begin together.
    fn start_ready(&mut self, reporter: &mut Reporter<'_>) -> bool {
        let is_early = self.not_before.is_some_and(|t| Instant::now() < t);
        let is_first = !self.run.has_started();
        let open = || self.connections.iter().filter(|c| c.closed.is_none());
        // Streams of `-P` begin at one instant, as in iperf 2: a first stream that begins alone
        // would have the path for itself.
        let is_together = !self.is_client || !is_first || open().all(Connection::is_ready);
        if is_early || !is_together || !open().any(Connection::is_ready) {
            return false;
        }

        let now_ns = clock::monotonic_ns();
        if is_first {
            let start_ns = self
                .clock_start_ns
                .map_or(now_ns, |start_ns| start_ns.max(now_ns));
            // A sender's schedule begins now: it has nothing to catch up with.
            let only_receives = self.spec.direction == Direction::Forward;
            let first_datagrams =
                open().filter_map(|c| c.early.first().map(|(_, arrived_ns)| *arrived_ns));
            let began_ns = first_datagrams.min().filter(|_| only_receives);

            // A period of requests begins with the connection, and so do intervals; a header is
            // read later.
            let accepted_ns = open()
                .filter_map(|c| c.accepted_ns.filter(|_| c.is_bouncing()))
                .min();
            let start_ns = began_ns.or(accepted_ns).unwrap_or(start_ns);
            self.run.start_clock(start_ns);
            reporter.emit(&Event::TestStarted {
                at_monotonic_ns: Some(start_ns),
            });
        }

        let mut joined = Vec::new();
        for connection in self
            .connections
            .iter_mut()
            .filter(|c| c.closed.is_none() && c.is_ready())
        {
            let fd = Arc::clone(&connection.fd);
            for (stream, stats, build_pump, moved) in connection.start(now_ns) {
                if connection.is_bouncing()
                    && let (Some(start_ns), Some(interval)) =
                        (self.run.start_ns(), self.run.interval())
                {
                    stats.set_interval_ends(start_ns, interval);
                }

                joined.push(stream.id);
                self.run
                    .join(stream, Arc::clone(&fd), stats, build_pump, moved);
            }
        }

        let outcome = if self.has_data {
            joined
                .into_iter()
                .try_for_each(|id| self.run.start_stream(id))
        } else {
            self.has_data = true;
            self.run.start_data()
        };
        if let Err(error) = outcome {
            let text = error.to_string();
            self.connections
                .iter_mut()
                .for_each(|c| c.machine.failed(&text));
        }

        true
    }

    /// Ends the test: senders finish as if their time had ended.
    pub(super) fn interrupt(&mut self) {
        self.run.stop_senders();
        let without_sender =
            |c: &&mut Connection| c.sender.as_ref().is_none_or(|p| p.started_ns.is_none());
        self.connections
            .iter_mut()
            .filter(without_sender)
            .for_each(|c| c.machine.interrupted());
    }

    /// Ends all connections at once.
    pub(super) fn terminate(&mut self) {
        self.connections
            .iter_mut()
            .for_each(|c| c.machine.interrupted());
        self.connections
            .iter_mut()
            .filter(|c| c.closed.is_none())
            .for_each(|c| c.machine.failed("the test was ended"));
    }
}

/// Announces the streams of a connection, once.
fn announce(connection: &mut Connection, devices: &mut DeviceCache, reporter: &mut Reporter<'_>) {
    if connection.is_open {
        return;
    }

    connection.is_open = true;
    let mut facts = sockets::stream_facts(
        connection.socket(),
        connection.number,
        connection.spec.transport,
    );
    facts.connect_us = connection.connect_us;
    facts.peer_version.clone_from(&connection.peer_version);
    facts.is_connected_back = connection.is_back;
    facts.device = devices.device_of(connection.local.ip());

    for direction in connection.directions() {
        let mut stream = direction.stream.clone();
        stream.facts = Some(Box::new(facts.clone()));
        reporter.emit(&Event::StreamOpened(stream));
    }
}
