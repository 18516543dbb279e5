//! The two JSON styles: one document at the end, or one line per event.

use std::sync::Arc;

use linerate_model::event::Event;
use linerate_model::{EventSink, Failure, IntervalReport, SinkError};
use serde_json::Value;

use super::document::{Document, RowBudget};
use super::text::{Page, control_facts};
use super::{Appendix, Options, Style, TestReport, wording};
use crate::{Output, pretty};

/// One document per test (`-J`).
pub(super) struct JsonWriter {
    options: Arc<Options>,
    output: Output,
    document: Document,
}

impl JsonWriter {
    pub(super) fn new(options: Arc<Options>, output: Output, budget: Option<RowBudget>) -> Self {
        Self { document: Document::new(Arc::clone(&options), budget), options, output }
    }

    fn close(&self, failure: Option<&Failure>) -> Result<(), SinkError> {
        let error = failure.map(|f| wording::failure_json(f, self.options.endpoint));
        Ok(self.output.report(self.document.whole(error.as_deref()))?)
    }
}

impl EventSink for JsonWriter {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        enter(&mut self.document, event);
        write_to_stderr(event, &self.options, &self.output);
        match event {
            Event::Interval(report) => {
                if let Some(warning) = self.document.keep_interval(report) {
                    write_to_stderr(&Event::Warning(warning), &self.options, &self.output);
                }
            }
            Event::Finished => self.close(None)?,
            Event::Failed(failure) => self.close(Some(failure))?,
            _ => {}
        }
        Ok(())
    }
}

impl TestReport for JsonWriter {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.document.append(appendix);
        Ok(())
    }
}

/// One object per event (`--json-stream`).
pub(super) struct JsonStreamWriter {
    options: Arc<Options>,
    output: Output,
    document: Document,
}

impl JsonStreamWriter {
    pub(super) fn new(options: Arc<Options>, output: Output, budget: Option<RowBudget>) -> Self {
        Self { document: Document::new(Arc::clone(&options), budget), options, output }
    }

    fn interval(&mut self, report: &IntervalReport) -> Result<(), SinkError> {
        let Some(interval) = self.document.interval(report) else {
            return Ok(());
        };
        self.send("interval", &interval)?;
        // A long test must not fill the memory with intervals that are not reported.
        if self.has_full_output()
            && let Some(warning) = self.document.keep_interval(report)
        {
            write_to_stderr(&Event::Warning(warning), &self.options, &self.output);
        }
        Ok(())
    }

    fn close(&self, failure: Option<&Failure>) -> Result<(), SinkError> {
        let endpoint = self.options.endpoint;
        if let Some(failure) = failure {
            self.send("error", &wording::failure_json_stream(failure, endpoint).into())?;
        }
        if let Some((name, value)) = self.document.server_output() {
            self.send(name, value)?;
        }
        self.send("end", self.document.end())?;
        if self.has_full_output() {
            let error = failure.map(|f| wording::failure_json(f, endpoint));
            self.output.report(self.document.whole(error.as_deref()))?;
        }
        Ok(())
    }

    fn send(&self, name: &str, data: &Value) -> Result<(), SinkError> {
        let data = pretty::compact(data);
        let line = format!("{{\"event\":\"{name}\",\"data\":{data}}}\n");
        Ok(self.output.report(line)?)
    }

    fn has_full_output(&self) -> bool {
        self.options.style == Style::JsonStream { full_output: true }
    }
}

impl EventSink for JsonStreamWriter {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        enter(&mut self.document, event);
        write_to_stderr(event, &self.options, &self.output);
        match event {
            Event::TestStarted => self.send("start", &self.document.start()),
            Event::Interval(report) => self.interval(report),
            Event::Finished => self.close(None),
            Event::Failed(failure) => self.close(Some(failure)),
            _ => Ok(()),
        }
    }
}

impl TestReport for JsonStreamWriter {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.document.append(appendix);
        self.send(appendix.name, &appendix.value())
    }
}

/// Enters an event into the document, except for intervals, which the styles keep differently.
pub(super) fn enter(document: &mut Document, event: &Event) {
    match event {
        Event::TestAccepted(header) => document.accept(header),
        Event::StreamOpened(stream) => document.open_stream(stream),
        Event::DataPath(path) => document.take_path(path),
        Event::Notice(text) => document.take_notice(text),
        Event::TestStarted => document.start_test(),
        Event::Summary(summary) => document.summarise(summary),
        Event::PeerOutput(output) => document.take_server_output(output),
        _ => {}
    }
}

impl Appendix {
    /// What cannot be read as JSON is still worth its words.
    pub(super) fn value(&self) -> Value {
        serde_json::from_str(&self.json).unwrap_or_else(|_| self.text.as_str().into())
    }
}

/// Everything that is no JSON goes to the error stream, so that what comes out is always JSON.
fn write_to_stderr(event: &Event, options: &Arc<Options>, output: &Output) {
    let lines = match event {
        Event::ControlConnected(control) if options.verbose => control_facts(control),
        Event::Debug(text) if options.debug > 0 => vec![text.clone()],
        Event::Warning(text) => return Page::new(Arc::clone(options), output.clone()).warning(text),
        _ => return,
    };
    for line in lines {
        output.error(&format!("{line}\n"));
    }
}
