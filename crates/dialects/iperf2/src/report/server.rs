//! Output of a server: its banner, then its tests, which may run at the same time.

use std::sync::Arc;

use linerate_document::Output;
use linerate_model::stream::ListenerFacts;
use linerate_model::{EventSink, ServerReporter, SinkError};

use super::options::{Options, Style};
use super::{banner, csv, text};

/// The reporter of one server.
pub(super) struct Reporter {
    options: Arc<Options>,
    output: Output,
    headers: text::Headers,
    csv_header: csv::Header,
}

impl Reporter {
    pub(super) fn new(options: Arc<Options>, output: Output) -> Self {
        Self {
            options,
            output,
            headers: text::Headers::default(),
            csv_header: csv::Header::default(),
        }
    }

    /// A writer for one test.
    pub(super) fn sink(&self) -> Box<dyn EventSink> {
        let (options, output) = (Arc::clone(&self.options), self.output.clone());
        match self.options.style {
            Style::Text => Box::new(text::TextWriter::new(options, output, self.headers.clone())),
            Style::Csv => Box::new(csv::CsvWriter::new(
                options,
                output,
                self.csv_header.clone(),
            )),
        }
    }
}

impl ServerReporter for Reporter {
    fn open_test(&mut self) -> Result<Box<dyn EventSink>, SinkError> {
        Ok(self.sink())
    }

    fn warning(&mut self, text: &str) {
        self.output.error(&format!("{text}\n"));
    }

    fn listener(&mut self, facts: &ListenerFacts) -> Result<(), SinkError> {
        if self.options.style == Style::Text && !self.options.excluded.settings {
            let test = self
                .options
                .defaults
                .as_ref()
                .map(|defaults| defaults.test.clone())
                .unwrap_or_default();
            self.output
                .report(banner::listener(&self.options, facts, &test))?;
        }

        Ok(())
    }
}
