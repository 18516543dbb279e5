//! The JSON objects of one test, collected from its events.
//!
//! Key names, their order and their units are the interface; scripts and dashboards of two decades
//! read them. Every key is written once, also where iperf3 repeats some.

mod end;
mod interval;
mod kept;
mod start;

use std::sync::Arc;

use linerate_document::{members, pretty};
use linerate_model::data_path::{DataPath, PerCall};
use linerate_model::event::{Event, ServerOutput, TestHeader};
use linerate_model::{IntervalReport, Stream, Summary};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::options::Options;
use super::test_report::Appendix;
use super::text::is_negligible;

pub(super) use kept::{KeptIntervals, RowBudget};

/// Events of a test so far, as JSON.
pub(super) struct Document {
    options: Arc<Options>,
    header: Option<TestHeader>,
    streams: Vec<Stream>,
    is_started: bool,
    intervals: KeptIntervals,
    paths: Vec<Value>,
    notices: Vec<Value>,
    end: Value,
    server_output: Option<(&'static str, Value)>,
    appendices: Map<String, Value>,
}

impl Document {
    pub(super) fn new(options: Arc<Options>, budget: Option<RowBudget>) -> Self {
        Self {
            options,
            header: None,
            streams: Vec::new(),
            is_started: false,
            intervals: KeptIntervals::new(budget),
            paths: Vec::new(),
            notices: Vec::new(),
            end: Value::Object(Map::new()),
            server_output: None,
            appendices: Map::new(),
        }
    }

    /// Enters an event, except for intervals, which the styles keep differently.
    pub(super) fn enter(&mut self, event: &Event) {
        match event {
            Event::TestAccepted(header) => self.header = Some((**header).clone()),
            Event::StreamOpened(stream) => self.streams.push(stream.clone()),
            Event::DataPath(path) => self.take_path(path),
            Event::Notice(text) => self.notices.push(text.as_str().into()),
            Event::TestStarted { .. } => self.is_started = true,
            Event::Summary(summary) => self.summarise(summary),
            Event::PeerOutput(output) => self.take_server_output(output),
            _ => {}
        }
    }

    fn take_path(&mut self, path: &DataPath) {
        let mut members = members(json!({"role": path.role, "method": path.method}));
        match path.per_call {
            Some(PerCall::Bytes(bytes)) => members.insert("bytes_per_call".into(), bytes.into()),
            Some(PerCall::Datagrams(datagrams)) => {
                members.insert("datagrams_per_call".into(), datagrams.into())
            }
            _ => None,
        };

        members.insert("description".into(), path.description.as_str().into());
        self.paths.push(Value::Object(members));
    }

    /// An element of `intervals`; `None` for an interval that is not worth one.
    pub(super) fn interval(&self, report: &IntervalReport) -> Option<Value> {
        let header = self.header.as_ref()?;
        (!is_negligible(report, header.interval)).then(|| interval::interval(report, &header.spec))
    }

    /// Keeps an element of `intervals` for the whole document; returns a warning when there is no
    /// more room.
    pub(super) fn keep_interval(&mut self, report: &IntervalReport) -> Option<String> {
        let header = self.header.as_ref()?;
        if is_negligible(report, header.interval) {
            return None;
        }
        self.intervals.keep(report)
    }

    fn summarise(&mut self, summary: &Summary) {
        if let Some(header) = &self.header {
            let mut end = end::end(summary, &header.spec);
            if self.options.additions {
                end.insert(
                    OURS.into(),
                    json!({"data_paths": self.paths, "notices": self.notices}),
                );
            }

            self.end = Value::Object(end);
        }
    }

    fn take_server_output(&mut self, output: &ServerOutput) {
        self.server_output = Some(match output {
            ServerOutput::Text(text) => (SERVER_OUTPUT_TEXT, text.clone().into()),
            ServerOutput::Json(text) => match serde_json::from_str(text) {
                Ok(value) => (SERVER_OUTPUT_JSON, value),
                // A server that failed in the middle of its document.
                Err(_) => (SERVER_OUTPUT_TEXT, text.clone().into()),
            },
        });
    }

    /// Adds a member behind those that every document has.
    pub(super) fn append(&mut self, appendix: &Appendix) {
        self.appendices
            .insert(appendix.name.to_owned(), appendix.value());
    }

    pub(super) fn start(&self) -> Value {
        start::start(
            &self.options,
            self.header.as_ref(),
            &self.streams,
            self.is_started,
        )
    }

    pub(super) fn end(&self) -> &Value {
        &self.end
    }

    pub(super) fn server_output(&self) -> Option<&(&'static str, Value)> {
        self.server_output.as_ref()
    }

    /// The three members every document has, on one line.
    pub(super) fn body(&self) -> String {
        pretty::compact(&self.with(Map::new()))
    }

    /// The whole document over several lines.
    pub(super) fn whole(&self, error: Option<&str>) -> String {
        let mut members = Map::new();
        if let Some(error) = error {
            // First of the further members, as in iperf_json_finish.
            members.insert("error".into(), error.into());
        }

        let spec = self.header.as_ref().map(|h| &h.spec);
        // A server has the title of its client, a client its own.
        let title = spec
            .and_then(|s| s.title.as_ref())
            .or(self.options.title.as_ref());
        if let Some(title) = title {
            members.insert("title".into(), title.as_str().into());
        }

        if let Some(extra_data) = spec.and_then(|s| s.extra_data.as_ref()) {
            members.insert("extra_data".into(), extra_data.as_str().into());
        }

        if let Some((key, value)) = &self.server_output {
            members.insert((*key).into(), value.clone());
        }

        members.extend(self.appendices.clone());
        pretty::pretty(&self.with(members)) + "\n"
    }

    fn with(&self, more: Map<String, Value>) -> Members<'_> {
        Members {
            start: self.start(),
            intervals: Intervals(self),
            end: &self.end,
            more,
        }
    }
}

/// The members of a document.
#[derive(Serialize)]
struct Members<'a> {
    start: Value,
    intervals: Intervals<'a>,
    end: &'a Value,
    #[serde(flatten)]
    more: Map<String, Value>,
}

/// Intervals as JSON, each made when it is written, so that they never exist together.
struct Intervals<'a>(&'a Document);

impl Serialize for Intervals<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let spec = self.0.header.as_ref().map(|header| &header.spec);
        let reports = spec.into_iter().flat_map(|spec| {
            self.0
                .intervals
                .reports()
                .iter()
                .map(move |one| (one, spec))
        });
        serializer.collect_seq(reports.map(|(report, spec)| interval::interval(report, spec)))
    }
}

/// Name of the member for what iperf3 does not report.
const OURS: &str = "linerate";

const SERVER_OUTPUT_TEXT: &str = "server_output_text";
const SERVER_OUTPUT_JSON: &str = "server_output_json";
