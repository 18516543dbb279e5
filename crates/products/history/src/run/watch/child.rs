//! Processes that a watch starts: runs of this program, and the command of an alert.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::error::io_text;
use linerate_sys::poll::{Interest, wait_fds};
use linerate_sys::process::{kill_group, terminate_group};
use linerate_sys::signal::{Signal, Signals};

/// Messages that are kept.
const MESSAGES_BYTES_MAX: usize = 4096;

/// End of a process.
#[derive(Debug)]
pub(super) enum Ended {
    /// By itself, with its last message.
    Exited(ExitStatus, Option<String>),
    /// A signal to this process ended it.
    Interrupted(Signal),
    /// It was ended after its time.
    TimedOut,
}

/// Runs this program with `words` to its end, at most for `timeout`.
///
/// # Errors
/// Why it does not start.
pub(super) fn run_self(
    words: &[OsString],
    variables: &[(&str, OsString)],
    timeout: Duration,
    signals: &Signals,
) -> Result<Ended, String> {
    let program = std::env::current_exe()
        .map_err(|error| format!("cannot find this program's file: {}", io_text(&error)))?;
    let mut command = Command::new(program);
    command
        .args(words)
        .envs(variables.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null());

    run(command, "", timeout, signals)
}

/// Runs a command line of the shell with `input`.
///
/// # Errors
/// Why it does not start.
pub(super) fn run_shell(
    line: &str,
    input: &str,
    timeout: Duration,
    signals: &Signals,
) -> Result<Ended, String> {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", line]).stdin(Stdio::piped());
    run(command, input, timeout, signals)
}

fn run(
    mut command: Command,
    input: &str,
    timeout: Duration,
    signals: &Signals,
) -> Result<Ended, String> {
    let text = |error: io::Error| io_text(&error);
    let (reader, writer) = io::pipe().map_err(text)?;
    // Ctrl-C is for this process alone, which ends the child.
    command
        .stdout(Stdio::null())
        .stderr(writer)
        .process_group(0);

    let mut child = command.spawn().map_err(text)?;
    // The last writer is the child, so the pipe ends with it.
    drop(command);

    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input is as good; a short input fits in the pipe.
        let _ = stdin.write_all(input.as_bytes());
    }

    let mut messages = Vec::new();
    let ended = wait(&mut child, reader, &mut messages, timeout, signals).map_err(text);
    if !matches!(ended, Ok(None)) {
        end(&mut child);
    }

    let status = child.wait().map_err(text)?;
    Ok(ended?.unwrap_or_else(|| Ended::Exited(status, last_line(&messages))))
}

/// Ends a child and the processes it started: with `SIGTERM`, so that a run ends its session in
/// order, and after a second with `SIGKILL`.
fn end(child: &mut Child) {
    const GRACE: Duration = Duration::from_secs(1);
    const CHECK: Duration = Duration::from_millis(20);

    // Both fail only where nothing is left to end.
    let _ = terminate_group(child);
    let asked = Instant::now();
    while asked.elapsed() < GRACE {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        thread::sleep(CHECK);
    }

    let _ = kill_group(child);
}

/// Reads messages until the child ends; `Some` where it has to be killed.
fn wait(
    child: &mut Child,
    mut reader: PipeReader,
    messages: &mut Vec<u8>,
    timeout: Duration,
    signals: &Signals,
) -> io::Result<Option<Ended>> {
    const CHECK: Duration = Duration::from_millis(200);

    let started = Instant::now();
    let mut chunk = [0; 1024];

    loop {
        let left = timeout.saturating_sub(started.elapsed());
        if left.is_zero() {
            return Ok(Some(Ended::TimedOut));
        }

        let pause = left.min(CHECK);
        let [has_signal, has_messages] = wait_fds(
            [
                (signals.as_fd(), Interest::READ),
                (reader.as_fd(), Interest::READ),
            ],
            Some(pause),
        )?;
        // A signal of this process comes first: the output of a child may never pause.
        if has_signal && let Some(signal) = signals.take()? {
            return Ok(Some(Ended::Interrupted(signal)));
        }

        if has_messages {
            match reader.read(&mut chunk)? {
                // The pipe ends with its last writer.
                0 => return Ok(None),
                count => messages.extend_from_slice(chunk.get(..count).unwrap_or_default()),
            }
            // The last line is the reason of a failure, so the newest messages are kept.
            messages.drain(..messages.len().saturating_sub(MESSAGES_BYTES_MAX));
        } else if child.try_wait()?.is_some() {
            // A process of the child that is still there holds the pipe.
            return Ok(None);
        }
    }
}

fn last_line(messages: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(messages);
    let line = text.lines().rev().find(|line| !line.trim().is_empty())?;
    Some(line.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signals() -> Signals {
        Signals::new(&[]).expect("signalfd")
    }

    #[test]
    fn command_reads_its_input_and_its_last_message_is_kept() {
        let ended = run_shell(
            "cat >&2; echo; exit 3",
            "one\ntwo\n",
            Duration::from_secs(30),
            &signals(),
        );
        let Ok(Ended::Exited(status, message)) = ended else {
            panic!("{ended:?}")
        };
        assert_eq!((status.code(), message.as_deref()), (Some(3), Some("two")));
    }

    #[test]
    fn command_without_end_is_ended_with_its_children_and_one_that_leaves_a_process_behind_has_ended()
     {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("pid");
        let line = format!("sleep 60 & echo $! > {}; wait", file.display());
        let ended = run_shell(&line, "", Duration::from_millis(500), &signals());
        assert!(matches!(ended, Ok(Ended::TimedOut)), "{ended:?}");

        let pid = std::fs::read_to_string(&file)
            .expect("the number of its child")
            .trim()
            .parse()
            .expect("a number");
        let deadline = Instant::now() + Duration::from_secs(10);

        while linerate_sys::process::pid_is_alive(pid) {
            assert!(Instant::now() < deadline, "its child was not ended");
            thread::sleep(Duration::from_millis(10));
        }

        let ended = run_shell("sleep 10 & exit 0", "", Duration::from_secs(5), &signals());
        assert!(matches!(ended, Ok(Ended::Exited(..))), "{ended:?}");
    }
}
