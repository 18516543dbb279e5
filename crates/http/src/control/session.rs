//! State that the thread of a connection shares with the acceptor of the control channel.

use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use linerate_sys::OsError;
use linerate_sys::poll::EventFd;

/// Whether the channel closes.
#[derive(Debug)]
pub(super) struct Closing {
    is_set: AtomicBool,
    waker: EventFd,
}

impl Closing {
    pub(super) fn new() -> Result<Self, OsError> {
        Ok(Self { is_set: AtomicBool::new(false), waker: EventFd::new()? })
    }

    pub(super) fn begin(&self) {
        self.is_set.store(true, Ordering::Release);
        self.waker.signal();
    }

    pub(super) fn has_begun(&self) -> bool {
        self.is_set.load(Ordering::Acquire)
    }

    /// Readable once the channel closes.
    pub(super) fn waker(&self) -> &EventFd {
        &self.waker
    }
}

/// What the thread of a connection shares with the acceptor.
pub(super) struct Session {
    stream: TcpStream,
    closing: Arc<Closing>,
    /// The client is authenticated, or needs no token.
    is_authenticated: AtomicBool,
    /// Disconnects when the last connection has ended.
    _running: Sender<()>,
}

impl Session {
    pub(super) fn new(stream: TcpStream, closing: Arc<Closing>, running: Sender<()>) -> Self {
        Self { stream, closing, is_authenticated: AtomicBool::new(false), _running: running }
    }

    pub(super) fn is_authenticated(&self) -> bool {
        self.is_authenticated.load(Ordering::Relaxed)
    }

    /// Protects the connection from being replaced.
    pub(super) fn authenticate(&self) {
        self.is_authenticated.store(true, Ordering::Relaxed);
    }

    /// Whether the channel closes.
    pub(super) fn is_closing(&self) -> bool {
        self.closing.has_begun()
    }

    /// Shuts down the connection; a closed one needs no shutdown.
    pub(super) fn shut_down(&self, how: Shutdown) {
        let _ = self.stream.shutdown(how);
    }
}
