//! Answers the probes of one session, in a thread of its own: neither the control thread nor the
//! workers of a load may delay an answer.

mod connection;
mod flow;
mod meter;
pub(crate) mod transactions;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_model::path::TransactionSpec;
use linerate_native::wire::datagram::FlowId;
use linerate_native::wire::stream_head::StreamHead;
use linerate_sys::poll::{Epoll, EventFd, Interest};
use linerate_sys::{clock, scheduling};
use linerate_trust::ServerConfig;

use connection::ProbeConnection;
use flow::ProbeFlow;
pub(super) use meter::Meter;
use turn::Turn;

use crate::lock::lock;
use crate::server::limits::allotment::Allotted;
use crate::wait::time_until;

/// The thread, as the control thread sees it. It ends when this is dropped.
pub(super) struct Responder {
    tasks: Sender<Task>,
    wake: Arc<EventFd>,
    counts: Arc<Mutex<ProbeCounts>>,
    thread: Option<JoinHandle<()>>,
}

/// Work for the thread.
pub(super) enum Task {
    /// A phase begins: what earlier phases have left is closed.
    BeginPhase,
    /// A phase has ended: its transactions are closed. Its probes measure how its queues drain.
    EndPhase,
    /// A flow whose first datagram had a valid token.
    Flow {
        fd: OwnedFd,
        id: FlowId,
        allotted: Allotted,
    },
    /// A connection whose head had a valid token.
    Connection {
        fd: OwnedFd,
        head: StreamHead,
        transaction: Option<TransactionSpec>,
        allotted: Allotted,
    },
    /// The session ends.
    Quit,
}

/// Counts of arrivals so far.
#[derive(Clone, Copy, Default)]
pub(super) struct ProbeCounts {
    /// Distinct UDP probes.
    pub probes: u64,
    /// Requests that were answered.
    pub transactions: u64,
}

struct Worker {
    tasks: Receiver<Task>,
    wake: Arc<EventFd>,
    counts: Arc<Mutex<ProbeCounts>>,
    tls: ServerConfig,
    epoll: Epoll,
    meter: Meter,
    flows: BTreeMap<u64, ProbeFlow>,
    connections: BTreeMap<u64, ProbeConnection>,
    /// Those that a limit of the server lets move nothing before a time, monotonic ns.
    paused: BTreeSet<(u64, u64)>,
    next_token: u64,
    /// For what clients of transactions send.
    buffer: Vec<u8>,
    /// When idle connections were looked for last.
    idle_checked: Instant,
}

const WAKE: u64 = 0;
/// A connection that is silent for this long is closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// Longest wait, and the period in which idle connections are looked for.
const WAIT_MAX: Duration = Duration::from_secs(1);
/// Tasks that are taken before the connections are served again. Clients that open a connection per
/// request send the next one before the queue is empty, and their closed ones would stay open: 16
/// to 500 of 10,000 found no descriptor left.
const TASKS_PER_TURN: u32 = 4;
/// Most bytes that one call reads.
const BUFFER_BYTES: usize = 16 * 1024;

impl Responder {
    /// Starts the thread.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub(super) fn start(tls: ServerConfig, meter: Meter) -> std::io::Result<Self> {
        let (tasks, inbox) = mpsc::channel();
        let wake = Arc::new(EventFd::new()?);
        let epoll = Epoll::new()?;
        epoll.add(&wake, WAKE, Interest::READ)?;

        let counts = Arc::new(Mutex::new(ProbeCounts::default()));
        let worker = Worker {
            tasks: inbox,
            wake: Arc::clone(&wake),
            counts: Arc::clone(&counts),
            tls,
            epoll,
            meter,
            flows: BTreeMap::new(),
            connections: BTreeMap::new(),
            paused: BTreeSet::new(),
            next_token: WAKE + 1,
            buffer: vec![0; BUFFER_BYTES],
            idle_checked: Instant::now(),
        };
        // A thread per session: probes measure the path, so neither the control thread nor the
        // workers of a load may delay their answers.
        let thread = thread::Builder::new()
            .name("native-responder".into())
            .spawn(move || worker.run())?;

        Ok(Self {
            tasks,
            wake,
            counts,
            thread: Some(thread),
        })
    }

    /// Hands a task over.
    pub(super) fn push_task(&self, task: Task) {
        // The thread receives until `drop` ends it; before that the send cannot fail.
        let _ = self.tasks.send(task);
        self.wake.signal();
    }

    pub(super) fn counts(&self) -> ProbeCounts {
        *lock(&self.counts)
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        self.push_task(Task::Quit);
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has no result.
            let _ = thread.join();
        }
    }
}

impl Worker {
    fn run(mut self) {
        // Without raised priority an answer may wait behind the workers of a load.
        let _ = scheduling::wake_soon();
        let _ = clock::set_timer_slack_ns(1);

        let mut events = Vec::new();
        loop {
            // An interrupted wait is repeated.
            let _ = self.epoll.wait(&mut events, Some(self.wait_max()));
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

            self.resume_paused();
            self.close_idle();
        }
    }

    fn wait_max(&self) -> Duration {
        let paused = self.paused.first();
        paused.map_or(WAIT_MAX, |(until_ns, _)| {
            time_until(*until_ns).min(WAIT_MAX)
        })
    }

    /// Takes some of the tasks; false when the session ends. The event loop comes back for the
    /// others.
    fn take_tasks(&mut self) -> bool {
        for _ in 0..TASKS_PER_TURN {
            let Ok(task) = self.tasks.try_recv() else {
                return true;
            };
            match task {
                Task::BeginPhase => {
                    // The tokens of the earlier phase are revoked; its sockets would only hold
                    // descriptors of the session's allotment.
                    self.flows.clear();
                    self.connections.clear();
                }
                Task::EndPhase => self
                    .connections
                    .retain(|_, connection| !connection.has_transactions()),
                Task::Flow { fd, id, allotted } => self.add_flow(fd, id, allotted),
                Task::Connection {
                    fd,
                    head,
                    transaction,
                    allotted,
                } => {
                    let connection =
                        ProbeConnection::new(fd, &head, transaction, &self.tls, allotted);
                    self.add_connection(connection);
                }
                Task::Quit => return false,
            }
        }

        // The channel may hold more; the event makes this thread return after the sockets had their
        // turn.
        self.wake.signal();
        true
    }

    fn add_flow(&mut self, fd: OwnedFd, id: FlowId, allotted: Allotted) {
        let token = self.new_token();
        if self.epoll.add(&fd, token, Interest::READ).is_ok() {
            self.flows.insert(token, ProbeFlow::new(fd, id, allotted));
            // At once: the first probe has usually arrived with the head.
            self.on_ready(token);
        }
    }

    fn add_connection(&mut self, connection: ProbeConnection) {
        let token = self.new_token();
        if self
            .epoll
            .add(connection.fd(), token, connection.interest())
            .is_ok()
        {
            self.connections.insert(token, connection);
            self.on_ready(token);
        }
    }

    fn new_token(&mut self) -> u64 {
        let token = self.next_token;
        self.next_token += 1;
        token
    }

    fn on_ready(&mut self, token: u64) {
        if self.flows.contains_key(&token) {
            self.advance_flow(token);
        } else if self.connections.contains_key(&token) {
            self.advance_connection(token);
        }
    }

    fn advance_flow(&mut self, token: u64) {
        let Some(flow) = self.flows.get_mut(&token) else {
            return;
        };
        let read = flow.answer(&self.meter);

        lock(&self.counts).probes += read.probes;

        if read.has_ended {
            self.flows.remove(&token);
        } else if let Some(until_ns) = read.not_before_ns {
            self.pause(token, until_ns);
        }
    }

    fn advance_connection(&mut self, token: u64) {
        let Some(connection) = self.connections.get_mut(&token) else {
            return;
        };
        match connection.advance(&mut self.buffer, &self.meter) {
            Ok(Turn::Answered(requests)) => {
                if let Some(interest) = connection.changed_interest() {
                    let _ = self.epoll.modify(connection.fd(), token, interest);
                }

                lock(&self.counts).transactions += requests;
            }
            Ok(Turn::NotBefore(until_ns)) => self.pause(token, until_ns),
            // The client ends its probes by closing them; anything else is its failure.
            Err(_) => drop(self.connections.remove(&token)),
        }
    }

    /// Waits for nothing of this socket until then.
    fn pause(&mut self, token: u64, until_ns: u64) {
        let flow = self.flows.get(&token).map(ProbeFlow::fd);
        let Some(fd) = flow.or_else(|| self.connections.get(&token).map(ProbeConnection::fd))
        else {
            return;
        };

        // Registered without an interest it would still wake for a connection that the client has
        // closed.
        if self.epoll.remove(fd).is_ok() {
            self.paused.insert((until_ns, token));
        }
    }

    fn resume_paused(&mut self) {
        let now_ns = clock::monotonic_ns();
        while let Some((_, token)) = self
            .paused
            .first()
            .copied()
            .filter(|(until_ns, _)| *until_ns <= now_ns)
        {
            self.paused.pop_first();

            let flow = self
                .flows
                .get(&token)
                .map(|flow| (flow.fd(), Interest::READ));
            let connection = self
                .connections
                .get(&token)
                .map(|connection| (connection.fd(), connection.interest()));
            if let Some((fd, interest)) = flow.or(connection) {
                let _ = self.epoll.add(fd, token, interest);
            }
        }
    }

    fn close_idle(&mut self) {
        let now = Instant::now();
        if now.duration_since(self.idle_checked) < WAIT_MAX {
            return;
        }

        self.idle_checked = now;
        self.connections
            .retain(|_, connection| now.duration_since(connection.active()) < IDLE_TIMEOUT);
    }
}
