//! Child processes that receive and send lines. Each leads a process group, which is ended as a
//! whole.
//!
//! A child ends with the thread that started it, if it calls `die_with_parent`: the kernel attaches
//! that to the thread.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use linerate_sys::child::set_nonblocking;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::process::{kill_group, terminate_group};

use crate::run::carrier::pipe::{LineInput, Received};

/// Time from the request to end (`SIGTERM`) to `SIGKILL`.
pub const GRACE_NS: u64 = 500_000_000;
/// Time between two checks of a child whose output has ended: the kernel closes it shortly before
/// the child can be waited for.
const REAP_NS: u64 = 2_000_000;

/// A child, until its end was reported. Never used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildId(u64);

/// Event of a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildEvent {
    /// It wrote a line.
    Line(Vec<u8>),
    /// It wrote a line beyond the bound of the protocol.
    TooLong,
    /// It ended.
    Ended {
        /// Its process id.
        pid: u32,
        /// The signal that ended it; `None` when it ended by itself.
        signal: Option<i32>,
    },
}

/// The children of one thread, in an epoll set of their owner.
#[derive(Debug)]
pub struct Children {
    /// Token of the child with number 0; the others follow.
    first_token: u64,
    next: u64,
    running: BTreeMap<u64, Running>,
}

#[derive(Debug)]
struct Running {
    child: Child,
    stdin: Option<ChildStdin>,
    output: LineInput<ChildStdout>,
    /// The output has ended: when to look for the end of the process.
    reap_at_ns: Option<u64>,
    kill_at_ns: Option<u64>,
}

impl Children {
    /// No children. Those to come have the tokens from `first_token` on.
    #[must_use]
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
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0);
        let mut child = command.spawn()?;

        match pipes(
            &mut child,
            self.first_token.saturating_add(self.next),
            epoll,
        ) {
            Ok((stdin, output)) => {
                let id = self.next;
                self.next += 1;

                let running = Running {
                    child,
                    stdin: Some(stdin),
                    output,
                    reap_at_ns: None,
                    kill_at_ns: None,
                };
                self.running.insert(id, running);
                Ok(ChildId(id))
            }
            Err(error) => {
                // A process without its pipes has no purpose; `wait` returns soon.
                let _ = kill_group(&child);
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// Process id of a child that runs.
    #[must_use]
    pub fn pid(&self, id: ChildId) -> Option<u32> {
        self.running.get(&id.0).map(|running| running.child.id())
    }

    /// All children that run.
    #[must_use]
    pub fn ids(&self) -> Vec<ChildId> {
        self.running.keys().map(|id| ChildId(*id)).collect()
    }

    /// Process ids of all children that run.
    #[must_use]
    pub fn pids(&self) -> Vec<u32> {
        self.running
            .values()
            .map(|running| running.child.id())
            .collect()
    }

    /// Sends a line to a child. A child that is gone takes it as well; its end is reported.
    ///
    /// # Errors
    /// `WouldBlock` when the child does not read.
    pub fn send(&mut self, id: ChildId, line: &str) -> io::Result<()> {
        let Some(stdin) = self
            .running
            .get_mut(&id.0)
            .and_then(|running| running.stdin.as_mut())
        else {
            return Ok(());
        };
        match stdin.write_all(format!("{line}\n").as_bytes()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            sent => sent,
        }
    }

    /// Ends a child: its input ends, its process group gets `SIGTERM` and [`GRACE_NS`] later
    /// `SIGKILL`.
    pub fn end(&mut self, id: ChildId, now_ns: u64) {
        if let Some(running) = self.running.get_mut(&id.0)
            && running.kill_at_ns.is_none()
        {
            running.stdin = None;
            // Fails only where nothing is left to end.
            let _ = terminate_group(&running.child);
            running.kill_at_ns = Some(now_ns.saturating_add(GRACE_NS));
        }
    }

    /// Ends all children at once with `SIGKILL` and waits for them.
    pub fn kill_all(&mut self) {
        for running in self.running.values_mut() {
            let _ = kill_group(&running.child);
        }

        // All have the signal before the first wait, so that they end at the same time.
        for running in std::mem::take(&mut self.running).values_mut() {
            let _ = running.child.wait();
        }
    }

    /// Reads from the child with this token; `None` when no child has it.
    pub fn handle_ready(
        &mut self,
        token: u64,
        now_ns: u64,
        epoll: &Epoll,
    ) -> Option<(ChildId, Vec<ChildEvent>)> {
        let id = token.checked_sub(self.first_token)?;
        let running = self.running.get_mut(&id)?;
        let mut received = Vec::new();
        running.output.receive(&mut received);

        let mut events = Vec::new();
        for received in received {
            match received {
                Received::Line(line) => events.push(ChildEvent::Line(line)),
                Received::TooLong => events.push(ChildEvent::TooLong),
                Received::End => {
                    // An ended pipe stays readable.
                    let _ = epoll.remove(&running.output);
                    // A child without its output has no purpose, and neither has what it started.
                    // The number of the group is its own until it is waited for.
                    let _ = kill_group(&running.child);
                    running.reap_at_ns = Some(now_ns);
                }
            }
        }

        events.extend(self.reap(id, now_ns));
        Some((ChildId(id), events))
    }

    /// When [`Self::handle_timeout`] is due.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        let deadlines = |running: &Running| {
            running
                .reap_at_ns
                .into_iter()
                .chain(running.kill_at_ns)
                .min()
        };
        self.running.values().filter_map(deadlines).min()
    }

    /// Sends `SIGKILL` where it is due, and reports children that ended.
    pub fn handle_timeout(&mut self, now_ns: u64) -> Vec<(ChildId, ChildEvent)> {
        for running in self.running.values_mut() {
            if running.kill_at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
                let _ = kill_group(&running.child);
                running.kill_at_ns = Some(now_ns.saturating_add(GRACE_NS));
            }
        }

        let ids: Vec<u64> = self.running.keys().copied().collect();
        ids.into_iter()
            .filter_map(|id| Some((ChildId(id), self.reap(id, now_ns)?)))
            .collect()
    }

    /// The end of a child whose output has ended.
    fn reap(&mut self, id: u64, now_ns: u64) -> Option<ChildEvent> {
        let running = self.running.get_mut(&id)?;
        running.reap_at_ns.filter(|at_ns| now_ns >= *at_ns)?;

        match running.child.try_wait() {
            Ok(None) => {
                running.reap_at_ns = Some(now_ns.saturating_add(REAP_NS));
                None
            }
            ended => {
                let pid = running.child.id();
                self.running.remove(&id);
                Some(ChildEvent::Ended {
                    pid,
                    signal: ended.ok().flatten().and_then(|status| status.signal()),
                })
            }
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.kill_all();
    }
}

fn pipes(
    child: &mut Child,
    token: u64,
    epoll: &Epoll,
) -> io::Result<(ChildStdin, LineInput<ChildStdout>)> {
    let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    set_nonblocking(&stdin).map_err(|error| error.source)?;
    let output = LineInput::new(stdout).map_err(|error| error.source)?;
    epoll
        .add(&output, token, Interest::READ)
        .map_err(|error| error.source)?;

    Ok((stdin, output))
}

#[cfg(test)]
#[path = "children_tests.rs"]
mod tests;
