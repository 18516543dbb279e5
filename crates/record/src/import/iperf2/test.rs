//! The rows of one test as events.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::interval::TcpInterval;
use linerate_model::metrics::{ReadCounts, RoundTrips, StreamMetrics, WriteCounts};
use linerate_model::stream::StreamFacts;
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    Direction, EndCondition, EndpointTotals, Event, Flow, IntervalReport, Stream, StreamId, StreamInterval, StreamRole,
    StreamSummary, Summary, Transport, UdpInterval,
};

use super::row::{End, Row};

/// One test: a stream in one direction, or in both on one connection.
pub(in crate::import) struct CsvTest {
    id: i64,
    /// Source and destination of its first row.
    ends: [End; 2],
    /// The rows in this order of the ends, and those in the other one.
    flows: [Rows; 2],
    /// What releases before 2.1 print of the server's report.
    receiver_report: Option<Row>,
    text: String,
    /// Of the row that was read last.
    stamp_ms: Option<u64>,
}

#[derive(Default)]
struct Rows {
    intervals: Vec<Row>,
    total: Option<Row>,
}

impl Rows {
    fn is_empty(&self) -> bool {
        self.intervals.is_empty() && self.total.is_none()
    }

    fn is_closed(&self) -> bool {
        self.is_empty() || self.total.is_some()
    }

    fn all(&self) -> impl Iterator<Item = &Row> {
        self.intervals.iter().chain(&self.total)
    }
}

fn is_same(a: &End, b: &End) -> bool {
    a.is_none() || b.is_none() || a == b
}

impl CsvTest {
    pub(super) fn new(row: &Row) -> Self {
        Self {
            id: row.id,
            ends: [row.source.clone(), row.destination.clone()],
            flows: Default::default(),
            receiver_report: None,
            text: String::new(),
            stamp_ms: row.stamp_ms,
        }
    }

    fn order(&self, row: &Row) -> Option<usize> {
        let [a, b] = &self.ends;
        let is_forward = is_same(&row.source, a) && is_same(&row.destination, b);
        let is_backward = is_same(&row.source, b) && is_same(&row.destination, a);
        if is_forward { Some(0) } else { is_backward.then_some(1) }
    }

    /// Whether a row belongs to this test.
    pub(super) fn takes(&self, row: &Row) -> bool {
        let Some(order) = self.order(row).filter(|_| self.id == row.id) else { return false };
        if !self.is_near(row) {
            return false;
        }
        let flow = &self.flows[order];
        let is_next = flow.intervals.last().is_none_or(|last| row.start_ns >= last.end_ns || is_total(row, last));
        // The only row of a test that is there twice.
        let is_repeated = matches!(flow.intervals.as_slice(), [only] if only.text == row.text);
        // A row that lost its last columns.
        let is_shorter = flow.all().any(|known| known.count > row.count);
        flow.total.is_none() && is_next && !is_repeated && !is_shorter
    }

    /// Whether both ends of a row are known, or it was written at the time of the test.
    fn is_near(&self, row: &Row) -> bool {
        let is_known = self.ends.iter().chain([&row.source, &row.destination]).all(Option::is_some);
        let longest_ms = row.end_ns.saturating_sub(row.start_ns) / 1_000_000 + 2000;
        let apart_ms = row.stamp_ms.zip(self.stamp_ms).map(|(row, test)| row.abs_diff(test));
        is_known || apart_ms.is_some_and(|ms| ms <= longest_ms)
    }

    pub(super) fn push(&mut self, row: Row) {
        self.stamp_ms = row.stamp_ms;
        let order = self.order(&row).unwrap_or(0);
        let [a, b] = &mut self.ends;
        let (source, destination) = if order == 0 { (a, b) } else { (b, a) };
        *source = source.take().or_else(|| row.source.clone());
        *destination = destination.take().or_else(|| row.destination.clone());
        self.text.push_str(&row.text);
        self.text.push('\n');
        let flow = &mut self.flows[order];
        let is_total = flow.intervals.last().is_some_and(|last| is_total(&row, last));
        if is_total { flow.total = Some(row) } else { flow.intervals.push(row) }
    }

    /// Takes the server's report that releases before 2.1 print at the end of a UDP test, with the ends exchanged.
    pub(super) fn take_receiver_report(&mut self, row: &Row) -> bool {
        let is_reply = self.id == row.id && self.order(row) == Some(1) && row.count == 14 && row.start_ns == 0;
        let is_sent = self.flows[1].is_empty() && self.flows[0].all().all(|sent| sent.count == 9);
        let is_last = self.flows[0].all().last().is_some_and(|sent| row.end_ns + 1_000_000_000 >= sent.end_ns);
        let takes = is_reply && is_sent && is_last && self.receiver_report.is_none();
        if takes {
            self.text.push_str(&row.text);
            self.text.push('\n');
            self.receiver_report = Some(row.clone());
        }
        takes
    }

    /// Every direction has its total.
    pub(super) fn is_closed(&self) -> bool {
        self.flows.iter().all(Rows::is_closed)
    }

    pub(in crate::import) fn first_row(&self) -> &str {
        self.text.lines().next().unwrap_or_default()
    }

    pub(in crate::import) fn source(&self) -> String {
        self.text.clone()
    }

    pub(in crate::import) fn notes(&self) -> Vec<String> {
        let note = "the rows do not name the end that wrote them: taken for the client's";
        if self.writer().is_none() { vec![note.to_owned()] } else { Vec::new() }
    }

    pub(in crate::import) fn endpoint(&self) -> Endpoint {
        self.writer().unwrap_or(Endpoint::Client)
    }

    /// The end whose calls a row counts, or which does not know what was lost.
    fn writer(&self) -> Option<Endpoint> {
        let of = |is_sender: bool, flow: Flow| match (is_sender, flow) {
            (true, Flow::Forward) | (false, Flow::Reverse) => Endpoint::Client,
            _ => Endpoint::Server,
        };
        self.parts().into_iter().find_map(|(flow, rows)| {
            let total = rows.all().last()?;
            let is_sender = if total.value("writecnt").is_some() || self.receiver_report.is_some() {
                true
            } else if total.value("readcnt").is_some() {
                false
            } else if total.is_udp() {
                total.value("datagrams").is_none() || rows.all().all(|row| row.value("jitter") == Some(0.0))
            } else {
                return None;
            };
            Some(of(is_sender, flow))
        })
    }

    /// The server has the lower port; the other one is the system's choice.
    fn client(&self) -> usize {
        match &self.ends {
            [Some((_, a)), Some((_, b))] => usize::from(a < b),
            [None, _] => 0,
            [Some(_), None] => 1,
        }
    }

    /// The rows of each direction that has some.
    fn parts(&self) -> Vec<(Flow, &Rows)> {
        let client = self.client();
        let flow = |order: usize| if order == client { Flow::Forward } else { Flow::Reverse };
        let parts = [(flow(client), &self.flows[client]), (flow(1 - client), &self.flows[1 - client])];
        parts.into_iter().filter(|(_, rows)| !rows.is_empty()).collect()
    }

    /// 2.1 stamps a row with the end of its interval, 2.2 a total alone.
    pub(in crate::import) fn started_unix_ms(&self) -> Option<u64> {
        let (_, rows) = *self.parts().first()?;
        let (first, last) = (rows.intervals.first()?, rows.intervals.last()?);
        let is_late = |total: &&Row| total.stamp_ms < last.stamp_ms;
        let row = rows.total.as_ref().filter(is_late).unwrap_or(first);
        row.stamp_ms?.checked_sub(row.end_ns / 1_000_000)
    }

    pub(in crate::import) fn events(&self) -> Vec<Event> {
        let parts = self.parts();
        let mut events = vec![Event::TestAccepted(Box::new(self.header(&parts)))];
        let streams: Vec<Stream> = (0..).zip(&parts).map(|(id, (flow, _))| self.stream(StreamId(id), *flow)).collect();
        events.extend(streams.iter().cloned().map(Event::StreamOpened));
        events.push(Event::TestStarted { at_monotonic_ns: None });
        let is_single = is_single(&parts);
        let intervals = parts.iter().map(|(_, rows)| if is_single { &[][..] } else { &rows.intervals });
        let intervals: Vec<&[Row]> = intervals.collect();
        for position in 0..intervals.iter().map(|rows| rows.len()).max().unwrap_or(0) {
            let rows = streams.iter().zip(&intervals);
            let rows = rows.filter_map(|(stream, rows)| Some(interval(stream, rows.get(position)?)));
            events.push(Event::Interval(IntervalReport::new(rows.collect())));
        }
        let total =
            |rows: &'_ Rows| rows.total.clone().or_else(|| rows.intervals.last().filter(|_| is_single).cloned());
        let totals: Option<Vec<Row>> = parts.iter().map(|(_, rows)| total(rows)).collect();
        if let Some(totals) = totals {
            let streams = streams.iter().zip(&totals).map(|(stream, row)| self.summary(stream, row)).collect();
            events.push(Event::Summary(Box::new(Summary::new(streams))));
            events.push(Event::Finished);
        }
        events
    }

    fn header(&self, parts: &[(Flow, &Rows)]) -> TestHeader {
        let client = self.client();
        let endpoint = self.endpoint();
        let peer = match endpoint {
            Endpoint::Client => &self.ends[1 - client],
            Endpoint::Server => &self.ends[client],
        };
        let is_udp = self.receiver_report.is_some() || parts.iter().any(|(_, rows)| rows.all().any(Row::is_udp));
        let rows = || parts.iter().flat_map(|(_, rows)| rows.all());
        let seconds = rows().map(|row| row.end_ns).max().unwrap_or(0).saturating_add(500_000_000) / 1_000_000_000;
        let first = parts.first().and_then(|(_, rows)| rows.intervals.first().filter(|_| !is_single(parts)));
        let mut header = TestHeader::default();
        header.endpoint = endpoint;
        header.peer_host = peer.as_ref().map(|(host, _)| host.clone()).unwrap_or_default();
        header.peer_port = peer.as_ref().map_or(0, |(_, port)| *port);
        header.started_at_unix_ms = self.started_unix_ms().unwrap_or(0);
        header.spec.transport = if is_udp { Transport::Udp } else { Transport::Tcp };
        header.spec.direction = match parts {
            [_, _, ..] => Direction::Bidirectional,
            [(Flow::Reverse, _)] => Direction::Reverse,
            _ => Direction::Forward,
        };
        header.spec.end = EndCondition::Duration(Duration::from_secs(seconds));
        header.interval = first.map(|row| Duration::from_nanos(row.end_ns.saturating_sub(row.start_ns)));
        header
    }

    fn stream(&self, id: StreamId, flow: Flow) -> Stream {
        let client = self.client();
        let is_client = self.endpoint() == Endpoint::Client;
        let (local, remote) = if is_client { (client, 1 - client) } else { (1 - client, client) };
        let is_sender = (flow == Flow::Forward) == is_client;
        let number = u32::try_from(self.id).unwrap_or(0);
        let mut stream = Stream::new(
            id,
            if is_sender { StreamRole::Sender } else { StreamRole::Receiver },
            flow,
            address(&self.ends[local]),
            address(&self.ends[remote]),
        );
        let mut facts = StreamFacts::default();
        facts.number = number;
        stream.facts = Some(Box::new(facts));
        stream
    }

    fn summary(&self, stream: &Stream, row: &Row) -> StreamSummary {
        let is_sender = stream.role == StreamRole::Sender;
        let totals = EndpointTotals::new(row.bytes, row.end_ns.saturating_sub(row.start_ns), udp(row).map(udp_totals));
        let reported = self
            .receiver_report
            .as_ref()
            .map(|row| EndpointTotals::new(row.bytes, row.end_ns, udp(row).map(udp_totals)));
        let tcp = row.count_of("tcpretry").map(|count| {
            let mut tcp_summary = TcpSummary::default();
            tcp_summary.retransmits = Some(count);
            tcp_summary
        });
        let mut summary = StreamSummary::new(stream.id, stream.role, stream.flow);
        summary.sender = is_sender.then_some(totals);
        summary.receiver = if is_sender { reported } else { Some(totals) };
        summary.tcp = tcp;
        summary.local_metrics = metrics(row);
        summary
    }
}

fn is_total(row: &Row, last: &Row) -> bool {
    row.start_ns == 0 && row.end_ns >= last.end_ns
}

/// A test without intervals has one row in each direction, its total.
fn is_single(parts: &[(Flow, &Rows)]) -> bool {
    let is_one = |rows: &Rows| matches!(rows.intervals.as_slice(), [row] if row.start_ns == 0) && rows.total.is_none();
    parts.iter().all(|(_, rows)| is_one(rows))
}

fn address(end: &End) -> SocketAddr {
    let (host, port) = end.as_ref().map_or(("", 0), |(host, port)| (host.as_str(), *port));
    let host = host.split('%').next().and_then(|host| host.parse().ok());
    SocketAddr::new(host.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), port)
}

fn interval(stream: &Stream, row: &Row) -> StreamInterval {
    let mut interval = StreamInterval::new(stream, row.start_ns, row.end_ns, row.bytes);
    interval.tcp = tcp(row);
    interval.udp = udp(row);
    interval.metrics = metrics(row);
    interval
}

/// What the kernel did not report is 0.
fn tcp(row: &Row) -> Option<TcpInterval> {
    let time_us = |name: &str| row.count_of(name).and_then(|us| u32::try_from(us).ok());
    let mut tcp = TcpInterval::default();
    tcp.retransmits = row.count_of("tcpretry")?;
    tcp.snd_cwnd_bytes = row.count_of("tcpcwnd")? * 1024;
    tcp.rtt_us = time_us("tcprtt")?;
    tcp.rttvar_us = time_us("tcprttvar")?;
    (tcp.snd_cwnd_bytes > 0).then_some(tcp)
}

fn udp(row: &Row) -> Option<UdpInterval> {
    Some(UdpInterval::new(
        row.count_of("datagrams")?,
        row.count_of("errors")? as i64,
        row.count_of("outoforder")?,
        row.value("jitter")? / 1e3,
    ))
}

fn udp_totals(udp: UdpInterval) -> UdpTotals {
    let mut datagrams =
        UdpTotals::new(udp.packets, u64::try_from(udp.lost).unwrap_or(0), udp.out_of_order, udp.jitter_s);
    datagrams.omitted_packets = Some(0);
    datagrams.omitted_lost = Some(0);
    datagrams
}

fn metrics(row: &Row) -> Option<Box<StreamMetrics>> {
    let count = |name: &str| row.count_of(name).unwrap_or(0);
    let writes = row.count_of("writecnt").map(|calls| {
        let mut counts = WriteCounts::default();
        counts.calls = calls;
        counts.errors = count("writeerr");
        counts.timeouts = count("writetimeo");
        counts
    });
    let reads = row.count_of("readcnt").map(|calls| {
        let mut counts = ReadCounts::default();
        counts.calls = calls;
        counts.bins = [0, 1, 2, 3, 4, 5, 6, 7].map(|bin| count(&format!("bin{bin}")));
        counts.timeouts = count("readtimeo");
        counts.truncated = count("readerrlen");
        counts
    });
    let round_trips = row.distribution("bb", "stdev").map(|round_trip| {
        let mut trips = RoundTrips::default();
        trips.round_trip = round_trip;
        trips.sent_bytes = count("txbytes");
        trips.received_bytes = count("rxbytes");
        trips
    });
    let mut metrics = StreamMetrics::default();
    metrics.writes = writes;
    metrics.reads = reads;
    metrics.cwnd_segments =
        row.count_of("tcppcwnd").filter(|count| *count > 0).and_then(|count| u32::try_from(count).ok());
    metrics.datagrams_per_s = row.value("pps");
    metrics.one_way = row.distribution("tt", "sdev");
    metrics.burst_mean_bytes = row.count_of("ttsize").filter(|_| row.distribution("tt", "sdev").is_some());
    metrics.round_trips = round_trips;
    (metrics != StreamMetrics::default()).then(|| Box::new(metrics))
}
