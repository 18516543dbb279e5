//! Events of the executor for the loop of an owner: a bounded queue, and a descriptor that is
//! readable while it has some.

use std::collections::HashMap;
use std::future::Future;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::{io, thread};

use super::names::host_of;
use crate::protocol::line::LINE_MAX_BYTES;
use crate::run::carrier::HostEvent;
use linerate_sys::poll::EventFd;
use tokio::runtime::Builder;
use tokio::sync::mpsc;
use tokio::sync::mpsc::error::TryRecvError;

/// The end of the executor.
#[derive(Clone)]
pub(super) struct Events {
    queue: mpsc::Sender<(usize, HostEvent)>,
    ready: Arc<EventFd>,
}

/// The end of the owner.
#[derive(Debug)]
pub(super) struct EventQueue {
    queue: mpsc::Receiver<(usize, HostEvent)>,
    ready: Arc<EventFd>,
    has_ended: bool,
}

pub(super) fn events(capacity: usize) -> io::Result<(Events, EventQueue)> {
    let ready = Arc::new(EventFd::new().map_err(|error| error.source)?);
    let (sender, queue) = mpsc::channel(capacity);
    let events = Events {
        queue: sender,
        ready: Arc::clone(&ready),
    };
    let queue = EventQueue {
        queue,
        ready,
        has_ended: false,
    };
    Ok((events, queue))
}

impl Events {
    /// Waits for room: for what must not be lost.
    pub(super) async fn send(&self, host: usize, event: HostEvent) {
        // Without an owner nothing is left to do.
        let _ = self.queue.send((host, event)).await;
        self.signal();
    }

    /// Drops the event where there is no room.
    pub(super) fn offer(&self, host: usize, event: HostEvent) {
        let _ = self.queue.try_send((host, event));
        self.signal();
    }

    /// Wakes the owner: an event waits.
    pub(super) fn signal(&self) {
        self.ready.signal();
    }
}

impl Drop for Events {
    /// The owner notices that the last one is gone.
    fn drop(&mut self) {
        self.signal();
    }
}

impl EventQueue {
    /// The descriptor is readable again after the next signal.
    pub(super) fn clear(&self) {
        self.ready.drain();
    }

    pub(super) fn take(&mut self) -> Vec<(usize, HostEvent)> {
        // Before the queue is read: a later event makes the descriptor readable again.
        self.clear();
        let mut events = Vec::new();

        loop {
            match self.queue.try_recv() {
                Ok(event) => events.push(event),
                Err(TryRecvError::Empty) => return events,
                Err(TryRecvError::Disconnected) => {
                    self.has_ended = true;
                    return events;
                }
            }
        }
    }

    /// The executor has ended, as far as [`Self::take`] has seen.
    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }
}

impl AsFd for EventQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ready.as_fd()
    }
}

/// The event that a payload is.
pub(super) fn line(payload: &[u8]) -> HostEvent {
    if payload.len() > LINE_MAX_BYTES {
        HostEvent::TooLong
    } else {
        HostEvent::Line(payload.to_vec())
    }
}

/// Runs a task with an executor in a thread of its own.
pub(super) fn run(task: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
    let executor = Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new()
        .name("bus".to_owned())
        .spawn(move || executor.block_on(task))?;
    Ok(())
}

/// Passes lines of known hosts on.
#[derive(Clone)]
pub(super) struct Hosts {
    /// Places of the hosts by their tokens.
    places: Arc<HashMap<String, usize>>,
    events: Events,
}

impl Hosts {
    pub(super) fn new(tokens: &[String], events: Events) -> Self {
        Self {
            places: Arc::new(tokens.iter().cloned().zip(0..).collect()),
            events,
        }
    }

    /// Place of the host whose line has this subject. Other agents of the site take no part.
    pub(super) fn place(&self, subject: &str) -> Option<usize> {
        self.places.get(host_of(subject)?).copied()
    }

    /// Passes a line on, and waits for room.
    pub(super) async fn send(&self, subject: &str, payload: &[u8]) {
        if let Some(host) = self.place(subject) {
            self.events.send(host, line(payload)).await;
        }
    }

    /// Passes a line on where there is room.
    pub(super) fn offer(&self, subject: &str, payload: &[u8]) {
        if let Some(host) = self.place(subject) {
            self.events.offer(host, line(payload));
        }
    }

    /// All hosts are lost.
    pub(super) async fn lose(&self, reason: String) {
        for host in 0..self.places.len() {
            let reason = reason.clone();
            self.events.send(host, HostEvent::Lost { reason }).await;
        }
    }

    /// Wakes the owner: an event waits.
    pub(super) fn signal(&self) {
        self.events.signal();
    }
}
