//! One test, seen from the server: its sockets, its data, its report. What is to be done is decided
//! at the registry.

mod opening;
mod timers;

use std::net::SocketAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use linerate_iperf3::wire::server::{AcceptedTest, ServerAction, ServerInput};
use linerate_iperf3::wire::{Cookie, ErrorCode, Results, State, udp_header};
use linerate_model::event::Endpoint;
use linerate_model::service::RefusalReason;
use linerate_model::{Event, EventSink, Failure, Summary, Transport};
use linerate_sys::poll::Epoll;
use linerate_sys::{clock, error};

use super::context::Context;
use super::control_socket;
use super::flows::Flows;
use super::tokens::CONTROL;
use crate::data::run::{RunEvent, TestRun};
use crate::dialect::iperf3::control_connection::ControlConnection;
use crate::dialect::iperf3::error::input;
use crate::error::{EngineError, Operation};
use crate::measure::overflow;
use crate::reporter::Reporter;
use crate::server::limits::rate_guard::RateGuard;
use crate::server::listeners::udp::UdpListener;
use crate::server::{self, ByteTotals, Liveness, ServerContext, token};

/// A client's control connection and its test.
pub(super) struct Session {
    id: u64,
    pub control: ControlConnection,
    pub peer: SocketAddr,
    pub cookie: Cookie,
    reporter: Reporter<'static>,
    /// Inputs for the registry.
    inputs: Vec<ServerInput>,
    pub test: Option<AcceptedTest>,
    run: Option<TestRun>,
    flows: Flows,
    rate_guard: Option<RateGuard>,
    liveness: Option<Liveness>,
    /// Time without a sign of life that ended the test.
    idle_for: Option<Duration>,
    /// Counts of this end, once the test has ended.
    pub summary: Option<Summary>,
    moved: ByteTotals,
    /// Streams of a test that ended early. A client that is still writing would take their end for
    /// the reason.
    leftover: Vec<Arc<OwnedFd>>,
    /// The event loop does not know the control connection.
    is_paused: bool,
    /// When [`Session::on_time`] is due.
    pub due: Option<Instant>,
}

/// Room for one read of the control connection.
pub(super) const CONTROL_READ_BYTES: usize = 16 * 1024;

impl Session {
    pub(super) fn new(
        id: u64,
        fd: OwnedFd,
        peer: SocketAddr,
        cookie: Cookie,
        sink: Box<dyn EventSink>,
        context: &Context,
    ) -> Self {
        let prepared = control_socket::prepare(&fd, &context.spec);
        Self {
            id,
            control: ControlConnection::new(fd),
            peer,
            cookie,
            reporter: Reporter::boxed(sink),
            inputs: prepared
                .err()
                .map(|error| input(&error))
                .into_iter()
                .collect(),
            test: None,
            run: None,
            flows: Flows::default(),
            rate_guard: None,
            liveness: None,
            idle_for: None,
            summary: None,
            moved: ByteTotals::default(),
            leftover: Vec::new(),
            is_paused: false,
            due: None,
        }
    }

    pub(super) fn control_fd(&self) -> BorrowedFd<'_> {
        self.control.fd()
    }

    /// Remainder of a session that has ended: its control connection, and streams that are closed
    /// with it.
    pub(super) fn into_sockets(self) -> (OwnedFd, Vec<Arc<OwnedFd>>) {
        (self.control.into_fd(), self.leftover)
    }

    pub(super) fn transport(&self) -> Option<Transport> {
        self.test.as_ref().map(|t| t.spec.transport)
    }

    /// Inputs for the registry.
    pub(super) fn take_inputs(&mut self) -> Vec<ServerInput> {
        std::mem::take(&mut self.inputs)
    }

    /// Something this session needs could not be had.
    pub(super) fn fail(&mut self, error: &EngineError) {
        self.inputs.push(input(error));
    }

    /// The answer to a hello of this session's client.
    pub(super) fn udp_reply(&self) -> &'static [u8] {
        self.test.as_ref().map_or(&udp_header::REPLY, udp_reply)
    }

    /// A hello from an address that is one of this session's streams already.
    pub(super) fn repeat_reply(&mut self, from: SocketAddr) -> bool {
        self.flows.repeat_reply(from)
    }

    /// Something arrived on a UDP stream whose data has not begun.
    pub(super) fn on_flows(&mut self, listener: &mut UdpListener) {
        if self.run.as_ref().is_some_and(|r| !r.has_started()) {
            self.flows
                .on_readable()
                .into_iter()
                .for_each(|stray| listener.take_back(stray));
        }
    }

    /// Carries out what the registry decided.
    pub(super) fn execute(
        &mut self,
        action: ServerAction,
        context: &Context,
        first_position: u32,
        epoll: &Epoll,
        server: &mut ServerContext<'_>,
    ) {
        match action {
            ServerAction::Send(bytes) => {
                if let [byte] = bytes.as_slice() {
                    tracing::debug!(peer = %self.peer, state = ?State::from_byte(*byte), "state sent");
                }
                self.send(&bytes, epoll);
            }
            ServerAction::Accepted(test) => {
                let input = match self.prepare(*test, context, first_position, epoll, server) {
                    Ok(()) => ServerInput::Prepared,
                    Err(error) => input(&error),
                };
                self.inputs.push(input);
            }
            ServerAction::StartClock => {
                // The client is about to send data.
                self.on_flows(&mut server.udp);
                self.start_clock(context);
            }
            ServerAction::StartData => {
                self.flows.start_data(epoll);
                if let Some(Err(error)) = self.run.as_mut().map(TestRun::start_data) {
                    self.fail(&error);
                }
            }
            ServerAction::StopData => {
                self.liveness = None;
                if let Some(run) = &mut self.run {
                    run.request_stop(clock::monotonic_ns());
                }

                // A run without workers has stopped already.
                self.on_run();
            }
            // The server's report is complete before the client's results arrive, as in the
            // original. The registry hands work out by itself.
            ServerAction::ExpectStreams(_)
            | ServerAction::PeerResults(_)
            | ServerAction::Close(_)
            | ServerAction::CheckLogin(_)
            | ServerAction::ParseResults(_) => {}
        }

        self.due = self.next_deadline();
    }

    fn start_clock(&mut self, context: &Context) {
        let now_ns = clock::monotonic_ns();
        if let (Some(run), Some(test)) = (&mut self.run, &self.test) {
            run.start_clock(now_ns);
            let watched = Liveness::of_test(&test.spec, context.spec.policy.liveness, now_ns);
            self.liveness = run.progress_bytes().map(|_| watched);
        }

        let limit = context.spec.bitrate_limit.as_ref();
        self.rate_guard = limit.map(|l| RateGuard::new(l, context.spec.local.interval, now_ns));
        self.reporter.emit(&Event::TestStarted {
            at_monotonic_ns: Some(now_ns),
        });
    }

    fn on_run(&mut self) {
        let Some(run) = &mut self.run else { return };
        for event in run.poll(clock::monotonic_ns(), &mut self.reporter) {
            match event {
                RunEvent::Stopped => self.send_results(),
                // The client decides the end.
                RunEvent::EndReached | RunEvent::StreamEnded { .. } => {}
                RunEvent::Failed(error) => self.fail(&error),
            }
        }
    }

    fn send_results(&mut self) {
        // The streams are closed before the server requests the results. A stock client that is
        // still reading a block blocks until then.
        drop(self.stop_and_summarise());
        let (Some(test), Some(summary)) = (&self.test, &self.summary) else {
            return;
        };
        let mut results = Results::from_summary(summary, &test.spec, Endpoint::Server);
        results.server_output = self.reporter.server_output();
        results.facts = self.reporter.facts_for_peer();
        self.inputs.push(ServerInput::Results(Box::new(results)));
    }

    /// Ends a test before its time.
    pub(super) fn stop_early(&mut self) {
        let sockets = self.stop_and_summarise();
        self.leftover.extend(sockets);
    }

    /// Ends the data, takes the totals and reports them, once; returns the streams.
    fn stop_and_summarise(&mut self) -> Vec<Arc<OwnedFd>> {
        let Some(mut run) = self.run.take_if(|r| r.has_started()) else {
            return Vec::new();
        };
        // Workers acknowledge first: the summary is then exact to the byte.
        run.stop_now(&mut self.reporter);
        let summary = run.finish(clock::monotonic_ns(), &mut self.reporter);

        // Kept for the log and the quota, which outlive the run.
        self.moved = ByteTotals::of(&run);
        if let Some(text) = overflow::warning("this host", summary.overflows_local) {
            self.reporter.emit(&Event::Notice(text));
        }

        self.reporter
            .emit(&Event::Summary(Box::new(summary.clone())));
        self.summary = Some(summary);
        self.rate_guard = None;
        self.liveness = None;
        self.flows = Flows::default();

        run.into_sockets()
    }

    /// Reports the end. What was measured until then is reported in any case.
    pub(super) fn close(&mut self, outcome: Result<(), Failure>) -> Result<(), Failure> {
        self.stop_early();
        self.run = None;
        let outcome = outcome.map_err(|failure| self.explain(failure));
        self.reporter.emit(&match &outcome {
            Ok(()) => Event::Finished,
            Err(failure) => Event::Failed(failure.clone()),
        });

        let _ = self.control.flush();
        outcome
    }

    fn explain(&self, mut failure: Failure) -> Failure {
        if let Some(timeout) = self.idle_for {
            failure.message = format!(
                "{}: no sign of life from the client for {} s, the result is partial",
                failure.message,
                timeout.as_secs()
            );
        }

        failure
    }

    fn send(&mut self, bytes: &[u8], epoll: &Epoll) {
        if let Err(error) = self.control.send(bytes) {
            let cause = Some(error::io_text(&error));
            self.inputs.push(ServerInput::Failed {
                code: ErrorCode::SendMessage,
                errno: 0,
                cause,
            });
        }

        self.follow_unsent(epoll);
    }

    /// Reads the control connection no more, or again. It is taken out of the event loop, which
    /// would announce without end that the client has reset it.
    pub(super) fn pause_reading(&mut self, wanted: bool, epoll: &Epoll) {
        if wanted == self.is_paused {
            return;
        }

        if wanted {
            self.is_paused = epoll.remove(self.control.fd()).is_ok();
        } else if let Err(error) = self.control.watch(epoll, token(self.id, CONTROL)) {
            self.fail(&Operation::Poll.failed()(error));
        } else {
            self.is_paused = false;
            self.follow_unsent(epoll);
        }
    }

    pub(super) fn follow_unsent(&mut self, epoll: &Epoll) {
        if !self.is_paused {
            self.control.follow_unsent(epoll, token(self.id, CONTROL));
        }
    }
}

impl server::Session for Session {
    fn totals(&mut self) -> ByteTotals {
        if let Some(run) = &self.run {
            self.moved = ByteTotals::of(run);
        }
        self.moved
    }

    fn stop(&mut self, reason: RefusalReason) {
        self.reporter.emit(&Event::Debug(reason.to_string()));
        self.fail(&EngineError::Refused(reason));
    }

    fn check_liveness(&mut self, is_place_wanted: bool) -> bool {
        let (Some(liveness), Some(run)) = (&mut self.liveness, &self.run) else {
            return false;
        };
        let progress_bytes = run.progress_bytes().unwrap_or_default();
        let Some(limit) = liveness.exceeded(clock::monotonic_ns(), progress_bytes, is_place_wanted)
        else {
            return false;
        };
        self.idle_for = Some(limit);
        self.liveness = None;
        self.fail(&EngineError::Idle);

        true
    }
}

fn udp_reply(test: &AcceptedTest) -> &'static [u8] {
    if test.params.peer_is_linerate() {
        &udp_header::REPLY_COALESCING
    } else {
        &udp_header::REPLY
    }
}
