//! Limits of the server on what a responder receives and sends, and what that was.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use linerate_sys::clock;

use crate::data::quota::{Grant, Quota, Traffic};
use crate::server::ByteTotals;

/// The quota of a session, and the bytes of its probes and transactions. Clones share both.
#[derive(Clone, Default)]
pub(crate) struct Meter {
    quota: Quota,
    received_bytes: Arc<AtomicU64>,
    sent_bytes: Arc<AtomicU64>,
}

/// Bytes that may be moved now.
pub(super) enum Room {
    /// This many bytes.
    Bytes(usize),
    /// Nothing before this monotonic time, ns.
    NotBefore(u64),
}

impl Meter {
    pub(crate) fn new(quota: Quota) -> Self {
        Self {
            quota,
            ..Self::default()
        }
    }

    pub(crate) fn totals(&self) -> ByteTotals {
        ByteTotals {
            received_bytes: self.received_bytes.load(Ordering::Relaxed),
            sent_bytes: self.sent_bytes.load(Ordering::Relaxed),
        }
    }

    /// # Errors
    /// When the amount of the session is used up.
    pub(super) fn room(&self, traffic: Traffic) -> io::Result<Room> {
        if self.quota.is_empty() {
            return Ok(Room::Bytes(usize::MAX));
        }

        match self.quota.grant(clock::monotonic_ns(), traffic) {
            Grant::Bytes(bytes) => Ok(Room::Bytes(bytes)),
            Grant::NotBefore(at_ns) => Ok(Room::NotBefore(at_ns)),
            Grant::UsedUp => Err(io::Error::other(
                "the amount that the server allows is used up",
            )),
        }
    }

    pub(crate) fn charge(&self, traffic: Traffic, received_bytes: u64, sent_bytes: u64) {
        self.received_bytes
            .fetch_add(received_bytes, Ordering::Relaxed);
        self.sent_bytes.fetch_add(sent_bytes, Ordering::Relaxed);

        if !self.quota.is_empty() {
            self.quota
                .charge(clock::monotonic_ns(), traffic, received_bytes + sent_bytes);
        }
    }
}
