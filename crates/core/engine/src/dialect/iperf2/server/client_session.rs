//! Concurrent connections of one client address, and their report.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use linerate_iperf2::wire::Header;
use linerate_model::service::RefusalReason;
use linerate_model::spec::LocalOptions;
use linerate_model::workload::{Pairing, Shape, Start, Workload};
use linerate_model::{Direction, Event, Failure, Summary, TestSpec, Transport, policy};
use linerate_sys::{OsError, clock};

use super::connect_back::{Dial, Progress};
use crate::data::quota::Quota;
use crate::dialect::iperf2::connection::Connection;
use crate::dialect::iperf2::machine::Machine;
use crate::dialect::iperf2::session::{Request, Session};
use crate::dialect::iperf2::sockets;
use crate::error::failure;
use crate::reporter::Reporter;
use crate::server::{self, ByteTotals, Liveness, Session as _};

/// A client's connections.
pub(super) struct ClientSession {
    pub peer: SocketAddr,
    pub reporter: Reporter<'static>,
    header: Option<Header>,
    accepted: Instant,
    /// Longest time of a regular test of this kind.
    until: Option<Instant>,
    local: LocalOptions,
    quota: Quota,
    pub main: Session,
    /// Test that follows the end of the session.
    pub back: Option<Session>,
    dials: Vec<Dial>,
    liveness: Option<Liveness>,
    failure: Option<Failure>,
}

/// Time in which the connections of one client's test arrive.
const JOIN_PERIOD: Duration = Duration::from_secs(5);
/// Time a test may take beyond twice what was announced: it may run one way and then the other.
const OVERTIME: Duration = Duration::from_secs(30);
/// Clients plan no further ahead.
const START_AHEAD_MAX: Duration = Duration::from_secs(3600);
/// Requests may be far apart.
const BOUNCE_TIMEOUT: Duration = Duration::from_secs(60);

impl ClientSession {
    pub(super) fn new(
        peer: SocketAddr,
        reporter: Reporter<'static>,
        header: Option<Header>,
        spec: &TestSpec,
        local: &LocalOptions,
        liveness: policy::Liveness,
    ) -> Result<Self, OsError> {
        // A test in which only the client sends is ended by the client.
        let decides_end = spec.direction != Direction::Forward && !is_afterwards(spec);
        let wait = wait_for_start(spec);
        let overtime = OVERTIME.saturating_add(wait);
        let begin_ns = clock::monotonic_ns().saturating_add(clock::as_ns(wait));
        let liveness = match spec.workload.shape {
            Shape::BounceBack(_) => Liveness::new(liveness.at_least(BOUNCE_TIMEOUT), begin_ns),
            _ => Liveness::of_test(spec, liveness, begin_ns),
        };
        let mut main = Session::new(false, spec.clone(), local, decides_end)?;

        match spec.direction {
            // It is read from at once, so that a client that gives up is noticed.
            Direction::Forward => main.count_from(begin_ns),
            Direction::Reverse | Direction::Bidirectional => main.wait_until(Start::After(wait)),
        }

        Ok(Self {
            peer,
            reporter,
            header,
            accepted: Instant::now(),
            until: spec.end.duration().and_then(|time| {
                Instant::now().checked_add(time.saturating_mul(2).saturating_add(overtime))
            }),
            local: local.clone(),
            quota: Quota::default(),
            main,
            back: None,
            dials: Vec::new(),
            // Flows have a limit of their own on silence.
            liveness: (spec.transport != Transport::Udp).then_some(liveness),
            failure: None,
        })
    }

    /// Keeps everything of this client within `quota`. To be called before it has connections.
    pub(super) fn limit(&mut self, quota: Quota) {
        self.main.limit(quota.clone());
        self.quota = quota;
    }

    /// One more connection of the same test.
    pub(super) fn expects(
        &self,
        peer: SocketAddr,
        spec: &TestSpec,
        header: Option<&Header>,
    ) -> bool {
        let (Some(own), Some(header)) = (&self.header, header) else {
            return false;
        };
        let opened_by_client = self
            .main
            .connections
            .iter()
            .filter(|connection| !connection.is_back);
        let here = opened_by_client.count();
        let limit = header.streams as usize;

        self.peer.ip() == peer.ip()
            && self.main.spec.transport == spec.transport
            && here < limit
            && (own.mode, own.streams, own.block_len_bytes, own.trip_times)
                == (
                    header.mode,
                    header.streams,
                    header.block_len_bytes,
                    header.trip_times,
                )
            && self.accepted.elapsed() < JOIN_PERIOD
            && !self.main.is_over()
    }

    pub(super) fn add(&mut self, connection: Connection) {
        self.main.add(connection, &mut self.reporter);
    }

    pub(super) fn has(&self, remote: SocketAddr) -> bool {
        let mut connections = self.sessions().flat_map(|session| &session.connections);
        connections.any(|c| c.remote == remote && c.closed.is_none())
    }

    fn sessions(&self) -> impl Iterator<Item = &Session> {
        std::iter::once(&self.main).chain(&self.back)
    }

    pub(super) fn is_over(&self) -> bool {
        self.dials.is_empty() && self.sessions().all(Session::is_over)
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let dials = self.dials.iter().map(Dial::deadline);
        let life = self.liveness.map(|_| Liveness::next_check());

        self.sessions()
            .filter_map(Session::deadline)
            .chain(dials)
            .chain(life)
            .chain(self.until)
            .min()
    }

    /// Does what is to be done; `next_number` numbers connections back. True when a session was
    /// added.
    pub(super) fn advance(&mut self, next_number: &mut u32, is_place_wanted: bool) -> bool {
        let mut requests = self.main.advance(&mut self.reporter);
        if let Some(back) = &mut self.back {
            requests.extend(back.advance(&mut self.reporter));
        }

        for request in requests {
            let Request::ConnectBack { port, spec } = request;
            let spec = spec.map_or_else(|| self.back_spec(), |spec| *spec);
            let Some(first) = self.main.connections.first() else {
                continue;
            };
            let (mut local, mut remote) = (first.local, self.peer);
            local.set_port(0);
            remote.set_port(port);
            self.dials
                .push(Dial::new(*next_number, local, remote, spec));
            *next_number = next_number.saturating_add(1);
        }

        if self.main.is_over() && self.main.summary.is_none() && !self.awaits_connection() {
            self.finish_main();
        }

        self.check_liveness(is_place_wanted);
        let connections = self.connection_count();
        let has_new_session = self.advance_dials();

        if self.connection_count() > connections {
            // New connections have actions, and no event announces them.
            self.main.advance(&mut self.reporter);
            self.back
                .iter_mut()
                .for_each(|back| drop(back.advance(&mut self.reporter)));
        }

        has_new_session
    }

    /// A connection back is still to join the test, whose other data may have ended before.
    fn awaits_connection(&self) -> bool {
        !is_afterwards(&self.main.spec) && !self.dials.is_empty()
    }

    fn connection_count(&self) -> usize {
        self.sessions().map(|one| one.connections.len()).sum()
    }

    fn back_spec(&self) -> TestSpec {
        let mut test = self.main.spec.clone();
        test.direction = Direction::Forward;
        test.workload = Workload::default();
        test.workload.without_header = true;
        test
    }

    fn advance_dials(&mut self) -> bool {
        let mut is_new_session = false;
        for mut dial in std::mem::take(&mut self.dials) {
            match dial.advance() {
                Progress::Pending => self.dials.push(dial),
                Progress::Failed(text) => self
                    .reporter
                    .emit(&Event::Warning(format!("tcp connect failed: {text}"))),
                Progress::Connected(fd) => {
                    let socket = sockets::facts(std::os::fd::AsFd::as_fd(&fd), dial.spec.transport);
                    self.reporter.emit(&Event::ConnectingBack {
                        remote: dial.remote,
                        socket,
                    });

                    match self.connected_back(fd, dial) {
                        Ok(added) => is_new_session |= added,
                        Err(error) => self.reporter.emit(&Event::Warning(error.text())),
                    }
                }
            }
        }

        is_new_session
    }

    fn connected_back(&mut self, fd: std::os::fd::OwnedFd, dial: Dial) -> Result<bool, OsError> {
        let machine = Machine::client(&dial.spec, None, true);
        let mut connection = Connection::new(fd, machine, dial.number, dial.spec)?;
        connection.is_back = true;

        if !is_afterwards(&self.main.spec) {
            self.main.add(connection, &mut self.reporter);
            return Ok(false);
        }

        let is_new = self.back.is_none();
        let back = match &mut self.back {
            Some(back) => back,
            empty => {
                let mut session = Session::new(false, self.main.spec.clone(), &self.local, true)?;
                session.limit(self.quota.clone());
                empty.insert(session.following(&self.main))
            }
        };
        back.add(connection, &mut self.reporter);

        Ok(is_new)
    }

    /// Ends the test before its time.
    pub(super) fn end_early(&mut self, why: &str) {
        self.liveness = None;
        self.reporter.emit(&Event::Warning(why.to_owned()));
        self.failure.get_or_insert_with(|| failure(why));
        self.main.terminate();
        self.back.iter_mut().for_each(Session::terminate);
        self.dials.clear();
    }

    fn finish_main(&mut self) {
        if let Err(failure) = self.main.finish(&mut self.reporter) {
            self.failure.get_or_insert(failure);
        }
    }

    /// Reports what is left to be reported; what went wrong.
    pub(super) fn finish(&mut self) -> Result<(), Failure> {
        self.finish_main();
        if let Some(back) = &mut self.back
            && let Err(failure) = back.finish(&mut self.reporter)
        {
            self.failure.get_or_insert(failure);
        }

        self.reporter.emit(&Event::Finished);
        self.failure.clone().map_or(Ok(()), Err)
    }

    pub(super) fn summaries(&self) -> impl Iterator<Item = &Summary> {
        self.sessions().filter_map(|one| one.summary.as_ref())
    }
}

impl server::Session for ClientSession {
    fn totals(&mut self) -> ByteTotals {
        let mut sum = ByteTotals::default();
        for moved in self.sessions().map(|one| ByteTotals::of(&one.run)) {
            sum.received_bytes = sum.received_bytes.saturating_add(moved.received_bytes);
            sum.sent_bytes = sum.sent_bytes.saturating_add(moved.sent_bytes);
        }

        sum
    }

    fn stop(&mut self, reason: RefusalReason) {
        self.end_early(&reason.to_string());
    }

    /// Also when it takes too long.
    fn check_liveness(&mut self, is_place_wanted: bool) -> bool {
        if self
            .until
            .take_if(|until| *until <= Instant::now())
            .is_some()
        {
            self.end_early("the test takes far longer than was announced");
            return true;
        }

        let Some(liveness) = &mut self.liveness else {
            return false;
        };
        if !self.main.run.has_started() || self.main.is_over() {
            return false;
        }

        let Some(progress_bytes) = self.main.run.progress_bytes() else {
            return false;
        };
        let Some(limit) = liveness.exceeded(clock::monotonic_ns(), progress_bytes, is_place_wanted)
        else {
            return false;
        };
        self.end_early(&format!("no sign of life for {} s", limit.as_secs()));

        true
    }
}

/// Time until the announced start of a test. The first datagram of a flow arrives at that time.
fn wait_for_start(spec: &TestSpec) -> Duration {
    match spec.workload.start {
        Start::At(time) if spec.transport != Transport::Udp => {
            let wait = time.saturating_sub(Duration::from_nanos(clock::unix_ns()));
            Some(wait)
                .filter(|wait| *wait <= START_AHEAD_MAX)
                .unwrap_or_default()
        }
        Start::At(_) | Start::AtMonotonic(_) | Start::After(_) | Start::Now => Duration::ZERO,
    }
}

fn is_afterwards(spec: &TestSpec) -> bool {
    spec.workload.pairing == Pairing::ConnectBackAfterwards
}
