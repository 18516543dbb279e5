//! The two JSON styles: one document at the end, or one line per event.

use std::sync::Arc;

use linerate_document::{Output, pretty};
use linerate_model::event::Event;
use linerate_model::{EventSink, Failure, IntervalReport, SinkError};
use serde_json::Value;

use super::document::{Document, RowBudget};
use super::text::{Page, control_facts};
use super::totals::{Appendix, TestReport};
use super::wording;
use super::{Options, Style};

/// One document per test (`-J`), one object per event (`--json-stream`), or both.
pub(super) struct JsonWriter {
    options: Arc<Options>,
    output: Output,
    document: Document,
}

impl JsonWriter {
    pub(super) fn new(options: Arc<Options>, output: Output, budget: Option<RowBudget>) -> Self {
        Self {
            document: Document::new(Arc::clone(&options), budget),
            options,
            output,
        }
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), SinkError> {
        if self.is_stream()
            && let Some(interval) = self.document.interval(report)
        {
            self.send("interval", &interval)?;
        }

        // A long test must not fill the memory with intervals that are not reported.
        if self.has_document()
            && let Some(warning) = self.document.keep_interval(report)
        {
            self.write_to_stderr(&Event::Warning(warning));
        }

        Ok(())
    }

    fn close(&self, failure: Option<&Failure>) -> Result<(), SinkError> {
        let endpoint = self.options.endpoint;
        if let Some(failure) = failure {
            self.send(
                "error",
                &wording::failure_json_stream(failure, endpoint).into(),
            )?;
        }

        if let Some((name, value)) = self.document.server_output() {
            self.send(name, value)?;
        }

        self.send("end", self.document.end())?;
        if self.has_document() {
            let error = failure.map(|f| wording::failure_json(f, endpoint));
            self.output.report(self.document.whole(error.as_deref()))?;
        }

        Ok(())
    }

    /// Writes an object of its own, where the style has any.
    fn send(&self, name: &str, data: &Value) -> Result<(), SinkError> {
        if !self.is_stream() {
            return Ok(());
        }

        let data = pretty::compact(data);
        let line = format!("{{\"event\":\"{name}\",\"data\":{data}}}\n");
        Ok(self.output.report(line)?)
    }

    fn is_stream(&self) -> bool {
        self.options.style != Style::Json
    }

    fn has_document(&self) -> bool {
        matches!(
            self.options.style,
            Style::Json | Style::JsonStream { full_output: true }
        )
    }

    /// Everything that is no JSON goes to the error stream, so that what comes out is always JSON.
    fn write_to_stderr(&self, event: &Event) {
        let lines = match event {
            Event::ControlConnected(control) if self.options.verbose => control_facts(control),
            Event::Debug(text) if self.options.debug > 0 => vec![text.clone()],
            Event::Warning(text) => {
                return Page::new(Arc::clone(&self.options), self.output.clone()).warning(text);
            }
            _ => return,
        };
        for line in lines {
            self.output.error(&format!("{line}\n"));
        }
    }
}

impl EventSink for JsonWriter {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.document.enter(event);
        self.write_to_stderr(event);

        match event {
            Event::TestStarted { .. } => self.send("start", &self.document.start()),
            Event::Interval(report) => self.interval(report),
            Event::Finished => self.close(None),
            Event::Failed(failure) => self.close(Some(failure)),
            _ => Ok(()),
        }
    }
}

impl TestReport for JsonWriter {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.document.append(appendix);
        self.send(appendix.name, &appendix.value())
    }
}
