//! The transport of HTTP/1.1 in plain text: an event loop over the connections of a worker.

mod exchange;
mod pacing_timer;

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use linerate_model::http::ErrorClass;
use linerate_sys::poll::{Epoll, Interest, Ready};
use linerate_sys::{PageBuffer, clock, errno, socket};

use super::failure;
use super::opener::Opened;
use super::ramp::Loss;
use super::recorder::Sent;
use super::response::{ReaderContext, ResponseReader};
use super::worker::{LoadWorker, NO_RESPONSE_IN_TIME, Transport};
use pacing_timer::PacingTimer;

/// The connections of a worker, by number: each is a slot.
struct EventLoop {
    epoll: Epoll,
    connections: Vec<Connection>,
    context: ReaderContext,
    buffer: PageBuffer,
    /// Bytes read at a time outside of bodies.
    room_bytes: usize,
    /// The request, as often as a connection keeps outstanding.
    requests: Vec<u8>,
}

/// Runs a worker to its end.
///
/// # Errors
/// The operating system's, for instance `EMFILE`.
pub(crate) fn run(mut worker: LoadWorker) -> io::Result<()> {
    let mut timer = PacingTimer::new()?;
    let mut event_loop = EventLoop::new(&worker, &timer)?;
    let mut events = Vec::new();

    while !worker.run_state.is_over() {
        let now_ns = clock::monotonic_ns();
        worker.advance_run(now_ns, &mut event_loop);

        while let Some((number, opened)) = worker.open_next(now_ns) {
            event_loop.connect(&mut worker, number, opened, now_ns);
        }

        worker.send_due(now_ns, &mut event_loop);
        if worker.is_check_due(now_ns) {
            event_loop.check_timeouts(&mut worker, now_ns);
            worker.report_second(now_ns);
        }

        event_loop.wait(&worker, &mut timer, &mut events)?;
        for event in &events {
            match TIMERS.iter().position(|token| *token == event.token) {
                Some(index) => timer.acknowledge(index),
                None => event_loop.handle(&mut worker, event),
            }
        }
    }

    worker.finish(
        event_loop
            .connections
            .iter_mut()
            .flat_map(Connection::close),
    );
    Ok(())
}

impl Transport for EventLoop {
    fn assign(&mut self, slot: u32, due_ns: u64, worker: &mut LoadWorker) -> bool {
        let is_free = self.connections[slot as usize].is_free();
        if is_free {
            self.send(worker, slot, worker.spec.pipeline(), due_ns);
        }
        is_free
    }
}

impl EventLoop {
    fn new(worker: &LoadWorker, timer: &PacingTimer) -> io::Result<Self> {
        let epoll = Epoll::new().map_err(|error| error.source)?;
        epoll
            .add(&worker.commands.waker, WAKER, Interest::READ)
            .map_err(|error| error.source)?;

        for (timer, token) in timer.fds().into_iter().zip(TIMERS) {
            epoll
                .add(timer, token, Interest::READ)
                .map_err(|error| error.source)?;
        }

        let spec = &worker.spec;
        Ok(Self {
            epoll,
            connections: (0..worker.connection_count())
                .map(|_| Connection::default())
                .collect(),
            context: ReaderContext::new(spec.is_head, spec.verifies),
            buffer: PageBuffer::zeroed(BUFFER_BYTES).map_err(|error| error.source)?,
            room_bytes: BUFFER_BYTES,
            // One send(2) takes all requests of a pipeline.
            requests: spec.request.repeat(spec.pipeline()),
        })
    }

    /// Waits for readiness or the next deadline.
    fn wait(
        &self,
        worker: &LoadWorker,
        timer: &mut PacingTimer,
        events: &mut Vec<Ready>,
    ) -> io::Result<()> {
        let until_ns = worker.next_ns();
        if until_ns <= clock::monotonic_ns() {
            // Arming a timer can cost more than a request on a guest
            // (docs/decisions/022-http-loops.md), and a deadline that has passed needs none.
            return self.epoll.wait(events, Some(Duration::ZERO));
        }

        // An open loop knows the time of the following request as well.
        timer.arm(until_ns, worker.following_ns())?;
        self.epoll.wait(events, None)
    }

    fn handle(&mut self, worker: &mut LoadWorker, event: &Ready) {
        if event.token == WAKER {
            worker.commands.waker.drain();
            return;
        }

        let Ok(number) = u32::try_from(event.token) else {
            return;
        };
        let connection = &mut self.connections[number as usize];
        // Every event ends an attempt, and `arrived` reads its result.
        if connection.connecting_since_ns.is_some() {
            return self.arrived(worker, number, clock::monotonic_ns());
        }

        // `write` registers for writability again if the send buffer fills once more.
        if event.writable && connection.unsent_bytes > 0 {
            self.watch_writing(number, false);
            self.write(worker, number);
        }

        // recv(2) returns the error or the end of the connection.
        if event.readable || event.error || event.hangup {
            self.read(worker, number);
        }
    }

    /// Takes a socket whose opening was started.
    fn connect(&mut self, worker: &mut LoadWorker, number: u32, opened: Opened, now_ns: u64) {
        let interest = if opened.is_connected {
            Interest::READ
        } else {
            Interest::WRITE
        };
        if let Err(error) = self.epoll.add(&opened.socket, u64::from(number), interest) {
            return self.refuse(worker, number, &error.source);
        }

        self.connections[number as usize].connect(opened.socket, now_ns);
        if opened.is_connected {
            self.arrived(worker, number, now_ns);
        }
    }

    /// A socket is connected, or its connection failed.
    fn arrived(&mut self, worker: &mut LoadWorker, number: u32, now_ns: u64) {
        let connection = &mut self.connections[number as usize];
        let Some(socket) = connection.socket() else {
            return;
        };
        // Writability ends the attempt; `SO_ERROR` has its result (connect(2)).
        let settled = socket::take_error(socket)
            .and_then(|()| self.epoll.modify(socket, u64::from(number), Interest::READ));
        if let Err(error) = settled {
            return self.refuse(worker, number, &error.source);
        }

        let since_ns = connection.connecting_since_ns.take().unwrap_or(now_ns);
        if worker.arrived(number, now_ns.saturating_sub(since_ns)) {
            self.send(worker, number, 1, clock::monotonic_ns());
        } else {
            worker.release(number, false, now_ns);
        }
    }

    fn refuse(&mut self, worker: &mut LoadWorker, number: u32, error: &io::Error) {
        worker.refuse(
            failure::of_connect(error),
            &linerate_sys::error::io_text(error),
        );
        // Closing the descriptor removes it from the epoll set (epoll(7)).
        self.connections[number as usize].close();
    }

    /// Closes connections whose connect or response timeout has expired.
    fn check_timeouts(&mut self, worker: &mut LoadWorker, now_ns: u64) {
        if worker.is_connecting() {
            let before_ns = now_ns.saturating_sub(worker.spec.connect_timeout_ns);
            for number in self.since_before(before_ns, |connection| connection.connecting_since_ns)
            {
                self.refuse(
                    worker,
                    number,
                    &io::Error::from_raw_os_error(errno::ETIMEDOUT),
                );
            }
        }

        // With nothing in flight ten thousand idle connections need no scan.
        if worker.has_in_flight() {
            let before_ns = now_ns.saturating_sub(worker.spec.timeout_ns);
            for number in self.since_before(before_ns, Connection::oldest_sent_ns) {
                let loss = if worker.awaits_first(number) {
                    Loss::Unanswered
                } else {
                    Loss::Unannounced
                };
                self.fail(
                    worker,
                    number,
                    loss,
                    ErrorClass::Timeout,
                    NO_RESPONSE_IN_TIME,
                );
            }
        }
    }

    /// Connections with a time before this one.
    fn since_before(&self, before_ns: u64, since: fn(&Connection) -> Option<u64>) -> Vec<u32> {
        let numbered = (0..).zip(&self.connections);
        numbered
            .filter(|(_, connection)| {
                since(connection).is_some_and(|since_ns| since_ns < before_ns)
            })
            .map(|(number, _)| number)
            .collect()
    }

    /// Registers for writability, or only for readability.
    fn watch_writing(&self, number: u32, is_wanted: bool) {
        let interest = if is_wanted {
            Interest::BOTH
        } else {
            Interest::READ
        };
        if let Some(socket) = self.connections[number as usize].socket() {
            // Fails only for a socket that is not registered.
            let _ = self.epoll.modify(socket, u64::from(number), interest);
        }
    }
}

const WAKER: u64 = u64::MAX;
const TIMERS: [u64; 2] = [u64::MAX - 1, u64::MAX - 2];
/// One receive buffer per thread.
const BUFFER_BYTES: usize = 256 * 1024;

/// A connection and its outstanding requests: small, because ten thousand may be idle.
#[derive(Debug, Default)]
struct Connection {
    /// `None` while it is closed.
    socket: Option<OwnedFd>,
    /// When its opening was started; `None` once it is established.
    connecting_since_ns: Option<u64>,
    reader: ResponseReader,
    /// Requests without a response, the oldest first. Allocated by the first one.
    outstanding: VecDeque<Sent>,
    /// An incomplete header.
    kept: Option<Box<[u8]>>,
    /// Bytes of requests that did not fit into the send buffer.
    unsent_bytes: u32,
}

impl Connection {
    fn connect(&mut self, socket: OwnedFd, since_ns: u64) {
        self.socket = Some(socket);
        self.connecting_since_ns = Some(since_ns);
    }

    /// Closes it and resets its state; returns the outstanding requests.
    fn close(&mut self) -> VecDeque<Sent> {
        std::mem::take(self).outstanding
    }

    fn is_open(&self) -> bool {
        self.socket.is_some() && self.connecting_since_ns.is_none()
    }

    /// Ready for a request.
    fn is_free(&self) -> bool {
        self.is_open() && self.outstanding.is_empty()
    }

    /// When the oldest request without a response was sent.
    fn oldest_sent_ns(&self) -> Option<u64> {
        self.outstanding.front().map(|sent| sent.sent_ns)
    }

    fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(AsFd::as_fd)
    }

    /// Part of a response has arrived.
    fn has_begun(&self) -> bool {
        self.kept.is_some() || self.reader.has_begun()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_connection_is_small_and_owns_nothing() {
        assert!(
            size_of::<Connection>() <= 160,
            "{}",
            size_of::<Connection>()
        );
        assert_eq!(Connection::default().outstanding.capacity(), 0);
    }
}
