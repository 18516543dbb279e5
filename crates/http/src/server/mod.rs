//! A server of fixed payloads: `GET /b/SIZE`, `POST /sink`, and little else.
//!
//! It is there to be measured against, so its own cost per request and per idle connection is kept as low as the kernel
//! allows, and known: every thread counts what it does.

mod access;
mod answers;
mod asked;
mod body_path;
mod chunks;
mod content;
mod conversation;
mod date;
mod figures;
mod listeners;
mod outbox;
mod spec;
pub(crate) mod talk;
mod threads;
mod worker;

#[cfg(test)]
mod conversation_tests;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use linerate_sys::{OsError, cpu, process};

use access::Guests;
use content::Content;
use threads::{Makings, Thread};
use worker::Shared;

pub use asked::{BODY_BYTES_MAX, size};
pub use figures::{Figures, ThreadFigures};
pub use spec::{Access, Listen, PORT, ServerSpec, SocketSpec};

/// A server that runs. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    threads: Vec<Thread>,
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    backlog: Option<u32>,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A listener could not be opened, or a thread had no descriptors to work with.
    #[error("{0}")]
    System(#[from] OsError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// # Errors
    /// The operating system's, for instance an address in use.
    pub fn start(spec: &ServerSpec) -> Result<Self, StartError> {
        let count = spec.threads.unwrap_or_else(cpu::online_cpus).clamp(1, THREADS_MAX);
        let content = Arc::new(Content::default());
        let listeners = listeners::open(spec, count)?;
        let makings = Makings {
            spec,
            content,
            shared: Arc::new(shared(spec)),
        };
        let mut server = Self {
            threads: Vec::new(),
            shared: Arc::clone(&makings.shared),
            addresses: listeners.addresses,
            backlog: listeners::effective_backlog(spec.backlog),
        };
        for (number, listeners) in listeners.by_thread.into_iter().enumerate() {
            server.threads.push(makings.start(number, listeners)?);
        }
        Ok(server)
    }

    /// Where it listens, ports chosen by the kernel included.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// How many connections each listener may hold before they are accepted, as the kernel clipped it; `None` where it
    /// does not tell.
    #[must_use]
    pub fn backlog(&self) -> Option<u32> {
        self.backlog
    }

    /// Number of threads.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Most connections at a time.
    #[must_use]
    pub fn connections_max(&self) -> usize {
        self.shared.connections_max
    }

    /// What it has done so far.
    #[must_use]
    pub fn figures(&self) -> Figures {
        Figures {
            threads: self.threads.iter().map(Thread::figures).collect(),
        }
    }

    /// Ends all connections and threads, and says what was done in total.
    #[must_use]
    pub fn stop(mut self) -> Figures {
        self.halt();
        self.figures()
    }

    fn halt(&mut self) {
        self.shared.stop.store(true, Ordering::Release);
        self.threads.iter().for_each(Thread::ring);
        self.threads.iter_mut().for_each(Thread::join);
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.halt();
    }
}

fn shared(spec: &ServerSpec) -> Shared {
    Shared {
        guests: Guests::new(&spec.access),
        body_bytes_max: spec.body_bytes_max,
        idle_timeout: spec.idle_timeout,
        connections_max: spec.connections_max.unwrap_or_else(default_connections_max).max(1),
        open: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    }
}

/// 90 % of the descriptors the process may open; the rest is for listeners, files and those who are turned away.
fn default_connections_max() -> usize {
    let limit = process::raise_fd_limit().unwrap_or(DESCRIPTORS_ASSUMED);
    usize::try_from(limit / 10 * 9).unwrap_or(usize::MAX / 2)
}

/// More threads than that only take turns.
const THREADS_MAX: usize = 1024;
/// What Linux gives a process by default.
const DESCRIPTORS_ASSUMED: u64 = 1024;
