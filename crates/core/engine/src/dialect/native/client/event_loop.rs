//! The loop of a client: the user's interrupts, the control connection, and what a phase adds.

use std::time::{Duration, Instant};

use linerate_sys::poll::{Epoll, Interest, Ready};

use super::NativeError;
use crate::interrupts::Interrupts;

/// Descriptors that a client waits for at the same time.
pub(super) struct EventLoop<'a> {
    /// What a phase waits for, under tokens of its own.
    pub epoll: Epoll,
    pub interrupts: &'a dyn Interrupts,
    /// Those of the phase that are ready after a wait.
    pub ready: Vec<Ready>,
    /// Number of the control connection that is watched.
    pub watched: Option<u32>,
}

const INTERRUPT: u64 = u64::MAX;
pub(super) const CONTROL: u64 = u64::MAX - 1;
/// Number of a flow that is opened; the streams of the load that follows in the
/// same loop are numbered from 0.
pub(super) const FLOW: u64 = 1 << 17;

impl<'a> EventLoop<'a> {
    pub(super) fn new(interrupts: &'a dyn Interrupts) -> Result<Self, NativeError> {
        let epoll = Epoll::new()?;
        epoll.add(interrupts.fd(), INTERRUPT, Interest::READ)?;
        Ok(Self {
            epoll,
            interrupts,
            ready: Vec::new(),
            watched: None,
        })
    }

    /// Waits until something is ready.
    ///
    /// # Errors
    /// An interrupt.
    pub(super) fn wait(&mut self, timeout: Duration) -> Result<(), NativeError> {
        // An interrupted wait is repeated.
        let _ = self.epoll.wait(&mut self.ready, Some(timeout));
        if self.take_ready(INTERRUPT)
            && let Some(signal_text) = self.interrupts.take()
        {
            return Err(NativeError::Interrupted(signal_text));
        }

        Ok(())
    }

    /// Lets time pass while there is no session.
    pub(super) fn pause(&mut self, duration: Duration) -> Result<(), NativeError> {
        let end = Instant::now() + duration;
        while Instant::now() < end {
            self.wait(end.saturating_duration_since(Instant::now()))?;
        }

        Ok(())
    }

    /// True once for a token that is ready since the last wait. Another descriptor needs another
    /// token: what one left unread would count as ready for the next.
    pub(super) fn take_ready(&mut self, token: u64) -> bool {
        let place = self.ready.iter().position(|event| event.token == token);
        place.map(|place| self.ready.swap_remove(place)).is_some()
    }
}
