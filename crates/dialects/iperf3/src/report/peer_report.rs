//! The report of a server's test that a client requests (`--get-server-output`).

use std::io::{self, Write};
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use linerate_document::Output;
use linerate_model::event::{Event, ServerOutput};
use linerate_model::sink::{Collector, CollectorFactory};
use linerate_model::{EventSink, SinkError};

use super::document::{Document, RowBudget};
use super::numbered::Numbered;
use super::text::TextWriter;
use super::{Options, Style};

/// Writes the report of a server's test for a client that requests it (`--get-server-output`).
pub fn peer_report(options: Options) -> CollectorFactory<ServerOutput> {
    let options = Arc::new(options);
    let budget = RowBudget::new();
    Rc::new(move || {
        let options = Arc::clone(&options);
        let document = |options| JsonReport(Document::new(options, Some(budget.clone())));

        match options.style {
            Style::Text => Box::new(Numbered::new(TextReport::new(options))),
            Style::Json => Box::new(document(options)),
            Style::JsonStream { .. } => Box::new(Numbered::new(document(options))),
        }
    })
}

/// The lines of a test in memory.
struct TextReport {
    writer: TextWriter,
    text: TextBuffer,
}

impl TextReport {
    fn new(options: Arc<Options>) -> Self {
        let text = TextBuffer::default();
        let output = Output::new(Box::new(text.clone()), Box::new(io::sink()));
        Self {
            writer: TextWriter::new(options, output),
            text,
        }
    }
}

impl EventSink for TextReport {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.writer.event(event)
    }
}

impl Collector<ServerOutput> for TextReport {
    fn collect(&mut self) -> Option<ServerOutput> {
        let text = self.text.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(ServerOutput::Text(text.clone()))
    }
}

/// Text up to half of the 1 MiB that results may be long.
#[derive(Clone, Default)]
struct TextBuffer(Arc<Mutex<String>>);

impl Write for TextBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut text = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in String::from_utf8_lossy(bytes).split_inclusive('\n') {
            // Whole lines only, so that the note about the rest has its own.
            if text.len() > TEXT_MAX_BYTES {
                break;
            }

            text.push_str(line);
            if text.len() > TEXT_MAX_BYTES {
                text.push_str(TEXT_END);
            }
        }

        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The document of a test.
struct JsonReport(Document);

impl EventSink for JsonReport {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.0.enter(event);
        if let Event::Interval(report) = event {
            // The report of the server itself contains the warning.
            let _ = self.0.keep_interval(report);
        }
        Ok(())
    }
}

impl Collector<ServerOutput> for JsonReport {
    fn collect(&mut self) -> Option<ServerOutput> {
        Some(ServerOutput::Json(self.0.body()))
    }
}

/// A client decides how long its test runs and how much of its report is kept here.
const TEXT_MAX_BYTES: usize = 512 * 1024;
const TEXT_END: &str = "(the rest of this report is left out)\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_long_test_is_cut_at_a_line_and_marked_once() {
        let mut text = TextBuffer::default();
        for _ in 0..TEXT_MAX_BYTES / 4 {
            text.write_all(b"line\nline\n")
                .expect("memory can be written");
        }

        let text = text.0.lock().expect("no panic").clone();
        let lines = text.strip_suffix(TEXT_END).expect("marked");
        assert!(lines.len() > TEXT_MAX_BYTES && lines.len() < TEXT_MAX_BYTES + 10);
        assert!(lines.lines().all(|line| line == "line"));
    }
}
