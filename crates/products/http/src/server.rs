//! A server of fixed payloads: `GET /b/SIZE`, `POST /sink`, and little else.
//!
//! A target for measurements: cost per request and per idle connection is as low as the kernel
//! allows, and counted per thread.

mod chunks;
mod content;
mod listeners;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/loopback_harness.rs"]
pub(crate) mod loopback_harness;
mod machine;
mod resource;
mod responses;
mod spec;
mod stats;
mod worker;
mod write_queue;

#[cfg(test)]
mod machine_tests;

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, JoinHandle};

use linerate_sys::poll::EventFd;
use linerate_sys::{OsError, cpu, process};

use content::{BodyPattern, Content};
use responses::ResponseWriter;
use stats::Counters;
use worker::{Shared, Worker};

pub use resource::CHUNK_BYTES_MIN;
pub(crate) use spec::local_networks;
pub use spec::{Access, Listen, PORT, ServerSpec, SocketSpec};
pub use stats::{ServerStats, ThreadStats};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener could not be opened, or descriptors are exhausted.
    #[error("{0}")]
    System(#[from] OsError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// A running server. Dropping it stops it.
#[derive(Debug)]
pub struct Server {
    threads: Vec<Thread>,
    shared: Arc<Shared>,
    addresses: Vec<SocketAddr>,
    backlog: Option<u32>,
}

impl Server {
    /// Starts a server; it accepts connections when this returns.
    ///
    /// # Errors
    /// The operating system's, for instance an address in use.
    pub fn start(spec: &ServerSpec) -> Result<Self, StartError> {
        let count = spec
            .threads
            .unwrap_or_else(cpu::online_cpus)
            .clamp(1, THREADS_MAX);
        let content = Arc::new(Content::default());

        // Created now, so that the first request does not wait for it.
        content.block(BodyPattern::Text);
        let listeners = listeners::open(spec, count)?;
        let mut server = Self {
            threads: Vec::new(),
            shared: Arc::new(shared(spec)),
            addresses: listeners.addresses,
            backlog: listeners::effective_backlog(spec.backlog),
        };

        for (number, listeners) in listeners.by_thread.into_iter().enumerate() {
            let responses = ResponseWriter::new(
                Arc::clone(&content),
                !spec.without_date,
                spec.server_header.as_deref(),
            );
            server.threads.push(Thread::start(
                number,
                listeners,
                Arc::clone(&server.shared),
                responses,
            )?);
        }

        Ok(server)
    }

    /// Listening addresses, with ports chosen by the kernel.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Accept queue of each listener as limited by the kernel; `None` where that is unknown.
    pub fn backlog(&self) -> Option<u32> {
        self.backlog
    }

    /// Number of threads.
    pub fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Limit of concurrent connections.
    pub fn connections_max(&self) -> usize {
        self.shared.connections_max
    }

    /// Statistics so far.
    pub fn stats(&self) -> ServerStats {
        ServerStats {
            threads: self
                .threads
                .iter()
                .map(|thread| thread.counters.snapshot())
                .collect(),
        }
    }

    /// Closes all connections, stops all threads and returns the final statistics.
    #[must_use]
    pub fn stop(mut self) -> ServerStats {
        self.stop_threads();
        self.stats()
    }

    fn stop_threads(&mut self) {
        // Stored before the wake-up: a thread that wakes must see it.
        self.shared.stop.store(true, Ordering::Release);
        // All are woken before the first is joined, so that they end at the same time.
        self.threads.iter().for_each(|thread| thread.waker.signal());
        for thread in &mut self.threads {
            // Its statistics outlive a panic.
            let _ = thread.handle.take().map(JoinHandle::join);
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop_threads();
    }
}

/// A server thread, with its own event loop.
#[derive(Debug)]
struct Thread {
    handle: Option<JoinHandle<()>>,
    waker: Arc<EventFd>,
    counters: Arc<Counters>,
}

impl Thread {
    /// Starts a thread.
    ///
    /// # Errors
    /// The operating system's.
    fn start(
        number: usize,
        listeners: Vec<OwnedFd>,
        shared: Arc<Shared>,
        responses: ResponseWriter,
    ) -> Result<Self, StartError> {
        let counters = Arc::new(Counters::default());
        // Without connections the loop waits without a timeout and would not notice the stop flag.
        let waker = Arc::new(EventFd::new()?);
        // Created in the calling thread, which can return the error.
        let worker = Worker::new(listeners, &waker, shared, Arc::clone(&counters), responses)?;
        let handle = thread::Builder::new()
            .name(format!("http-serve-{number}"))
            // The event loop ends early only if epoll_wait(2) fails.
            .spawn(move || drop(worker.run()))
            .map_err(StartError::Thread)?;

        Ok(Self {
            handle: Some(handle),
            waker,
            counters,
        })
    }
}

fn shared(spec: &ServerSpec) -> Shared {
    Shared {
        permitted: spec.access.networks(),
        body_bytes_max: spec.body_bytes_max,
        chunk_bytes_min: if spec.allow_tiny_chunks {
            1
        } else {
            CHUNK_BYTES_MIN
        },
        idle_timeout: spec.idle_timeout,
        connections_max: spec
            .connections_max
            .unwrap_or_else(default_connections_max)
            .max(1),
        open: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
    }
}

/// 90 % of the descriptor limit; the rest is for listeners, files and rejected connections.
fn default_connections_max() -> usize {
    let limit = process::raise_fd_limit().unwrap_or(DESCRIPTORS_ASSUMED);
    // Half of the range leaves room for the number of rejected connections that `admit` adds.
    usize::try_from(limit / 10 * 9).unwrap_or(usize::MAX / 2)
}

/// Upper bound of threads.
const THREADS_MAX: usize = 1024;
/// Default limit of Linux.
const DESCRIPTORS_ASSUMED: u64 = 1024;
