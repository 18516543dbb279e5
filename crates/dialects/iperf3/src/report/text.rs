//! Text output in iperf's format.

mod page;
mod row;
mod summary;

use std::sync::Arc;
use std::time::Duration;

use linerate_document::{Output, pretty};
use linerate_model::event::{ControlConnected, Endpoint, Event, ServerOutput, TestHeader};
use linerate_model::units::UnitFormat;
use linerate_model::{Direction, EventSink, Flow, IntervalReport, SinkError, StreamRole, Summary};
use row::Columns;

use super::Options;
use super::totals::{Appendix, TestReport};

pub(super) use page::{Page, control_facts};
pub(super) use row::display_id;
pub(super) use summary::{congestion, file_percent};

/// The text of one test.
pub(super) struct TextWriter {
    options: Arc<Options>,
    page: Page,
    is_identified: bool,
    test: Option<Test>,
}

impl TextWriter {
    pub(super) fn new(options: Arc<Options>, output: Output) -> Self {
        Self {
            page: Page::new(Arc::clone(&options), output),
            options,
            is_identified: false,
            test: None,
        }
    }
}

impl EventSink for TextWriter {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        self.identify();
        match event {
            Event::ControlConnected(control) => self.control_connected(control),
            Event::TestAccepted(header) => self.test_accepted(header),
            Event::StreamOpened(stream) => self.page.line(&page::stream_line(stream)),
            Event::TestStarted { .. } => self.test_started(),
            Event::Interval(report) => self.interval(report),
            Event::OmitEnded => self.omit_ended(),
            Event::Summary(summary) => self.summary(summary),
            Event::PeerOutput(output) => self.peer_output(output),
            Event::Warning(text) | Event::Notice(text) => self.page.warning(text),
            Event::Detail(text) => self.detail(text),
            Event::DataPath(path) => self.addition(&path.description),
            Event::Addition(text) => self.addition(text),
            Event::Debug(text) => self.debug(text),
            Event::Finished => self.finished(),
            // Earlier lines must not appear behind the error.
            Event::Failed(failure) => {
                self.page.send()?;
                self.page.failure(failure);
            }
            // iperf3 shows none of the others.
            _ => {}
        }

        self.page.send()
    }
}

impl TestReport for TextWriter {
    fn append(&mut self, appendix: &Appendix) -> Result<(), SinkError> {
        self.page.line(&format!("\n{}", appendix.text));
        self.page.send()
    }
}

impl TextWriter {
    /// A client prints its version first; a server prints it in its banner.
    fn identify(&mut self) {
        let is_client = self.options.endpoint == Endpoint::Client;
        if self.options.verbose && is_client && !self.is_identified {
            self.page.identify();
        }
        self.is_identified = true;
    }

    fn lines(&mut self, lines: &[String]) {
        lines.iter().for_each(|line| self.page.line(line));
    }

    fn control_connected(&mut self, control: &ControlConnected) {
        if self.options.verbose {
            self.lines(&control_facts(control));
        }
    }

    fn test_accepted(&mut self, header: &TestHeader) {
        self.lines(&page::accepted(header, self.options.verbose));
        self.test = Some(Test::new(header, self.options.format));
    }

    fn test_started(&mut self) {
        if let Some(test) = self.test.as_ref().filter(|_| self.options.verbose) {
            self.page.line(&page::starting_line(&test.header.spec));
        }
    }

    fn summary(&mut self, summary: &Summary) {
        if let Some(test) = &self.test {
            self.lines(&test.summary(summary, self.options.verbose));
        }
    }

    fn interval(&mut self, report: &IntervalReport) {
        let Some(test) = &mut self.test else { return };
        if is_negligible(report, test.header.interval) {
            return;
        }

        // The columns depend on the first interval, so the header waits for it.
        if !test.has_interval {
            test.has_interval = true;
            let role = report
                .streams
                .first()
                .map_or(StreamRole::Receiver, |s| s.role);
            let tcp_facts = report.streams.iter().any(|s| s.tcp.is_some());
            self.page
                .line(&test.columns.interval_header(role, tcp_facts));
        } else if test.header.spec.streams > 1 {
            self.page.line(SEPARATOR);
        }

        let note = if report.omitted { "(omitted)" } else { "" };
        for flow in [Flow::Forward, Flow::Reverse] {
            for row in report.streams.iter().filter(|s| s.flow == flow) {
                self.page.line(&test.columns.interval_row(row, note));
            }

            if let Some(sum) = report.sum(flow).filter(|_| test.header.spec.streams > 1) {
                self.page.line(&test.columns.interval_sum(&sum, note));
            }
        }
    }

    fn omit_ended(&mut self) {
        let without_intervals = self
            .test
            .as_ref()
            .is_some_and(|t| t.header.interval.is_none());
        if self.options.verbose && without_intervals {
            self.page.line("Finished omit period, starting real test");
        }
    }

    fn peer_output(&mut self, output: &ServerOutput) {
        match output {
            // The text has line ends and prefixes of its own.
            ServerOutput::Text(text) => self.page.line(&format!("\nServer output:\n{text}")),
            ServerOutput::Json(text) => {
                let value = serde_json::from_str::<serde_json::Value>(text);
                // Text that is no JSON is shown as it is: the server may have been cut off.
                let laid_out = value.map_or_else(|_| text.clone(), |value| pretty::pretty(&value));
                self.page
                    .line(&format!("\nServer JSON output:\n{laid_out}"));
            }
        }
    }

    fn detail(&mut self, text: &str) {
        if self.options.verbose {
            self.page.line(text);
        }
    }

    /// A line that the original does not print.
    fn addition(&mut self, text: &str) {
        if self.options.additions {
            self.detail(text);
        }
    }

    fn debug(&mut self, text: &str) {
        if self.options.debug > 0 {
            self.page.line(text);
        }
    }

    fn finished(&mut self) {
        if self.options.endpoint == Endpoint::Client {
            self.page.line("");
            self.page.line("iperf Done.");
        }
    }
}

/// The stub at the end of a test that ran a little over its last full interval: short, and nothing
/// in it.
pub(super) fn is_negligible(report: &IntervalReport, interval: Option<Duration>) -> bool {
    let Some(interval) = interval else {
        return false;
    };
    let shortest_s = interval.as_secs_f64() * 0.1;
    report
        .streams
        .iter()
        .all(|s| s.bytes == 0 && s.seconds() < shortest_s)
}

/// Facts of the test once the parameters are agreed.
struct Test {
    pub header: TestHeader,
    pub columns: Columns,
    pub has_interval: bool,
}

impl Test {
    fn new(header: &TestHeader, format: UnitFormat) -> Self {
        Self {
            header: header.clone(),
            columns: Columns::new(header.endpoint, &header.spec, format),
            has_interval: false,
        }
    }

    fn is_bidirectional(&self) -> bool {
        self.header.spec.direction == Direction::Bidirectional
    }
}

/// Line between the intervals of several streams, and before the summary.
const SEPARATOR: &str = "- - - - - - - - - - - - - - - - - - - - - - - - -";
