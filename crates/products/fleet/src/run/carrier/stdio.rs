//! Standard input and output as the control path of an agent.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use linerate_sys::OsError;
use linerate_sys::poll::{Epoll, Interest};

use crate::run::carrier::pipe::{LineInput, LineOutput};
use crate::run::carrier::{Carrier, HostEvent};

const INPUT: u64 = 0;
const OUTPUT: u64 = 1;

/// The coordinator at the other end of standard input and output, with the number 0.
#[derive(Debug)]
pub struct StdioCarrier {
    epoll: Epoll,
    /// `None` once it has ended.
    input: Option<LineInput>,
    output: LineOutput,
    /// The coordinator takes nothing any more, which is not reported yet.
    is_broken: bool,
}

impl StdioCarrier {
    /// Takes lines from standard input, and writes lines to standard output.
    ///
    /// # Errors
    /// The operating system's; `EPERM` of a stream that is a file or a device like /dev/null, which
    /// cannot be waited for.
    pub fn open() -> Result<Self, OsError> {
        let input = input()?;
        let output = LineOutput::new(unbuffered(io::stdout().as_fd())?)?;
        let epoll = Epoll::new()?;
        let wait_for = |name, error: OsError| OsError::new("wait for", name, error.source);
        epoll
            .add(&input, INPUT, Interest::READ)
            .map_err(|error| wait_for("standard input", error))?;
        epoll
            .add(&output, OUTPUT, Interest::default())
            .map_err(|error| wait_for("standard output", error))?;

        Ok(Self {
            epoll,
            input: Some(input),
            output,
            is_broken: false,
        })
    }

    /// An ended stream stays readable, and standard input itself is open beside its copy.
    fn end_input(&mut self) {
        if let Some(input) = self.input.take() {
            // Standard input itself stays open, so closing this copy leaves it in the set
            // (epoll(7)).
            let _ = self.epoll.remove(&input);
        }
    }

    fn follow_unsent(&mut self) {
        if self.output.is_broken() {
            self.is_broken |= self.epoll.remove(&self.output).is_ok();
            return;
        }

        self.output.follow(&self.epoll, OUTPUT);
    }
}

impl Carrier for StdioCarrier {
    fn send(&mut self, _: usize, line: &str) {
        self.output.send(line);
        self.follow_unsent();
    }

    fn close(&mut self, _: usize) {
        self.end_input();
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn deadline_ns(&self) -> Option<u64> {
        self.is_broken.then_some(0)
    }

    fn poll(&mut self, _: u64) -> Vec<(usize, HostEvent)> {
        let mut events = Vec::new();
        let mut ready = Vec::new();
        // Fails only when memory is short; the owner polls again.
        let _ = self.epoll.wait(&mut ready, Some(Duration::ZERO));

        for event in ready {
            if event.token == OUTPUT {
                if event.error || event.hangup {
                    self.output.give_up();
                }
                self.output.flush();
                self.follow_unsent();
            } else if let Some(input) = &mut self.input {
                events.extend(input.receive());
                if matches!(events.last(), Some(HostEvent::Lost { .. })) {
                    self.end_input();
                }
            }
        }

        if std::mem::take(&mut self.is_broken) {
            let reason = "the output is closed".to_owned();
            events.push(HostEvent::Lost { reason });
        }

        events.into_iter().map(|event| (0, event)).collect()
    }

    /// Lines wait for the coordinator.
    fn has_open(&self) -> bool {
        self.output.has_unsent()
    }
}

/// Lines on standard input.
///
/// # Errors
/// The operating system's.
pub fn input() -> Result<LineInput, OsError> {
    LineInput::new(unbuffered(io::stdin().as_fd())?)
}

/// The standard library's own streams keep what was read before it was waited for.
fn unbuffered(fd: BorrowedFd<'_>) -> Result<OwnedFd, OsError> {
    fd.try_clone_to_owned()
        .map_err(|source| OsError::new("dup", "standard stream", source))
}
