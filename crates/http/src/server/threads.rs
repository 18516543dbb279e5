//! Server threads, each with its own event loop.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use linerate_sys::OsError;
use linerate_sys::poll::EventFd;

use super::content::Content;
use super::responses::ResponseWriter;
use super::spec::ServerSpec;
use super::stats::{Counters, ThreadStats};
use super::worker::{Shared, Worker};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// A listener could not be opened, or descriptors are exhausted.
    #[error("{0}")]
    System(#[from] OsError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] std::io::Error),
}

/// A server thread.
#[derive(Debug)]
pub(super) struct Thread {
    handle: Option<JoinHandle<()>>,
    waker: Arc<EventFd>,
    counters: Arc<Counters>,
}

/// Inputs shared by all threads.
pub(super) struct ThreadInputs<'a> {
    pub(super) spec: &'a ServerSpec,
    pub(super) content: Arc<Content>,
    pub(super) shared: Arc<Shared>,
}

impl Thread {
    pub(super) fn stats(&self) -> ThreadStats {
        self.counters.snapshot()
    }

    /// Makes the event loop check the stop flag.
    pub(super) fn wake(&self) {
        self.waker.signal();
    }

    /// Waits for the thread; its statistics outlive a panic.
    pub(super) fn join(&mut self) {
        let _ = self.handle.take().map(JoinHandle::join);
    }
}

impl ThreadInputs<'_> {
    /// Starts a thread.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn start(&self, number: usize, listeners: Vec<OwnedFd>) -> Result<Thread, StartError> {
        let counters = Arc::new(Counters::default());
        let waker = Arc::new(EventFd::new()?);
        let responses =
            ResponseWriter::new(Arc::clone(&self.content), !self.spec.without_date, self.spec.server_header.as_deref());
        let shared = Arc::clone(&self.shared);
        let worker = Worker::new(listeners, &waker, shared, Arc::clone(&counters), responses)?;
        let handle = thread::Builder::new()
            .name(format!("http-serve-{number}"))
            // The event loop ends early only if epoll_wait(2) fails.
            .spawn(move || drop(worker.run()))
            .map_err(StartError::Thread)?;
        Ok(Thread { handle: Some(handle), waker, counters })
    }
}
