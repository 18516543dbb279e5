//! A child process that receives and sends lines.

use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use linerate_sys::OsError;
use linerate_sys::child::set_nonblocking;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::process::{kill_group, terminate_group};

use crate::run::carrier::HostEvent;
use crate::run::carrier::pipe::{LineInput, LineOutput};

/// Tokens of a child in an epoll set: standard input, output and error.
pub(super) const TOKENS: u64 = 3;
/// Most bytes of standard error that are kept.
const ERRORS_MAX_BYTES: usize = 64 << 10;
/// Time between two checks of a process whose output has ended: the kernel closes it shortly before
/// the process can be waited for.
const REAP_NS: u64 = 2_000_000;

const INPUT: u64 = 0;
const OUTPUT: u64 = 1;
const ERRORS: u64 = 2;

/// A process and its streams. It leads a process group, so that a signal of the terminal does not
/// reach it, and that it is ended with what it started.
#[derive(Debug)]
pub(super) struct PipedChild {
    child: Child,
    input: Option<LineOutput>,
    output: Option<LineInput>,
    errors: Option<ChildStderr>,
    error_text: Vec<u8>,
    first_token: u64,
    /// Time from the end of the output to `SIGKILL`.
    grace_ns: u64,
    reap_at_ns: Option<u64>,
    kill_at_ns: Option<u64>,
}

impl PipedChild {
    /// Starts a process with the tokens from `first_token` on. It is killed `grace_ns` after its
    /// output has ended. Its standard input and error are pipes if the command has them so.
    pub(super) fn start(
        mut command: Command,
        grace_ns: u64,
        first_token: u64,
        epoll: &Epoll,
    ) -> io::Result<Self> {
        command.stdout(Stdio::piped()).process_group(0);
        let mut child = Self {
            child: command.spawn()?,
            input: None,
            output: None,
            errors: None,
            error_text: Vec::new(),
            first_token,
            grace_ns,
            reap_at_ns: None,
            kill_at_ns: None,
        };

        // A process without its pipes ends with it.
        child.register(epoll).map_err(|error| error.source)?;
        Ok(child)
    }

    fn register(&mut self, epoll: &Epoll) -> Result<(), OsError> {
        if let Some(stdin) = self.child.stdin.take() {
            let input = LineOutput::new(stdin)?;
            // Without interest epoll still reports EPOLLERR, the end of the reader (epoll_ctl(2)).
            epoll.add(&input, self.first_token + INPUT, Interest::default())?;
            self.input = Some(input);
        }

        if let Some(stdout) = self.child.stdout.take() {
            let output = LineInput::new(stdout)?;
            epoll.add(&output, self.first_token + OUTPUT, Interest::READ)?;
            self.output = Some(output);
        }

        if let Some(stderr) = self.child.stderr.take() {
            set_nonblocking(&stderr)?;
            epoll.add(&stderr, self.first_token + ERRORS, Interest::READ)?;
            self.errors = Some(stderr);
        }

        Ok(())
    }

    /// Sends a line, and the rest of it when the process reads.
    pub(super) fn send(&mut self, line: &str, epoll: &Epoll) {
        self.write(line);
        self.follow_unsent(epoll);
    }

    /// Writes a line as far as the process reads it now. A process that is gone takes it as well.
    pub(super) fn write(&mut self, line: &str) {
        if let Some(input) = &mut self.input {
            input.send(line);
        }
    }

    /// Lines wait for the process.
    pub(super) fn has_unsent(&self) -> bool {
        self.input.as_ref().is_some_and(LineOutput::has_unsent)
    }

    /// Ends the input. A process that does not end by itself is killed later.
    pub(super) fn close(&mut self, now_ns: u64) {
        self.kill_within(now_ns, self.grace_ns);
    }

    /// Ends the input, and sends `SIGTERM` to the group, which is killed `grace_ns` later.
    pub(super) fn terminate(&mut self, now_ns: u64, grace_ns: u64) {
        // A second request does not extend the time until SIGKILL.
        if self.kill_at_ns.is_none() {
            self.kill_within(now_ns, grace_ns);
            // Fails only where nothing is left to end.
            let _ = terminate_group(&self.child);
        }
    }

    /// Sends `SIGKILL` to the group.
    pub(super) fn kill(&self) {
        // Fails only where nothing is left to end.
        let _ = kill_group(&self.child);
    }

    /// Reads or writes the stream with this token.
    pub(super) fn handle_ready(
        &mut self,
        token: u64,
        now_ns: u64,
        epoll: &Epoll,
    ) -> Vec<HostEvent> {
        match token.saturating_sub(self.first_token) {
            INPUT => {
                if let Some(input) = &mut self.input {
                    input.flush();
                    self.follow_unsent(epoll);
                }
            }
            OUTPUT => return self.receive(now_ns),
            _ => self.read_errors(),
        }

        Vec::new()
    }

    /// When [`Self::handle_timeout`] is due.
    pub(super) fn deadline_ns(&self) -> Option<u64> {
        self.reap_at_ns.into_iter().chain(self.kill_at_ns).min()
    }

    /// The status of a process that has ended, where it is known.
    pub(super) fn handle_timeout(&mut self, now_ns: u64) -> Option<Option<ExitStatus>> {
        if self.kill_at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            self.kill();
            self.kill_at_ns = Some(now_ns.saturating_add(self.grace_ns.max(REAP_NS)));
            self.reap_at_ns.get_or_insert(now_ns);
        }

        self.reap_at_ns.filter(|at_ns| now_ns >= *at_ns)?;
        match self.child.try_wait() {
            Ok(None) => {
                self.reap_at_ns = Some(now_ns.saturating_add(REAP_NS));
                None
            }
            ended => {
                // Remaining stderr.
                self.read_errors();
                Some(ended.ok().flatten())
            }
        }
    }

    /// Begin of standard error, at most [`ERRORS_MAX_BYTES`]. Untrusted text.
    pub(super) fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.error_text).into_owned()
    }

    fn kill_within(&mut self, now_ns: u64, grace_ns: u64) {
        self.input = None;
        let at_ns = now_ns.saturating_add(grace_ns);
        // An earlier deadline holds: no later call gives the process more time.
        self.kill_at_ns = self.kill_at_ns.into_iter().chain([at_ns]).min();
    }

    fn receive(&mut self, now_ns: u64) -> Vec<HostEvent> {
        let Some(output) = &mut self.output else {
            return Vec::new();
        };
        let mut received = output.receive();

        if matches!(received.last(), Some(HostEvent::Lost { .. })) {
            received.pop();
            // Closing the stream takes it out of the set.
            self.output = None;

            // A process without its output has no purpose, and neither has what it started.
            self.close(now_ns);
            self.reap_at_ns = Some(now_ns);
        }

        received
    }

    fn read_errors(&mut self) {
        let mut chunk = [0; 4096];
        while let Some(errors) = &mut self.errors {
            match errors.read(&mut chunk) {
                Ok(count @ 1..) => {
                    // Bytes beyond the bound are read as well: a full pipe blocks the process
                    // (pipe(7)).
                    let room = ERRORS_MAX_BYTES.saturating_sub(self.error_text.len());
                    self.error_text.extend(chunk.iter().take(count.min(room)));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(0) | Err(_) => self.errors = None,
            }
        }
    }

    fn follow_unsent(&mut self, epoll: &Epoll) {
        match &self.input {
            Some(input) if input.is_broken() => self.input = None,
            Some(input) => input.follow(epoll, self.first_token + INPUT),
            None => {}
        }
    }
}

impl Drop for PipedChild {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            self.kill();
            let _ = self.child.wait();
        }
    }
}

/// The last line with a text.
pub(super) fn last_line(text: &str) -> Option<String> {
    text.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty())
        .map(str::to_owned)
}

/// Why a process without a message ended.
pub(super) fn ended(code: Option<i32>) -> String {
    match code {
        Some(code) => format!("ended with code {code}"),
        None => "ended by a signal".to_owned(),
    }
}
