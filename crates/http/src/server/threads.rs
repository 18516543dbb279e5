//! The threads of a server, each with its own loop.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use linerate_sys::poll::EventFd;

use super::StartError;
use super::answers::Answers;
use super::content::Content;
use super::figures::{Counters, ThreadFigures};
use super::spec::ServerSpec;
use super::worker::{Shared, Worker};

/// A thread that serves.
#[derive(Debug)]
pub(super) struct Thread {
    handle: Option<JoinHandle<()>>,
    bell: Arc<EventFd>,
    counters: Arc<Counters>,
}

/// What all threads are made of.
pub(super) struct Makings<'a> {
    pub(super) spec: &'a ServerSpec,
    pub(super) content: Arc<Content>,
    pub(super) shared: Arc<Shared>,
}

impl Thread {
    pub(super) fn figures(&self) -> ThreadFigures {
        self.counters.snapshot()
    }

    /// Lets the thread look whether it shall stop.
    pub(super) fn ring(&self) {
        self.bell.signal();
    }

    /// Waits for its end. A thread that panicked has nothing more to say than its figures.
    pub(super) fn join(&mut self) {
        let _ = self.handle.take().map(JoinHandle::join);
    }
}

impl Makings<'_> {
    /// Starts a thread.
    ///
    /// # Errors
    /// The operating system's.
    pub(super) fn start(&self, number: usize, listeners: Vec<OwnedFd>) -> Result<Thread, StartError> {
        let counters = Arc::new(Counters::default());
        let bell = Arc::new(EventFd::new()?);
        let answers = Answers::new(
            Arc::clone(&self.content),
            !self.spec.without_date,
            self.spec.server_header.as_deref(),
        );
        let shared = Arc::clone(&self.shared);
        let worker = Worker::new(listeners, &bell, shared, Arc::clone(&counters), answers)?;
        let handle = thread::Builder::new()
            .name(format!("http-serve-{number}"))
            // A kernel that refuses to wait for events ends a thread; nothing is left to be done then.
            .spawn(move || drop(worker.run()))
            .map_err(StartError::Thread)?;
        Ok(Thread {
            handle: Some(handle),
            bell,
            counters,
        })
    }
}
