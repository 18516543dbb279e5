//! A worker with its own event loop: connections, pace, and the loop over both.

mod exchange;
mod pacing_timer;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::poll::{Epoll, Interest, Ready};
use linerate_sys::{PageBuffer, clock};

use crate::load::backlog::Backlog;
use crate::load::message::Message;
use crate::load::pace::Pace;
use crate::load::pool::Pool;
use crate::load::ramp::Loss;
use crate::load::recorder::Recorder;
use crate::load::response::ReaderContext;
use crate::load::run_state::{CommandSlot, RunState, Transition};
use crate::load::schedule::WorkerIndex;
use crate::load::spec::LoadSpec;
use pacing_timer::PacingTimer;

/// One thread's share of a load.
pub(crate) struct LoadWorker<'a> {
    spec: &'a LoadSpec,
    index: WorkerIndex,
    commands: Arc<CommandSlot>,
    reports: Sender<Message>,
    pool: Pool,
    pace: Pace,
    recorder: Recorder,
    context: ReaderContext,
    buffer: PageBuffer,
    /// Bytes read at a time outside of bodies.
    room_bytes: usize,
    /// The request, as often as a connection keeps outstanding.
    requests: Vec<u8>,
    run_state: RunState,
    next_check_ns: u64,
    timer: PacingTimer,
    /// Connections whose first request has no response yet.
    awaiting_first: u32,
    /// Requests without a response, on all connections.
    in_flight: u64,
    backlog: Backlog,
}

impl<'a> LoadWorker<'a> {
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub(crate) fn new(
        spec: &'a LoadSpec,
        index: WorkerIndex,
        commands: Arc<CommandSlot>,
        reports: Sender<Message>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new().map_err(|error| error.source)?;
        epoll
            .add(commands.waker(), WAKER, Interest::READ)
            .map_err(|error| error.source)?;
        let timer = PacingTimer::new()?;
        for (timer, token) in timer.fds().into_iter().zip(TIMERS) {
            epoll.add(timer, token, Interest::READ).map_err(|error| error.source)?;
        }
        let now_ns = clock::monotonic_ns();
        let is_open_loop = !matches!(spec.mode, Mode::Closed { .. });
        let pool = Pool::new(spec, index, epoll, now_ns);
        let mut recorder = Recorder::new(spec.verifies, is_open_loop);
        recorder.stats.connections.wanted = u64::from(spec.connections_of(index.0, index.1));
        Ok(Self {
            spec,
            index,
            run_state: RunState::new(Arc::clone(&commands)),
            commands,
            reports,
            pool,
            pace: Pace::Held,
            recorder,
            context: ReaderContext::new(spec.is_head, spec.verifies),
            buffer: PageBuffer::zeroed(BUFFER_BYTES).map_err(|error| error.source)?,
            room_bytes: BUFFER_BYTES,
            requests: spec.request.repeat(spec.pipeline()),
            next_check_ns: now_ns,
            timer,
            awaiting_first: 0,
            in_flight: 0,
            backlog: Backlog::default(),
        })
    }

    /// Runs to the end and reports its statistics.
    pub(crate) fn run(mut self) {
        // The default timer slack of the kernel is 50 µs.
        let _ = clock::set_timer_slack_ns(1);
        let mut events = Vec::new();
        while !self.run_state.is_over() {
            let now_ns = clock::monotonic_ns();
            self.advance_run(now_ns);
            self.open_connections(now_ns);
            self.send_due(now_ns);
            if self.in_flight > 0 || self.pool.is_connecting() {
                self.next_check_ns = self.next_check_ns.min(now_ns + CHECK_NS);
            }
            if now_ns >= self.next_check_ns {
                self.check(now_ns);
            }
            if let Err(error) = self.wait(&mut events) {
                let text = format!("cannot wait for connections: {error}");
                let _ = self.reports.send(Message::Failed(text));
                return;
            }
            for event in &events {
                self.handle(event);
            }
        }
        self.finish();
    }

    /// Enters the next phase on a command or when its time has come.
    fn advance_run(&mut self, now_ns: u64) {
        let is_ramped = self.pool.is_ramp_through() && self.awaiting_first == 0;
        match self.run_state.step(self.spec, now_ns, is_ramped, self.in_flight) {
            Some(Transition::Ramped) => {
                let opened = self.pool.open_count();
                self.recorder.stats.connections.opened = opened;
                let _ = self.reports.send(Message::Ramped { opened });
            }
            Some(Transition::Begin(window)) => {
                self.recorder.set_window(window);
                self.pace = Pace::new(self.spec, window.begin_ns, self.index);
            }
            Some(Transition::End { is_stopped }) => self.end_load(now_ns, is_stopped),
            None => {}
        }
    }

    /// The window has ended. What was due in it is still sent on free connections: this thread is late.
    fn end_load(&mut self, now_ns: u64, is_stopped: bool) {
        if !is_stopped {
            self.send_due(now_ns);
        }
        if self.run_state.window().is_some() {
            self.drain(now_ns, is_stopped);
        }
    }

    /// Ends sending.
    fn drain(&mut self, now_ns: u64, is_stopped: bool) {
        self.recorder.stats.connections.open_at_end = self.pool.open_count();
        self.pool.stop_opening();
        if let Some(window) = self.run_state.window().filter(|_| !is_stopped) {
            self.pace.abandon(window.end_ns, now_ns, &mut self.recorder);
        }
        let timeout_ns = if is_stopped { 0 } else { self.spec.timeout_ns };
        self.run_state.drain(now_ns.saturating_add(timeout_ns));
    }

    fn open_connections(&mut self, now_ns: u64) {
        for number in self.pool.open_due(now_ns, &mut self.recorder) {
            self.opened(number);
        }
    }

    /// A connection is open: it is free, after a first request if one is required.
    fn opened(&mut self, number: u32) {
        let is_first = self
            .pool
            .get_mut(number)
            .is_some_and(|connection| !connection.was_ready);
        if !is_first || !self.spec.sends_first_request {
            self.pool.release(number);
            return;
        }
        self.awaiting_first += 1;
        self.send(number, 1, clock::monotonic_ns());
    }

    /// Sends due requests on free connections.
    fn send_due(&mut self, now_ns: u64) {
        let Some(window) = self.run_state.window() else {
            return;
        };
        self.pace.end_pauses(now_ns, |number| self.pool.release(number));
        let is_open_loop = matches!(self.pace, Pace::Open(_));
        let count = if is_open_loop { 1 } else { self.spec.pipeline() };
        let due = |pace: &Pace| pace.due(now_ns).filter(|due_ns| *due_ns < window.end_ns);
        while let Some(due_ns) = due(&self.pace) {
            let Some(number) = self.pool.take_free() else {
                break;
            };
            self.pace.take();
            self.send(number, count, due_ns);
        }
        let left_ns = due(&self.pace).filter(|_| is_open_loop);
        let timeout_ns = self.spec.timeout_ns;
        if self.backlog.note_left(left_ns, now_ns, timeout_ns, &mut self.recorder) {
            // What is due now is all that will be.
            self.run_state.cut(now_ns);
            self.drain(now_ns, false);
        }
    }

    fn handle(&mut self, event: &Ready) {
        if event.token == WAKER {
            self.commands.waker().drain();
            return;
        }
        if let Some(index) = TIMERS.iter().position(|token| *token == event.token) {
            return self.timer.acknowledge(index);
        }
        let Ok(number) = u32::try_from(event.token) else {
            return;
        };
        let Some(connection) = self.pool.get_mut(number) else {
            return;
        };
        if connection.connecting_since().is_some() {
            let now_ns = clock::monotonic_ns();
            if let Some(number) = self.pool.arrived(number, now_ns, &mut self.recorder) {
                self.opened(number);
            }
            return;
        }
        if event.writable && connection.unsent_bytes > 0 {
            self.pool.watch_writing(number, false);
            self.write(number);
        }
        if event.readable || event.error || event.hangup {
            self.read(number);
        }
    }

    /// Periodic work: timeouts, and the second that is complete.
    fn check(&mut self, now_ns: u64) {
        self.pool.expire_connects(now_ns, &mut self.recorder);
        let sent_before_ns = now_ns.saturating_sub(self.spec.timeout_ns);
        // With nothing in flight ten thousand idle connections need no scan.
        let overdue = if self.in_flight > 0 {
            self.pool.overdue(sent_before_ns)
        } else {
            Vec::new()
        };
        for number in overdue {
            let was_ready = self.pool.get_mut(number).is_some_and(|connection| connection.was_ready);
            let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
            self.forget_first_request(was_ready, &lost);
            self.fail(lost, ErrorClass::Timeout, "no complete response in time");
        }
        if let Some(second) = self.recorder.finished_second(now_ns) {
            let _ = self.reports.send(Message::Second(second));
        }
        // A second reported late contains responses of the next one.
        self.next_check_ns = (now_ns + IDLE_CHECK_NS).min(self.recorder.second_ends_ns());
    }

    /// Waits for readiness or the next deadline.
    fn wait(&mut self, events: &mut Vec<Ready>) -> io::Result<()> {
        let until_ns = self.next_ns();
        if until_ns <= clock::monotonic_ns() {
            return self.pool.wait(events, Some(Duration::ZERO));
        }
        // An open loop knows the time of the following request as well.
        let then_ns = self.pace.following_ns().filter(|_| self.may_send());
        self.timer.arm(until_ns, then_ns)?;
        self.pool.wait(events, None)
    }

    /// The next deadline.
    fn next_ns(&self) -> u64 {
        let mut until_ns = self.next_check_ns;
        if let Some(open_ns) = self.pool.next_open_ns() {
            until_ns = until_ns.min(open_ns);
        }
        if let Some(end_ns) = self.run_state.ends_ns() {
            until_ns = until_ns.min(end_ns);
        }
        if let Some(due_ns) = self.pace.next_ns().filter(|_| self.may_send()) {
            until_ns = until_ns.min(due_ns.saturating_sub(if self.spec.spins { SPUN_NS } else { 0 }));
        }
        until_ns
    }

    /// Whether the next due request can be sent when its time comes.
    fn may_send(&self) -> bool {
        self.run_state.window().is_some() && (self.pool.has_free() || !self.pace.needs_free())
    }

    /// Counts requests without a response, and reports.
    fn finish(mut self) {
        let is_stopped = self.run_state.is_stopped();
        for number in self.pool.numbers() {
            let lost = self.pool.get_mut(number).map(|connection| connection.close());
            if !is_stopped {
                self.fail(
                    lost.unwrap_or_default(),
                    ErrorClass::Timeout,
                    "no complete response in time",
                );
            }
        }
        if let Some(second) = self.recorder.last_second() {
            let _ = self.reports.send(Message::Second(second));
        }
        let _ = self.reports.send(Message::Finished(Box::new(self.recorder.stats)));
    }
}

const WAKER: u64 = u64::MAX;
const TIMERS: [u64; 2] = [u64::MAX - 1, u64::MAX - 2];
/// One receive buffer per thread.
const BUFFER_BYTES: usize = 256 * 1024;
/// Resolution of timeouts.
const CHECK_NS: u64 = 100_000_000;
/// Without requests in flight: wake-ups are the cost of idle connections.
const IDLE_CHECK_NS: u64 = 1_000_000_000;
/// Busy-waiting before a due time.
const SPUN_NS: u64 = 50_000;
