//! The threads of a server, each with its own loop.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use linerate_sys::poll::EventFd;

use super::StartError;
use super::answers::Answers;
use super::body_path::BodyPaths;
use super::content::Content;
use super::figures::{Counters, ThreadFigures};
#[cfg(feature = "tls")]
use super::hyper_worker::{Host, HyperWorker, Identity};
use super::spec::ServerSpec;
use super::worker::{Shared, Worker};

/// A thread that serves.
#[derive(Debug)]
pub(super) struct Thread {
    handle: Option<JoinHandle<()>>,
    bell: Bell,
    counters: Arc<Counters>,
}

/// What wakes a thread.
#[derive(Debug, Clone)]
enum Bell {
    Own(Arc<EventFd>),
    #[cfg(feature = "tls")]
    Hyper(Arc<tokio::sync::Notify>),
}

/// A thread that is about to be started: what it does, and what wakes it.
type Prepared = (Box<dyn FnOnce() + Send>, Bell);

/// What all threads are made of.
pub(super) struct Makings<'a> {
    pub(super) spec: &'a ServerSpec,
    pub(super) content: Arc<Content>,
    pub(super) body_paths: BodyPaths,
    pub(super) shared: Arc<Shared>,
    pub(super) speaker: Speaker,
}

/// Who speaks with clients.
pub(super) enum Speaker {
    /// Our own loop.
    Own,
    /// hyper, inside TLS where there is an identity.
    #[cfg(feature = "tls")]
    Hyper(Option<Identity>),
}

impl Thread {
    pub(super) fn figures(&self) -> ThreadFigures {
        self.counters.snapshot()
    }

    /// Lets the thread look whether it shall stop.
    pub(super) fn ring(&self) {
        match &self.bell {
            Bell::Own(bell) => bell.signal(),
            #[cfg(feature = "tls")]
            Bell::Hyper(bell) => bell.notify_one(),
        }
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
        let (run, bell) = self.prepare(listeners, Arc::clone(&counters))?;
        let handle = thread::Builder::new()
            .name(format!("http-serve-{number}"))
            .spawn(run)
            .map_err(StartError::Thread)?;
        Ok(Thread {
            handle: Some(handle),
            bell,
            counters,
        })
    }

    /// A kernel that refuses to wait for events ends a thread; nothing is left to be done then.
    fn prepare(&self, listeners: Vec<OwnedFd>, counters: Arc<Counters>) -> Result<Prepared, StartError> {
        match &self.speaker {
            Speaker::Own => {
                let bell = Arc::new(EventFd::new()?);
                let answers = Answers::new(
                    Arc::clone(&self.content),
                    self.body_paths,
                    !self.spec.without_date,
                    self.spec.server_header.as_deref(),
                );
                let worker = Worker::new(listeners, &bell, Arc::clone(&self.shared), counters, answers)?;
                Ok((Box::new(move || drop(worker.run())), Bell::Own(bell)))
            }
            #[cfg(feature = "tls")]
            Speaker::Hyper(identity) => {
                let host = Host {
                    tls: identity.as_ref().map(|identity| identity.acceptor.clone()),
                    shared: Arc::clone(&self.shared),
                    counters,
                    content: Arc::clone(&self.content),
                    server_header: self.spec.server_header.clone(),
                    without_date: self.spec.without_date,
                };
                let worker = HyperWorker::new(listeners, host).map_err(StartError::Thread)?;
                let bell = Arc::new(tokio::sync::Notify::new());
                let rung = Arc::clone(&bell);
                Ok((Box::new(move || worker.run(&rung)), Bell::Hyper(bell)))
            }
        }
    }
}
