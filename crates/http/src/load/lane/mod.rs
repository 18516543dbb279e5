//! One thread of the generator: connections, a pace, and the loop that joins them.

mod alarm;
mod exchange;

use std::io;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use linerate_model::http::{ErrorClass, Mode};
use linerate_sys::poll::{Epoll, Interest, Ready};
use linerate_sys::{PageBuffer, clock};

use crate::load::answer::Reading;
use crate::load::backlog::Backlog;
use crate::load::course::{Course, Orders, Turn};
use crate::load::message::Message;
use crate::load::pace::Pace;
use crate::load::pool::Pool;
use crate::load::ramp::Loss;
use crate::load::recorder::Recorder;
use crate::load::spec::LoadSpec;
use alarm::Alarm;

/// One thread's share of a load.
pub(crate) struct Lane<'a> {
    spec: &'a LoadSpec,
    place: (u32, u32),
    orders: Arc<Orders>,
    reports: Sender<Message>,
    pool: Pool,
    pace: Pace,
    recorder: Recorder,
    reading: Reading,
    buffer: PageBuffer,
    /// How much of the buffer is used for what begins with a head.
    room_bytes: usize,
    /// The request, as often as a connection keeps outstanding.
    requests: Vec<u8>,
    course: Course,
    next_check_ns: u64,
    alarm: Alarm,
    /// Connections whose first request has no answer yet.
    touching: u32,
    /// Requests without an answer, on all connections.
    in_flight: u64,
    backlog: Backlog,
}

impl<'a> Lane<'a> {
    /// # Errors
    /// The operating system's, for instance `EMFILE`.
    pub(crate) fn new(
        spec: &'a LoadSpec,
        place: (u32, u32),
        orders: Arc<Orders>,
        reports: Sender<Message>,
    ) -> io::Result<Self> {
        let epoll = Epoll::new().map_err(|error| error.source)?;
        epoll
            .add(orders.bell(), BELL, Interest::READ)
            .map_err(|error| error.source)?;
        let alarm = Alarm::new()?;
        for (timer, token) in alarm.fds().into_iter().zip(ALARMS) {
            epoll.add(timer, token, Interest::READ).map_err(|error| error.source)?;
        }
        let now_ns = clock::monotonic_ns();
        let is_open_loop = !matches!(spec.mode, Mode::Closed { .. });
        let pool = Pool::new(spec, place, epoll, now_ns);
        let mut recorder = Recorder::new(spec.verifies, is_open_loop);
        recorder.tally.connections.wanted = u64::from(spec.connections_of(place.0, place.1));
        Ok(Self {
            spec,
            place,
            course: Course::new(Arc::clone(&orders)),
            orders,
            reports,
            pool,
            pace: Pace::Held,
            recorder,
            reading: Reading::new(spec.is_head, spec.verifies),
            buffer: PageBuffer::zeroed(BUFFER_BYTES).map_err(|error| error.source)?,
            room_bytes: BUFFER_BYTES,
            requests: spec.request.repeat(spec.pipeline()),
            next_check_ns: now_ns,
            alarm,
            touching: 0,
            in_flight: 0,
            backlog: Backlog::default(),
        })
    }

    /// Runs to the end and reports what was counted.
    pub(crate) fn run(mut self) {
        // Without it the kernel may wake this thread 50 µs late.
        let _ = clock::set_timer_slack_ns(1);
        let mut events = Vec::new();
        while !self.course.is_over() {
            let now_ns = clock::monotonic_ns();
            self.obey(now_ns);
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

    /// Carries out what was ordered, and what its time has come for.
    fn obey(&mut self, now_ns: u64) {
        let is_ramped = self.pool.is_ramp_through() && self.touching == 0;
        match self.course.step(self.spec, now_ns, is_ramped, self.in_flight) {
            Some(Turn::Ramped) => {
                let opened = self.pool.open_count();
                self.recorder.tally.connections.opened = opened;
                let _ = self.reports.send(Message::Ramped { opened });
            }
            Some(Turn::Begin(window)) => {
                self.recorder.set_window(window);
                self.pace = Pace::new(self.spec, window.begin_ns, self.place);
            }
            Some(Turn::End { is_stopped }) => self.end_load(now_ns, is_stopped),
            None => {}
        }
    }

    /// The window is over. What was due in it is still sent where a connection is free: it is this thread that is late.
    fn end_load(&mut self, now_ns: u64, is_stopped: bool) {
        if !is_stopped {
            self.send_due(now_ns);
        }
        if self.course.window().is_some() {
            self.drain(now_ns, is_stopped);
        }
    }

    /// Nothing is sent any more.
    fn drain(&mut self, now_ns: u64, is_stopped: bool) {
        self.recorder.tally.connections.open_at_end = self.pool.open_count();
        self.pool.stop_opening();
        if let Some(window) = self.course.window().filter(|_| !is_stopped) {
            self.pace.abandon(window.end_ns, now_ns, &mut self.recorder);
        }
        let patience_ns = if is_stopped { 0 } else { self.spec.timeout_ns };
        self.course.drain(now_ns.saturating_add(patience_ns));
    }

    fn open_connections(&mut self, now_ns: u64) {
        for number in self.pool.open_due(now_ns, &mut self.recorder) {
            self.opened(number);
        }
    }

    /// A connection is open: it is asked once where that is wanted, and free.
    fn opened(&mut self, number: u32) {
        let is_first = self
            .pool
            .get_mut(number)
            .is_some_and(|connection| !connection.was_ready);
        if !is_first || !self.spec.touches {
            self.pool.release(number);
            return;
        }
        self.touching += 1;
        self.send(number, 1, clock::monotonic_ns());
    }

    /// Sends what is due on connections that are free.
    fn send_due(&mut self, now_ns: u64) {
        let Some(window) = self.course.window() else {
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
            // What was due until now is all there is.
            self.course.cut(now_ns);
            self.drain(now_ns, false);
        }
    }

    fn handle(&mut self, event: &Ready) {
        if event.token == BELL {
            self.orders.bell().drain();
            return;
        }
        if let Some(place) = ALARMS.iter().position(|token| *token == event.token) {
            return self.alarm.silence(place);
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

    /// What is looked at now and then: deadlines, and the second that is over.
    fn check(&mut self, now_ns: u64) {
        self.pool.expire_connects(now_ns, &mut self.recorder);
        let sent_before_ns = now_ns.saturating_sub(self.spec.timeout_ns);
        // With nothing in flight ten thousand idle connections need not be looked at.
        let overdue = if self.in_flight > 0 {
            self.pool.overdue(sent_before_ns)
        } else {
            Vec::new()
        };
        for number in overdue {
            let is_touched = self.pool.get_mut(number).is_some_and(|connection| connection.was_ready);
            let lost = self.pool.lose(number, Loss::Unannounced, &mut self.recorder);
            self.forget_touch(is_touched, &lost);
            self.fail(lost, ErrorClass::Timeout, "no complete answer in time");
        }
        if let Some(second) = self.recorder.finished_second(now_ns) {
            let _ = self.reports.send(Message::Second(second));
        }
        // A second that is handed in late has answers of the next one, and halves of a window then seem to differ.
        self.next_check_ns = (now_ns + IDLE_CHECK_NS).min(self.recorder.second_ends_ns());
    }

    /// Waits until a connection is ready, or there is something to do.
    fn wait(&mut self, events: &mut Vec<Ready>) -> io::Result<()> {
        let until_ns = self.next_ns();
        if until_ns <= clock::monotonic_ns() {
            return self.pool.wait(events, Some(Duration::ZERO));
        }
        // Of an open loop the request after the next one is known as well.
        let then_ns = self.pace.following_ns().filter(|_| self.may_send());
        self.alarm.ring_by(until_ns, then_ns)?;
        self.pool.wait(events, None)
    }

    /// Until when there is nothing to do.
    fn next_ns(&self) -> u64 {
        let mut until_ns = self.next_check_ns;
        if let Some(open_ns) = self.pool.next_open_ns() {
            until_ns = until_ns.min(open_ns);
        }
        if let Some(end_ns) = self.course.ends_ns() {
            until_ns = until_ns.min(end_ns);
        }
        if let Some(due_ns) = self.pace.next_ns().filter(|_| self.may_send()) {
            until_ns = until_ns.min(due_ns.saturating_sub(if self.spec.spins { SPUN_NS } else { 0 }));
        }
        until_ns
    }

    /// Whether what is due next can be sent when its time comes.
    fn may_send(&self) -> bool {
        self.course.window().is_some() && (self.pool.has_free() || !self.pace.needs_free())
    }

    /// Counts what has no answer, and reports.
    fn finish(mut self) {
        let is_stopped = self.course.is_stopped();
        for number in self.pool.numbers() {
            let lost = self.pool.get_mut(number).map(|connection| connection.close());
            if !is_stopped {
                self.fail(
                    lost.unwrap_or_default(),
                    ErrorClass::Timeout,
                    "no complete answer in time",
                );
            }
        }
        if let Some(second) = self.recorder.last_second() {
            let _ = self.reports.send(Message::Second(second));
        }
        let _ = self.reports.send(Message::Finished(Box::new(self.recorder.tally)));
    }
}

const BELL: u64 = u64::MAX;
const ALARMS: [u64; 2] = [u64::MAX - 1, u64::MAX - 2];
/// One receive buffer per thread, however many connections it has.
const BUFFER_BYTES: usize = 256 * 1024;
/// How late a deadline may be noticed.
const CHECK_NS: u64 = 100_000_000;
/// Where there is none: waking up for nothing is what holding idle connections would cost.
const IDLE_CHECK_NS: u64 = 1_000_000_000;
/// Spent awake before a due time, where the user wants that.
const SPUN_NS: u64 = 50_000;
