//! The JSON objects of one test, collected from its events.
//!
//! Key names, their order and their units are the interface; scripts and dashboards of two decades
//! read them. Every key is written once, also where iperf3 repeats some.

mod end;
mod interval;
mod start;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use linerate_document::{present, pretty};
use linerate_model::data_path::{DataPath, PerCall};
use linerate_model::event::{Event, ServerOutput, TestHeader};
use linerate_model::units::ns_to_s;
use linerate_model::{IntervalReport, Stream, Summary};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::Options;
use super::text::is_negligible;
use super::totals::Appendix;

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
        let (bytes, datagrams) = match path.per_call {
            Some(PerCall::Bytes(bytes)) => (Some(bytes), None),
            Some(PerCall::Datagrams(datagrams)) => (None, Some(datagrams)),
            _ => (None, None),
        };
        let path = present(json!({
            "role": path.role,
            "method": path.method,
            "bytes_per_call": bytes,
            "datagrams_per_call": datagrams,
            "description": path.description,
        }));
        self.paths.push(Value::Object(path));
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
        let spec = self.header.as_ref().map(|h| &h.spec);
        // A server has the title of its client, a client its own.
        let title = spec
            .and_then(|s| s.title.as_ref())
            .or(self.options.title.as_ref());
        let mut members = present(json!({
            // First of the further members, as in iperf_json_finish.
            "error": error,
            "title": title,
            "extra_data": spec.and_then(|s| s.extra_data.as_ref()),
        }));
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

/// Intervals in the order in which they came, up to the first for which there was no room.
struct KeptIntervals {
    reports: Vec<IntervalReport>,
    budget: Option<RowBudget>,
    rows: usize,
    is_full: bool,
}

/// Rows that all documents of a server may keep together. A row is one stream in one interval.
#[derive(Clone)]
pub(crate) struct RowBudget(Arc<AtomicUsize>);

/// About 15 MiB packed and 30 MiB as text: 18 hours of one stream, a second per interval.
const ROWS_MAX: usize = 65_536;

impl RowBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(ROWS_MAX)))
    }

    fn take(&self, rows: usize) -> bool {
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(rows)
            });
        taken.is_ok()
    }
}

impl KeptIntervals {
    /// Without a budget everything is kept.
    pub(super) fn new(budget: Option<RowBudget>) -> Self {
        Self {
            reports: Vec::new(),
            budget,
            rows: 0,
            is_full: false,
        }
    }

    /// Keeps an interval. The first one without room returns a warning; it and all later ones are
    /// left out.
    pub(super) fn keep(&mut self, report: &IntervalReport) -> Option<String> {
        let rows = report.streams.len();
        if self.is_full {
            return None;
        }

        if self
            .budget
            .as_ref()
            .is_some_and(|budget| !budget.take(rows))
        {
            self.is_full = true;
            let start_s = report
                .streams
                .first()
                .map_or(0.0, |row| ns_to_s(row.start_ns));
            return Some(format!(
                "the report keeps no intervals after {start_s:.1} s: all reports together hold \
                 {ROWS_MAX} rows"
            ));
        }

        self.rows += rows;
        self.reports.push(report.clone());
        None
    }

    pub(super) fn reports(&self) -> &[IntervalReport] {
        &self.reports
    }
}

impl Drop for KeptIntervals {
    fn drop(&mut self) {
        if let Some(RowBudget(left)) = &self.budget {
            left.fetch_add(self.rows, Ordering::Relaxed);
        }
    }
}
