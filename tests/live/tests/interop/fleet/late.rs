//! Goal: a host whose shell is slow, or never ready, costs no other host its tests. Method: agents
//! at addresses of loopback behind a script in the place of ssh(1), whose shells begin after a
//! time.

use std::time::Duration;

use linerate_interop::{Finished, Process, Shells};

use super::report::cells;

/// Longer than an agent waits for its plan.
const LATE_S: u32 = 12;
/// Longer than a coordinator waits for a host.
const TOO_LATE_S: u32 = 40;

/// Sources of the tests that have a result.
fn measured(finished: &Finished) -> Vec<String> {
    let report = finished.json();
    let with_result = cells(&report)
        .iter()
        .filter(|cell| cell["outcome"]["measured"].is_object());
    let mut sources: Vec<String> = with_result
        .map(|cell| cell["task"]["source"].to_string())
        .collect();
    sources.sort_unstable();

    sources
}

#[test]
#[ignore = "a third of a minute: make live SUITE=fleet"]
fn host_whose_shell_is_late_is_tested_with_the_others() {
    let Some(shells) = Shells::new(&[0, LATE_S]) else {
        return;
    };
    let finished = Process::start(shells.mesh()).finish_within(Duration::from_secs(120));
    finished.expect_code(0);
    assert_eq!(measured(&finished), ["\"h1\"", "\"h2\""], "{finished:?}");
}

#[test]
#[ignore = "half a minute: make live SUITE=fleet"]
fn host_whose_shell_never_begins_is_left_out_by_name_and_the_others_are_tested() {
    let Some(shells) = Shells::new(&[0, TOO_LATE_S, 0, LATE_S]) else {
        return;
    };
    let finished = Process::start(shells.mesh()).finish_within(Duration::from_secs(120));
    let reason = "h2: its agent has sent nothing within 30 s, so it is left out; `ssh h2 true`";
    finished.expect_code(6).expect_stderr(reason);
    assert!(!finished.stderr.contains("no plan"), "{finished:?}");
    assert_eq!(
        measured(&finished),
        ["\"h1\"", "\"h1\"", "\"h3\"", "\"h3\"", "\"h4\"", "\"h4\""],
        "{finished:?}"
    );
}
