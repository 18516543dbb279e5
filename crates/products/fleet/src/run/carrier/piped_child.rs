//! A child process whose stdin and stdout carry the agent protocol.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use linerate_sys::child::set_nonblocking;
use linerate_sys::poll::{Epoll, Interest};
use linerate_sys::process::kill_group;

use crate::run::carrier::pipe::{LineInput, LineOutput, Received};

/// Tokens of a child in an epoll set: standard input, output and error.
pub(crate) const TOKENS: u64 = 3;
/// Most bytes of standard error that are kept.
pub(crate) const ERRORS_MAX_BYTES: usize = 64 << 10;
/// Time from the end of the input to `SIGKILL`.
const CLOSE_NS: u64 = 2_000_000_000;
/// Time between two checks of a process whose output has ended.
const REAP_NS: u64 = 2_000_000;

const INPUT: u64 = 0;
const OUTPUT: u64 = 1;
const ERRORS: u64 = 2;

/// Source of the standard input of the process.
pub(crate) enum StdinSource {
    /// Lines of the owner.
    Lines,
    /// A file.
    File(File),
    /// Nothing.
    Nothing,
}

/// A process and its streams. It leads a process group, so that a signal of the terminal does not
/// reach it.
#[derive(Debug)]
pub(crate) struct PipedChild {
    child: Child,
    input: Option<LineOutput<ChildStdin>>,
    output: Option<LineInput<ChildStdout>>,
    errors: Option<ChildStderr>,
    error_text: Vec<u8>,
    first_token: u64,
    reap_at_ns: Option<u64>,
    kill_at_ns: Option<u64>,
}

impl PipedChild {
    /// Starts a process with the tokens from `first_token` on.
    pub(crate) fn start(
        mut command: Command,
        feed: StdinSource,
        first_token: u64,
        epoll: &Epoll,
    ) -> io::Result<Self> {
        let stdin = match feed {
            StdinSource::Lines => Stdio::piped(),
            StdinSource::File(file) => file.into(),
            StdinSource::Nothing => Stdio::null(),
        };
        command
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let child = command.spawn()?;
        let mut child = Self {
            child,
            input: None,
            output: None,
            errors: None,
            error_text: Vec::new(),
            first_token,
            reap_at_ns: None,
            kill_at_ns: None,
        };

        // A process without its pipes ends with it.
        child.register(epoll)?;
        Ok(child)
    }

    fn register(&mut self, epoll: &Epoll) -> io::Result<()> {
        if let Some(stdin) = self.child.stdin.take() {
            let input = LineOutput::new(stdin).map_err(|error| error.source)?;
            epoll
                // Without interest epoll still reports EPOLLERR, the end of the reader
                // (epoll_ctl(2)).
                .add(&input, self.first_token + INPUT, Interest::default())
                .map_err(|error| error.source)?;
            self.input = Some(input);
        }

        if let Some(stdout) = self.child.stdout.take() {
            let output = LineInput::new(stdout).map_err(|error| error.source)?;
            epoll
                .add(&output, self.first_token + OUTPUT, Interest::READ)
                .map_err(|error| error.source)?;
            self.output = Some(output);
        }

        if let Some(stderr) = self.child.stderr.take() {
            set_nonblocking(&stderr).map_err(|error| error.source)?;
            epoll
                .add(&stderr, self.first_token + ERRORS, Interest::READ)
                .map_err(|error| error.source)?;
            self.errors = Some(stderr);
        }

        Ok(())
    }

    /// Sends a line.
    pub(crate) fn send(&mut self, line: &str, epoll: &Epoll) {
        if let Some(input) = &mut self.input {
            input.send(line);
            self.follow_unsent(epoll);
        }
    }

    /// Ends the input. A process that does not end by itself is killed 2 s later.
    pub(crate) fn close(&mut self, now_ns: u64) {
        self.input = None;
        self.kill_at_ns
            .get_or_insert(now_ns.saturating_add(CLOSE_NS));
    }

    /// Reads or writes the stream with this token.
    pub(crate) fn handle_ready(
        &mut self,
        token: u64,
        now_ns: u64,
        epoll: &Epoll,
        received: &mut Vec<Received>,
    ) {
        match token.saturating_sub(self.first_token) {
            INPUT => {
                if let Some(input) = &mut self.input {
                    input.flush();
                    self.follow_unsent(epoll);
                }
            }
            OUTPUT => self.receive(now_ns, received),
            _ => self.read_errors(),
        }
    }

    /// When [`Self::handle_timeout`] is due.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        self.reap_at_ns.into_iter().chain(self.kill_at_ns).min()
    }

    /// The exit code of a process that has ended, `None` in it after a signal.
    pub(crate) fn handle_timeout(&mut self, now_ns: u64) -> Option<Option<i32>> {
        if self.kill_at_ns.is_some_and(|at_ns| now_ns >= at_ns) {
            // Fails only where nothing is left to end.
            let _ = kill_group(&self.child);
            self.kill_at_ns = Some(now_ns.saturating_add(CLOSE_NS));
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
                Some(ended.ok().flatten().and_then(|status| status.code()))
            }
        }
    }

    /// Begin of standard error, at most [`ERRORS_MAX_BYTES`]. Untrusted text.
    pub(crate) fn error_text(&self) -> String {
        String::from_utf8_lossy(&self.error_text).into_owned()
    }

    fn receive(&mut self, now_ns: u64, received: &mut Vec<Received>) {
        let Some(output) = &mut self.output else {
            return;
        };
        output.receive(received);

        if received.last() == Some(&Received::End) {
            received.pop();
            // Closing the stream takes it out of the set.
            self.output = None;

            // Without its agent the process is killed.
            self.close(now_ns);
            self.reap_at_ns = Some(now_ns);
        }
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
        let Some(input) = &mut self.input else { return };
        if input.is_broken() {
            self.input = None;
            return;
        }

        let interest = if input.has_unsent() {
            Interest::WRITE
        } else {
            Interest::default()
        };
        // Fails only when memory is short; the next line tries again.
        let _ = epoll.modify(&*input, self.first_token + INPUT, interest);
    }
}

impl Drop for PipedChild {
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = kill_group(&self.child);
            let _ = self.child.wait();
        }
    }
}
