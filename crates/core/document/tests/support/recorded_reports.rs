//! Parts that the golden tests share: the recorded files, the events behind them, and an output
//! that can be read.
#![allow(dead_code, reason = "each test binary uses its part")]

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use linerate_document::Output;
use linerate_model::{Event, EventSink, Failure};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// A recorded process of iperf3.
#[derive(Deserialize)]
pub(crate) struct Recording {
    /// Name of its recorded file.
    pub name: String,
    pub tests: Vec<RecordedTest>,
    /// The failure that ended it between two tests.
    pub interrupt: Option<Failure>,
}

/// The events that make the recorded output of one test.
#[derive(Deserialize)]
pub(crate) struct RecordedTest {
    /// Port and test number in the banner of a server.
    #[serde(default)]
    pub port: u16,
    #[serde(default)]
    pub number: u32,
    pub events: Vec<Event>,
}

pub(crate) fn fixtures() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../fixtures")
}

/// The lines of a file of recorded events.
pub(crate) fn recordings<T: DeserializeOwned>(path: &str) -> Vec<T> {
    let text =
        fs::read_to_string(fixtures().join(path)).expect("the fixtures are part of the repository");
    let read = |line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    text.lines().map(read).collect()
}

/// Recordings of iperf3 whose names have one of these endings. Every recorded file with such a name
/// has events.
pub(crate) fn recorded(path: &str, endings: &[&str]) -> Vec<Recording> {
    let mut recordings: Vec<Recording> = recordings(path);
    recordings.retain(|recording| {
        endings
            .iter()
            .any(|ending| recording.name.ends_with(ending))
    });
    recordings.sort_by(|a, b| a.name.cmp(&b.name));

    let with_events: Vec<&str> = recordings
        .iter()
        .map(|recording| recording.name.as_str())
        .collect();
    assert_eq!(with_events, names(endings));
    recordings
}

/// Names of the recorded files with one of these endings, sorted.
fn names(endings: &[&str]) -> Vec<String> {
    let files =
        fs::read_dir(fixtures().join("iperf3")).expect("the fixtures are part of the repository");
    let mut names: Vec<String> = files
        .map(|entry| entry.expect("readable directory").file_name())
        .map(|name| name.into_string().expect("UTF-8"))
        // Recorded dialogues are the protocol crate's. The recording of -J with -V is JSON behind a
        // line of text.
        .filter(|name| {
            !name.ends_with(".ctl.json") && !name.starts_with("err-J-V.c321-s321.client.")
        })
        .filter(|name| endings.iter().any(|ending| name.ends_with(ending)))
        .collect();
    names.sort();

    names
}

/// A recorded file of iperf3; empty when there is none.
pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(fixtures().join("iperf3").join(name)).unwrap_or_default()
}

/// Passes events to a writer, each through the form in which it is stored: reports of stored tests
/// are those of live ones.
pub(crate) fn play(sink: &mut dyn EventSink, events: &[Event]) {
    for event in events {
        sink.event(&stored(event)).expect("memory can be written");
    }
}

/// An event that was written to a record and read again. Reports of stored tests are those of live
/// ones.
fn stored(event: &Event) -> Event {
    let text = serde_json::to_string(event).expect("events can be stored");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Captured bytes.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panicked").clone())
            .expect("writers write UTF-8")
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0
            .lock()
            .expect("no writer panicked")
            .extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// An output and what goes to its two streams.
pub(crate) fn captured_output() -> (Output, Captured, Captured) {
    let (normal, errors) = (Captured::default(), Captured::default());
    let output = Output::new(Box::new(normal.clone()), Box::new(errors.clone()));
    (output, normal, errors)
}

/// Asserts that two texts are the same and names the first line that is not.
pub(crate) fn assert_same_text(actual: &str, expected: &str, name: &str) {
    let mut lines = actual
        .split_inclusive('\n')
        .zip(expected.split_inclusive('\n'));
    if let Some((actual, expected)) = lines.find(|(a, b)| a != b) {
        panic!("{name}\n  expected {expected:?}\n  got      {actual:?}");
    }

    assert_eq!(
        actual.len(),
        expected.len(),
        "{name} ends too early or too late:\n{actual}"
    );
}
