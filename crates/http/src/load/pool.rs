//! Connection pool of a worker: opens at a rate, hands out free connections, reopens lost ones.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use linerate_sys::poll::{Epoll, Interest, Ready};
use linerate_sys::{errno, socket};

use super::connection::Connection;
use super::failure;
use super::opener::Opener;
use super::ramp::{Loss, Ramp};
use super::recorder::{Recorder, Sent};
use super::schedule::WorkerIndex;
use super::spec::LoadSpec;

/// All connections of one worker, by number.
#[derive(Debug)]
pub(crate) struct Pool {
    epoll: Epoll,
    connections: Vec<Connection>,
    /// Free connections, the longest idle first. May contain some that are not free any more.
    free: VecDeque<u32>,
    opener: Opener,
    ramp: Ramp,
    reconnects_max: u8,
    connect_timeout_ns: u64,
    is_connecting: u32,
}

impl Pool {
    pub(crate) fn new(spec: &LoadSpec, index: WorkerIndex, epoll: Epoll, now_ns: u64) -> Self {
        let connections = spec.connections_of(index.0, index.1);
        Self {
            epoll,
            connections: (0..connections).map(|_| Connection::default()).collect(),
            free: VecDeque::new(),
            opener: Opener::new(spec, index),
            ramp: Ramp::new(connections, spec.ramp_per_s, spec.connects_in_flight, index, now_ns),
            reconnects_max: spec.reconnects_max,
            connect_timeout_ns: spec.connect_timeout_ns,
            is_connecting: 0,
        }
    }

    pub(crate) fn wait(&self, events: &mut Vec<Ready>, timeout: Option<Duration>) -> io::Result<()> {
        self.epoll.wait(events, timeout)
    }

    pub(crate) fn get_mut(&mut self, number: u32) -> Option<&mut Connection> {
        self.connections.get_mut(number as usize)
    }

    /// Opens connections that are due; returns those that are connected at once, as [`Self::arrived`] does.
    pub(crate) fn open_due(&mut self, now_ns: u64, recorder: &mut Recorder) -> Vec<u32> {
        let mut arrived = Vec::new();
        while let Some(number) = self.ramp.take(now_ns) {
            recorder.connecting();
            match self.open(number, now_ns) {
                Ok(true) => arrived.extend(self.arrived(number, now_ns, recorder)),
                Ok(false) => {}
                Err(error) => self.refuse(number, &error, recorder),
            }
        }
        arrived
    }

    fn open(&mut self, number: u32, now_ns: u64) -> io::Result<bool> {
        let opened = self.opener.open()?;
        let interest = if opened.is_connected {
            Interest::READ
        } else {
            Interest::WRITE
        };
        self.epoll
            .add(&opened.socket, u64::from(number), interest)
            .map_err(|error| error.source)?;
        if let Some(connection) = self.connections.get_mut(number as usize) {
            connection.connect(opened.socket, now_ns);
            self.is_connecting += 1;
        }
        Ok(opened.is_connected)
    }

    /// A connection could not be opened.
    fn refuse(&mut self, number: u32, error: &io::Error, recorder: &mut Recorder) {
        let class = failure::of_connect(error);
        for _ in 0..self.ramp.refused(class.is_client_limit()) {
            recorder.connection_failed(class, || linerate_sys::error::io_text(error));
        }
        if let Some(connection) = self.get_mut(number) {
            connection.close();
        }
    }

    /// Handles an event of a connecting socket; returns its number if it is connected.
    pub(crate) fn arrived(&mut self, number: u32, now_ns: u64, recorder: &mut Recorder) -> Option<u32> {
        self.is_connecting = self.is_connecting.saturating_sub(1);
        let connection = self.connections.get_mut(number as usize)?;
        let socket = connection.socket()?;
        let settled =
            socket::take_error(socket).and_then(|()| self.epoll.modify(socket, u64::from(number), Interest::READ));
        if let Err(error) = settled {
            self.refuse(number, &error.source, recorder);
            return None;
        }
        self.ramp.arrived();
        let since_ns = connection.establish()?;
        recorder.connected(now_ns.saturating_sub(since_ns));
        Some(number)
    }

    /// Closes connections whose connect timeout has expired.
    pub(crate) fn expire_connects(&mut self, now_ns: u64, recorder: &mut Recorder) {
        if self.is_connecting == 0 {
            return;
        }
        for number in 0..self.connections.len() as u32 {
            let since = self
                .get_mut(number)
                .and_then(|connection| connection.connecting_since());
            if since.is_some_and(|since_ns| now_ns.saturating_sub(since_ns) > self.connect_timeout_ns) {
                self.is_connecting -= 1;
                self.refuse(number, &io::Error::from_raw_os_error(errno::ETIMEDOUT), recorder);
            }
        }
    }

    /// Marks a connection as free.
    pub(crate) fn release(&mut self, number: u32) {
        self.free.push_back(number);
    }

    /// The free connection that has been idle longest.
    pub(crate) fn take_free(&mut self) -> Option<u32> {
        while let Some(number) = self.free.pop_front() {
            if self.connections.get(number as usize).is_some_and(Connection::is_free) {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn has_free(&self) -> bool {
        !self.free.is_empty()
    }

    /// Closes a connection and reopens it if allowed; returns its outstanding requests.
    pub(crate) fn lose(&mut self, number: u32, loss: Loss, recorder: &mut Recorder) -> VecDeque<Sent> {
        let Some(connection) = self.connections.get_mut(number as usize) else {
            return VecDeque::new();
        };
        let lost = connection.close();
        if self
            .ramp
            .lost(number, loss, &mut connection.losses, self.reconnects_max)
        {
            recorder.stats.connections.reconnects += 1;
        }
        lost
    }

    /// Registers for writability, or only for readability.
    pub(crate) fn watch_writing(&self, number: u32, is_wanted: bool) {
        let interest = if is_wanted { Interest::BOTH } else { Interest::READ };
        if let Some(socket) = self.connections.get(number as usize).and_then(Connection::socket) {
            // Fails only for a socket that is not registered.
            let _ = self.epoll.modify(socket, u64::from(number), interest);
        }
    }

    /// Opens no further connections.
    pub(crate) fn stop_opening(&mut self) {
        self.ramp.give_up();
    }

    pub(crate) fn is_ramp_through(&self) -> bool {
        self.ramp.is_through()
    }

    pub(crate) fn next_open_ns(&self) -> Option<u64> {
        self.ramp.next_ns()
    }

    /// Whether connections are being opened.
    pub(crate) fn is_connecting(&self) -> bool {
        self.is_connecting > 0
    }

    pub(crate) fn open_count(&self) -> u64 {
        self.connections
            .iter()
            .filter(|connection| connection.is_open())
            .count() as u64
    }

    pub(crate) fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.connections.len()).unwrap_or(u32::MAX)
    }

    /// Connections whose oldest request was sent before `before_ns`.
    pub(crate) fn overdue(&self, before_ns: u64) -> Vec<u32> {
        let is_overdue = |connection: &Connection| {
            let oldest = connection.outstanding.front();
            oldest.is_some_and(|sent| sent.sent_ns < before_ns)
        };
        let numbered = self.numbers().zip(&self.connections);
        numbered
            .filter(|(_, connection)| is_overdue(connection))
            .map(|(number, _)| number)
            .collect()
    }
}
