//! System calls of a program.

use std::fs;
use std::process::Command;

use crate::{Finished, Process};

/// Runs a command to its end and returns it with its system calls named in `calls` (strace's
/// `-e trace=`), a line each in the order in which they began; `None` where strace is not
/// installed.
#[track_caller]
pub fn traced(command: &Command, calls: &str) -> Option<(Finished, String)> {
    Command::new("strace").arg("-V").output().ok()?;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace");
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-e", &format!("trace={calls}"), "-o"])
        .arg(&trace);
    strace.arg(command.get_program()).args(command.get_args());

    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }

    let finished = Process::start(strace).finish();
    Some((
        finished,
        fs::read_to_string(&trace).expect("strace writes a trace"),
    ))
}
