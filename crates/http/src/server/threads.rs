//! Server threads, each with its own event loop.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use linerate_sys::OsError;
use linerate_sys::poll::EventFd;

use super::responses::ResponseWriter;
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

impl Thread {
    /// Starts a thread.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn start(
        number: usize,
        listeners: Vec<OwnedFd>,
        shared: Arc<Shared>,
        responses: ResponseWriter,
    ) -> Result<Self, StartError> {
        let counters = Arc::new(Counters::default());
        let waker = Arc::new(EventFd::new()?);
        let worker = Worker::new(listeners, &waker, shared, Arc::clone(&counters), responses)?;
        let handle = thread::Builder::new()
            .name(format!("http-serve-{number}"))
            // The event loop ends early only if epoll_wait(2) fails.
            .spawn(move || drop(worker.run()))
            .map_err(StartError::Thread)?;
        Ok(Self { handle: Some(handle), waker, counters })
    }

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
