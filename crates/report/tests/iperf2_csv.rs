//! Recorded comma-separated values of iperf 2.1.8 and 2.2.1 are turned back into events; the writer must make the same
//! lines of them.
//!
//! Not compared: the time stamp of totals, which the originals take from the wrong moment, and the counts in the total
//! of a UDP sender, which are −1 or no number there.

#[path = "iperf2/command.rs"]
#[allow(dead_code, reason = "written for the text as well")]
mod command;
#[path = "support/output.rs"]
mod output;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use linerate_model::event::{Endpoint, Event, TestHeader};
use linerate_model::metrics::{Distribution, ReadCounts, RoundTrips, StreamMetrics, WriteCounts};
use linerate_model::spec::{TestSpec, Transport};
use linerate_model::stream::EffectiveOptions;
use linerate_model::stream::StreamFacts;
use linerate_model::summary::{EndpointTotals, StreamSummary, Summary, UdpTotals};
use linerate_model::{Flow, IntervalReport, Stream, StreamId, StreamInterval, StreamRole, TcpInterval, UdpInterval};
use linerate_report::iperf2::{Layout, Options, Style, client_sink, server_reporter};

use command::Command;
use output::captured_output;

const CASES: [&str; 9] = [
    "tcp_csv",
    "tcp_csv_P2",
    "tcp_csv_enh",
    "tcp_csv_triptimes",
    "tcp_csv_bounceback",
    "udp_csv",
    "udp_csv_enh",
    "udp_csv_P2",
    "udp_csv_triptimes",
];

#[test]
fn recorded_values_are_written_again() {
    let mut compared = 0;
    for release in ["218", "221"] {
        for case in CASES {
            let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/iperf2");
            let text = fs::read_to_string(root.join(format!("text-{release}/{case}.txt"))).expect("a fixture");
            for (start, endpoint) in [
                ("=== client stdout ===\n", Endpoint::Client),
                ("=== server stdout+stderr (ended with SIGINT) ===\n", Endpoint::Server),
            ] {
                let section = text.split(start).nth(1).unwrap_or_default();
                let section = section.split("=== ").next().unwrap_or_default();
                compare(release, case, &text, section, endpoint);
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 36);
}

fn compare(release: &str, case: &str, text: &str, section: &str, endpoint: Endpoint) {
    let name = format!("{release}/{case} {endpoint:?}");
    let line = |start: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(start))
            .unwrap_or_default()
    };
    let client = Command::parse(line("# client: iperf "), release);
    let server = Command::parse(line("# server: iperf "), release);
    let own = if endpoint == Endpoint::Client { &client } else { &server };
    let names = section.lines().find(|line| line.starts_with("time,"));
    // The original adds the sum up itself, of times it does not print.
    let rows: Vec<Row> = section
        .lines()
        .filter(|line| !line.starts_with("time,"))
        .map(|line| Row::parse(line, names))
        .collect();
    let is_total = |row: &Row| row.start_s == 0.0 && (own.interval.is_none() || row.end_s > 1.0);
    let written = write(own, &client.test, &rows, endpoint, &is_total);
    let expected: Vec<String> = section
        .lines()
        .map(|line| mask(line, &is_total, names, endpoint))
        .collect();
    let actual: Vec<String> = written
        .lines()
        .map(|line| mask(line, &is_total, names, endpoint))
        .collect();
    assert_eq!(actual, expected, "{name}");
}

/// One line.
struct Row {
    stamp: String,
    source: (String, u16),
    destination: (String, u16),
    id: i64,
    start_s: f64,
    end_s: f64,
    bytes: u64,
    bits_per_s: u64,
    /// Further columns by name.
    more: BTreeMap<String, f64>,
}

impl Row {
    fn parse(line: &str, names: Option<&str>) -> Self {
        let mut fields: Vec<&str> = line.split(',').collect();
        let (start, end) = match names {
            Some(_) => (fields[6], fields.remove(7)),
            None => fields[6].split_once('-').expect("an interval"),
        };
        let default_names = "jitter,errors,datagrams,errpercent,outoforder";
        let names = names.map_or(default_names, |names| {
            names.split_once(",speed,").map_or("", |(_, names)| names)
        });
        let more = names.split(',').zip(fields.iter().skip(9));
        Self {
            stamp: fields[0].to_owned(),
            source: (fields[1].to_owned(), fields[2].parse().expect("a port")),
            destination: (fields[3].to_owned(), fields[4].parse().expect("a port")),
            id: fields[5].parse().expect("a number"),
            start_s: start.parse().expect("a time"),
            end_s: end.parse().expect("a time"),
            bytes: fields[7].parse().expect("bytes"),
            bits_per_s: fields[8].parse().expect("a rate"),
            more: more
                .map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(0.0)))
                .collect(),
        }
    }

    fn get(&self, name: &str) -> f64 {
        self.more.get(name).copied().unwrap_or(0.0)
    }

    /// The time that makes this rate of these bytes.
    fn seconds(&self) -> f64 {
        let shown_s = self.end_s - self.start_s;
        let exact = self.bytes as f64 * 8.0 / shown_s;
        if exact as u64 == self.bits_per_s {
            shown_s
        } else {
            self.bytes as f64 * 8.0 / (self.bits_per_s as f64 + 0.5)
        }
    }

    fn tcp(&self) -> TcpInterval {
        TcpInterval {
            retransmits: self.get("tcpretry") as u64,
            snd_cwnd_bytes: self.get("tcpcwnd") as u64 * 1024,
            rtt_us: self.get("tcprtt") as u32,
            rttvar_us: self.get("tcprttvar") as u32,
            ..TcpInterval::default()
        }
    }

    fn udp(&self) -> UdpInterval {
        UdpInterval {
            packets: self.get("datagrams").max(0.0) as u64,
            lost: self.get("errors") as i64,
            out_of_order: self.get("outoforder") as u64,
            jitter_s: self.get("jitter") / 1e3,
        }
    }

    fn measured(&self) -> StreamMetrics {
        let series = |names: [&str; 5]| Distribution {
            count: self.get(names[0]) as u64,
            mean: self.get(names[1]) / 1e3,
            min: self.get(names[2]) / 1e3,
            max: self.get(names[3]) / 1e3,
            deviation: self.get(names[4]) / 1e3,
        };
        let mut bins = [0; 8];
        for (at, bin) in bins.iter_mut().enumerate() {
            *bin = self.get(&format!("bin{at}")) as u64;
        }
        let has = |name: &str| self.more.contains_key(name);
        StreamMetrics {
            writes: Some(WriteCounts {
                calls: self.get("writecnt") as u64,
                errors: self.get("writeerr") as u64,
                timeouts: self.get("writetimeo") as u64,
            }),
            reads: Some(ReadCounts {
                calls: self.get("readcnt") as u64,
                bins,
                timeouts: self.get("readtimeo") as u64,
                truncated: self.get("readerrlen") as u64,
            }),
            tcp: Some(self.tcp()),
            cwnd_segments: Some(self.get("tcppcwnd") as u32),
            datagrams_per_s: has("pps").then(|| self.get("pps")),
            one_way: has("ttavg").then(|| series(["ttcnt", "ttavg", "ttmin", "ttmax", "ttsdev"])),
            burst_mean_bytes: Some(self.get("ttsize") as u64),
            round_trips: has("bbcnt").then(|| RoundTrips {
                round_trip: series(["bbcnt", "bbavg", "bbmin", "bbmax", "bbstdev"]),
                sent_bytes: self.get("txbytes") as u64,
                received_bytes: self.get("rxbytes") as u64,
                ..RoundTrips::default()
            }),
            ..StreamMetrics::default()
        }
    }
}

fn write(own: &Command, test: &TestSpec, rows: &[Row], endpoint: Endpoint, is_total: &dyn Fn(&Row) -> bool) -> String {
    let (output, captured, _) = captured_output();
    let options = Options {
        style: Style::Csv,
        layout: own.layout,
        enhanced: own.enhanced,
        utc: true,
        ..Options::new(endpoint)
    };
    let mut sink = match endpoint {
        Endpoint::Client => client_sink(options, output),
        Endpoint::Server => server_reporter(options, output).open_test().expect("a writable output"),
    };
    let events = events(own, test, rows, endpoint, is_total);
    events
        .iter()
        .for_each(|event| sink.event(event).expect("a writable output"));
    captured.text()
}

fn events(
    own: &Command,
    test: &TestSpec,
    rows: &[Row],
    endpoint: Endpoint,
    is_total: &dyn Fn(&Row) -> bool,
) -> Vec<Event> {
    let started_at_unix_ms = rows
        .first()
        .filter(|_| own.interval.is_some())
        .map_or(0, |row| unix_ms(&row.stamp) - 1000);
    let header = TestHeader {
        endpoint,
        peer_host: own.host.clone(),
        peer_port: own.port,
        cookie: String::new(),
        started_at_unix_ms,
        control_mss_bytes: None,
        spec: test.clone(),
        interval: own.interval,
        file_name: None,
        first_stream_position: 0,
        first_socket: None,
        listener: None,
    };
    let mut events = vec![Event::TestAccepted(Box::new(header))];
    let role = if endpoint == Endpoint::Client {
        StreamRole::Sender
    } else {
        StreamRole::Receiver
    };
    let streams: Vec<&Row> = rows.iter().filter(|row| row.id >= 0).collect();
    let mut ids: Vec<i64> = Vec::new();
    for row in &streams {
        if !ids.contains(&row.id) {
            ids.push(row.id);
            events.push(opened(row, role));
        }
    }
    let is_udp = test.transport == Transport::Udp;
    for row in streams.iter().filter(|row| !is_total(row)) {
        let report = IntervalReport {
            omitted: false,
            last: false,
            streams: vec![StreamInterval {
                id: StreamId(row.id as u32),
                role,
                flow: Flow::Forward,
                start_ns: (row.start_s * 1e9) as u64,
                end_ns: ((row.start_s + row.seconds()) * 1e9).round() as u64,
                bytes: row.bytes,
                tcp: (!is_udp).then(|| row.tcp()),
                udp: is_udp.then(|| row.udp()),
                metrics: Some(Box::new(row.measured())),
            }],
        };
        events.push(Event::Interval(report));
    }
    let totals = streams.iter().filter(|row| is_total(row));
    let summary = Summary {
        streams: totals.map(|row| total(row, role, is_udp)).collect(),
        ..Summary::default()
    };
    events.push(Event::Summary(Box::new(summary)));
    events
}

fn opened(row: &Row, role: StreamRole) -> Event {
    let address = |(host, port): &(String, u16)| std::net::SocketAddr::new(host.parse().expect("an address"), *port);
    let (source, destination) = (address(&row.source), address(&row.destination));
    let (local, remote) = if role == StreamRole::Sender {
        (source, destination)
    } else {
        (destination, source)
    };
    let facts = StreamFacts {
        number: row.id as u32,
        ..StreamFacts::default()
    };
    Event::StreamOpened(Stream {
        id: StreamId(row.id as u32),
        role,
        flow: Flow::Forward,
        local,
        remote,
        effective: EffectiveOptions::default(),
        facts: Some(Box::new(facts)),
    })
}

fn total(row: &Row, role: StreamRole, is_udp: bool) -> StreamSummary {
    let udp = row.udp();
    let half = Some(EndpointTotals {
        bytes: row.bytes,
        duration_ns: (row.seconds() * 1e9).round() as u64,
        udp: is_udp.then(|| UdpTotals {
            packets: udp.packets,
            lost: udp.lost as u64,
            out_of_order: udp.out_of_order,
            jitter_s: udp.jitter_s,
            ..UdpTotals::default()
        }),
    });
    StreamSummary {
        id: StreamId(row.id as u32),
        role,
        flow: Flow::Forward,
        sender: half.filter(|_| role == StreamRole::Sender),
        receiver: half.filter(|_| role == StreamRole::Receiver),
        tcp: None,
        file: None,
        local_metrics: Some(Box::new(row.measured())),
        peer_metrics: None,
    }
}

/// Replaces what the originals get wrong, in both texts alike.
fn mask(line: &str, is_total: &dyn Fn(&Row) -> bool, names: Option<&str>, endpoint: Endpoint) -> String {
    if line.starts_with("time,") {
        return line.to_owned();
    }
    let row = Row::parse(line, names);
    let mut fields: Vec<&str> = line.split(',').collect();
    if is_total(&row) {
        fields[0] = "#";
        // Counts of a sender, and what the sum ends with.
        let is_sender = endpoint == Endpoint::Client;
        let losses = if names.is_some() { 10 } else { 9 };
        if row.more.contains_key("jitter") && (is_sender || row.id < 0) {
            fields.iter_mut().skip(losses).take(5).for_each(|field| *field = "#");
        }
        if row.id < 0 {
            fields[3] = "#";
            fields[6] = "#";
            fields[8] = "#";
        }
    }
    // A server of requests repeats its first stamp, and a header knows no microseconds.
    if endpoint == Endpoint::Server && row.start_s > 0.0 && row.bytes <= 2000 {
        fields[0] = "#";
    }
    if fields[0].starts_with("+0000:") {
        fields[0] = &fields[0][..fields[0].len() - 3];
    }
    // Replies per second come from digits that were rounded away.
    if names.is_some_and(|names| names.ends_with("rps")) {
        *fields.last_mut().expect("a field") = "#";
    }
    fields.join(",")
}

/// `20261121184604.764` or `+0000:20261121185044.337261`, in ms since 1970.
fn unix_ms(stamp: &str) -> u64 {
    let stamp = stamp.trim_start_matches("+0000:");
    let field = |range: std::ops::Range<usize>| stamp[range].parse::<u64>().expect("digits");
    assert_eq!(&stamp[..6], "202611");
    let seconds = 1_793_491_200 + (field(6..8) - 1) * 86_400 + field(8..10) * 3600 + field(10..12) * 60 + field(12..14);
    let fraction = stamp
        .split_once('.')
        .map_or(0.0, |(_, digits)| format!("0.{digits}").parse().expect("digits"));
    seconds * 1000 + (fraction * 1000.0) as u64
}

#[test]
fn only_the_new_layout_names_its_columns() {
    let is_named = |layout| {
        let release = if layout == Layout::V2_1 { "218" } else { "221" };
        let own = Command::parse("-c 192.0.2.1 -y C -e", release);
        let row = Row::parse("20261121184604,192.0.2.2,1,192.0.2.1,5001,1,0.0-1.0,1000,8000", None);
        write(&own, &TestSpec::default(), &[row], Endpoint::Client, &|_| true).starts_with("time,srcaddress,")
    };
    assert!(is_named(Layout::V2_2));
    assert!(!is_named(Layout::V2_1));
}
