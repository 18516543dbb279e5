//! One test, seen from the end that starts it.
//!
//! A single control thread owns the protocol machine, the control connection and the run. Bytes,
//! signals, worker notices and deadlines are inputs of one loop; there is one way out, which prints
//! what happened and closes.

mod connect;
mod ending;
mod load_controller;
mod setup;
mod streams;

use std::time::{Duration, Instant};

use linerate_iperf3::wire::client::{Client as Machine, ClientAction, ClientInput, ClientSetup};
use linerate_iperf3::wire::results::Results;
use linerate_iperf3::wire::{Cookie, ErrorCode, State};
use linerate_model::event::{ControlConnected, Endpoint, TestHeader};
use linerate_model::path::LoadControl;
use linerate_model::spec::ClientSpec;
use linerate_model::{Event, EventSink, Failure, FailureKind, Summary};
use linerate_sys::error::io_text;
use linerate_sys::poll::{self, Epoll, Interest};
use linerate_sys::{clock, cpu, sockopt};

use crate::data::run::{RunEvent, TestRun};
use crate::dialect::iperf3::control_connection::{ControlConnection, Received};
use crate::dialect::iperf3::error::failed;
use crate::dialect::iperf3::keepalive;
use crate::error::failure;
use crate::interrupts::Interrupts;
use crate::measure::overflow;
use crate::reporter::Reporter;
use crate::wait::time_until;
pub use connect::{Established, Handshake};
use ending::Ending;
use load_controller::LoadController;
use setup::{check_file, choose_block_len, greet, header, offer, run_settings, token};

/// Result of a test.
#[derive(Debug)]
#[non_exhaustive]
pub struct ClientResult {
    /// The failure that ended the test.
    pub outcome: Result<(), Failure>,
    /// The control connection, if it was established.
    pub control: Option<ControlConnected>,
    /// Totals, if the data has started.
    pub summary: Option<Summary>,
    /// Facts of the server's host, if they were requested and the server sent them: an unparsed
    /// JSON object.
    pub peer_facts: Option<String>,
    /// TCP handshakes of the connections that this end made, in their order; all of them before the
    /// data.
    pub handshakes: Vec<Handshake>,
}

/// Options of the caller.
#[derive(Default)]
pub struct RunOptions<'a> {
    /// A connection on which the test continues; absent for a new one.
    pub established: Option<Established>,
    /// Receives the counts of the data ten times a second, and may end it before the end condition
    /// of the specification is met. The number of streams stays.
    pub steering: Option<&'a mut dyn LoadControl>,
}

impl ClientResult {
    /// The event that ends the report.
    pub fn last_event(&self) -> Event {
        match &self.outcome {
            Ok(()) => Event::Finished,
            Err(failure) => Event::Failed(failure.clone()),
        }
    }
}

/// Runs one test and reports it to `sink`.
pub fn run(
    spec: &ClientSpec,
    sink: &mut dyn EventSink,
    interrupts: &dyn Interrupts,
) -> ClientResult {
    let result = run_before_end(spec, sink, interrupts);
    // A failure to report the end cannot be reported.
    let _ = sink.event(&result.last_event());
    result
}

/// As [`run`], but leaves [`ClientResult::last_event`] to the caller, who may add to the report
/// before it.
pub fn run_before_end(
    spec: &ClientSpec,
    sink: &mut dyn EventSink,
    interrupts: &dyn Interrupts,
) -> ClientResult {
    run_with(RunOptions::default(), spec, sink, interrupts)
}

/// As [`run_before_end`], with what `options` add.
pub fn run_with<'a>(
    options: RunOptions<'a>,
    spec: &ClientSpec,
    sink: &mut dyn EventSink,
    interrupts: &'a dyn Interrupts,
) -> ClientResult {
    let mut reporter = Reporter::new(sink);
    match Client::open(options, spec, &mut reporter, interrupts) {
        Ok(client) => client.run(&mut reporter),
        Err(failure) => ClientResult {
            outcome: Err(failure),
            control: None,
            summary: None,
            peer_facts: None,
            handshakes: Vec::new(),
        },
    }
}

struct Client<'a> {
    spec: ClientSpec,
    interrupts: &'a dyn Interrupts,
    machine: Machine,
    control: ControlConnection,
    cookie: Cookie,
    connected: ControlConnected,
    header: TestHeader,
    run: TestRun,
    epoll: Epoll,
    ending: Option<Ending>,
    /// Totals, once the data has stopped.
    summary: Option<Summary>,
    /// The same with what the server reported, once it is shown.
    shown: Option<Summary>,
    peer_facts: Option<String>,
    peer_results: Option<Box<Results>>,
    handshakes: Vec<Handshake>,
    steering: Option<LoadController<'a>>,
}

const CONTROL: u64 = 0;
const INTERRUPT: u64 = 1;
const NOTICE: u64 = 2;
/// Room for one read of the control connection; larger messages take several.
const CONTROL_READ_BYTES: usize = 16 * 1024;
/// Longest wait for the server to close its side at the end.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(250);

impl<'a> Client<'a> {
    /// Opens or takes over the control connection and settles what depends on it.
    fn open(
        options: RunOptions<'a>,
        spec: &ClientSpec,
        reporter: &mut Reporter<'_>,
        interrupts: &'a dyn Interrupts,
    ) -> Result<Self, Failure> {
        if let Some(cpu) = spec.local.cpu {
            // Before any thread exists: threads inherit the affinity of the one that creates them
            // (sched_setaffinity(2)).
            cpu::pin_process(cpu as usize).map_err(failed(ErrorCode::Affinity))?;
        }

        let started_at_unix_ms = clock::unix_ms();
        let mut spec = spec.clone();
        let (connection, greeting) =
            connect::open(options.established, &mut spec, reporter, interrupts)?;

        // After the connection, in the order of iperf3: an unreachable server is reported before an
        // unreadable file.
        check_file(&spec)?;
        if spec.local.control_keepalive.is_some() {
            keepalive::report(&connection.fd, reporter);
        }

        let mut control = ControlConnection::new(connection.fd);
        let token = token(&spec)?;
        let (mut machine, cookie) = greet(&spec, token.clone(), greeting.as_ref(), &mut control)?;

        // The kernel knows the path's segment size for certain once the cookie was acknowledged.
        let mss_bytes = sockopt::TCP_MAXSEG.get(control.fd()).ok();
        let chosen_block_len_bytes = choose_block_len(&mut spec, mss_bytes, reporter);
        let ClientSetup { params, .. } = offer(&spec, cookie, token);
        // The default block of UDP follows the segment size, which is known only now.
        machine.revise(params, spec.test.clone());

        if let Some((_, received)) = &greeting {
            machine.handle_control(Instant::now(), received);
        }

        let connected = ControlConnected {
            local: connection.local,
            remote: connection.remote,
            mss_bytes,
            chosen_block_len_bytes,
        };
        reporter.emit(&Event::ControlConnected(connected.clone()));

        Ok(Self {
            header: header(&spec, &cookie, started_at_unix_ms, mss_bytes),
            run: TestRun::new(run_settings(&spec)).map_err(failed(ErrorCode::InitTest))?,
            spec,
            interrupts,
            machine,
            control,
            cookie,
            connected,
            epoll: Epoll::new().map_err(failed(ErrorCode::InitTest))?,
            ending: None,
            summary: None,
            shown: None,
            peer_facts: None,
            peer_results: None,
            handshakes: connection.handshake.into_iter().collect(),
            steering: options.steering.map(LoadController::new),
        })
    }

    fn run(mut self, reporter: &mut Reporter<'_>) -> ClientResult {
        let outcome = self.watch().and_then(|()| self.event_loop(reporter));
        if let Err(failure) = &outcome {
            self.report_the_part_that_happened(failure, reporter);
        }

        ClientResult {
            outcome,
            control: Some(self.connected),
            summary: self.shown,
            peer_facts: self.peer_facts,
            handshakes: self.handshakes,
        }
    }

    fn watch(&self) -> Result<(), Failure> {
        let fds = [
            (self.control.fd(), CONTROL),
            (self.interrupts.fd(), INTERRUPT),
            (self.run.notice_fd(), NOTICE),
        ];
        for (fd, token) in fds {
            self.epoll
                .add(fd, token, Interest::READ)
                .map_err(failed(ErrorCode::InitTest))?;
        }

        Ok(())
    }

    /// The loop: execute the machine's actions, wait, feed it the events.
    fn event_loop(&mut self, reporter: &mut Reporter<'_>) -> Result<(), Failure> {
        let mut events = Vec::new();
        loop {
            while let Some(action) = self.machine.poll_action() {
                if let ClientAction::Close(outcome) = action {
                    self.close();
                    return outcome;
                }
                self.execute(action, reporter);
            }

            // Before the wait: a closed pipe would otherwise be noticed with the next event,
            // perhaps an interval later.
            if let Some(error) = reporter.take_failure() {
                self.machine
                    .handle_local(Instant::now(), ClientInput::Failed(failure(error)));
                continue;
            }

            let wait = self.epoll.wait(&mut events, self.timeout());
            if let Err(error) = wait {
                let failure = ErrorCode::Select.failure(Some(&error.to_string()));
                self.machine
                    .handle_local(Instant::now(), ClientInput::Failed(failure));
                continue;
            }

            for event in &events {
                match event.token {
                    CONTROL => self.on_control(),
                    INTERRUPT => self.on_interrupt(reporter),
                    _ => {}
                }
            }

            self.on_run(reporter);
            self.follow_steering(reporter);
            self.follow_ending(reporter);
            self.machine.handle_timeout(Instant::now());
        }
    }

    fn timeout(&self) -> Option<Duration> {
        let machine = self
            .machine
            .poll_timeout()
            .map(|t| t.saturating_duration_since(Instant::now()));
        let ending = self.ending.as_ref().map(Ending::poll_ns);
        let steering = self.steering.as_ref().filter(|_| self.summary.is_none());
        let sample = steering.and_then(|steering| steering.next_ns(&self.run));

        let run = self
            .run
            .next_deadline_ns()
            .into_iter()
            .chain(ending)
            .chain(sample)
            .min();
        let run = run.map(time_until);
        [machine, run].into_iter().flatten().min()
    }

    fn execute(&mut self, action: ClientAction, reporter: &mut Reporter<'_>) {
        let now = Instant::now();
        match action {
            ClientAction::Send(bytes) => {
                if let [byte] = bytes.as_slice() {
                    tracing::debug!(state = ?State::from_byte(*byte), "state sent");
                }
                self.send(&bytes);
            }
            ClientAction::TestAccepted => {
                reporter.emit(&Event::TestAccepted(Box::new(self.header.clone())));
            }
            ClientAction::OpenStreams => {
                let control = self.control.fd();
                let context = streams::Context {
                    spec: &self.spec,
                    cookie: self.cookie,
                    control,
                    interrupts: self.interrupts,
                };
                let input = match streams::open_all(
                    &context,
                    &mut self.run,
                    &mut self.handshakes,
                    reporter,
                ) {
                    Ok(()) => ClientInput::StreamsOpened,
                    Err(failure) => ClientInput::Failed(failure),
                };
                self.machine.handle_local(now, input);
            }
            ClientAction::StartClock => {
                let now_ns = clock::monotonic_ns();
                // The clock and the event share one reading, so that intervals count from the
                // reported start.
                self.run.start_clock(now_ns);
                reporter.emit(&Event::TestStarted {
                    at_monotonic_ns: Some(now_ns),
                });
            }
            ClientAction::StartData => {
                if let Err(error) = self.run.start_data() {
                    self.machine
                        .handle_local(now, ClientInput::Failed(error.into()));
                }
            }
            ClientAction::CollectResults
                if self.summary.is_none() && self.run.receives_byte_streams() =>
            {
                // Results of a receiver count what was in flight when the server stopped; it reads
                // to the end of each stream first.
                self.ending = Some(Ending::drain_receivers());
                self.follow_ending(reporter);
            }
            ClientAction::CollectResults => self.send_results(reporter),
            ClientAction::PeerResults(results) => self.peer_results = Some(results),
            ClientAction::ShowResults => self.show_results(reporter),
            ClientAction::Close(_) => {}
        }
    }

    fn send_results(&mut self, reporter: &mut Reporter<'_>) {
        let summary = self.stop_data(reporter).clone();
        let results = Results::from_summary(&summary, &self.spec.test, Endpoint::Client);
        self.machine
            .handle_local(Instant::now(), ClientInput::Results(Box::new(results)));
    }

    /// The end condition is met: the senders stop, and the server learns of the end once it has
    /// what they wrote.
    fn end_data(&mut self, reporter: &mut Reporter<'_>) {
        self.run.end_senders(reporter);
        if !self.run.receives_byte_streams() {
            self.stop_data(reporter);
        }

        self.ending = Some(Ending::drain_senders());
        self.follow_ending(reporter);
    }

    fn follow_ending(&mut self, reporter: &mut Reporter<'_>) {
        match self.ending.take_if(|ending| ending.is_over(&self.run)) {
            Some(ending) if ending.is_of_receivers => self.send_results(reporter),
            Some(_) => self
                .machine
                .handle_local(Instant::now(), ClientInput::EndReached),
            None => {}
        }
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Err(error) = self.control.send(bytes) {
            self.machine
                .handle_control_error(Instant::now(), &io_text(&error));
        }
        self.control.follow_unsent(&self.epoll, CONTROL);
    }

    fn on_control(&mut self) {
        let now = Instant::now();
        let mut buffer = [0; CONTROL_READ_BYTES];
        match self.control.receive(&mut buffer) {
            Received::Bytes(bytes) => self.machine.handle_control(now, bytes),
            Received::Nothing => {}
            Received::Eof => self.machine.handle_control_eof(now),
            Received::Failed(error) => self.machine.handle_control_error(now, &io_text(&error)),
        }
        self.control.follow_unsent(&self.epoll, CONTROL);
    }

    fn on_interrupt(&mut self, reporter: &mut Reporter<'_>) {
        if let Some(signal_text) = self.interrupts.take() {
            if self.run.has_started() {
                self.stop_data(reporter);
            }
            self.machine
                .handle_local(Instant::now(), ClientInput::Interrupted { signal_text });
        }
    }

    fn on_run(&mut self, reporter: &mut Reporter<'_>) {
        if self.summary.is_some() {
            // Totals are final: a stream that fails while the results are exchanged changes
            // nothing.
            self.run.discard_notices();
            return;
        }

        for event in self.run.poll(clock::monotonic_ns(), reporter) {
            let input = match event {
                RunEvent::EndReached => {
                    self.end_data(reporter);
                    continue;
                }
                RunEvent::Stopped | RunEvent::StreamEnded { .. } => continue,
                RunEvent::Failed(error) => ClientInput::Failed(error.into()),
            };
            self.machine.handle_local(Instant::now(), input);
        }
    }

    fn follow_steering(&mut self, reporter: &mut Reporter<'_>) {
        let Some(steering) = self.steering.as_mut().filter(|_| self.summary.is_none()) else {
            return;
        };
        if steering.is_over(&self.run, self.spec.test.total_streams()) && self.run.end_early() {
            self.end_data(reporter);
        }
    }

    /// Stops the senders and takes the totals, once. Receivers continue to read so that a server
    /// that is still sending does not get stuck.
    fn stop_data(&mut self, reporter: &mut Reporter<'_>) -> &Summary {
        if self.summary.is_none() {
            self.run.stop_now(reporter);
        }

        let run = &mut self.run;
        self.summary
            .get_or_insert_with(|| run.finish(clock::monotonic_ns(), reporter))
    }

    fn show_results(&mut self, reporter: &mut Reporter<'_>) {
        // The worker threads end before the report is written, which may block on a pipe.
        self.run.quit();
        let mut summary = self.stop_data(reporter).clone();
        let mut server_output = None;
        let mut concurrent_tests = None;

        if let Some(results) = self.peer_results.take() {
            // The machine has checked the stream ids before it passed the results on.
            let _ =
                linerate_iperf3::wire::results::merge_peer(&mut summary, &self.spec.test, &results);
            concurrent_tests = results.ran_beside;
            server_output = results.server_output;
            self.peer_facts = results.facts;
        }

        for (host, overflows) in [
            ("this host", summary.overflows_local),
            ("the server", summary.overflows_remote),
        ] {
            if let Some(text) = overflow::warning(host, overflows) {
                reporter.emit(&Event::Notice(text));
            }
        }

        if let Some(text) = concurrent_tests.and_then(concurrent_tests_notice) {
            reporter.emit(&Event::Notice(text));
        }

        self.show_summary(summary, reporter);
        if let Some(output) = server_output {
            reporter.emit(&Event::PeerOutput(output));
        }
    }

    fn show_summary(&mut self, summary: Summary, reporter: &mut Reporter<'_>) {
        self.shown = Some(summary.clone());
        reporter.emit(&Event::Summary(Box::new(summary)));
    }

    /// A test that ends early still has numbers, except when the server refused it as a whole.
    fn report_the_part_that_happened(&mut self, failure: &Failure, reporter: &mut Reporter<'_>) {
        let refused = matches!(failure.kind, FailureKind::Peer { .. });
        if self.run.has_started() && self.shown.is_none() && !refused {
            let summary = self.stop_data(reporter).clone();
            self.show_summary(summary, reporter);
        }
    }

    /// Sends what is left, closes this direction and reads until the server has closed its own, so
    /// that no reset destroys the tail. A server that keeps its side open does not hold anybody up.
    fn close(&mut self) {
        self.control.end_sending();
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        let mut buffer = [0; CONTROL_READ_BYTES];

        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero()
                || poll::wait_fd(self.control.fd(), Interest::READ, Some(left)).is_err()
            {
                return;
            }

            match self.control.receive(&mut buffer) {
                Received::Bytes(_) | Received::Nothing => {}
                Received::Eof | Received::Failed(_) => return,
            }
        }
    }
}

/// A result that other tests have lowered is no property of the path.
fn concurrent_tests_notice(tests: u32) -> Option<String> {
    let text = match tests {
        0 => return None,
        1 => "another test ran on the server at the same time".to_owned(),
        _ => format!("up to {tests} other tests ran on the server at the same time"),
    };
    Some(format!("{text}; this result is not that of the path alone"))
}
