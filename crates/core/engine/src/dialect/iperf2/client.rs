//! A test seen from the end that opens its connections.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use linerate_iperf2::wire::server::{FlowServer, Policy, StreamServer};
use linerate_iperf2::wire::settings::client_header;
use linerate_iperf2::wire::{Header, Timestamp, Version};
use linerate_model::event::{DelayedStart, Endpoint};
use linerate_model::spec::{ClientSpec, working_load};
use linerate_model::stream::ListenerFacts;
use linerate_model::workload::{Pairing, Shape, Start};
use linerate_model::{Event, EventSink, Failure, FailureKind, Transport};
use linerate_sys::error::io_text;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::{clock, scheduling, socket, sockopt};

use super::connect::{self, ConnectRetries, Connected, os};
use super::connection::Connection;
use super::datagram_reader::DatagramReader;
use super::machine::{Machine, wall};
use super::pumps::{self, Origin};
use super::session::Session;
use super::{connect_only, sockets};
use crate::error::failure;
use crate::interrupts::Interrupts;
use crate::reporter::{Reporter, test_header};

/// Runs one test and reports it to `sink`.
///
/// # Errors
/// The failure, which has been reported as [`Event::Failed`], or as a warning where the test
/// continued.
pub fn run(
    spec: &ClientSpec,
    sink: &mut dyn EventSink,
    interrupts: &dyn Interrupts,
) -> Result<(), Failure> {
    let mut reporter = Reporter::new(sink);
    let outcome = Client { spec, interrupts }.run(&mut reporter);
    match &outcome {
        Ok(_) => reporter.emit(&Event::Finished),
        // Who interrupts a test has its report.
        Err(failure) if failure.kind == FailureKind::Interrupted => reporter.emit(&Event::Finished),
        Err(failure) => reporter.emit(&Event::Failed(failure.clone())),
    }

    match reporter.take_failure() {
        Some(error) => Err(failure(error.to_string())),
        None => outcome.and_then(|result| result),
    }
}

/// Outcome of a test. Failures were reported when they happened.
type TestResult = Result<(), Failure>;

struct Client<'a> {
    spec: &'a ClientSpec,
    interrupts: &'a dyn Interrupts,
}

const SESSION: u64 = 0;
const INTERRUPT: u64 = 1;
const LISTENER: u64 = 2;
/// Longest wait for a server to connect back.
const BACK_TIMEOUT: Duration = Duration::from_secs(2);

impl Client<'_> {
    fn run(&self, reporter: &mut Reporter<'_>) -> Result<TestResult, Failure> {
        let origin = self.origin();
        pumps::check(&origin)
            .map_err(|e| failure(format!("Unable to open the file stream: {}", io_text(&e))))?;
        let server = connect::resolve(self.spec)?;
        let (listener, listener_facts) = self.listen(server, reporter)?.unzip();
        let mut retries = ConnectRetries::new(self.spec.local.end.connect_retry);
        let unconnected = (0..self.streams())
            .map(|index| connect::open(self.spec, server, index))
            .collect::<Result<Vec<_>, _>>()?;
        let first_socket = unconnected.first();
        let first_socket =
            first_socket.map(|first| sockets::facts(&first.fd, self.spec.test.transport));
        let refused: Vec<String> = unconnected
            .first()
            .map(|o| o.refused.clone())
            .unwrap_or_default();
        refused
            .into_iter()
            .for_each(|text| reporter.emit(&Event::Warning(text)));

        let host = self.spec.host.clone();
        let local = &self.spec.local;
        let mut header = test_header(Endpoint::Client, host, local.port, &self.spec.test, local);
        header.first_socket = first_socket;
        header.listener = listener_facts;
        reporter.emit(&Event::TestAccepted(Box::new(header)));

        if let Shape::ConnectOnly { count } = self.spec.test.workload.shape {
            return connect_only::run(self.spec, server, count, reporter, self.interrupts).map(Ok);
        }

        let mut connected = connect::connect_all(unconnected, self.spec, self.interrupts)?;
        while connected.iter().all(Result::is_err) && retries.wait(self.interrupts)? {
            let again = (0..self.streams()).map(|index| connect::open(self.spec, server, index));
            connected = connect::connect_all(
                again.collect::<Result<Vec<_>, _>>()?,
                self.spec,
                self.interrupts,
            )?;
        }

        let load = self.load();
        let load = load.as_ref().map(|spec| Client { spec, ..*self });
        let connected_load = match &load {
            Some(load) => load.connect_beside(self.streams(), server)?,
            None => Vec::new(),
        };
        let mut session = self.open_session(connected, &origin, server, reporter)?;

        if let Some(load) = load
            && let Some(failure) = load.add_streams(
                &mut session,
                connected_load,
                &Origin::Pattern,
                server,
                reporter,
            )?
        {
            reporter.emit(&Event::Warning(failure.message));
        }

        self.watch(session, listener, reporter)
    }

    /// The client of the streams that load the path beside a bounce-back test.
    fn load(&self) -> Option<ClientSpec> {
        let test = working_load(&self.spec.test)?;
        let mut spec = self.spec.clone();
        spec.test = test;
        Some(spec)
    }

    /// Connects the streams of this client behind `first` others of the same test.
    fn connect_beside(
        &self,
        first: u32,
        server: SocketAddr,
    ) -> Result<Vec<Result<Connected, Failure>>, Failure> {
        let unconnected = (first..first.saturating_add(self.streams()))
            .map(|index| connect::open(self.spec, server, index));
        connect::connect_all(
            unconnected.collect::<Result<Vec<_>, _>>()?,
            self.spec,
            self.interrupts,
        )
    }

    fn streams(&self) -> u32 {
        match self.spec.test.workload.shape {
            Shape::ConnectOnly { .. } => 1,
            _ => self.spec.test.streams.max(1),
        }
    }

    fn origin(&self) -> Origin {
        match (&self.spec.local.file, self.spec.local.end.from_stdin) {
            (Some(path), _) => Origin::File(path.clone()),
            (None, true) => Origin::StandardInput,
            (None, false) => Origin::Pattern,
        }
    }

    /// Opens the listener for a server that connects back, before the request is sent.
    fn listen(
        &self,
        server: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<Option<(OwnedFd, ListenerFacts)>, Failure> {
        let test = &self.spec.test;
        let end = &self.spec.local;
        if !matches!(
            test.workload.pairing,
            Pairing::ConnectBack | Pairing::ConnectBackAfterwards
        ) {
            return Ok(None);
        }

        let port = test.workload.back_port.unwrap_or(end.port);
        let address = connect::local_address(self.spec, &server, port)?;
        let fail = |e: &linerate_sys::OsError| os("listener bind", e);
        let fd = socket::open(&address, sockets::protocol(test.transport)).map_err(|e| fail(&e))?;
        sockopt::SO_REUSEADDR.set(&fd, true).map_err(|e| fail(&e))?;

        let refused = sockets::prepare(&fd, test, false, true);
        refused
            .into_iter()
            .for_each(|text| reporter.emit(&Event::Warning(text)));
        socket::bind(&fd, &address).map_err(|e| fail(&e))?;

        if test.transport != Transport::Udp {
            socket::listen(&fd, i32::MAX).map_err(|e| fail(&e))?;
        }

        let facts =
            ListenerFacts::new(port, sockets::facts(&fd, test.transport), address.is_ipv6());
        Ok(Some((fd, facts)))
    }

    fn open_session(
        &self,
        connected: Vec<Result<Connected, Failure>>,
        origin: &Origin,
        server: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<Session, Failure> {
        let test = &self.spec.test;
        let mut session =
            Session::new(true, test.clone(), &self.spec.local, true).map_err(|e| os("test", &e))?;
        session.wait_until(test.workload.start);

        match self.add_streams(&mut session, connected, origin, server, reporter)? {
            Some(failure) if session.connections.is_empty() => Err(failure),
            Some(failure) => {
                reporter.emit(&Event::Warning(failure.message));
                Ok(session)
            }
            None => Ok(session),
        }
    }

    /// Adds what is connected to `session`; the last of the failures, the others are reported.
    fn add_streams(
        &self,
        session: &mut Session,
        connected: Vec<Result<Connected, Failure>>,
        origin: &Origin,
        server: SocketAddr,
        reporter: &mut Reporter<'_>,
    ) -> Result<Option<Failure>, Failure> {
        let test = &self.spec.test;
        let header = self.wire_header()?;
        let mut last = None;

        let first_number = session.connections.len() as u32 + 1;
        for (number, outcome) in (first_number..).zip(connected) {
            let one = match outcome {
                Ok(one) => one,
                Err(failure) => {
                    if let Some(earlier) = last.replace(failure) {
                        reporter.emit(&Event::Warning(earlier.message));
                    }
                    continue;
                }
            };
            let machine = self.machine(header.as_ref(), server);
            let mut connection = Connection::new(one.fd, machine, number, test.clone())
                .map_err(|e| os("getpeername", &e))?;
            connection.header.clone_from(&header);
            connection.origin = origin.clone();

            let has_handshake = test.transport == Transport::Tcp;
            connection.connect_us = u32::try_from(one.took.as_micros())
                .ok()
                .filter(|_| has_handshake);
            session.add(connection, reporter);
            self.report_delayed_start(number, reporter);
        }

        Ok(last)
    }

    fn wire_header(&self) -> Result<Option<Header>, Failure> {
        let workload = &self.spec.test.workload;
        if workload.without_header || matches!(workload.shape, Shape::BounceBack(_)) {
            return Ok(None);
        }

        let start = match workload.start {
            Start::At(time) => Timestamp::from_unix_ns(clock::as_ns(time)),
            Start::Now | Start::After(_) | Start::AtMonotonic(_) => wall(),
        };
        let header = client_header(self.spec, Version::of(workload.release), start);
        header.map(Some).map_err(|e| failure(e.to_string()))
    }

    fn machine(&self, header: Option<&Header>, server: SocketAddr) -> Machine {
        let without_report = header.is_some_and(|header| header.without_final_report);
        let wants_report = !without_report && !server.ip().is_multicast();
        Machine::client(&self.spec.test, header.cloned(), wants_report)
    }

    fn report_delayed_start(&self, number: u32, reporter: &mut Reporter<'_>) {
        let now_unix_us = clock::unix_ns() / 1000;
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at_unix_us = match self.spec.test.workload.start {
            Start::At(time) => micros(time),
            Start::After(time) => now_unix_us.saturating_add(micros(time)),
            Start::Now | Start::AtMonotonic(_) => return,
        };
        reporter.emit(&Event::DelayedStart(DelayedStart {
            number,
            in_s: at_unix_us.saturating_sub(now_unix_us) / 1_000_000,
            at_unix_us,
            now_unix_us,
        }));
    }

    /// Drives the session, and the one that comes back afterwards if there is one.
    fn watch(
        &self,
        session: Session,
        listener: Option<OwnedFd>,
        reporter: &mut Reporter<'_>,
    ) -> Result<TestResult, Failure> {
        let reader = listener.as_ref().map(|_| DatagramReader::new());
        let mut test_loop = TestLoop {
            client: self,
            server_ip: session.connections.first().map(|c| c.remote.ip()),
            next_number: session.connections.len() as u32 + 1,
            back_missing: if listener.is_some() {
                session.connections.len()
            } else {
                0
            },
            session,
            listener,
            reader: reader.transpose().map_err(|e| os("test", &e))?,
            back_until: None,
            is_interrupted: false,
        };
        test_loop.drive(reporter)
    }
}

/// A session, and a listener for what comes back.
struct TestLoop<'a> {
    client: &'a Client<'a>,
    session: Session,
    listener: Option<OwnedFd>,
    /// Reads the first datagrams at the listener.
    reader: Option<DatagramReader>,
    server_ip: Option<std::net::IpAddr>,
    next_number: u32,
    /// Connections that are still to come back.
    back_missing: usize,
    /// The second session waits for them until then.
    back_until: Option<Instant>,
    is_interrupted: bool,
}

impl TestLoop<'_> {
    fn drive(&mut self, reporter: &mut Reporter<'_>) -> Result<TestResult, Failure> {
        // Intervals end when this thread reads the counters; without a short scheduling slice that
        // is late.
        let _ = scheduling::wake_soon();
        let epoll = Epoll::new().map_err(|e| os("test", &e))?;
        let add = |fd: std::os::fd::BorrowedFd<'_>, token| {
            epoll
                .add(fd, token, Interest::READ)
                .map_err(|e| os("test", &e))
        };
        add(self.session.fd(), SESSION)?;
        add(self.client.interrupts.fd(), INTERRUPT)?;

        if let Some(listener) = &self.listener {
            add(listener.as_fd(), LISTENER)?;
        }

        let mut events = Vec::new();
        let mut first_outcome = Ok(());

        loop {
            let awaits_back = self.back_until.filter(|_| self.back_missing > 0);
            if awaits_back.is_none() {
                self.session.advance(reporter);
            }
            if awaits_back.is_none() && self.session.is_over() {
                let outcome = self.session.finish(reporter);
                first_outcome = first_outcome.and(outcome);
                if self.back_missing == 0 {
                    return Ok(first_outcome);
                }

                // Nothing of it starts before all of its connections are there.
                let next = self.new_session()?;
                let _ = epoll.remove(self.session.fd());
                self.session = next;
                add(self.session.fd(), SESSION)?;
                self.back_until = Some(Instant::now() + BACK_TIMEOUT);
                self.accept_back(reporter)?;
                continue;
            }

            if awaits_back.is_some_and(|until| Instant::now() >= until) {
                return Err(failure("ERROR: expected reverse connect did not occur"));
            }

            let until = awaits_back.or_else(|| self.session.deadline());
            let left = until.map(|t| t.saturating_duration_since(Instant::now()));
            epoll
                .wait(&mut events, left)
                .map_err(|e| failure(e.to_string()))?;

            for event in &events {
                match event.token {
                    INTERRUPT => self.on_interrupt()?,
                    LISTENER => self.accept_back(reporter)?,
                    _ => {}
                }
            }

            if reporter.has_failed() {
                self.session.terminate();
            }
        }
    }

    /// A second request does not wait for the server any more.
    fn on_interrupt(&mut self) -> Result<(), Failure> {
        let Some(signal) = self.client.interrupts.take() else {
            return Ok(());
        };
        if self.is_interrupted {
            return Err(connect::interruption(&signal));
        }

        self.back_missing = 0;
        self.is_interrupted = true;
        self.session.interrupt();
        Ok(())
    }

    fn new_session(&self) -> Result<Session, Failure> {
        let spec = &self.client.spec;
        let session =
            Session::new(true, spec.test.clone(), &spec.local, true).map_err(|e| os("test", &e))?;
        Ok(session.following(&self.session))
    }

    /// Accepts connections from the server's address only.
    fn accept_back(&mut self, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
        if self.client.spec.test.transport == Transport::Udp {
            return self.accept_flow(reporter);
        }

        while let Some(listener) = &self.listener {
            let Ok(Some((fd, peer))) = socket::accept(listener) else {
                break;
            };
            if self.back_missing == 0 || Some(socket::unmap(peer).ip()) != self.server_ip {
                continue;
            }

            let machine = StreamServer::new(Instant::now(), wall(), back_policy());
            self.take_back(
                fd,
                Machine::StreamServer(Box::new(machine)),
                Vec::new(),
                reporter,
            )?;
        }

        Ok(())
    }

    fn accept_flow(&mut self, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
        let (Some(listener), Some(reader)) = (&self.listener, &mut self.reader) else {
            return Ok(());
        };
        let mut arrived = Vec::new();
        reader.drain(listener, &mut arrived);
        arrived.retain(|one| {
            self.back_missing > 0 && Some(socket::unmap(one.from).ip()) == self.server_ip
        });

        let mut first = None;
        for one in &arrived {
            first =
                FlowServer::new(Instant::now(), wall(), back_policy(), &one.datagram, false).ok();
            if first.is_some() {
                socket::connect(listener, &one.from).map_err(|e| os("connect", &e))?;
                break;
            }
        }

        let early = arrived
            .into_iter()
            .map(|one| (one.datagram, one.at_ns))
            .collect();
        let Some(machine) = first else { return Ok(()) };
        let Some(fd) = self.listener.take() else {
            return Ok(());
        };

        self.take_back(fd, Machine::FlowServer(machine), early, reporter)
    }

    fn take_back(
        &mut self,
        fd: OwnedFd,
        machine: Machine,
        early: Vec<(Vec<u8>, u64)>,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Failure> {
        let mut spec = self.client.spec.test.clone();
        spec.workload.trip_times = false;
        let mut connection =
            Connection::new(fd, machine, self.next_number, spec).map_err(|e| os("accept", &e))?;
        connection.is_back = true;
        connection.early = early;
        self.next_number += 1;
        self.back_missing -= 1;
        self.session.add(connection, reporter);

        Ok(())
    }
}

/// A flow or connection back was requested, so that its address needs no proof.
fn back_policy() -> Policy {
    Policy {
        may_connect_back: false,
        datagrams_before_sending: 0,
        ..Policy::default()
    }
}
