//! Goal: a host whose shell is slow, or never ready, costs no other host its tests. Method: agents at addresses of loopback behind a
//! script in the place of ssh(1), whose shells begin after a time.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_interop::{Finished, Process, free_port_run, ours, skip};

use super::report::cells;

/// Longer than an agent waits for its plan.
const LATE_S: u32 = 12;
/// Longer than a coordinator waits for a host.
const TOO_LATE_S: u32 = 40;

/// Runs the command of a host here, after the time in its file, with a machine-id of its own: two hosts with one are one machine.
const SSH: &str = r#"#!/bin/sh
while [ "$1" != -- ]; do
    [ "$1" != -G ] || exit 0
    shift
done
folder=$(dirname "$0")
read -r seconds <"$folder/$2.seconds"
sleep "$seconds"
exec unshare --mount sh -c 'mount --bind "$0" /etc/machine-id && exec sh -c "$1"' "$folder/$2.id" "$3"
"#;

/// Writes the script, what it needs, and the inventory of hosts whose shells begin after these times.
fn write_hosts(folder: &Path, seconds: &[u32]) {
    let ssh = folder.join("ssh");
    fs::write(&ssh, SSH).expect("written");
    fs::set_permissions(&ssh, fs::Permissions::from_mode(0o755)).expect("a mode");
    symlink(ours().path(), folder.join("linerate")).expect("a link");
    let first_port = free_port_run(4);
    let last_port = first_port + 3;
    let mut inventory =
        format!("[fleet]\nname = \"late\"\nports = \"{first_port}-{last_port}\"\ncontrol = \"shared\"\n");
    for (number, seconds) in (1..).zip(seconds) {
        fs::write(folder.join(format!("h{number}.seconds")), format!("{seconds}\n")).expect("written");
        fs::write(folder.join(format!("h{number}.id")), format!("{number:032x}\n")).expect("written");
        inventory += &format!("[[host]]\nname = \"h{number}\"\npaths = {{ lo = \"127.0.8.{number}\" }}\n");
    }
    fs::write(folder.join("fleet.toml"), inventory).expect("written");
}

/// A mesh of these hosts; `None` where an agent cannot have a machine-id of its own.
fn mesh(seconds: &[u32]) -> Option<Finished> {
    let may_mount = Command::new("unshare").args(["--mount", "true"]).status();
    if !may_mount.is_ok_and(|status| status.success()) {
        skip("a machine-id for each agent needs root");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    write_hosts(folder.path(), seconds);
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").expect("a path"));
    let mut command = Command::new(ours().path());
    command.args(["fleet", "run", "mesh", "-t", "1", "-O", "0", "--json", "-i"]).arg(folder.path().join("fleet.toml"));
    command.env("PATH", path);
    Some(Process::start(command).finish_within(Duration::from_secs(120)))
}

/// Sources of the tests that have a result.
fn measured(finished: &Finished) -> Vec<String> {
    let report = finished.json();
    let with_result = cells(&report).iter().filter(|cell| cell["outcome"]["measured"].is_object());
    let mut sources: Vec<String> = with_result.map(|cell| cell["task"]["source"].to_string()).collect();
    sources.sort_unstable();
    sources
}

#[test]
#[ignore = "a third of a minute: make fleet"]
fn host_whose_shell_is_late_is_tested_with_the_others() {
    let Some(finished) = mesh(&[0, LATE_S]) else { return };
    finished.expect_code(0);
    assert_eq!(measured(&finished), ["\"h1\"", "\"h2\""], "{finished:?}");
}

#[test]
#[ignore = "half a minute: make fleet"]
fn host_whose_shell_never_begins_is_left_out_by_name_and_the_others_are_tested() {
    let Some(finished) = mesh(&[0, TOO_LATE_S, 0, LATE_S]) else { return };
    finished
        .expect_code(6)
        .expect_stderr("h2: its agent has sent nothing within 30 s, so it is left out; `ssh h2 true`");
    assert!(!finished.stderr.contains("no plan"), "{finished:?}");
    assert_eq!(measured(&finished), ["\"h1\"", "\"h1\"", "\"h3\"", "\"h3\"", "\"h4\"", "\"h4\""], "{finished:?}");
}
