//! Interrupts of a test from outside.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::time::Instant;

use linerate_model::policy::ServerPolicy;
use linerate_sys::poll::EventFd;
use linerate_sys::signal::Signals;

/// Settings of a server, and what the operator should know about them; or why there are none.
pub type Settings = Result<(ServerPolicy, Vec<String>), String>;

/// A source of stop requests that a control thread can wait for.
pub trait Interrupts {
    /// Readable when [`Interrupts::take`] has something.
    fn fd(&self) -> BorrowedFd<'_>;
    /// The next request, as text such as `Interrupt(2)`.
    fn take(&self) -> Option<String>;
    /// True if the files of a server's settings are to be read again; read after
    /// [`Interrupts::take`].
    fn take_reload(&self) -> bool {
        false
    }
    /// Settings that replace those of the server then, as far as they can change while it runs.
    fn settings(&self) -> Option<Settings> {
        None
    }
    /// A server's control thread is at work. Returns when it has to call this again at the latest.
    fn alive(&self) -> Option<Instant> {
        None
    }
}

impl Interrupts for Signals {
    fn fd(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    fn take(&self) -> Option<String> {
        let signal = Self::take(self).ok().flatten()?;
        Some(format!("{}({})", signal.description(), signal.number()))
    }
}

/// Stops an engine from another thread of the same process.
#[derive(Debug, Clone)]
pub struct StopHandle {
    event: Arc<EventFd>,
    requested: Arc<std::sync::atomic::AtomicBool>,
}

impl StopHandle {
    /// A handle without a request.
    ///
    /// # Errors
    /// When the system has no descriptor left.
    pub fn new() -> linerate_sys::Result<Self> {
        Ok(Self {
            event: Arc::new(EventFd::new()?),
            requested: Arc::default(),
        })
    }

    /// Requests a stop.
    pub fn stop(&self) {
        self.requested
            .store(true, std::sync::atomic::Ordering::Release);
        self.event.signal();
    }
}

impl Interrupts for StopHandle {
    fn fd(&self) -> BorrowedFd<'_> {
        self.event.as_fd()
    }

    fn take(&self) -> Option<String> {
        self.event.drain();
        self.requested
            .swap(false, std::sync::atomic::Ordering::AcqRel)
            .then(|| "Stop(0)".to_owned())
    }
}
