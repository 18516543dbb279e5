//! What the golden tests share: the recorded files, and an output that can be looked at.
#![allow(dead_code, reason = "each test binary uses its part")]

pub(crate) mod json_events;
pub(crate) mod output;
pub(crate) mod solver;
pub(crate) mod text_events;

use std::fs;
use std::path::PathBuf;

pub(crate) use output::captured_output;

pub(crate) fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf3")
}

/// Names of the recorded files with one of these endings, sorted.
pub(crate) fn names(endings: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory())
        .expect("the fixtures are part of the repository")
        .map(|entry| {
            entry
                .expect("readable directory")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        // Recorded dialogues are the protocol crate's.
        .filter(|name| !name.ends_with(".ctl.json"))
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
        .collect();
    names.sort();
    names
}

/// A recorded file; empty when there is none.
pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(directory().join(name)).unwrap_or_default()
}

/// Asserts that two texts are the same and names the first line that is not.
pub(crate) fn assert_same_text(actual: &str, expected: &str, name: &str) {
    let mut lines = actual.split_inclusive('\n').zip(expected.split_inclusive('\n'));
    if let Some((actual, expected)) = lines.find(|(a, b)| a != b) {
        panic!("{name}\n  expected {expected:?}\n  got      {actual:?}");
    }
    assert_eq!(
        actual.len(),
        expected.len(),
        "{name} ends too early or too late:\n{actual}"
    );
}
