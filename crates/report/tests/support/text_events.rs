//! Reads recorded text back into the events that made it.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_model::event::{ControlConnected, Endpoint, Event, ServerOutput, TestHeader};
use linerate_model::summary::{FileSummary, TcpSummary, UdpTotals};
use linerate_model::{
    CpuUsage, Direction, EndCondition, EndpointTotals, Failure, FailureKind, Flow, IntervalReport, Stream, StreamId,
    StreamInterval, StreamRole, StreamSummary, Summary, TcpInterval, TestSpec, Transport, UdpInterval,
};

use super::solver::{Range, Shown, solve};

/// What the text does not say about itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    pub(crate) endpoint: Endpoint,
    /// `-i 0`.
    pub(crate) no_intervals: bool,
    /// `-f`.
    pub(crate) fixed_unit: bool,
}

/// A printed row.
#[derive(Debug, Clone)]
struct Row {
    /// `None` for a sum.
    id: Option<u32>,
    shown: Shown,
    /// Words behind the rate.
    rest: Vec<String>,
}

/// The events of one test, without its failure.
pub(crate) fn events(text: &str, stderr: &str, hints: Hints) -> Vec<Event> {
    let reader = Reader::new(text, hints);
    let mut events = reader.opening();
    events.extend(
        stderr
            .lines()
            .filter_map(|l| l.strip_prefix("warning: "))
            .map(|w| Event::Warning(w.into())),
    );
    events.extend(reader.streams().into_iter().map(Event::StreamOpened));
    if !reader.headers().is_empty() {
        events.push(Event::TestStarted);
    }
    events.extend(reader.intervals());
    if reader.has_summary() {
        events.push(Event::Summary(Box::new(reader.summary())));
    }
    events.extend(reader.peer_output());
    events.extend(match failure(stderr, hints.endpoint) {
        Some(failure) => Some(Event::Failed(failure)),
        None if reader.is_complete() => Some(Event::Finished),
        None => None,
    });
    events
}

/// The failure behind recorded error lines.
pub(crate) fn failure(stderr: &str, endpoint: Endpoint) -> Option<Failure> {
    let lines: Vec<&str> = stderr.lines().filter_map(|l| l.strip_prefix("iperf3: ")).collect();
    let first = *lines.first()?;
    let failure = |kind, message: &str| Failure {
        kind,
        message: message.into(),
        code: None,
    };
    Some(if let Some(message) = first.strip_prefix("SERVER ERROR - ") {
        let kind = FailureKind::Peer {
            errno: 0,
            errno_text: None,
        };
        failure(kind, message)
    } else if let Some(message) = first.strip_prefix("interrupt - ") {
        failure(FailureKind::Interrupted, message)
    } else if let Some(message) = first.strip_prefix("error - ") {
        let is_peer = endpoint == Endpoint::Client && message == "the server has terminated";
        let kind = if is_peer {
            FailureKind::PeerTerminated
        } else {
            FailureKind::Error
        };
        failure(kind, message)
    } else {
        failure(FailureKind::PeerTerminated, first)
    })
}

struct Reader<'a> {
    lines: Vec<&'a str>,
    peer_text: Option<(bool, String)>,
    hints: Hints,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str, hints: Hints) -> Self {
        let (own, peer_text) = match (
            text.split_once("\nServer output:\n"),
            text.split_once("\nServer JSON output:\n"),
        ) {
            (Some((own, peer)), _) => (own, Some((false, peer))),
            (_, Some((own, peer))) => (own, Some((true, peer))),
            _ => (text, None),
        };
        let peer_text = peer_text.map(|(is_json, peer)| {
            let peer = peer
                .strip_suffix("\n\niperf Done.\n")
                .expect("a test with peer output is complete");
            (is_json, peer.to_owned())
        });
        Self {
            lines: own.lines().collect(),
            peer_text,
            hints,
        }
    }

    fn value(&self, prefix: &str) -> Option<&'a str> {
        self.lines.iter().find_map(|l| l.strip_prefix(prefix))
    }

    fn opening(&self) -> Vec<Event> {
        let mut events = Vec::new();
        let (host, port) = match self.hints.endpoint {
            Endpoint::Client => {
                let control = ControlConnected {
                    local: "127.0.0.1:1".parse().expect("an address"),
                    remote: "127.0.0.1:2".parse().expect("an address"),
                    mss_bytes: self.value("Control connection MSS ").map(number),
                    chosen_block_len_bytes: self.value("Setting UDP block size to ").map(number),
                };
                events.push(Event::ControlConnected(control));
                match self.value("Connecting to host ") {
                    Some(peer) => peer.split_once(", port ").expect("host and port"),
                    None => return events,
                }
            }
            Endpoint::Server => match self.value("Accepted connection from ") {
                Some(peer) => peer.split_once(", port ").expect("host and port"),
                None => return events,
            },
        };
        events.push(Event::TestAccepted(Box::new(TestHeader {
            endpoint: self.hints.endpoint,
            peer_host: host.into(),
            peer_port: number(port),
            cookie: self.value("      Cookie: ").unwrap_or_default().into(),
            started_at_unix_ms: self.value("Time: ").map_or(0, unix_ms),
            control_mss_bytes: self
                .value("      TCP MSS: ")
                .and_then(|v| v.strip_suffix(" (default)"))
                .map(number),
            spec: self.spec(),
            interval: (!self.hints.no_intervals).then_some(Duration::from_secs(1)),
            file_name: None,
            first_stream_position: 0,
            first_socket: None,
            listener: None,
        })));
        events
    }

    fn spec(&self) -> TestSpec {
        let mut spec = TestSpec {
            transport: if self.is_udp() { Transport::Udp } else { Transport::Tcp },
            direction: self.direction(),
            want_server_output: true,
            ..TestSpec::default()
        };
        let streams = u32::try_from(self.streams().len().max(1)).expect("few streams");
        spec.streams = if self.is_bidirectional() { streams / 2 } else { streams };
        spec.socket.mss_bytes = self.value("      TCP MSS: ").and_then(|v| v.parse().ok());
        spec.pacing.rate_bps = self.value("      Target Bitrate: ").map(number);
        if self.lines.iter().any(|l| l.ends_with("(omitted)")) {
            spec.omit = Duration::from_secs(1);
        }
        if let Some(line) = self.value("Starting Test: ") {
            let words: Vec<&str> = line.split(' ').collect();
            let before = |word: &str| {
                let index = words.iter().position(|w| *w == word).expect("a known line");
                number::<u64>(words[index - 1])
            };
            spec.block_len_bytes = u32::try_from(before("byte")).expect("small");
            spec.omit = Duration::from_secs(before("seconds,"));
            spec.end = if line.contains("bytes to send") {
                EndCondition::Bytes(before("bytes"))
            } else {
                EndCondition::Duration(Duration::from_secs(before("second")))
            };
            spec.socket.tos = number(words.last().expect("words"));
        }
        spec
    }

    fn headers(&self) -> Vec<&'a str> {
        self.lines.iter().filter(|l| l.starts_with("[ ID]")).copied().collect()
    }

    fn is_udp(&self) -> bool {
        self.headers().iter().any(|h| h.contains("Datagrams")) || self.value("Setting UDP").is_some()
    }

    fn is_bidirectional(&self) -> bool {
        self.headers().iter().any(|h| h.contains("[Role]"))
    }

    fn direction(&self) -> Direction {
        let sends = self
            .headers()
            .first()
            .is_some_and(|h| h.ends_with("Cwnd") || h.ends_with("  Total Datagrams"));
        if self.is_bidirectional() {
            Direction::Bidirectional
        } else if self.value("Reverse mode").is_some() || (self.hints.endpoint == Endpoint::Server && sends) {
            Direction::Reverse
        } else {
            Direction::Forward
        }
    }

    fn streams(&self) -> Vec<Stream> {
        let lines = self.lines.iter().filter(|l| l.contains("] local "));
        lines
            .enumerate()
            .map(|(index, line)| {
                let words: Vec<&str> = line.split(']').nth(1).expect("id").split_whitespace().collect();
                let id = StreamId(u32::try_from(index).expect("few"));
                let address = |host: usize, port: usize| {
                    SocketAddr::new(words[host].parse::<IpAddr>().expect("an address"), number(words[port]))
                };
                Stream {
                    id,
                    role: self.role(id),
                    flow: self.flow(id),
                    local: address(1, 3),
                    remote: address(6, 8),
                    effective: linerate_model::stream::EffectiveOptions::default(),
                    facts: None,
                }
            })
            .collect()
    }

    fn flow(&self, id: StreamId) -> Flow {
        let count = self.lines.iter().filter(|l| l.contains("] local ")).count();
        match self.direction() {
            Direction::Forward => Flow::Forward,
            Direction::Reverse => Flow::Reverse,
            Direction::Bidirectional if (id.0 as usize) < count / 2 => Flow::Forward,
            Direction::Bidirectional => Flow::Reverse,
        }
    }

    fn role(&self, id: StreamId) -> StreamRole {
        match (self.flow(id), self.hints.endpoint) {
            (Flow::Forward, Endpoint::Client) | (Flow::Reverse, Endpoint::Server) => StreamRole::Sender,
            _ => StreamRole::Receiver,
        }
    }

    /// Ids in the order of the streams, as printed.
    fn printed_ids(&self) -> Vec<u32> {
        self.lines
            .iter()
            .filter(|l| l.contains("] local "))
            .filter_map(|l| printed_id(l))
            .collect()
    }

    fn rows(&self, lines: &[&str]) -> Vec<Row> {
        let ids = self.printed_ids();
        lines
            .iter()
            .filter(|l| l.starts_with('[') && l.contains(" sec "))
            .map(|line| {
                let (lead, tail) = line.split_once(" sec ").expect("a row");
                let id = printed_id(lead)
                    .map(|id| u32::try_from(ids.iter().position(|i| *i == id).expect("a known stream")).expect("few"));
                let times = lead.rsplit(']').next().expect("times").trim();
                let (start, end) = times.split_once('-').expect("two times");
                let words: Vec<&str> = tail.split_whitespace().collect();
                Row {
                    id,
                    shown: Shown {
                        start_s: number(start),
                        end_s: number(end),
                        bytes: Range::parse(words[0], words[1], true),
                        bits_per_second: Range::parse(words[2], words[3], !self.hints.fixed_unit),
                    },
                    rest: words[4..].iter().map(|w| (*w).to_owned()).collect(),
                }
            })
            .collect()
    }

    /// Lines before and after the summary's separator.
    fn parts(&self) -> (&[&'a str], &[&'a str]) {
        let last_header = self.lines.iter().rposition(|l| l.starts_with("[ ID]"));
        match last_header {
            Some(index) if self.headers().len() > 1 => self.lines.split_at(index),
            _ => (&self.lines, &[]),
        }
    }

    fn has_summary(&self) -> bool {
        !self.parts().1.is_empty()
    }

    fn is_complete(&self) -> bool {
        self.lines.last() == Some(&"iperf Done.") || self.peer_text.is_some()
    }

    fn intervals(&self) -> Vec<Event> {
        let rows = self.rows(self.parts().0);
        let mut events = Vec::new();
        let mut groups: Vec<Vec<Row>> = Vec::new();
        for row in rows {
            let starts_group = row.id == Some(0);
            if starts_group {
                groups.push(Vec::new());
            }
            groups.last_mut().expect("the first stream comes first").push(row);
        }
        if self.lines.iter().any(|l| l.starts_with("Finished omit")) {
            events.push(Event::OmitEnded);
        }
        let count = groups.len();
        let mut was_omitted = false;
        for (index, group) in groups.iter().enumerate() {
            let omitted = group[0].rest.last().is_some_and(|w| w == "(omitted)");
            if was_omitted && !omitted {
                events.push(Event::OmitEnded);
            }
            was_omitted = omitted;
            events.push(Event::Interval(IntervalReport {
                omitted,
                last: index + 1 == count,
                streams: self.interval_streams(group),
            }));
        }
        events
    }

    fn interval_streams(&self, group: &[Row]) -> Vec<StreamInterval> {
        let mut streams = Vec::new();
        for (rows, sum) in by_direction(group) {
            let shown: Vec<Shown> = rows.iter().map(|r| r.shown.clone()).collect();
            let solved = solve(&shown, sum.as_ref().map(|s| &s.shown));
            for (row, (seconds, bytes)) in rows.iter().zip(solved) {
                let id = StreamId(row.id.expect("a stream"));
                let start_ns = to_ns(row.shown.start_s(seconds));
                streams.push(StreamInterval {
                    id,
                    role: self.role(id),
                    flow: self.flow(id),
                    start_ns,
                    end_ns: start_ns + to_ns(seconds),
                    bytes,
                    tcp: self.tcp_interval(row, id),
                    udp: self.is_udp().then(|| self.udp_interval(row, id)),
                    metrics: None,
                });
            }
        }
        streams
    }

    fn tcp_interval(&self, row: &Row, id: StreamId) -> Option<TcpInterval> {
        let is_sender = !self.is_udp() && self.role(id) == StreamRole::Sender;
        is_sender.then(|| TcpInterval {
            retransmits: number(&row.rest[0]),
            snd_cwnd_bytes: {
                let range = Range::parse(&row.rest[1], &row.rest[2], true);
                f64::midpoint(range.low, range.high) as u64
            },
            ..TcpInterval::default()
        })
    }

    fn udp_interval(&self, row: &Row, id: StreamId) -> UdpInterval {
        match self.role(id) {
            StreamRole::Sender => UdpInterval {
                packets: number(&row.rest[0]),
                ..UdpInterval::default()
            },
            StreamRole::Receiver => {
                let (lost, packets) = row.rest[2].split_once('/').expect("lost and total");
                UdpInterval {
                    packets: number(packets),
                    lost: number(lost),
                    out_of_order: 0,
                    jitter_s: number::<f64>(&row.rest[0]) / 1000.0,
                }
            }
        }
    }

    fn summary(&self) -> Summary {
        let rows = self.rows(self.parts().1);
        let halves = |note: &str| -> Vec<(StreamId, EndpointTotals, Row)> {
            let rows: Vec<Row> = rows
                .iter()
                .filter(|r| r.rest.last().is_some_and(|w| w == note))
                .cloned()
                .collect();
            by_direction(&rows)
                .iter()
                .flat_map(|(rows, sum)| self.halves(rows, sum.as_ref()))
                .collect()
        };
        let (senders, receivers) = (halves("sender"), halves("receiver"));
        let find = |halves: &[(StreamId, EndpointTotals, Row)], id| {
            let found = halves.iter().find(|(i, ..)| *i == id);
            // A row of zeros stands for a peer that said nothing.
            found.filter(|(_, half, _)| half.bytes > 0).map(|(_, half, _)| *half)
        };
        let streams = self.streams();
        let summaries = streams.iter().map(|stream| StreamSummary {
            id: stream.id,
            role: stream.role,
            flow: stream.flow,
            sender: find(&senders, stream.id),
            receiver: find(&receivers, stream.id),
            tcp: senders
                .iter()
                .find(|(id, _, row)| *id == stream.id && row.rest.len() > 1 && !self.is_udp())
                .map(|(_, _, row)| TcpSummary {
                    retransmits: Some(number(&row.rest[0])),
                    ..TcpSummary::default()
                }),
            file: self.value("        Sent ").map(|line| FileSummary {
                name: line.split(' ').next_back().unwrap_or_default().into(),
                // All recorded files were moved completely.
                size_bytes: find(
                    if stream.role == StreamRole::Sender {
                        &senders
                    } else {
                        &receivers
                    },
                    stream.id,
                )
                .map_or(0, |half| half.bytes),
            }),
            local_metrics: None,
            peer_metrics: None,
        });
        let (cpu_local, cpu_remote) = self.cpu();
        let (sender_congestion, receiver_congestion) = self.congestion();
        Summary {
            streams: summaries.collect(),
            cpu_local,
            cpu_remote,
            sender_congestion,
            receiver_congestion,
            overflows_local: None,
            overflows_remote: None,
        }
    }

    fn halves(&self, rows: &[Row], sum: Option<&Row>) -> Vec<(StreamId, EndpointTotals, Row)> {
        let shown: Vec<Shown> = rows.iter().map(|r| r.shown.clone()).collect();
        let solved = if shown.iter().all(Shown::is_nothing) {
            vec![(shown[0].end_s, 0); shown.len()]
        } else {
            solve(&shown, sum.map(|s| &s.shown))
        };
        let half = |(row, (seconds, bytes)): (&Row, (f64, u64))| {
            let udp = self.is_udp().then(|| {
                let (lost, packets) = row.rest[2].split_once('/').expect("lost and total");
                UdpTotals {
                    packets: number(packets),
                    lost: number(lost),
                    jitter_s: number::<f64>(&row.rest[0]) / 1000.0,
                    omitted_packets: Some(0),
                    omitted_lost: Some(0),
                    ..UdpTotals::default()
                }
            });
            let half = EndpointTotals {
                bytes,
                duration_ns: to_ns(seconds),
                udp,
            };
            (StreamId(row.id.expect("a stream")), half, row.clone())
        };
        rows.iter().zip(solved).map(half).collect()
    }

    fn cpu(&self) -> (Option<CpuUsage>, Option<CpuUsage>) {
        let Some(line) = self.value("CPU Utilization: local/sender ") else {
            return (None, None);
        };
        let numbers: Vec<f64> = line
            .split(|c: char| !c.is_ascii_digit() && c != '.')
            .filter_map(|w| w.parse().ok())
            .collect();
        let usage = |f: &[f64]| CpuUsage {
            total_percent: f[0],
            user_percent: f[1],
            system_percent: f[2],
        };
        let remote = usage(&numbers[3..]);
        (Some(usage(&numbers)), (remote.total_percent > 0.0).then_some(remote))
    }

    /// With two directions the server's own algorithm stands in the receiver's place of the forward one.
    fn congestion(&self) -> (Option<String>, Option<String>) {
        let sender = self.value("snd_tcp_congestion ").map(String::from);
        let receiver = self.value("rcv_tcp_congestion ").map(String::from);
        if self.is_bidirectional() && self.hints.endpoint == Endpoint::Server {
            (None, receiver)
        } else {
            (sender, receiver)
        }
    }

    fn peer_output(&self) -> Option<Event> {
        let (is_json, text) = self.peer_text.clone()?;
        Some(Event::PeerOutput(if is_json {
            ServerOutput::Json(text)
        } else {
            ServerOutput::Text(text)
        }))
    }
}

/// Splits rows at their sums, or at the middle of a test in two directions, which has no sums with one stream each.
fn by_direction(rows: &[Row]) -> Vec<(Vec<Row>, Option<Row>)> {
    let mut groups = vec![(Vec::new(), None)];
    for row in rows {
        let last = groups.last_mut().expect("never empty");
        if row.id.is_none() {
            last.1 = Some(row.clone());
            groups.push((Vec::new(), None));
        } else {
            last.0.push(row.clone());
        }
    }
    groups.retain(|(rows, _)| !rows.is_empty());
    let split = |(rows, sum): (Vec<Row>, Option<Row>)| match sum {
        None => rows.into_iter().map(|r| (vec![r], None)).collect(),
        sum => vec![(rows, sum)],
    };
    groups.into_iter().flat_map(split).collect()
}

/// The number in `[  5]`; none in `[SUM]`.
fn printed_id(line: &str) -> Option<u32> {
    line.get(1..4)?.trim().parse().ok()
}

fn unix_ms(rfc1123: &str) -> u64 {
    let time = jiff::fmt::strtime::parse("%a, %d %b %Y %H:%M:%S GMT", rfc1123).expect("a date");
    let datetime = time.to_datetime().expect("complete");
    let zoned = datetime.to_zoned(jiff::tz::TimeZone::UTC).expect("in range");
    u64::try_from(zoned.timestamp().as_millisecond()).expect("after 1970")
}

fn to_ns(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.trim().parse().unwrap_or_else(|_| panic!("{text:?} is a number"))
}
