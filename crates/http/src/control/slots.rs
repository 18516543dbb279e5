//! Slots for the connections of the control channel.

use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use linerate_sys::poll::EventFd;

/// Slots of all connections of a channel, and whether it closes.
#[derive(Debug)]
pub(super) struct Slots {
    waker: EventFd,
    is_closing: AtomicBool,
    slots: Mutex<Vec<Slot>>,
    /// Notified when a slot is released.
    left: Condvar,
}

/// A connection.
#[derive(Debug)]
struct Slot {
    number: u64,
    stream: TcpStream,
    is_authenticated: bool,
}

impl Slots {
    fn lock(&self) -> MutexGuard<'_, Vec<Slot>> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take_slot(&self, slot: Slot) -> bool {
        let mut slots = self.lock();
        if slots.len() >= CONNECTIONS_MAX {
            // Slots are in the order of arrival.
            let Some(oldest) = slots.iter().position(|slot| !slot.is_authenticated) else {
                return false;
            };
            let _ = slots.remove(oldest).stream.shutdown(Shutdown::Both);
        }
        slots.push(slot);
        true
    }

    fn release(&self, number: u64) {
        self.lock().retain(|slot| slot.number != number);
        self.left.notify_all();
    }
}

/// The slot of a connection; dropping it releases the slot.
pub(super) struct SlotGuard<'a> {
    all: &'a Slots,
    number: u64,
}

impl SlotGuard<'_> {
    /// Marks the connection as authenticated.
    pub(super) fn authenticate(&self) {
        let mut slots = self.all.lock();
        slots
            .iter_mut()
            .filter(|slot| slot.number == self.number)
            .for_each(|slot| slot.is_authenticated = true);
    }

    /// Whether the channel closes.
    pub(super) fn is_closing(&self) -> bool {
        self.all.is_closing.load(Ordering::Acquire)
    }
}

impl Drop for SlotGuard<'_> {
    fn drop(&mut self) {
        self.all.release(self.number);
    }
}
