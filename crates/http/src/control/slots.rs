//! Slots for the connections of the control channel.

use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use linerate_sys::OsError;
use linerate_sys::poll::EventFd;

/// Concurrent connections: a client needs two, one for requests and one for samples.
const CONNECTIONS_MAX: usize = 16;
/// Time for connections to finish when the channel closes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Slots of all connections of a channel, and whether it closes.
#[derive(Debug)]
pub(super) struct Slots {
    waker: EventFd,
    is_closing: AtomicBool,
    /// In the order of arrival.
    slots: Mutex<Vec<Slot>>,
    /// Notified when a slot is released.
    released: Condvar,
}

/// A connection.
#[derive(Debug)]
struct Slot {
    number: u64,
    stream: TcpStream,
    is_authenticated: bool,
}

impl Slots {
    pub(super) fn new() -> Result<Self, OsError> {
        Ok(Self {
            waker: EventFd::new()?,
            is_closing: AtomicBool::new(false),
            slots: Mutex::default(),
            released: Condvar::new(),
        })
    }

    /// Readable when the channel closes.
    pub(super) fn waker(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }

    pub(super) fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Acquire)
    }

    /// Begins to close the channel.
    pub(super) fn close(&self) {
        self.is_closing.store(true, Ordering::Release);
        self.waker.signal();
    }

    /// Waits for the connections of a closing channel: the program may exit after this, and a stream of samples would be
    /// cut instead of ended.
    pub(super) fn wait(&self) {
        let slots = self.lock();
        for slot in slots.iter() {
            // Wakes blocked readers; a closed connection needs no shutdown.
            let _ = slot.stream.shutdown(Shutdown::Read);
        }
        let _ = self.released.wait_timeout_while(slots, CLOSE_TIMEOUT, |slots| !slots.is_empty());
    }

    /// Takes a slot, if necessary that of the oldest unauthenticated connection; `false` without one.
    pub(super) fn take(&self, number: u64, stream: TcpStream) -> bool {
        let mut slots = self.lock();
        if slots.len() >= CONNECTIONS_MAX {
            let Some(oldest) = slots.iter().position(|slot| !slot.is_authenticated) else {
                return false;
            };
            let _ = slots.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        slots.push(Slot { number, stream, is_authenticated: false });
        true
    }

    /// The guard of a slot that was taken.
    pub(super) fn guard(&self, number: u64) -> SlotGuard<'_> {
        SlotGuard { slots: self, number }
    }

    pub(super) fn release(&self, number: u64) {
        self.lock().retain(|slot| slot.number != number);
        self.released.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The slot of a connection; dropping it releases the slot.
pub(super) struct SlotGuard<'a> {
    slots: &'a Slots,
    number: u64,
}

impl SlotGuard<'_> {
    /// Marks the connection as authenticated.
    pub(super) fn authenticate(&self) {
        let mut slots = self.slots.lock();
        slots.iter_mut().filter(|slot| slot.number == self.number).for_each(|slot| slot.is_authenticated = true);
    }

    /// Whether the channel closes.
    pub(super) fn is_closing(&self) -> bool {
        self.slots.is_closing()
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        self.slots.release(self.number);
    }
}
