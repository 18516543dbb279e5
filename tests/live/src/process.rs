//! A process that cannot outlive its test.

use std::fmt;
use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use jsonschema::Validator;
use serde_json::Value;

use crate::deadline::{TIMEOUT, wait_for, wait_until};
use crate::status::Status;

/// A running program with captured output. Dropping it kills it.
pub struct Process {
    child: Child,
    started: Instant,
    stdout: Capture,
    stderr: Capture,
    command_line: String,
}

/// Signals tests send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// The signal of Ctrl-C.
    Interrupt,
    /// The signal of `kill`.
    Terminate,
    /// The signal of a terminal that ends.
    HangUp,
    /// Freezes the process.
    Stop,
    /// Lets it continue.
    Continue,
    /// Ends the process without giving it a chance to say so.
    Kill,
}

impl Signal {
    /// Sends it to a process. The shell does it, because the call itself needs code this crate must
    /// not contain.
    pub fn send_to(self, pid: u32) {
        let name = match self {
            Self::Interrupt => "INT",
            Self::Terminate => "TERM",
            Self::HangUp => "HUP",
            Self::Stop => "STOP",
            Self::Continue => "CONT",
            Self::Kill => "KILL",
        };
        let sent = Command::new("sh")
            .args(["-c", &format!("kill -{name} {pid}")])
            .status();
        assert!(
            sent.is_ok_and(|status| status.success()),
            "SIG{name} to {pid}"
        );
    }
}

impl Process {
    /// Starts the command without input.
    pub fn start(command: Command) -> Self {
        Self::start_reading(command, Stdio::null())
    }

    /// Starts the command; `input` is what it finds on its standard input.
    pub fn start_reading(mut command: Command, input: impl Into<Stdio>) -> Self {
        let command_line = format!("{command:?}");
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self::spawn(command, command_line)
    }

    /// Starts the command with the standard streams it names; what it writes there is not captured.
    pub fn start_uncaptured(command: Command) -> Self {
        let command_line = format!("{command:?}");
        Self::spawn(command, command_line)
    }

    fn spawn(mut command: Command, command_line: String) -> Self {
        let mut child = command
            .spawn()
            .unwrap_or_else(|error| panic!("{command_line}: {error}"));
        let stdout = child.stdout.take().map(Capture::of).unwrap_or_default();
        let stderr = child.stderr.take().map(Capture::of).unwrap_or_default();

        Self {
            child,
            started: Instant::now(),
            stdout,
            stderr,
            command_line,
        }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Standard output so far.
    pub fn stdout(&self) -> String {
        self.stdout.text()
    }

    /// Standard error so far.
    pub fn stderr(&self) -> String {
        self.stderr.text()
    }

    /// True if the process has ended.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits until the program does what it was started for. Its end before that is a failure.
    #[track_caller]
    pub fn wait_until_up(&mut self, is_up: impl Fn() -> bool) {
        wait_until(TIMEOUT, || is_up() || self.has_ended());
        assert!(is_up(), "not up: {self:?}");
    }

    /// Waits until standard output contains `text` at least `times` times.
    pub fn wait_for_stdout(&self, text: &str, times: usize) {
        let is_seen = || self.stdout().matches(text).count() >= times;
        assert!(
            wait_until(TIMEOUT, is_seen),
            "no {times}x {text:?} on stdout of {self:?}"
        );
    }

    /// The word behind `name` at the start of a line of standard output, once that line is
    /// complete.
    pub fn printed(&self, name: &str) -> String {
        let word = wait_for(TIMEOUT, || {
            let stdout = self.stdout();
            let mut lines = stdout
                .split_inclusive('\n')
                .filter(|line| line.ends_with('\n'));
            lines.find_map(|line| {
                line.trim()
                    .strip_prefix(name)?
                    .split_whitespace()
                    .next()
                    .map(str::to_owned)
            })
        });
        word.unwrap_or_else(|| panic!("no {name}: {self:?}"))
    }

    /// Waits until the process holds no more descriptors and threads than in `idle`, and returns
    /// what it holds then. Farewells of a connection take a moment, so this is not asked once.
    pub fn wait_for_idle(&self, idle: Status) -> Status {
        let is_idle =
            |now: &Status| now.descriptors <= idle.descriptors && now.threads <= idle.threads;
        let status = wait_for(TIMEOUT, || Some(Status::of(self.id())).filter(is_idle));
        status.unwrap_or_else(|| panic!("{idle:?} became {:?}: {self:?}", Status::of(self.id())))
    }

    /// Sends a signal.
    pub fn signal(&self, signal: Signal) {
        signal.send_to(self.id());
    }

    /// Waits for the end.
    pub fn finish(self) -> Finished {
        self.finish_within(TIMEOUT)
    }

    /// Waits for the end.
    pub fn finish_within(mut self, limit: Duration) -> Finished {
        let status = wait_for(limit, || self.child.try_wait().ok().flatten());
        let Some(status) = status else {
            panic!("still running after {limit:?}: {self:?}")
        };
        let elapsed = self.started.elapsed();

        self.stdout.close();
        self.stderr.close();
        Finished {
            status,
            elapsed,
            stdout: self.stdout(),
            stderr: self.stderr(),
            command_line: std::mem::take(&mut self.command_line),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if !self.has_ended() {
            // Both only fail when the process has just ended by itself.
            self.child.kill().ok();
            self.child.wait().ok();
        }
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}\n--- stdout\n{}\n--- stderr\n{}",
            self.command_line,
            self.stdout(),
            self.stderr()
        )
    }
}

/// A process that has ended.
pub struct Finished {
    status: ExitStatus,
    /// Time from start to end.
    pub elapsed: Duration,
    /// Everything on standard output.
    pub stdout: String,
    /// Everything on standard error.
    pub stderr: String,
    command_line: String,
}

impl Finished {
    /// Exit code; `None` when a signal killed it.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Checks the exit code.
    #[track_caller]
    pub fn expect_code(&self, code: i32) -> &Self {
        assert_eq!(self.code(), Some(code), "exit code of {self:?}");
        self
    }

    /// Checks for a clean end: code 0 and nothing on standard error.
    #[track_caller]
    pub fn expect_clean(&self) -> &Self {
        self.expect_code(0);
        assert!(self.stderr.is_empty(), "stderr of {self:?}");
        self
    }

    /// Standard output with a single blank in place of blanks and line ends: a report wraps its
    /// sentences.
    pub fn stdout_unwrapped(&self) -> String {
        let words: Vec<&str> = self.stdout.split_whitespace().collect();
        words.join(" ")
    }

    /// Checks that standard output contains `text`, on one line or wrapped.
    #[track_caller]
    pub fn expect_stdout(&self, text: &str) -> &Self {
        assert!(
            self.stdout.contains(text) || self.stdout_unwrapped().contains(text),
            "no {text:?} on stdout of {self:?}"
        );
        self
    }

    /// Checks that standard error contains `text`.
    #[track_caller]
    pub fn expect_stderr(&self, text: &str) -> &Self {
        assert!(
            self.stderr.contains(text),
            "no {text:?} on stderr of {self:?}"
        );
        self
    }

    /// Standard output as one JSON document.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("no JSON ({error}): {self:?}"))
    }

    /// Standard output as one record of a run, which holds the published schema.
    #[track_caller]
    pub fn record(&self) -> Value {
        let record = self.json();
        if let Err(error) = run_schema().validate(&record) {
            panic!("{} of {self:?}: {error}", error.instance_path);
        }
        record
    }
}

/// The published schema of records.
fn run_schema() -> &'static Validator {
    static SCHEMA: OnceLock<Validator> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let schema = serde_json::from_str(include_str!("../../../docs/schema/linerate.run.1.json"));
        jsonschema::validator_for(&schema.expect("JSON")).expect("a schema")
    })
}

impl fmt::Debug for Finished {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} ({}, {:?})\n--- stdout\n{}\n--- stderr\n{}",
            self.command_line, self.status, self.elapsed, self.stdout, self.stderr
        )
    }
}

/// Output of one pipe so far.
#[derive(Default)]
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: Option<JoinHandle<()>>,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let store = Arc::clone(&bytes);

        let reader = thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut chunk) {
                let read = chunk.get(..count).unwrap_or_default();
                store
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .extend_from_slice(read);
            }
        });
        Self {
            bytes,
            reader: Some(reader),
        }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap_or_else(PoisonError::into_inner))
            .into_owned()
    }

    /// Waits for the end of the pipe. A daemon that kept the pipe must not hang the test, hence the
    /// limit.
    fn close(&mut self) {
        if let Some(reader) = self.reader.take() {
            wait_until(Duration::from_secs(2), || reader.is_finished());
        }
    }
}
