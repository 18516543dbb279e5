//! Goal: `fleet cancel` ends the coordinator of a run and no other process, whatever the history
//! names. Method: a run whose hosts are not there yet, and a history in which the process of the
//! run is exchanged for another one of this user.

use std::process::Command;

use linerate_interop::{Process, Shells, TIMEOUT, wait_until};

/// Until the shells of the hosts begin: longer than the test.
const NEVER_S: u32 = 60;

/// Prints the process of the present run, and replaces its number and start time by those
/// of another one.
const EXCHANGE: &str = r#"
import sqlite3, sys
history, pid = sys.argv[1:]
database = sqlite3.connect(history, timeout=10)
rows = database.execute("SELECT owner FROM run WHERE state = 'running'").fetchall()
if not rows or not rows[0][0]:
    sys.exit(1)
host, boot, old, _ = rows[0][0].split()
with open(f"/proc/{pid}/stat") as stat:
    started = stat.read().rsplit(")", 1)[1].split()[19]
with database:
    database.execute("UPDATE run SET owner = ? WHERE state = 'running'", (f"{host} {boot} {pid} {started}",))
print(old)
"#;

/// Has the history name this process as that of the run; the one that it named before, once there
/// is a run.
fn exchange(shells: &Shells, pid: u32) -> Option<u32> {
    let mut command = Command::new("python3");
    command
        .args(["-c", EXCHANGE])
        .arg(shells.history())
        .arg(pid.to_string());
    let finished = Process::start(command).finish();
    finished.stdout.trim().parse().ok()
}

#[test]
fn process_that_is_not_the_coordinator_of_the_run_gets_no_signal() {
    let Some(shells) = Shells::new(&[NEVER_S, NEVER_S]) else {
        return;
    };
    let run = Process::start(shells.mesh());
    let mut sleep = Command::new("sleep");
    sleep.arg("600");

    let mut other = Process::start(sleep);
    let mut coordinator = None;
    let has_begun = wait_until(TIMEOUT, || {
        coordinator = exchange(&shells, other.id());
        coordinator.is_some()
    });
    assert!(has_begun, "{run:?}");
    assert_eq!(coordinator, Some(run.id()));

    let refused = Process::start(shells.linerate(&["fleet", "cancel"])).finish();
    let is_alive = !other.has_ended();
    exchange(&shells, run.id()).expect("the run is still in the history");

    let cancelled = Process::start(shells.linerate(&["fleet", "cancel"])).finish();

    assert!(is_alive, "{refused:?}");
    let reason = format!("process {} does not coordinate run", other.id());
    refused
        .expect_code(1)
        .expect_stderr(&reason)
        .expect_stderr("Ctrl-C");

    // No host has confirmed anything: none was there.
    cancelled
        .expect_code(1)
        .expect_stdout("cancelled before its first round");
    run.finish().expect_code(130);
}
