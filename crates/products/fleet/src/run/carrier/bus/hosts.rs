//! Lines of hosts by their subjects.

use std::collections::HashMap;
use std::sync::Arc;

use super::events::{Events, line};
use super::names::host_of;
use crate::run::carrier::HostEvent;

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
