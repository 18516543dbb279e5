//! Comma-separated values (`-y C`): one line per stream and interval, and one per stream at the
//! end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use linerate_document::Output;
use linerate_model::event::TestHeader;
use linerate_model::metrics::StreamMetrics;
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::{
    Event, EventSink, IntervalReport, SinkError, Stream, StreamId, StreamRole, Summary, UdpInterval,
};

use super::clock;
use super::options::Options;
use super::row::{Row, shown};
use super::stream_columns::{datagram_rate, ms};
use super::sum::{Numbered, Sum};

/// Set once the header line was printed; the writers of a server share it.
#[derive(Clone, Default)]
pub(super) struct Header(Arc<AtomicBool>);

/// The lines of one test.
pub(super) struct CsvWriter {
    options: Arc<Options>,
    output: Output,
    header_shown: Header,
    header: Option<TestHeader>,
    streams: Vec<(Stream, u32)>,
    page: String,
}

impl CsvWriter {
    pub(super) fn new(options: Arc<Options>, output: Output, header_shown: Header) -> Self {
        Self {
            options,
            output,
            header_shown,
            header: None,
            streams: Vec::new(),
            page: String::new(),
        }
    }
}

impl EventSink for CsvWriter {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        match event {
            Event::TestAccepted(header) => self.header = Some((**header).clone()),
            Event::StreamOpened(stream) => {
                let facts = stream.facts.as_ref();
                let number = facts.map_or(stream.id.0.saturating_add(1), |facts| facts.number);
                self.streams.push((stream.clone(), number));
            }
            Event::Interval(report) => self.interval(report),
            Event::Summary(summary) => self.summary(summary),
            Event::Warning(text) | Event::Notice(text) => self.output.error(&format!("{text}\n")),
            Event::Failed(failure) => self.output.error(&format!("{failure}\n")),
            _ => {}
        }

        self.output.report(std::mem::take(&mut self.page))?;
        Ok(())
    }
}

impl CsvWriter {
    fn interval(&mut self, report: &IntervalReport) {
        let grid = self.header.as_ref().and_then(|header| header.interval);
        self.rows(shown(report, grid).map(|interval| (interval.id, Row::of_interval(interval))));
    }

    fn summary(&mut self, summary: &Summary) {
        let rows = summary.streams.iter();
        self.rows(rows.filter_map(|stream| Some((stream.id, Row::of_total(stream)?))));
    }

    fn rows<'a>(&mut self, rows: impl Iterator<Item = (StreamId, Row<'a>)>) {
        let test = self
            .header
            .as_ref()
            .map(|header| header.spec.clone())
            .unwrap_or_default();
        let known = |id| {
            self.streams
                .iter()
                .find(|(stream, _)| stream.id == id)
                .cloned()
        };
        let rows: Vec<_> = rows
            .filter_map(|(id, row)| Some((known(id)?, row)))
            .collect();
        for ((stream, number), row) in &rows {
            self.row(&test, &ends(stream, row.role), &number.to_string(), row);
        }

        // 2.2.1 adds the sum, without a port of the streams' own.
        let is_summed = self.options.is_new() && !self.options.enhanced && rows.len() > 1;
        if let Some(((stream, _), first)) = rows.first().filter(|_| is_summed) {
            let numbered: Vec<Numbered<'_>> = rows
                .iter()
                .map(|((_, number), row)| (*number, *row))
                .collect();
            let (from, _, to, port) = ends(stream, first.role);
            self.row(
                &test,
                // The sum of all streams has no port of its own.
                &(from, 0, to, port),
                "-1",
                &Sum::of(&numbered).row(*first),
            );
        }
    }

    fn row(&mut self, test: &TestSpec, ends: &Ends, number: &str, row: &Row<'_>) {
        let (names, values): (Vec<&str>, Vec<String>) = self.columns(test, row).into_iter().unzip();
        let is_long = self.options.is_new() && self.options.enhanced;
        // One header per file, whatever tests a server runs at once.
        if is_long && !self.header_shown.0.swap(true, Ordering::Relaxed) {
            self.page
                .push_str(&format!("{COMMON_NAMES},{}\n", names.join(",")));
        }

        // The short form joins both times by a dash, the long one has a column for each.
        let separator = if is_long { ',' } else { '-' };
        let (source, source_port, destination, destination_port) = ends;
        let mut line = format!(
            "{},{source},{source_port},{destination},{destination_port},{number},{:.1}{separator}{:.1},{},{}",
            self.stamp(row),
            row.start_s,
            row.end_s,
            row.bytes,
            row.bits_per_s() as u64
        );
        for value in values {
            line.push_str(&format!(",{value}"));
        }

        self.page.push_str(&line);
        self.page.push('\n');
    }

    /// Local time of the end of the row.
    fn stamp(&self, row: &Row<'_>) -> String {
        let started_ms = self
            .header
            .as_ref()
            .map_or(0, |header| header.started_at_unix_ms);
        let end_us = started_ms
            .saturating_mul(1000)
            .saturating_add((row.end_s * 1e6) as u64);
        let Some(time) = clock::zoned(end_us, self.options.utc) else {
            return String::new();
        };

        let notation = match (self.options.enhanced, self.options.is_new()) {
            (false, _) => "%Y%m%d%H%M%S",
            (true, false) => "%Y%m%d%H%M%S.%3f",
            (true, true) => "%z:%Y%m%d%H%M%S.%6f",
        };
        clock::format(&time, notation)
    }

    /// Further columns; only 2.2.1 has names for them, and more of them with `-e`.
    fn columns(&self, test: &TestSpec, row: &Row<'_>) -> Vec<Column> {
        let more = row.more;
        let is_udp = test.transport == Transport::Udp;
        let losses = (
            "jitter,errors,datagrams,errpercent,outoforder",
            loss(row.udp),
        );
        if !self.options.is_new() || !self.options.enhanced {
            return is_udp.then_some(losses).into_iter().collect();
        }

        if let Some(bounces) = more.round_trips {
            let trips = bounces.round_trip;
            let times = format!("{},{}", trips.count, ms(&trips, ','));
            let sent = bounces.sent_bytes;
            let received = bounces.received_bytes;
            let rate = if trips.mean > 0.0 {
                1.0 / trips.mean
            } else {
                0.0
            };
            return vec![
                ("bbcnt,bbavg,bbmin,bbmax,bbstdev", times),
                window(row),
                (
                    "txbytes,rxbytes,rps",
                    format!("{sent},{received},{rate:.1}"),
                ),
            ];
        }

        let writes = more.writes.unwrap_or_default();
        let reads = more.reads.unwrap_or_default();
        let is_sender = row.role == StreamRole::Sender;
        let calls = match (is_udp, is_sender) {
            (true, true) => (
                "writecnt,writeerr,writetimeo",
                format!("{},{},{}", writes.calls, writes.errors, writes.timeouts),
            ),
            (true, false) => (
                "readcnt,readtimeo,readerrlen",
                format!("{},{},{}", reads.calls, reads.timeouts, reads.truncated),
            ),
            (false, true) => (
                "writecnt,writeerr",
                format!("{},{}", writes.calls, writes.errors),
            ),
            (false, false) => (
                "readcnt,bin0,bin1,bin2,bin3,bin4,bin5,bin6,bin7",
                format!(
                    "{},{}",
                    reads.calls,
                    reads.bins.map(|bin| bin.to_string()).join(",")
                ),
            ),
        };
        let has_delays = test.workload.trip_times && !is_sender;
        let delays = has_delays.then(|| delays(more));

        let columns = if is_udp {
            let rate = ("pps", format!("{:.6}", datagram_rate(row)));
            [Some(losses), delays, Some(calls), Some(rate)]
        } else {
            let window = is_sender.then(|| window(row));
            [delays, Some(calls), window, None]
        };
        columns.into_iter().flatten().collect()
    }
}

/// Address and port of the sender, then of the receiver.
type Ends = (String, u16, String, u16);

fn ends(stream: &Stream, role: StreamRole) -> Ends {
    let (from, to) = match role {
        StreamRole::Sender => (stream.local, stream.remote),
        StreamRole::Receiver => (stream.remote, stream.local),
    };
    (
        from.ip().to_string(),
        from.port(),
        to.ip().to_string(),
        to.port(),
    )
}

/// Jitter in ms, lost, total, lost in percent, late.
fn loss(udp: Option<UdpInterval>) -> String {
    let udp = udp.unwrap_or_default();
    // No datagrams, no loss: a division by 0 would print NaN.
    let percent = if udp.packets > 0 {
        100.0 * udp.lost as f64 / udp.packets as f64
    } else {
        0.0
    };
    format!(
        "{:.3},{},{},{percent:.3},{}",
        udp.jitter_s * 1e3,
        udp.lost,
        udp.packets,
        udp.out_of_order
    )
}

/// Names of neighbouring columns, and their values.
type Column = (&'static str, String);

fn window(row: &Row<'_>) -> Column {
    let tcp = row.tcp.or(row.more.tcp).unwrap_or_default();
    let segments = row.more.cwnd_segments.unwrap_or(0);
    let kbytes = tcp.snd_cwnd_bytes / 1024;
    (
        "tcpretry,tcpcwnd,tcppcwnd,tcprtt,tcprttvar",
        format!(
            "{},{kbytes},{segments},{},{}",
            tcp.retransmits, tcp.rtt_us, tcp.rttvar_us
        ),
    )
}

fn delays(more: &StreamMetrics) -> Column {
    let delay = more.one_way.unwrap_or_default();
    let size = more.burst_mean_bytes.unwrap_or(0);
    (
        "ttavg,ttmin,ttmax,ttsdev,ttcnt,ttsize",
        format!("{},{},{size}", ms(&delay, ','), delay.count),
    )
}

/// Names of the columns every line has.
const COMMON_NAMES: &str =
    "time,srcaddress,srcport,dstaddr,dstport,transferid,istart,iend,bytes,speed";
