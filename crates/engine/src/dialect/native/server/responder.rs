//! Answers the probes of one session, in a thread of its own: neither the control thread nor the workers of a load may delay
//! an answer.

mod connection;
mod flow;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_model::path::TransactionSpec;
use linerate_native::stream_head::StreamHead;
use linerate_sys::poll::{Epoll, EventFd, Interest};
use linerate_sys::{clock, scheduling};
use linerate_trust::ServerConfig;

use connection::ProbeConnection;
use flow::ProbeFlow;

/// The thread, as the control thread sees it. It ends when this is dropped.
pub(super) struct Responder {
    tasks: Sender<Task>,
    wake: Arc<EventFd>,
    counts: Arc<Mutex<ProbeCounts>>,
    thread: Option<JoinHandle<()>>,
}

/// What the thread takes over.
pub(super) enum Task {
    /// A flow whose knock was accepted.
    Flow { fd: OwnedFd, flow: u32, tag: u64 },
    /// A connection whose head was accepted.
    Connection { fd: OwnedFd, head: StreamHead, transaction: Option<TransactionSpec> },
    /// The session ends.
    Quit,
}

/// What arrived so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProbeCounts {
    /// Distinct UDP probes.
    pub(super) probes: u64,
    /// Datagrams that belong to no flow or have a wrong tag.
    pub(super) foreign: u64,
    /// Requests that were answered.
    pub(super) transactions: u64,
}

struct Worker {
    tasks: Receiver<Task>,
    wake: Arc<EventFd>,
    counts: Arc<Mutex<ProbeCounts>>,
    tls: ServerConfig,
    epoll: Epoll,
    flows: BTreeMap<u64, ProbeFlow>,
    connections: BTreeMap<u64, ProbeConnection>,
    next_token: u64,
    /// For what clients of transactions send.
    buffer: Vec<u8>,
    /// When idle connections were looked for last.
    idle_checked: Instant,
}

const WAKE: u64 = 0;
/// Connections of one session that may be open; the oldest is closed beyond that.
const CONNECTIONS_MAX: usize = 10_000;
/// A connection that brings nothing for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait, and the period in which idle connections are looked for.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Most bytes that one call reads.
const BUFFER_BYTES: usize = 16 * 1024;

impl Responder {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub(super) fn start(tls: ServerConfig) -> std::io::Result<Self> {
        let (tasks, inbox) = mpsc::channel();
        let wake = Arc::new(EventFd::new().map_err(std::io::Error::other)?);
        let epoll = Epoll::new().map_err(std::io::Error::other)?;
        epoll.add(wake.as_fd(), WAKE, Interest::READ).map_err(std::io::Error::other)?;
        let counts = Arc::new(Mutex::new(ProbeCounts::default()));
        let worker = Worker {
            tasks: inbox,
            wake: Arc::clone(&wake),
            counts: Arc::clone(&counts),
            tls,
            epoll,
            flows: BTreeMap::new(),
            connections: BTreeMap::new(),
            next_token: WAKE + 1,
            buffer: vec![0; BUFFER_BYTES],
            idle_checked: Instant::now(),
        };
        let thread = thread::Builder::new().name("native-responder".into()).spawn(move || worker.run())?;
        Ok(Self { tasks, wake, counts, thread: Some(thread) })
    }

    /// Hands a task over.
    pub(super) fn give(&self, task: Task) {
        // The thread receives until `drop` ends it; before that the send cannot fail.
        let _ = self.tasks.send(task);
        self.wake.signal();
    }

    pub(super) fn counts(&self) -> ProbeCounts {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.give(Task::Quit);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no result.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn run(mut self) {
        // Without the favour an answer may wait behind the workers of a load.
        let _ = scheduling::wake_soon();
        let _ = clock::set_timer_slack_ns(1);
        let mut events = Vec::new();
        loop {
            // An interrupted wait is repeated.
            let _ = self.epoll.wait(&mut events, Some(WAIT_MAX));
            for event in &events {
                if event.token == WAKE {
                    self.wake.drain();
                    if !self.take_tasks() {
                        return;
                    }
                } else {
                    self.on_ready(event.token);
                }
            }
            self.close_idle();
        }
    }

    /// False when the session ends.
    fn take_tasks(&mut self) -> bool {
        while let Ok(task) = self.tasks.try_recv() {
            let token = self.next_token;
            self.next_token += 1;
            match task {
                Task::Flow { fd, flow, tag } => {
                    if self.epoll.add(fd.as_fd(), token, Interest::READ).is_ok() {
                        self.flows.insert(token, ProbeFlow::new(fd, flow, tag));
                        self.on_ready(token);
                    }
                }
                Task::Connection { fd, head, transaction } => {
                    if self.connections.len() >= CONNECTIONS_MAX {
                        self.connections.pop_first();
                    }
                    if self.epoll.add(fd.as_fd(), token, Interest::READ).is_ok() {
                        let connection = ProbeConnection::new(fd, &head, transaction, &self.tls);
                        self.connections.insert(token, connection);
                        self.on_ready(token);
                    }
                }
                Task::Quit => return false,
            }
        }
        true
    }

    fn on_ready(&mut self, token: u64) {
        if let Some(flow) = self.flows.get_mut(&token) {
            let read = flow.answer();
            let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
            counts.probes += read.probes;
            counts.foreign += read.foreign;
            if read.is_over {
                self.flows.remove(&token);
            }
        } else if let Some(connection) = self.connections.get_mut(&token) {
            match connection.advance(&mut self.buffer) {
                Ok(transactions) => {
                    if let Some(interest) = connection.changed_interest() {
                        let _ = self.epoll.modify(connection.fd(), token, interest);
                    }
                    self.counts.lock().unwrap_or_else(PoisonError::into_inner).transactions += transactions;
                }
                // The client ends its probes by closing them; anything else is its failure.
                Err(_) => drop(self.connections.remove(&token)),
            }
        }
    }

    fn close_idle(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.idle_checked) < WAIT_MAX {
            return;
        }
        self.idle_checked = now;
        self.connections.retain(|_, connection| now.duration_since(connection.active()) < IDLE_TIMEOUT);
    }
}
