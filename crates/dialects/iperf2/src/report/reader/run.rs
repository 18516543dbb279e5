//! One run as events: the connections of one test.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::interval::TcpInterval;
use linerate_model::metrics::{ReadCounts, RoundTrips, StreamMetrics, WriteCounts};
use linerate_model::stream::StreamFacts;
use linerate_model::summary::{TcpSummary, UdpTotals};
use linerate_model::{
    Direction, EndCondition, EndpointTotals, Event, Flow, IntervalReport, Stream, StreamId,
    StreamInterval, StreamRole, StreamSummary, Summary, Transport, UdpInterval,
};

use super::connection::{Connection, FlowRows};
use super::row::{End, Row};

/// Times of streams that began together differ by less: connections are opened one after the other,
/// and the time of a row may have a resolution of one second.
const APART_MAX_MS: u64 = 1500;
/// The bound of ends whose time is not known, in ns.
const APART_MAX_NS: u64 = 1_000_000_000;

/// Runs that are searched for the one of a connection or a sum, and connections of one run: the
/// time for a text is proportional to its length.
const OVERLAPPING_MAX: usize = 64;
const CONNECTIONS_MAX: usize = 1024;

/// The connections of one test, in the order of their first rows.
pub struct CsvRun {
    connections: Vec<Connection>,
    /// The program's own sum of all streams.
    sum: Option<Connection>,
}

/// One direction of one connection.
struct Part<'a> {
    connection: &'a Connection,
    /// Index of the client's end of the run.
    client: usize,
    flow: Flow,
    rows: &'a FlowRows,
}

/// The runs of connections, with the sums that belong to them. Sums of no connection are runs of
/// their own (`--sum-only`).
pub(super) fn runs(connections: Vec<Connection>, sums: Vec<Connection>) -> Vec<CsvRun> {
    let mut runs: Vec<CsvRun> = Vec::new();
    for connection in connections {
        let mut recent = runs.iter_mut().rev().take(OVERLAPPING_MAX).enumerate();
        let run = recent.find_map(|(place, run)| run.takes(&connection, place == 0).then_some(run));
        match run {
            Some(run) => run.connections.push(connection),
            None => runs.push(CsvRun {
                connections: vec![connection],
                sum: None,
            }),
        }
    }

    let mut alone = Vec::new();
    for sum in sums {
        // The sum follows the rows of its streams, and the next run begins behind it.
        let end = runs.partition_point(|run| run.first().places.0 < sum.places.1);
        let mut before = runs.iter_mut().take(end).rev().take(OVERLAPPING_MAX);
        match before.find(|run| run.takes_sum(&sum)) {
            Some(run) => run.sum = Some(sum),
            None => alone.push(CsvRun {
                connections: vec![sum],
                sum: None,
            }),
        }
    }

    runs.extend(alone);
    runs
}

fn host(end: &End) -> Option<&str> {
    end.as_ref().map(|(host, _)| host.as_str())
}

impl CsvRun {
    fn first(&self) -> &Connection {
        &self.connections[0]
    }

    /// True if a connection is another stream of this run. Without times only that of the row
    /// before can be.
    fn takes(&self, connection: &Connection, is_latest: bool) -> bool {
        let first = self.first();
        let is_new = self
            .connections
            .iter()
            .all(|known| known.id != connection.id);
        let server = |connection: &Connection| connection.ends[1 - connection.client()].clone();
        let client = |connection: &Connection| connection.ends[connection.client()].clone();
        // Streams of one test (`-P`) differ in the port of the client alone.
        let is_alike = server(first) == server(connection)
            && host(&client(first)) == host(&client(connection));

        let has_room = self.connections.len() < CONNECTIONS_MAX;
        has_room
            && is_new
            && (is_alike || self.is_opposite(connection))
            && self.is_at_once(connection, is_latest)
    }

    /// True if a server opened a connection back to its client (`-d`): it then listens on the
    /// server's port.
    fn is_opposite(&self, connection: &Connection) -> bool {
        let ends = |connection: &Connection| {
            let client = connection.client();
            Some((
                connection.ends[client].clone()?,
                connection.ends[1 - client].clone()?,
            ))
        };
        let Some(((client, _), (server, port))) = ends(self.first()) else {
            return false;
        };
        let Some(((opener, _), (listener, back))) = ends(connection) else {
            return false;
        };

        client != server && opener == server && listener == client && port == back
    }

    fn is_at_once(&self, connection: &Connection, is_latest: bool) -> bool {
        let first = self.first();
        match (first.started_unix_ms(), connection.started_unix_ms()) {
            (Some(a), Some(b)) => {
                let shorter_ms = first.end_ns().min(connection.end_ns()) / 1_000_000;
                a.abs_diff(b) <= APART_MAX_MS.min(shorter_ms.max(1000))
            }
            (None, None) => {
                is_latest && first.end_ns().abs_diff(connection.end_ns()) <= APART_MAX_NS
            }
            _ => false,
        }
    }

    /// True if a sum is that of this run, which has streams in one direction alone.
    fn takes_sum(&self, sum: &Connection) -> bool {
        let port = |end: &End| end.as_ref().map(|(_, port)| *port);
        let destination = port(&sum.ends[1]);
        let is_one_way = self
            .parts()
            .windows(2)
            .all(|pair| pair[0].flow == pair[1].flow);
        let is_destination =
            destination.is_none() || self.first().ends.iter().any(|end| port(end) == destination);
        let is_at_once = match (self.first().started_unix_ms(), sum.started_unix_ms()) {
            (Some(a), Some(b)) => a.abs_diff(b) <= APART_MAX_MS,
            _ => true,
        };
        let is_as_long = self
            .connections
            .iter()
            .any(|one| one.end_ns().abs_diff(sum.end_ns()) <= APART_MAX_NS / 2);

        self.sum.is_none()
            && self.first().id >= 0
            && is_one_way
            && is_destination
            && is_at_once
            && is_as_long
    }

    /// The directions of all connections, by the numbers of the streams.
    fn parts(&self) -> Vec<Part<'_>> {
        let mut connections: Vec<&Connection> = self.connections.iter().collect();
        connections.sort_by_key(|connection| connection.id);

        let parts = connections.into_iter().flat_map(|connection| {
            let client = self.client_of(connection);
            let parts = connection.parts(client).into_iter();
            parts.map(move |(flow, rows)| Part {
                connection,
                client,
                flow,
                rows,
            })
        });
        parts.collect()
    }

    /// Index of the end of a connection that is the client's of the run.
    fn client_of(&self, connection: &Connection) -> usize {
        let own = connection.client();
        if self.is_opposite(connection) {
            1 - own
        } else {
            own
        }
    }

    /// Its first row as text.
    pub fn first_row(&self) -> &str {
        self.first().text.lines().next().unwrap_or_default()
    }

    /// All of its rows as text.
    pub fn source(&self) -> String {
        self.connections
            .iter()
            .chain(&self.sum)
            .map(|connection| connection.text.as_str())
            .collect()
    }

    /// Remarks on what the rows leave open.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.writer().is_none() {
            notes.push(
                "the rows do not name the end that wrote them: taken for the client's".to_owned(),
            );
        }

        if self.connections.len() > 1 && self.started_unix_ms().is_none() {
            notes.push(
                "the rows have no time: streams of different numbers are taken for one test"
                    .to_owned(),
            );
        }

        notes
    }

    /// The end that wrote the rows.
    pub fn endpoint(&self) -> Endpoint {
        self.writer().unwrap_or(Endpoint::Client)
    }

    /// The end whose calls a row counts, or which does not know what was lost.
    fn writer(&self) -> Option<Endpoint> {
        let of = |is_sender: bool, flow: Flow| match (is_sender, flow) {
            (true, Flow::Forward) | (false, Flow::Reverse) => Endpoint::Client,
            _ => Endpoint::Server,
        };

        self.parts().into_iter().find_map(|part| {
            let total = part.rows.all().last()?;
            // Rows of `-e` name the end: senders count writes, receivers reads.
            let is_sender =
                if total.value("writecnt").is_some() || part.connection.receiver_report.is_some() {
                    true
                } else if total.value("readcnt").is_some() {
                    false
                } else if total.is_udp() {
                    total.value("datagrams").is_none()
                        || part.rows.all().all(|row| row.value("jitter") == Some(0.0))
                } else {
                    return None;
                };
            Some(of(is_sender, part.flow))
        })
    }

    /// Start of the test in ms since 1970.
    pub fn started_unix_ms(&self) -> Option<u64> {
        self.first().started_unix_ms()
    }

    /// The test.
    pub fn events(&self) -> Vec<Event> {
        let parts = self.parts();
        let mut events = vec![Event::TestAccepted(Box::new(self.header(&parts)))];
        let streams: Vec<Stream> = (0..)
            .zip(&parts)
            .map(|(id, part)| self.stream(StreamId(id), part))
            .collect();
        events.extend(streams.iter().cloned().map(Event::StreamOpened));
        events.push(Event::TestStarted {
            at_monotonic_ns: None,
        });

        let is_single = is_single(&parts);
        let intervals = parts.iter().map(|part| {
            if is_single {
                &[][..]
            } else {
                &part.rows.intervals
            }
        });
        let intervals: Vec<&[Row]> = intervals.collect();
        for position in 0..intervals.iter().map(|rows| rows.len()).max().unwrap_or(0) {
            let rows = streams.iter().zip(&intervals);
            let rows =
                rows.filter_map(|(stream, rows)| Some(interval(stream, rows.get(position)?)));
            events.push(Event::Interval(IntervalReport::new(rows.collect())));
        }

        let total = |part: &Part<'_>| {
            part.rows
                .total
                .clone()
                .or_else(|| part.rows.only_row().cloned())
        };
        let totals: Option<Vec<Row>> = parts.iter().map(total).collect();
        if let Some(totals) = totals {
            let all = streams.iter().zip(&parts).zip(&totals);
            let streams = all
                .map(|((stream, part), row)| self.summary(stream, part, row))
                .collect();
            events.push(Event::Summary(Box::new(Summary {
                streams,
                ..Summary::default()
            })));
            events.push(Event::Finished);
        }

        events
    }

    fn header(&self, parts: &[Part<'_>]) -> TestHeader {
        let connection = self.first();
        let client = self.client_of(self.first());
        let endpoint = self.endpoint();
        let peer = match endpoint {
            Endpoint::Client => &connection.ends[1 - client],
            Endpoint::Server => &connection.ends[client],
        };
        let is_udp = connection.receiver_report.is_some()
            || parts.iter().any(|part| part.rows.all().any(Row::is_udp));

        let end_ns = self
            .connections
            .iter()
            .map(Connection::end_ns)
            .max()
            .unwrap_or(0);
        let seconds = end_ns.saturating_add(500_000_000) / 1_000_000_000;
        let first = parts
            .first()
            .and_then(|part| part.rows.intervals.first().filter(|_| !is_single(parts)));
        let count = |flow: Flow| parts.iter().filter(|part| part.flow == flow).count();
        let forward = count(Flow::Forward);
        let reverse = count(Flow::Reverse);

        let mut header = TestHeader {
            endpoint,
            peer_host: host(peer).unwrap_or_default().to_owned(),
            peer_port: peer.as_ref().map_or(0, |(_, port)| *port),
            started_at_unix_ms: self.started_unix_ms().unwrap_or(0),
            ..TestHeader::default()
        };
        header.spec.transport = if is_udp {
            Transport::Udp
        } else {
            Transport::Tcp
        };
        header.spec.streams = u32::try_from(forward.max(reverse)).unwrap_or(u32::MAX);
        header.spec.direction = match (forward, reverse) {
            (1.., 1..) => Direction::Bidirectional,
            (0, 1..) => Direction::Reverse,
            _ => Direction::Forward,
        };
        header.spec.end = EndCondition::Duration(Duration::from_secs(seconds));
        header.interval =
            first.map(|row| Duration::from_nanos(row.end_ns.saturating_sub(row.start_ns)));

        header
    }

    fn stream(&self, id: StreamId, part: &Part<'_>) -> Stream {
        let is_client = self.endpoint() == Endpoint::Client;
        let client = part.client;
        let ends = &part.connection.ends;
        let (local, remote) = if is_client {
            (client, 1 - client)
        } else {
            (1 - client, client)
        };

        let is_sender = (part.flow == Flow::Forward) == is_client;

        let mut stream = Stream::new(
            id,
            if is_sender {
                StreamRole::Sender
            } else {
                StreamRole::Receiver
            },
            part.flow,
            address(&ends[local]),
            address(&ends[remote]),
        );
        let facts = StreamFacts {
            number: u32::try_from(part.connection.id).unwrap_or(0),
            ..StreamFacts::default()
        };
        stream.facts = Some(Box::new(facts));

        stream
    }

    fn summary(&self, stream: &Stream, part: &Part<'_>, row: &Row) -> StreamSummary {
        let is_sender = stream.role == StreamRole::Sender;
        // The sum of a test is what its program printed: bytes of all streams over the time of the
        // sum.
        let sum_ns = self
            .sum
            .as_ref()
            .and_then(|sum| sum.flows[0].all().last())
            .map(Row::duration_ns);
        let duration_ns = sum_ns.unwrap_or_else(|| row.duration_ns());
        let totals = EndpointTotals::new(row.bytes, duration_ns, udp(row).map(udp_totals));
        let reported = part.connection.receiver_report.as_ref();
        let reported = reported
            .map(|row| EndpointTotals::new(row.bytes, row.duration_ns(), udp(row).map(udp_totals)));

        let tcp = row.count_of("tcpretry").map(|count| TcpSummary {
            retransmits: Some(count),
            ..TcpSummary::default()
        });

        StreamSummary {
            id: stream.id,
            role: stream.role,
            flow: stream.flow,
            sender: is_sender.then_some(totals),
            receiver: if is_sender { reported } else { Some(totals) },
            tcp,
            local_metrics: metrics(row),
            ..StreamSummary::default()
        }
    }
}

/// A test without intervals has one row in each direction, its total.
fn is_single(parts: &[Part<'_>]) -> bool {
    parts.iter().all(|part| part.rows.only_row().is_some())
}

fn address(end: &End) -> SocketAddr {
    let (host, port) = end
        .as_ref()
        .map_or(("", 0), |(host, port)| (host.as_str(), *port));
    // The zone of a link-local address has a meaning on its own host alone (RFC 4007, section 6).
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

/// TCP values of an interval; 0 where the kernel did not report one.
fn tcp(row: &Row) -> Option<TcpInterval> {
    let time_us = |name: &str| row.count_of(name).and_then(|us| u32::try_from(us).ok());
    let tcp = TcpInterval {
        retransmits: row.count_of("tcpretry")?,
        snd_cwnd_bytes: row.count_of("tcpcwnd")? * 1024,
        rtt_us: time_us("tcprtt")?,
        rttvar_us: time_us("tcprttvar")?,
        ..TcpInterval::default()
    };
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
    UdpTotals {
        packets: udp.packets,
        lost: u64::try_from(udp.lost).unwrap_or(0),
        out_of_order: udp.out_of_order,
        jitter_s: udp.jitter_s,
        omitted_packets: Some(0),
        omitted_lost: Some(0),
    }
}

fn metrics(row: &Row) -> Option<Box<StreamMetrics>> {
    let count = |name: &str| row.count_of(name).unwrap_or(0);
    let writes = row.count_of("writecnt").map(|calls| WriteCounts {
        calls,
        errors: count("writeerr"),
        timeouts: count("writetimeo"),
    });

    let reads = row.count_of("readcnt").map(|calls| ReadCounts {
        calls,
        bins: [0, 1, 2, 3, 4, 5, 6, 7].map(|bin| count(&format!("bin{bin}"))),
        timeouts: count("readtimeo"),
        truncated: count("readerrlen"),
    });
    let round_trips = row
        .distribution("bb", "stdev")
        .map(|round_trip| RoundTrips {
            round_trip,
            sent_bytes: count("txbytes"),
            received_bytes: count("rxbytes"),
            ..RoundTrips::default()
        });

    let metrics = StreamMetrics {
        writes,
        reads,
        cwnd_segments: row
            .count_of("tcppcwnd")
            .filter(|count| *count > 0)
            .and_then(|count| u32::try_from(count).ok()),
        datagrams_per_s: row.value("pps"),
        one_way: row.distribution("tt", "sdev"),
        burst_mean_bytes: row
            .count_of("ttsize")
            .filter(|_| row.distribution("tt", "sdev").is_some()),
        round_trips,
        ..StreamMetrics::default()
    };

    (metrics != StreamMetrics::default()).then(|| Box::new(metrics))
}
