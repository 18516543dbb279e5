//! Streams on their way to a worker.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use linerate_model::{StreamId, StreamRole};

use super::Pump;

/// Streams on their way to a worker that runs already.
#[derive(Default)]
pub(super) struct Inbox {
    is_full: AtomicBool,
    streams: Mutex<Vec<StreamAssignment>>,
}

impl Inbox {
    pub(super) fn put(&self, stream: StreamAssignment) {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        self.is_full.store(true, Ordering::Release);
    }

    pub(super) fn take(&self) -> Vec<StreamAssignment> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Vec::new();
        }
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_full.store(false, Ordering::Release);
        std::mem::take(&mut streams)
    }
}

/// A stream on its way to a worker.
pub(crate) struct StreamAssignment {
    pub(crate) id: StreamId,
    /// The socket of the pump.
    pub(crate) fd: Arc<OwnedFd>,
    /// What this end does on the stream; decides which readiness matters.
    pub(crate) role: StreamRole,
    pub(crate) pump: Box<dyn Pump>,
}
