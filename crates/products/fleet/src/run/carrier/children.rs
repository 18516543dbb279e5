//! Child processes that receive and send lines. Each leads a process group, which is ended as a
//! whole.
//!
//! A child ends with the thread that started it, if it calls `die_with_parent`: the kernel attaches
//! that to the thread.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

use linerate_sys::poll::Epoll;

use super::HostEvent;
use super::piped_child::{PipedChild, TOKENS};

/// Time from the request to end (`SIGTERM`) to `SIGKILL`.
pub const GRACE_NS: u64 = 500_000_000;

/// A child, until its end was reported. Never used again.
pub type ChildId = u64;

/// The children of one thread, in an epoll set of their owner.
#[derive(Debug)]
pub struct Children {
    /// First token of the child with number 0; the others follow.
    first_token: u64,
    next: u64,
    running: BTreeMap<u64, PipedChild>,
}

impl Children {
    /// No children. Those to come have the tokens from `first_token` on.
    pub fn new(first_token: u64) -> Self {
        Self {
            first_token,
            next: 0,
            running: BTreeMap::new(),
        }
    }

    /// Starts a process with pipes for its standard input and output.
    ///
    /// # Errors
    /// The operating system's.
    pub fn start(&mut self, mut command: Command, epoll: &Epoll) -> io::Result<ChildId> {
        command.stdin(Stdio::piped());
        let id = self.next;
        let first_token = self.first_token.saturating_add(id.saturating_mul(TOKENS));
        // The number of the group is its own until the child is waited for.
        let child = PipedChild::start(command, 0, first_token, epoll)?;

        self.next += 1;
        self.running.insert(id, child);
        Ok(id)
    }

    /// All children that run.
    pub fn ids(&self) -> Vec<ChildId> {
        self.running.keys().copied().collect()
    }

    /// Sends a line to a child. A child that is gone takes it as well; its end is reported.
    ///
    /// # Errors
    /// `WouldBlock` when the child does not read.
    pub fn send(&mut self, id: ChildId, line: &str) -> io::Result<()> {
        if let Some(child) = self.running.get_mut(&id) {
            child.write(line);
            if child.has_unsent() {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }

        Ok(())
    }

    /// Ends a child: its input ends, its process group gets `SIGTERM` and [`GRACE_NS`] later
    /// `SIGKILL`.
    pub fn end(&mut self, id: ChildId, now_ns: u64) {
        if let Some(child) = self.running.get_mut(&id) {
            child.terminate(now_ns, GRACE_NS);
        }
    }

    /// Ends all children at once with `SIGKILL` and waits for them.
    pub fn kill_all(&mut self) {
        // All have the signal before the first wait, so that they end at the same time.
        self.running.values().for_each(PipedChild::kill);
        self.running.clear();
    }

    /// Reads from the child with this token; nothing when no child has it.
    pub fn handle_ready(
        &mut self,
        token: u64,
        now_ns: u64,
        epoll: &Epoll,
    ) -> Vec<(ChildId, HostEvent)> {
        let id = token.saturating_sub(self.first_token) / TOKENS;
        let Some(child) = self.running.get_mut(&id) else {
            return Vec::new();
        };
        let mut events = child.handle_ready(token, now_ns, epoll);
        events.extend(self.reap(id, now_ns));
        events.into_iter().map(|event| (id, event)).collect()
    }

    /// When [`Self::handle_timeout`] is due.
    pub fn deadline_ns(&self) -> Option<u64> {
        self.running
            .values()
            .filter_map(PipedChild::deadline_ns)
            .min()
    }

    /// Sends `SIGKILL` where it is due, and reports children that ended: they are
    /// [`HostEvent::Lost`].
    pub fn handle_timeout(&mut self, now_ns: u64) -> Vec<(ChildId, HostEvent)> {
        let mut events = Vec::new();
        for id in self.ids() {
            events.extend(self.reap(id, now_ns).map(|event| (id, event)));
        }

        events
    }

    /// The end of a child whose output has ended.
    fn reap(&mut self, id: ChildId, now_ns: u64) -> Option<HostEvent> {
        let child = self.running.get_mut(&id)?;
        let status = child.handle_timeout(now_ns)?;
        self.running.remove(&id);

        let reason = match status.and_then(|status| status.signal()) {
            Some(signal) => format!("a worker was ended by signal {signal}"),
            None => "a worker ended without a result".to_owned(),
        };
        Some(HostEvent::Lost { reason })
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.kill_all();
    }
}

#[cfg(test)]
#[path = "children_tests.rs"]
mod tests;
