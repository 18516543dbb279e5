//! An output that can be looked at.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use linerate_model::Event;
use linerate_report::Output;

/// Captured bytes.
#[derive(Clone, Default)]
pub(crate) struct Captured(Arc<Mutex<Vec<u8>>>);

impl Captured {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().expect("no writer panicked").clone()).expect("writers write UTF-8")
    }
}

impl Write for Captured {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").extend_from_slice(bytes);
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

/// An event that was written to a record and read again. Reports of stored tests are those of live ones.
#[allow(dead_code, reason = "each test binary uses its part")]
pub(crate) fn stored(event: &Event) -> Event {
    let text = serde_json::to_string(event).expect("events can be stored");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
