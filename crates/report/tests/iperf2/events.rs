//! From recorded lines back to the events that make a writer write them.

use std::time::Duration;

use linerate_model::event::{DelayedStart, Endpoint, Event, TestHeader};
use linerate_model::metrics::{
    ConnectTimes, Distribution, FrameCounts, Histogram, HistogramKind, ReadCounts, RoundTrips, StreamMetrics,
    WriteCounts,
};
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::stream::{EffectiveOptions, ListenerFacts, SocketFacts, StreamFacts};
use linerate_model::summary::{EndpointTotals, StreamSummary, Summary, UdpTotals};
use linerate_model::workload::{Iperf2Defaults, Pairing};
use linerate_model::{
    Direction, Flow, IntervalReport, Stream, StreamId, StreamInterval, StreamRole, TcpInterval, UdpInterval,
};
use linerate_report::iperf2::{Layout, Options};

use crate::command::Command;
use crate::lines::{Line, classify, numbers, without_noise};
use crate::solver::{Range, Shown, solve};

/// Everything a writer is fed with.
pub(crate) struct Script {
    pub(crate) options: Options,
    pub(crate) listeners: Vec<ListenerFacts>,
    pub(crate) events: Vec<Event>,
}

/// The numbers of one recorded line.
#[derive(Debug, Clone)]
struct Numbers {
    number: u32,
    is_reversed: bool,
    shown: Shown,
    tcp: Option<TcpInterval>,
    udp: Option<UdpInterval>,
    measured: StreamMetrics,
    is_report: bool,
}

pub(crate) fn script(text: &str, client: &Command, server: &Command, endpoint: Endpoint) -> Script {
    let text = without_noise(text);
    let own = if endpoint == Endpoint::Client { client } else { server };
    let mut test = client.test.clone();
    if endpoint == Endpoint::Server {
        test.streams = 1;
        test.workload.detect_peer = false;
        test.workload.unsent_limit_bytes = None;
        test.workload.write_times = false;
    }
    let mut builder = Builder {
        own,
        test,
        endpoint,
        streams: Vec::new(),
        events: Vec::new(),
    };
    let options = builder.options(&text, server);
    let banners = banners(&text);
    let listeners = builder.listeners(&banners, server);
    builder.accepted(&banners, client, &listeners);
    builder.body(&text);
    let listeners = if endpoint == Endpoint::Server {
        listeners
    } else {
        Vec::new()
    };
    Script {
        options,
        listeners,
        events: builder.events,
    }
}

struct Builder<'a> {
    own: &'a Command,
    test: TestSpec,
    endpoint: Endpoint,
    /// Streams that were announced: id, number, reversed, and the event's stream.
    streams: Vec<(u32, bool, Stream)>,
    events: Vec<Event>,
}

impl Builder<'_> {
    fn options(&self, text: &str, server: &Command) -> Options {
        let process_id = text
            .split(" with pid ")
            .nth(1)
            .map_or(0, |rest| numbers(rest)[0] as u32);
        Options {
            layout: self.own.layout,
            units: self.own.units,
            enhanced: self.own.enhanced
                || (self.endpoint == Endpoint::Client
                    && (self.test.workload.unsent_limit_bytes.is_some()
                        || self.test.workload.trip_times && self.test.direction != Direction::Forward)),
            sum_only: self.own.sum_only,
            hide_addresses: self.own.hide_addresses,
            print_mss: self.own.print_mss,
            utc: true,
            process_id,
            defaults: Some(Box::new(Iperf2Defaults {
                test: server.test.clone(),
                lifetime: None,
                connections_max: None,
                one_at_a_time: false,
                dual_stack: false,
                reply_tos: None,
                permit_key_lifetime: Some(Duration::from_secs(20)),
                handshake_timeout: None,
                reports_delays: false,
            })),
            ..Options::new(self.endpoint)
        }
    }

    /// What listens: a server, or a client with `-d` or `-r`.
    fn listeners(&self, banners: &[Vec<&str>], server: &Command) -> Vec<ListenerFacts> {
        let listening = banners.iter().filter(|lines| lines[0].starts_with("Server listening"));
        let facts = listening.map(|lines| {
            let own = if self.endpoint == Endpoint::Server {
                server
            } else {
                self.own
            };
            ListenerFacts {
                port: own.port,
                last_port: own.last_port,
                socket: socket(lines, true),
                is_v6: lines[0].contains("(v6)"),
                group: None,
            }
        });
        facts.collect()
    }

    fn accepted(&mut self, banners: &[Vec<&str>], client: &Command, listeners: &[ListenerFacts]) {
        let is_client = self.endpoint == Endpoint::Client;
        let connecting = banners.iter().find(|lines| lines[0].starts_with("Client connecting"));
        let header = TestHeader {
            endpoint: self.endpoint,
            peer_host: client.host.clone(),
            peer_port: client.port,
            cookie: String::new(),
            started_at_unix_ms: 0,
            control_mss_bytes: None,
            spec: self.test.clone(),
            interval: self.own.interval,
            file_name: None,
            first_stream_position: 0,
            first_socket: connecting.filter(|_| is_client).map(|lines| socket(lines, false)),
            listener: listeners.first().filter(|_| is_client).cloned(),
        };
        self.events.push(Event::TestAccepted(Box::new(header)));
    }

    /// Connections, numbers and totals in their order. Rows of the same times belong to one interval.
    fn body(&mut self, text: &str) {
        let mut group: Vec<Numbers> = Vec::new();
        let mut sum: Option<Shown> = None;
        let mut is_report = false;
        let mut connecting_back: Vec<&str> = Vec::new();
        let lines: Vec<&str> = text.lines().collect();
        let totals_begin = totals_begin(&lines);
        for (at, line) in lines.iter().enumerate() {
            match classify(line) {
                Line::Connection(line) => {
                    self.flush(&mut group, &mut sum, at > totals_begin);
                    if !connecting_back.is_empty() {
                        self.connect_back(line, &connecting_back);
                        connecting_back.clear();
                    }
                    self.connection(line);
                }
                Line::Numbers {
                    label,
                    start_s,
                    end_s,
                    rest,
                } => {
                    if label.starts_with("SUM") {
                        sum = shown(start_s, end_s, self.rounding_s(), rest).or(sum);
                    } else if label.starts_with("FD") {
                        if self.test.streams == 1 {
                            sum = shown(start_s, end_s, self.rounding_s(), rest).or(sum);
                        }
                    } else if rest.contains("datagrams received") {
                        attach_late(&mut group, label, numbers(rest)[0] as u64);
                    } else if rest.contains("-PDF:") {
                        attach(&mut group, label, |measured| measured.histograms.push(histogram(rest)));
                    } else if rest.contains("OWD") {
                        attach(&mut group, label, |measured| attach_one_way(measured, rest));
                    } else {
                        let is_next = group
                            .iter()
                            .any(|known| known.shown.start_s != start_s && !is_total_of(known));
                        let is_total = at >= totals_begin;
                        let began = group.first().is_some_and(|first| first.is_report) || is_report;
                        if (is_next && !is_total) || (at == totals_begin && !began) {
                            self.flush(&mut group, &mut sum, false);
                        }
                        group.push(self.numbers(label, start_s, end_s, rest, is_report));
                        is_report = false;
                    }
                }
                Line::Sent { label, datagrams } if !label.starts_with("SUM") => {
                    let (number, _) = read_label(label);
                    let row = group
                        .iter_mut()
                        .rev()
                        .find(|row| row.number == number && is_sender(row));
                    let udp = &mut row.expect("a row before").udp;
                    udp.get_or_insert_default().packets = datagrams;
                }
                Line::ServerReport => is_report = true,
                Line::StartsLater => self.events.push(Event::DelayedStart(DelayedStart {
                    number: 1,
                    in_s: 1,
                    at_unix_us: 0,
                    now_unix_us: 0,
                })),
                Line::Connects(rest) => {
                    self.flush(&mut group, &mut sum, true);
                    self.events.push(Event::ConnectTimes(connects(rest)));
                }
                Line::Sent { .. } => {}
                Line::Other(line) => {
                    let is_back = self.endpoint == Endpoint::Server && line.starts_with("Client connecting");
                    if is_back || !connecting_back.is_empty() {
                        connecting_back.push(line);
                    }
                }
            }
        }
        self.flush(&mut group, &mut sum, true);
    }

    fn rounding_s(&self) -> f64 {
        if self.own.layout == Layout::V2_1 {
            0.00005
        } else {
            0.005
        }
    }

    fn connect_back(&mut self, line: &str, banner: &[&str]) {
        let (_, remote) = addresses(line);
        self.flush(&mut Vec::new(), &mut None, false);
        self.events.push(Event::ConnectingBack {
            remote,
            socket: socket(banner, false),
        });
    }

    fn connection(&mut self, line: &str) {
        let (label, _) = line.trim_start_matches('[').split_once("] ").expect("a label");
        let (number, is_starred) = read_label(label);
        let (local, remote) = addresses(line);
        let note = |name: &str| {
            let rest = line.split(&format!("({name}")).nth(1)?;
            rest.split(')').next().map(str::to_owned)
        };
        let tcp = note("icwnd/mss/irtt=").map(|text| numbers(&text));
        let connect_us = note("ct=").map(|text| (numbers(&text)[0] * 1000.0).round() as u32);
        let dual = matches!(
            self.test.workload.pairing,
            Pairing::ConnectBack | Pairing::ConnectBackAfterwards
        );
        let is_back = dual && number > 1;
        let facts = StreamFacts {
            number,
            descriptor: note("sock=").and_then(|text| text.parse().ok()),
            device: line
                .split(" port ")
                .next()
                .and_then(|start| start.split_once('%'))
                .map(|(_, d)| d.to_owned()),
            opened_at_unix_us: opened_at(line),
            connect_us,
            initial_cwnd_bytes: tcp.as_ref().map(|tcp| tcp[0] as u64 * 1024),
            mss_bytes: tcp.as_ref().map(|tcp| tcp[1] as u32),
            initial_rtt_us: tcp.as_ref().map(|tcp| tcp[2] as u32),
            peer_version: note("peer "),
            is_connected_back: is_back,
        };
        let flows: Vec<Flow> = match (self.test.direction, self.test.workload.pairing) {
            (Direction::Bidirectional, Pairing::Shared) => vec![Flow::Forward, Flow::Reverse],
            (Direction::Bidirectional, _) if is_back => vec![Flow::Reverse],
            (Direction::Reverse, _) => vec![Flow::Reverse],
            _ => vec![Flow::Forward],
        };
        assert!(!is_starred || is_back, "{line}");
        for flow in flows {
            let is_sender = (self.endpoint == Endpoint::Client) == (flow == Flow::Forward);
            let stream = Stream {
                id: StreamId(self.streams.len() as u32),
                role: if is_sender {
                    StreamRole::Sender
                } else {
                    StreamRole::Receiver
                },
                flow,
                local,
                remote,
                effective: EffectiveOptions::default(),
                facts: Some(Box::new(facts.clone())),
            };
            self.events.push(Event::StreamOpened(stream.clone()));
            self.streams.push((number, flow == Flow::Reverse, stream));
        }
    }

    fn numbers(&self, label: &str, start_s: f64, end_s: f64, rest: &str, is_report: bool) -> Numbers {
        let (number, is_reversed) = read_label(label);
        let shown = shown(start_s, end_s, self.rounding_s(), rest).unwrap_or_else(|| panic!("{rest}"));
        let tail = rest.split("/sec").skip(1).collect::<Vec<_>>().join("/sec");
        let mut row = Numbers {
            number,
            is_reversed,
            shown,
            tcp: None,
            udp: None,
            measured: StreamMetrics::default(),
            is_report,
        };
        read_tail(&mut row, tail.trim_start(), &self.test);
        row
    }

    /// Ends an interval, or the test.
    fn flush(&mut self, group: &mut Vec<Numbers>, sum: &mut Option<Shown>, is_total: bool) {
        let rows = std::mem::take(group);
        let sum = sum.take();
        if rows.is_empty() {
            return;
        }
        if is_total {
            self.summary(&rows);
        } else {
            self.interval(&rows, sum.as_ref());
        }
    }

    fn stream_of(&self, row: &Numbers) -> Stream {
        let of_number = || self.streams.iter().filter(|(number, _, _)| *number == row.number);
        let is_pair = of_number().count() > 1;
        let wants_reverse = if self.endpoint == Endpoint::Client {
            row.is_reversed
        } else {
            row.is_reversed && is_pair
        };
        let found = of_number().find(|(_, is_reverse, _)| !is_pair || *is_reverse == wants_reverse);
        match found {
            Some((_, _, stream)) => stream.clone(),
            // Sums alone name no streams.
            None => panic!("no stream for {row:?}"),
        }
    }

    fn interval(&mut self, rows: &[Numbers], sum: Option<&Shown>) {
        let shown: Vec<Shown> = rows.iter().map(|row| row.shown.clone()).collect();
        let moved = if shown.iter().any(Shown::is_nothing) {
            shown
                .iter()
                .map(|row| ((row.end_s - row.start_s).max(1e-9), 0))
                .collect()
        } else {
            solve(
                &shown,
                sum.filter(|sum| sum.start_s == shown[0].start_s && sum.end_s == shown[0].end_s),
            )
        };
        let is_datagrams = self.test.transport == Transport::Udp;
        let streams = rows.iter().zip(&moved).map(|(row, (seconds, bytes))| {
            let stream = self.stream_of(row);
            // A plain line of a sender does not tell how many datagrams it sent.
            let untold = UdpInterval {
                packets: (*bytes as f64 / f64::from(self.test.block_len_bytes)).round() as u64,
                ..UdpInterval::default()
            };
            let udp = row.udp.or(is_datagrams.then_some(untold));
            let start_s = row.shown.start_s(*seconds);
            StreamInterval {
                id: stream.id,
                role: stream.role,
                flow: stream.flow,
                start_ns: (start_s * 1e9).round() as u64,
                end_ns: ((start_s + seconds) * 1e9).round() as u64,
                bytes: *bytes,
                tcp: row.tcp,
                udp,
                metrics: Some(Box::new(row.measured.clone())),
            }
        });
        let report = IntervalReport {
            omitted: false,
            last: false,
            streams: streams.collect(),
        };
        self.events.push(Event::Interval(report));
    }

    fn summary(&mut self, rows: &[Numbers]) {
        let mut summary = Summary::default();
        for row in rows.iter().filter(|row| !row.is_report) {
            let stream = self.stream_of(row);
            let half = Some(half(row));
            let is_sender = stream.role == StreamRole::Sender;
            summary.streams.push(StreamSummary {
                id: stream.id,
                role: stream.role,
                flow: stream.flow,
                sender: half.filter(|_| is_sender),
                receiver: half.filter(|_| !is_sender),
                tcp: None,
                file: None,
                local_metrics: Some(Box::new(StreamMetrics {
                    tcp: row.tcp,
                    ..row.measured.clone()
                })),
                peer_metrics: None,
            });
        }
        for row in rows.iter().filter(|row| row.is_report) {
            let id = self.stream_of(row).id;
            let at = summary
                .streams
                .iter()
                .position(|stream| stream.id == id)
                .expect("a stream that was reported");
            summary.streams[at].receiver = Some(half(row));
            summary.streams[at].peer_metrics = Some(Box::new(row.measured.clone()));
        }
        self.events.push(Event::Summary(Box::new(summary)));
    }
}

fn half(row: &Numbers) -> EndpointTotals {
    let (seconds, bytes) = if row.shown.is_nothing() {
        (row.shown.end_s, 0)
    } else {
        solve(std::slice::from_ref(&row.shown), None)[0]
    };
    EndpointTotals {
        bytes,
        duration_ns: (seconds * 1e9).round() as u64,
        udp: row.udp.map(|udp| UdpTotals {
            packets: udp.packets,
            lost: udp.lost as u64,
            out_of_order: udp.out_of_order,
            jitter_s: udp.jitter_s,
            ..UdpTotals::default()
        }),
    }
}

/// The line from which on every row is about the whole test.
fn totals_begin(lines: &[&str]) -> usize {
    let mut latest = 0.0;
    let mut begin = lines.len();
    for (at, line) in lines.iter().enumerate() {
        if let Line::Numbers {
            label, start_s, end_s, ..
        } = classify(line)
        {
            if label.starts_with("SUM") || label.starts_with("FD") {
                continue;
            }
            if start_s > 0.0 {
                latest = end_s;
                begin = lines.len();
            } else if begin == lines.len() && (latest > 0.0 || is_only_total(lines, at)) {
                begin = at;
            }
        }
    }
    begin
}

/// Without intervals the first row is the last.
fn is_only_total(lines: &[&str], at: usize) -> bool {
    let Line::Numbers { label, end_s, .. } = classify(lines[at]) else {
        return false;
    };
    let later = lines[at + 1..].iter().any(|line| match classify(line) {
        Line::Numbers {
            label: other,
            end_s: later_s,
            rest,
            ..
        } => other == label && later_s > end_s && rest.contains("/sec"),
        _ => false,
    });
    !later
}

fn is_total_of(row: &Numbers) -> bool {
    row.is_report
}

fn is_sender(row: &Numbers) -> bool {
    !row.is_report && row.measured.reads.is_none()
}

fn attach(group: &mut [Numbers], label: &str, act: impl FnOnce(&mut StreamMetrics)) {
    let (number, is_reversed) = read_label(label);
    let row = group
        .iter_mut()
        .rev()
        .find(|row| row.number == number && row.is_reversed == is_reversed);
    act(&mut row.expect("a row before").measured);
}

fn attach_late(group: &mut [Numbers], label: &str, datagrams: u64) {
    if label.starts_with("SUM") {
        return;
    }
    let (number, is_reversed) = read_label(label);
    let row = group
        .iter_mut()
        .rev()
        .find(|row| row.number == number && row.is_reversed == is_reversed);
    row.expect("a row before").udp.get_or_insert_default().out_of_order = datagrams;
}

fn attach_one_way(measured: &mut StreamMetrics, rest: &str) {
    let n = numbers(rest);
    let count = n[0] as u64;
    let bounces = measured.round_trips.as_mut().expect("a row before");
    let mut parts = n[1..].chunks(4).map(|four| distribution(count, four));
    (bounces.out, bounces.back, bounces.asymmetry) = (parts.next(), parts.next(), parts.next());
}

/// Number and asterisk of a label.
fn read_label(label: &str) -> (u32, bool) {
    let is_reversed = label.contains('*');
    let digits = label.split('(').next_back().unwrap_or_default();
    let digits: String = digits.chars().filter(char::is_ascii_digit).collect();
    (digits.parse().unwrap_or(0), is_reversed)
}

/// `12.0 MBytes   101 Mbits/sec …`.
fn shown(start_s: f64, end_s: f64, rounding_s: f64, rest: &str) -> Option<Shown> {
    let words: Vec<&str> = rest.split_whitespace().take(4).collect();
    let [amount, unit, rate, rate_unit] = words.as_slice() else {
        return None;
    };
    Some(Shown {
        start_s,
        end_s,
        rounding_s,
        bytes: Range::parse(amount, unit),
        bits_per_s: Range::parse(rate, rate_unit),
    })
}

/// The columns behind the rate.
fn read_tail(row: &mut Numbers, tail: &str, test: &TestSpec) {
    let n = numbers(tail);
    let is_datagrams = test.transport == Transport::Udp;
    if tail.is_empty() {
        // A plain line of a sender or receiver.
    } else if tail.contains("RPS=") || tail.contains(" rps") {
        read_bounces(row, tail, &n);
    } else if tail.contains(" us") {
        read_writes(row, tail, &n);
    } else if is_datagrams && tail.contains(" ms ") {
        read_arrivals(row, tail, &n);
    } else if is_datagrams {
        read_datagrams(row, tail, &n);
    } else {
        read_reads(row, tail, &n);
    }
}

fn read_bounces(row: &mut Numbers, tail: &str, n: &[f64]) {
    let trips = distribution(n[0] as u64, &n[1..5]);
    let is_new = tail.contains("RPS=");
    let amounts: Vec<f64> = tail
        .split("Tx=")
        .nth(1)
        .map(|rest| rest.split("Rx=").map(amount).collect())
        .unwrap_or_default();
    row.measured.round_trips = Some(RoundTrips {
        round_trip: trips,
        sent_bytes: amounts.first().map_or(0, |bytes| *bytes as u64),
        received_bytes: amounts.get(1).map_or(0, |bytes| *bytes as u64),
        ..RoundTrips::default()
    });
    let has_window = !tail.contains("-(-)");
    row.tcp = Some(TcpInterval {
        retransmits: n[5] as u64,
        snd_cwnd_bytes: if has_window { n[6] as u64 * 1024 } else { 0 },
        rtt_us: if has_window && !is_new { n[7] as u32 } else { 0 },
        ..TcpInterval::default()
    });
}

/// `1.95 KByte` in bytes.
fn amount(text: &str) -> f64 {
    let mut words = text.split_whitespace();
    let value: f64 = words.next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    let factor = if words.next().unwrap_or_default().starts_with('K') {
        1024.0
    } else {
        1.0
    };
    (value * factor).round()
}

fn read_writes(row: &mut Numbers, tail: &str, n: &[f64]) {
    let is_new = tail.contains("K(");
    let is_frames = tail
        .split(" us")
        .nth(1)
        .is_some_and(|rest| rest.matches('/').count() == 2);
    row.measured.writes = Some(WriteCounts {
        calls: n[0] as u64,
        errors: n[1] as u64,
        timeouts: 0,
    });
    let mut rest = &n[2..];
    let mut next = || {
        let (first, tail) = rest.split_first().expect("another column");
        rest = tail;
        *first
    };
    let retransmits = next() as u64;
    if is_new && !is_frames {
        row.measured.in_flight_bytes = Some(next() as u64 * 1024);
        row.measured.in_flight_segments = Some(next() as u32);
    }
    let snd_cwnd_bytes = next() as u64 * 1024;
    if is_new {
        row.measured.cwnd_segments = Some(next() as u32);
    }
    let rtt_us = next() as u32;
    let has_variation = tail.split(" us").next().is_some_and(|window| window.ends_with(')'));
    let rttvar_us = if has_variation { next() as u32 } else { 0 };
    row.tcp = Some(TcpInterval {
        retransmits,
        snd_cwnd_bytes,
        rtt_us,
        rttvar_us,
        ..TcpInterval::default()
    });
    if is_frames {
        row.measured.frames = Some(FrameCounts {
            done: next() as u64,
            missed: next() as u64,
            slips: next() as u64,
        });
    }
    if tail.contains(" ms (") {
        let times = &n[n.len() - 5..];
        row.measured.write_times = Some(distribution(times[4] as u64, &times[..4]));
    }
}

fn read_datagrams(row: &mut Numbers, tail: &str, n: &[f64]) {
    let calls = tail.split_whitespace().next().unwrap_or_default();
    let has_timeouts = calls.matches('/').count() == 2;
    row.measured.writes = Some(WriteCounts {
        calls: n[0] as u64,
        errors: n[1] as u64,
        timeouts: if has_timeouts { n[2] as u64 } else { 0 },
    });
    let rest = &n[if has_timeouts { 3 } else { 2 }..];
    row.measured.datagrams_per_s = rest.first().copied();
    row.udp = Some(UdpInterval {
        packets: n[0] as u64,
        ..UdpInterval::default()
    });
    if let [_, done, missed, slips] = rest {
        row.measured.frames = Some(FrameCounts {
            done: *done as u64,
            missed: *missed as u64,
            slips: *slips as u64,
        });
    }
}

fn read_arrivals(row: &mut Numbers, tail: &str, n: &[f64]) {
    row.udp = Some(UdpInterval {
        packets: n[2] as u64,
        lost: n[1] as i64,
        out_of_order: 0,
        jitter_s: n[0] / 1e3,
    });
    row.measured.reads = Some(ReadCounts::default());
    let Some(rest) = n.get(4..).filter(|rest| rest.len() > 4) else {
        return;
    };
    row.measured.one_way = Some(distribution(1, &rest[..4]));
    row.measured.datagrams_per_s = Some(rest[4]);
    let columns = &rest[5..];
    let calls = |counts: &[f64]| ReadCounts {
        calls: counts[0] as u64,
        timeouts: counts[1] as u64,
        truncated: counts[2] as u64,
        ..ReadCounts::default()
    };
    if tail.contains("pkts") {
        row.measured.datagrams_received = Some(columns[0] as u64);
        if columns.len() > 4 {
            row.measured.reads = Some(calls(&columns[3..]));
        }
    } else if tail.matches(" ms").count() == 3 || columns.len() > 6 {
        row.measured.frames = Some(FrameCounts {
            done: columns[0] as u64,
            missed: columns[1] as u64,
            slips: 0,
        });
        row.measured.frame_delay = Some(distribution(1, &columns[2..6]));
    } else {
        row.measured.reads = Some(calls(columns));
    }
}

fn read_reads(row: &mut Numbers, tail: &str, n: &[f64]) {
    let Some(reads) = tail.split_whitespace().find(|word| word.contains('=')) else {
        return;
    };
    let counts = numbers(reads);
    let mut bins = [0; 8];
    for (bin, count) in bins.iter_mut().zip(&counts[1..]) {
        *bin = *count as u64;
    }
    row.measured.reads = Some(ReadCounts {
        calls: counts[0] as u64,
        bins,
        ..ReadCounts::default()
    });
    if tail.contains("%)") {
        row.measured.burst_transfer = Some(distribution(1, &[n[0], 0.0, 0.0, 0.0]));
        row.measured.burst_duty_cycle = Some(n[1] / 100.0);
    } else if tail.contains(" ms (") {
        row.measured.one_way = Some(distribution(n[4] as u64, &n[..4]));
        row.measured.burst_mean_bytes = Some(n[5] as u64);
    } else if tail.contains(" ms ") {
        row.measured.burst_transfer = Some(distribution(1, &n[..4]));
    }
}

/// Mean, extremes and deviation, shown in ms.
fn distribution(count: u64, ms: &[f64]) -> Distribution {
    Distribution {
        count,
        mean: ms[0] / 1e3,
        min: ms[1] / 1e3,
        max: ms[2] / 1e3,
        deviation: ms[3] / 1e3,
    }
}

fn histogram(rest: &str) -> Histogram {
    let kinds = [
        ("OWD-TX", HistogramKind::Out),
        ("OWD-RX", HistogramKind::Back),
        ("BB8", HistogramKind::RoundTrips),
        ("T8", HistogramKind::Datagrams),
        ("F8", HistogramKind::Bursts),
        ("W8", HistogramKind::Writes),
        ("J8", HistogramKind::Jitter),
    ];
    let kind = kinds
        .iter()
        .find(|(name, _)| rest.trim_start().starts_with(name))
        .expect("a known kind")
        .1;
    let bins = rest.split("cnt(").nth(1).unwrap_or_default();
    let bins = bins.split(" (").next().unwrap_or_default();
    let bins = bins.split_once('=').map_or("", |(_, bins)| bins);
    let pairs = bins.split(',').filter_map(|pair| pair.split_once(':'));
    let after = rest.split(" (5").nth(1).unwrap_or_default();
    let n = numbers(after);
    let largest = after.split(") (").nth(1).map(numbers);
    Histogram {
        kind,
        bin_width_us: 100,
        bins: pairs
            .map(|(bin, count)| (bin.parse().expect("a bin"), count.parse().expect("a count")))
            .collect(),
        percentiles: [(5.0, n[3] as u32), (95.0, n[4] as u32), (99.7, n[5] as u32)],
        outliers: n[6] as u64,
        below: n[7] as u64,
        beyond: n[8] as u64,
        largest: largest.map(|n| (n[0] / 1e3, n[1])),
    }
}

fn connects(rest: &str) -> ConnectTimes {
    let n = numbers(rest.split('=').nth(1).unwrap_or_default());
    let count = rest.rsplit("= ").next().map(numbers).unwrap_or_default();
    ConnectTimes {
        times: Distribution {
            count: count[0] as u64,
            min: n[0] / 1e3,
            mean: n[1] / 1e3,
            max: n[2] / 1e3,
            deviation: n.get(3).copied().unwrap_or(0.0) / 1e3,
        },
        errors: count[1] as u64,
    }
}

/// The lines between two rules, for every banner.
fn banners(text: &str) -> Vec<Vec<&str>> {
    let mut banners: Vec<Vec<&str>> = Vec::new();
    let mut current: Option<Vec<&str>> = None;
    for line in text.lines() {
        if line.starts_with("-----") {
            match current.take() {
                Some(lines) => banners.push(lines),
                None => current = Some(Vec::new()),
            }
        } else if let Some(lines) = &mut current {
            lines.push(line);
        }
    }
    banners.retain(|lines| !lines.is_empty());
    banners
}

fn socket(banner: &[&str], is_listener: bool) -> SocketFacts {
    let find = |start: &str| banner.iter().find_map(|line| line.strip_prefix(start));
    let window = find("TCP window size: ").or(find("UDP buffer size: "));
    let bytes = window.map(|text| {
        let words: Vec<&str> = text.split_whitespace().take(2).collect();
        let factor = match words[1].as_bytes()[0] {
            b'K' => 1024.0,
            b'M' => 1024.0 * 1024.0,
            _ => 1.0,
        };
        (words[0].parse::<f64>().expect("a number") * factor) as u32
    });
    let congestion = find("TCP congestion control using ")
        .or(find("TCP congestion control default "))
        .or(banner
            .iter()
            .find_map(|line| line.split(" using ").nth(1).filter(|_| line.contains("control set"))));
    SocketFacts {
        effective: EffectiveOptions {
            send_buffer_bytes: bytes.filter(|_| !is_listener),
            receive_buffer_bytes: bytes.filter(|_| is_listener),
            congestion: congestion.map(str::to_owned),
        },
        mss_bytes: find("MSS size ").map(|text| numbers(text)[0] as u32),
    }
}

fn addresses(line: &str) -> (std::net::SocketAddr, std::net::SocketAddr) {
    let words: Vec<&str> = line.split(' ').filter(|word| !word.is_empty()).collect();
    let at = words.iter().position(|word| *word == "local").expect("an address");
    let address = |host: &str, port: &str| {
        let host = host.split('%').next().unwrap_or_default().replace("*.*.*", "10.77.0");
        std::net::SocketAddr::new(host.parse().expect("an address"), port.parse().expect("a port"))
    };
    (
        address(words[at + 1], words[at + 3]),
        address(words[at + 6], words[at + 8]),
    )
}

/// Seconds since 1970 of a date in November 2026, in µs.
fn opened_at(line: &str) -> Option<u64> {
    let date = line.split(" on 2026-11-").nth(1)?;
    let n = numbers(date.split(" (").next()?.replace([':', ' '], "/").as_str());
    let seconds = 1_793_491_200.0 + (n[0] - 1.0) * 86_400.0 + n[1] * 3600.0 + n[2] * 60.0 + n[3];
    Some((seconds * 1e6).round() as u64)
}
