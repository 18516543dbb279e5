//! Text output in iperf's format.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use linerate_document::Output;
use linerate_model::event::{ClockCheck, TestHeader};
use linerate_model::metrics::{ConnectTimes, HistogramKind};
use linerate_model::spec::{TestSpec, Transport, working_load};
use linerate_model::stream::{ListenerFacts, SocketFacts, StreamFacts};
use linerate_model::summary::StreamSummary;
use linerate_model::workload::{Pairing, Shape};
use linerate_model::{
    Event, EventSink, Flow, IntervalReport, ServerReporter, SinkError, Stream, StreamId,
    StreamInterval, StreamRole, Summary,
};

use super::options::{Options, Style};
use super::row::{Row, histogram_line, is_reversed, label, shown};
use super::stream_columns::{Columns, PLAIN_HEADER, one_way, out_of_order, schedule_errors};
use super::sum::{Numbered, Sum};
use super::{banner, connection, csv};

/// Headers that were shown already. Tests that run at the same time share them; when none is left,
/// all is forgotten.
#[derive(Clone, Default)]
pub(super) struct Headers(Arc<Mutex<PrintedHeaders>>);

#[derive(Default)]
struct PrintedHeaders {
    headers: Vec<String>,
    tests: usize,
}

impl Headers {
    fn lock(&self) -> MutexGuard<'_, PrintedHeaders> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Decides whether this header is printed now.
    fn is_first(&self, header: &str) -> bool {
        let mut shown = self.lock();
        let is_first = !shown.headers.iter().any(|known| known == header);
        if is_first {
            shown.headers.push(header.to_owned());
        }
        is_first
    }

    fn leave(&self) {
        let mut shown = self.lock();
        shown.tests = shown.tests.saturating_sub(1);
        // Tests that overlap share a header; the next one alone gets its own.
        if shown.tests == 0 {
            shown.headers.clear();
        }
    }
}

/// Facts of a stream.
struct Known {
    stream: Stream,
    number: u32,
}

/// The text of one test.
struct TextWriter {
    options: Arc<Options>,
    output: Output,
    headers: Headers,
    page: String,
    header: Option<TestHeader>,
    /// Facts of each stream.
    streams: Vec<Known>,
}

impl TextWriter {
    pub(super) fn new(options: Arc<Options>, output: Output, headers: Headers) -> Self {
        headers.lock().tests += 1;
        Self {
            options,
            output,
            headers,
            page: String::new(),
            header: None,
            streams: Vec::new(),
        }
    }
}

impl Drop for TextWriter {
    fn drop(&mut self) {
        self.headers.leave();
    }
}

impl EventSink for TextWriter {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TestAccepted(header) => self.test_accepted(header),
            Event::StreamOpened(stream) => self.stream_opened(stream),
            Event::Interval(report) => self.interval(report),
            Event::Bursts(rows) => self.bursts(rows),
            Event::ConnectingBack { remote, socket } => self.connecting_back(*remote, socket),
            Event::ClockCheck(check) => self.clock_check(*check),
            Event::DelayedStart(start) => {
                let line = connection::start(&self.options, start);
                line.into_iter().for_each(|line| self.line(&line));
            }
            Event::ConnectTimes(times) => self.connects(times),
            Event::Summary(summary) => self.summary(summary),
            Event::Warning(text) | Event::Notice(text) => self.output.error(&format!("{text}\n")),
            // Earlier lines must not appear behind the error.
            Event::Failed(failure) => {
                self.send()?;
                self.output.error(&format!("{failure}\n"));
            }
            _ => {}
        }

        self.send()
    }
}

impl TextWriter {
    fn send(&mut self) -> Result<(), SinkError> {
        self.output.report(std::mem::take(&mut self.page))?;
        Ok(())
    }

    fn line(&mut self, line: &str) {
        self.page.push_str(line);
        self.page.push('\n');
    }

    /// A line under its header, which is shown when it is new.
    fn line_under(&mut self, header: &str, line: &str) {
        if self.headers.is_first(header) {
            self.line(header);
        }
        self.line(line);
    }

    fn test(&self) -> TestSpec {
        self.header
            .as_ref()
            .map(|header| header.spec.clone())
            .unwrap_or_default()
    }

    /// The test of a stream: those that load the path beside another test have the numbers behind
    /// its streams.
    fn test_of(&self, number: u32) -> TestSpec {
        let test = self.test();
        let is_load = self.options.is_client() && number > test.streams.max(1);
        working_load(&test).filter(|_| is_load).unwrap_or(test)
    }

    fn connecting_back(&mut self, remote: SocketAddr, socket: &SocketFacts) {
        if !self.options.excluded.settings {
            let host = remote.ip().to_string();
            let banner = banner::client(&self.options, &host, remote.port(), &self.test(), socket);
            self.page.push_str(&banner);
        }
    }

    fn test_accepted(&mut self, header: &TestHeader) {
        self.header = Some(header.clone());
        if self.options.is_client() && !self.options.excluded.settings {
            if let Some(facts) = &header.listener {
                let banner = banner::listener(&self.options, facts, &header.spec);
                self.page.push_str(&banner);
            }

            let host = &header.peer_host;
            let port = header.peer_port;
            let socket = header.first_socket.clone().unwrap_or_default();
            let banner = banner::client(&self.options, host, port, &header.spec, &socket);
            self.page.push_str(&banner);
        }
    }

    fn stream_opened(&mut self, stream: &Stream) {
        let facts = stream
            .facts
            .as_deref()
            .cloned()
            .unwrap_or_else(|| StreamFacts {
                number: stream.id.0.saturating_add(1),
                ..StreamFacts::default()
            });
        // Both directions of a connection are announced by one line.
        let is_known = self
            .streams
            .iter()
            .any(|known| known.is_same_connection(stream, facts.number));
        if !is_known && !self.options.excluded.connection && !self.options.sum_only {
            let line = connection::line(&self.options, &self.test_of(facts.number), stream, &facts);
            self.page.push_str(&line);
        }

        // What comes after the client has finished is a test of its own.
        if facts.is_connected_back && self.test().workload.pairing == Pairing::ConnectBackAfterwards
        {
            self.headers.lock().headers.clear();
        }

        // A connection that is closed at once has no rows.
        if !matches!(self.test().workload.shape, Shape::ConnectOnly { .. }) {
            self.streams.push(Known {
                stream: stream.clone(),
                number: facts.number,
            });
        }
    }

    /// In ms, of the request, the response and their difference.
    fn clock_check(&self, check: ClockCheck) {
        let ms = |ns: i64| ns as f64 / 1e6;
        let round_trip = check.request_ns.saturating_add(check.response_ns);

        let text = format!(
            "{}Clock sync check (ms): RTT/Half=({:.3}/{:.3}) \
             OWD-send/ack/asym=({:.3}/{:.3}/{:.3})\n",
            label(check.number, false, None),
            ms(round_trip),
            ms(round_trip) / 2.0,
            ms(check.request_ns),
            ms(check.response_ns),
            ms(check.request_ns.saturating_sub(check.response_ns))
        );
        // The original writes this line to the standard error.
        self.output.error(&text);
    }

    fn connects(&mut self, connects: &ConnectTimes) {
        let test = self.test();
        let is_only = matches!(test.workload.shape, Shape::ConnectOnly { .. });
        // 2.2.1 shows these times for tests of nothing else, 2.1.8 from two connections on.
        let is_shown = if self.options.is_new() {
            is_only
        } else {
            self.options.enhanced && connects.times.count > 1
        };
        if !is_shown {
            return;
        }

        let times = &connects.times;
        let ms = |s: f64| s * 1e3;
        let with_deviation = !self.options.is_new() || times.count >= DEVIATION_FROM;
        let (name, deviation) = if with_deviation {
            ("/stdev", format!("/{:.3}", ms(times.deviation)))
        } else {
            ("", String::new())
        };
        let line = format!(
            "[ CT] final connect times (min/avg/max{name}) = {:.3}/{:.3}/{:.3}{deviation} ms \
             (tot/err) = {}/{}",
            ms(times.min),
            ms(times.mean),
            ms(times.max),
            times.count,
            connects.errors
        );
        self.line(&line);
    }

    fn bursts(&mut self, rows: &[StreamInterval]) {
        if self.options.excluded.data || self.options.sum_only {
            return;
        }

        for interval in rows {
            let test = self.test_of(self.number(interval.id));
            self.row(&test, interval.id, &Row::of_interval(interval));
        }
    }

    fn interval(&mut self, report: &IntervalReport) {
        let grid = self.header.as_ref().and_then(|header| header.interval);
        if self.options.excluded.data {
            return;
        }

        let has_burst_rows = self.test().reports_bursts();
        // A receiver of bursts has a row per burst instead.
        let rows =
            shown(report, grid).filter(|row| !has_burst_rows || row.role == StreamRole::Sender);
        self.rows(rows.map(|row| (row.id, Row::of_interval(row))));
    }

    fn summary(&mut self, summary: &Summary) {
        if self.options.excluded.data {
            return;
        }

        let rows = summary.streams.iter();
        self.rows(rows.filter_map(|stream| Some((stream.id, Row::of_total(stream)?))));

        if !self.options.excluded.server && !self.options.sum_only {
            summary
                .streams
                .iter()
                .for_each(|stream| self.server_report(stream));
        }
    }

    /// All streams, pairs of directions, and their sum.
    fn rows<'a>(&mut self, rows: impl Iterator<Item = (StreamId, Row<'a>)>) {
        let test = self.test();
        let rows: Vec<_> = rows.collect();
        let numbered: Vec<Numbered<'_>> = rows
            .iter()
            .map(|(id, row)| (self.number(*id), *row))
            .collect();

        for (at, (id, row)) in rows.iter().enumerate() {
            let number = self.number(*id);
            let test = self.test_of(number);

            if !self.options.sum_only {
                self.row(&test, *id, row);
            }

            let pair: Vec<Numbered<'_>> = numbered[..=at]
                .iter()
                .filter(|(n, _)| *n == number)
                .copied()
                .collect();
            // A pair is complete with its second row, and its line follows at once.
            if pair.len() == 2 && self.options.enhanced && test.workload.pairing == Pairing::Shared
            {
                self.pair(&test, number, &pair);
            }
        }

        self.sum(&test, &numbered);
    }

    fn row(&mut self, test: &TestSpec, id: StreamId, row: &Row<'_>) {
        let label = self.label(test, id);
        let options = Arc::clone(&self.options);
        let Columns { header, line } = Columns::of(&options, test, row);
        self.line_under(&header, &format!("{label}{line}"));

        let udp = row.udp.unwrap_or_default();
        let is_datagrams = test.transport == Transport::Udp;
        if is_datagrams && row.role == StreamRole::Receiver {
            let late = out_of_order(&options, row.start_s, row.end_s, udp.out_of_order);
            late.into_iter()
                .for_each(|late| self.line(&format!("{label}{late}")));
        }

        // Losses are known at the other end only; the number sent is known here.
        if is_datagrams && row.role == StreamRole::Sender && row.is_total {
            let number = self.number(id);
            self.line(&format!("[{number:3}] Sent {} datagrams", udp.packets));
        }

        // A sender that was late is a fault of this host, not a result.
        if let Some(errors) = schedule_errors(&options, self.number(id), row) {
            self.output.error(&errors);
        }

        let more = one_way(&options, row).into_iter();
        let histograms = row
            .more
            .histograms
            .iter()
            // Those of requests and replies are shown unasked, at the end.
            .filter(|histogram| {
                use HistogramKind::{Back, Out, RoundTrips};
                let is_of_bounces = matches!(histogram.kind, RoundTrips | Out | Back);
                row.is_total || !is_of_bounces || test.workload.histogram.is_some()
            })
            .map(|distribution| histogram_line(&options, row, distribution));
        for line in more.chain(histograms) {
            self.line(&format!("{label}{line}"));
        }
    }

    /// Both directions of a connection together.
    fn pair(&mut self, test: &TestSpec, number: u32, rows: &[Numbered<'_>]) {
        let options = Arc::clone(&self.options);
        let sum = Sum::of(rows);
        let (header, columns) = match test.transport {
            Transport::Udp => sum.both_ways(),
            _ => (PLAIN_HEADER.to_owned(), String::new()),
        };
        let opening = sum.opening(&options);
        self.line_under(&header, &format!("[FD{number}] {opening}{columns}"));
    }

    fn sum(&mut self, test: &TestSpec, rows: &[Numbered<'_>]) {
        let options = Arc::clone(&self.options);
        let sum = Sum::of(rows);
        // A client of 2.1.8 sums the requested streams, everything else the open ones.
        let is_old_client = options.is_client() && !options.is_new();
        let streams = if is_old_client {
            test.streams as usize
        } else {
            sum.streams()
        };
        if rows.is_empty() || (streams < 2 && !options.sum_only) {
            return;
        }

        let label = sum.label(&options, test);
        let (header, line) = sum.line(&options, test);
        let line = format!("{label}{line}");

        match header {
            Some(header) => self.line_under(&header, &line),
            None => self.line(&line),
        }

        // A server counts what was sent only on flows on which it alone sends.
        let counts_sent = options.is_client() || test.workload.pairing != Pairing::Shared;
        if counts_sent
            && rows.iter().all(|(_, row)| row.is_total)
            && let Some(sent) = sum.sent(test)
        {
            self.line(&sent);
        }

        if let Some(late) = sum.out_of_order(&options) {
            self.line(&format!("[SUM] {late}"));
        }
    }

    /// Received bytes as the server reports them.
    fn server_report(&mut self, stream: &StreamSummary) {
        let test = self.test();
        // Only a sender gets a report of the other end; a receiver has counted itself.
        let reported = stream
            .receiver
            .filter(|_| stream.role == StreamRole::Sender);
        let Some(half) = reported.filter(|_| test.transport == Transport::Udp) else {
            return;
        };
        let options = Arc::clone(&self.options);
        let label = self.label(&test, stream.id);
        let number = self.number(stream.id);
        self.line(&format!("[{number:3}] Server Report:"));

        let row = Row::of_totals(StreamRole::Receiver, &half, stream.peer_metrics.as_deref());
        let Columns { header, line } = Columns::of_server_report(&options, &row);
        // The plain header is repeated for each report, the one with delays is not.
        if row.more.one_way.is_none() || self.headers.is_first(&header) {
            self.line(&header);
        }

        self.line(&format!("{label}{line}"));
        let late = row.udp.map_or(0, |udp| udp.out_of_order);
        if let Some(late) = out_of_order(&options, row.start_s, row.end_s, late) {
            self.line(&format!("{label}{late}"));
        }
    }

    fn known(&self, id: StreamId) -> Option<&Known> {
        self.streams.iter().find(|known| known.stream.id == id)
    }

    fn number(&self, id: StreamId) -> u32 {
        self.known(id)
            .map_or(id.0.saturating_add(1), |known| known.number)
    }

    fn label(&self, test: &TestSpec, id: StreamId) -> String {
        let flow = self
            .known(id)
            .map_or(Flow::Forward, |known| known.stream.flow);
        let is_reversed = is_reversed(flow, test, &self.options);
        label(
            self.number(id),
            is_reversed,
            test.workload.permit_key.as_deref(),
        )
    }
}

impl Known {
    fn is_same_connection(&self, other: &Stream, number: u32) -> bool {
        self.number == number
            && (self.stream.local, self.stream.remote) == (other.local, other.remote)
    }
}

/// Connections from which on 2.2.1 shows a standard deviation.
const DEVIATION_FROM: u64 = 25;

/// The reporter of one server.
pub(super) struct Reporter {
    options: Arc<Options>,
    output: Output,
    headers: Headers,
    csv_header: csv::Header,
}

impl Reporter {
    pub(super) fn new(options: Arc<Options>, output: Output) -> Self {
        Self {
            options,
            output,
            headers: Headers::default(),
            csv_header: csv::Header::default(),
        }
    }

    /// A writer for one test.
    pub(super) fn sink(&self) -> Box<dyn EventSink> {
        let options = Arc::clone(&self.options);
        let output = self.output.clone();
        match self.options.style {
            Style::Text => Box::new(TextWriter::new(options, output, self.headers.clone())),
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
