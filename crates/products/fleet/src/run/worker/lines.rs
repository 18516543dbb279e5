//! Lines between an agent and its workers: one JSON object each, `{"begin":{"at_ns":12345}}`.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{self, Stdin, Write};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use crate::TaskId;
use crate::protocol::message::{ArmTask, Ports, TaskEnd};
use crate::run::carrier::pipe::LineInput;
use crate::run::carrier::{HostEvent, stdio};
use linerate_engine::Interrupts;
use linerate_sys::poll::{Interest, wait_fd};
use linerate_sys::{OsError, clock};
use serde::{Deserialize, Serialize};

/// Longest piece of a record in bytes. As a string of JSON it has at most twice as many, since JSON
/// has no control characters.
pub(crate) const PIECE_MAX_BYTES: usize = 64 << 10;
/// Longest record in bytes, the bound of a result.
pub(crate) const RECORD_MAX_BYTES: usize = 3 << 20;

/// A line to a worker.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToWorker {
    /// First line of a client.
    Client(Box<ClientTask>),
    /// The client's data begins at this time.
    Begin {
        /// ns of the monotonic clock.
        at_ns: u64,
    },
    /// First line of a server.
    Server(ServerTask),
    /// The server admits these addresses and no others.
    Admit(Vec<IpAddr>),
    /// The server awaits the client of this task.
    Expect(Box<ArmTask>),
    /// The server no longer awaits the client of this task, and does not report it.
    Forget(TaskId),
}

/// A test as client.
#[derive(Serialize, Deserialize)]
pub(crate) struct ClientTask {
    /// The test.
    pub task: ArmTask,
    /// Local address of all connections.
    pub local: IpAddr,
}

/// The server of an address.
#[derive(Serialize, Deserialize)]
pub(crate) struct ServerTask {
    /// The address.
    pub address: IpAddr,
    /// The first free port of these is used.
    pub ports: Ports,
}

/// A line of a worker.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FromWorker {
    /// The server listens.
    Listening {
        /// Its port.
        port: u16,
    },
    /// The addresses of the last `Admit` are admitted.
    Admitted,
    /// The task can begin.
    Ready {
        /// The task.
        task: TaskId,
    },
    /// The data began.
    Started {
        /// The task.
        task: TaskId,
        /// ns of the monotonic clock.
        at_ns: u64,
    },
    /// A piece of the record of a task; all of them come before `Finished`.
    Record {
        /// The task.
        task: TaskId,
        /// The piece.
        piece: String,
    },
    /// The task ended.
    Finished {
        /// The task.
        task: TaskId,
        /// End of the task.
        end: TaskEnd,
    },
    /// The worker cannot continue.
    Failed(String),
}

/// Writes a line. Without a reader this process has no purpose; its input ends as well then.
pub(super) fn emit(line: &FromWorker) {
    let Ok(mut text) = serde_json::to_string(line) else {
        return;
    };
    text.push('\n');
    let mut stdout = io::stdout().lock();
    let _ = stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Lines that are not used yet, at most.
const LINES_MAX: usize = 4096;

/// Lines of the agent. As [`Interrupts`] it stops a test or a server at the end of the input.
pub(super) struct WorkerInput {
    stdin: Stdin,
    input: RefCell<LineInput>,
    lines: RefCell<VecDeque<ToWorker>>,
    is_over: Cell<bool>,
    /// A line was no line of an agent. The input has ended then.
    is_garbled: Cell<bool>,
    /// Takes lines while a server runs; `true` when the lists of addresses are to be read again.
    follow: RefCell<Option<Follow>>,
    needs_reload: Cell<bool>,
}

/// Handler of a server's line; returns true if the lists of addresses changed.
type Follow = Box<dyn FnMut(ToWorker) -> bool>;

impl WorkerInput {
    /// # Errors
    /// The operating system's.
    pub(super) fn open() -> Result<Self, OsError> {
        Ok(Self {
            stdin: io::stdin(),
            input: RefCell::new(stdio::input()?),
            lines: RefCell::default(),
            is_over: Cell::new(false),
            is_garbled: Cell::new(false),
            follow: RefCell::default(),
            needs_reload: Cell::new(false),
        })
    }

    /// Waits for a line until a time of the monotonic clock, or without limit; `None` then, and at
    /// the end of the input.
    pub(super) fn next_until(&self, until_ns: Option<u64>) -> Option<ToWorker> {
        loop {
            if let Some(line) = self.lines.borrow_mut().pop_front() {
                return Some(line);
            }

            let left = until_ns.map(|until_ns| {
                Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()))
            });
            if self.is_over() || left.is_some_and(|left| left.is_zero()) {
                return None;
            }

            if wait_fd(self.fd(), Interest::READ, left).unwrap_or(true) {
                self.receive();
            }
        }
    }

    /// The input has ended.
    pub(super) fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// The input has ended because a line of it is no line of an agent.
    pub(super) fn is_garbled(&self) -> bool {
        self.is_garbled.get()
    }

    /// From now on lines go to `follow`, those that are here first.
    pub(super) fn set_follow(&self, follow: Follow) {
        *self.follow.borrow_mut() = Some(follow);
        self.pass_on();
    }

    /// Reads what is there.
    fn receive(&self) {
        for event in self.input.borrow_mut().receive() {
            let line = match event {
                HostEvent::Line(line) => serde_json::from_slice(&line).ok(),
                HostEvent::TooLong => None,
                HostEvent::Lost { .. } => return self.is_over.set(true),
            };
            let mut lines = self.lines.borrow_mut();
            match line {
                Some(line) if lines.len() < LINES_MAX => lines.push_back(line),
                _ => {
                    self.is_garbled.set(true);
                    return self.is_over.set(true);
                }
            }
        }
    }

    fn pass_on(&self) {
        let mut follow = self.follow.borrow_mut();
        let Some(follow) = follow.as_mut() else {
            return;
        };

        while let Some(line) = { self.lines.borrow_mut().pop_front() } {
            if follow(line) {
                self.needs_reload.set(true);
            }
        }
    }
}

impl Interrupts for WorkerInput {
    fn fd(&self) -> BorrowedFd<'_> {
        self.stdin.as_fd()
    }

    fn take(&self) -> Option<String> {
        self.receive();
        self.pass_on();
        self.is_over().then(|| "end of input".to_owned())
    }

    fn take_reload(&self) -> bool {
        self.needs_reload.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_objects_with_one_member() {
        let begin = serde_json::to_string(&ToWorker::Begin { at_ns: 7 }).expect("JSON");
        assert_eq!(begin, r#"{"begin":{"at_ns":7}}"#);
        let started = FromWorker::Started {
            task: TaskId(1),
            at_ns: 2,
        };
        let text = serde_json::to_string(&started).expect("JSON");
        assert_eq!(
            text,
            r#"{"started":{"task":"00000000000000000000000000000001","at_ns":2}}"#
        );
        assert_eq!(
            serde_json::from_str::<FromWorker>(&text).ok(),
            Some(started)
        );
    }
}
