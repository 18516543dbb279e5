//! The JSON report of iperf3, 3.1 to 3.22, as events.
//!
//! The totals of the streams are read; the sums are read where only they have a figure, and
//! compared otherwise.

mod totals;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_model::event::{Endpoint, ServerOutput, TestHeader};
use linerate_model::interval::TcpInterval;
use linerate_model::spec::Segmentation;
use linerate_model::{
    Direction, EndCondition, Event, Failure, FailureKind, Flow, IntervalReport, Stream, StreamId,
    StreamInterval, StreamRole, TestSpec, Transport, UdpInterval,
};
use serde_json::Value;

/// A report of one end.
pub(super) struct Report {
    pub(super) endpoint: Endpoint,
    pub(super) version: Option<String>,
    pub(super) host_name: Option<String>,
    pub(super) cookie: Option<String>,
    pub(super) started_unix_ms: Option<u64>,
    pub(super) events: Vec<Event>,
    pub(super) notes: Vec<String>,
}

/// Streams of a test that are read.
const STREAMS_MAX: usize = 1024;

/// True if a document is a report of iperf3.
pub(super) fn is_report(document: &Value) -> bool {
    let version = document["start"]["version"].as_str();
    version.is_some_and(|version| version.starts_with("iperf 3"))
}

/// True if the test of a report has started.
pub(super) fn is_started(document: &Value) -> bool {
    document["start"]["test_start"].is_object()
}

/// True if it is the report of a server that ended without a client.
pub(super) fn is_idle_server(document: &Value) -> bool {
    let has_ended = document["error"]
        .as_str()
        .is_some_and(|error| error.contains("the server has terminated"));
    has_ended && document["start"]["cookie"].is_null()
}

/// Reads a report. The end of one that is cut off is not read: its totals can be missing in part.
pub(super) fn report(document: &Value, is_cut: bool) -> Report {
    let start = &document["start"];
    let test = Test::of(document);
    let is_partial =
        is_cut || (document["error"].is_null() && !document["end"]["streams"].is_array());
    let end = if is_partial {
        &Value::Null
    } else {
        &document["end"]
    };

    let intervals = intervals(&test);
    let (summary, notes) = totals::read(&test, &intervals, end);
    let mut events = Vec::new();
    events.extend(
        test.header
            .clone()
            .map(|header| Event::TestAccepted(Box::new(header))),
    );
    events.extend(test.streams.iter().cloned().map(Event::StreamOpened));

    if is_started(document) {
        events.push(Event::TestStarted {
            at_monotonic_ns: None,
        });
        events.extend(intervals);
        events.extend(summary.map(|summary| Event::Summary(Box::new(summary))));
    }

    events.extend(server_output(document).map(Event::PeerOutput));
    if !is_partial {
        events.push(
            document["error"]
                .as_str()
                .map_or(Event::Finished, |error| failed(error, test.endpoint)),
        );
    }

    let version = start["version"]
        .as_str()
        .and_then(|text| text.strip_prefix("iperf "));
    Report {
        endpoint: test.endpoint,
        version: version.map(str::to_owned),
        // `system_info` has the fields of uname(2): the second one is the name of the host.
        host_name: start["system_info"]
            .as_str()
            .and_then(|text| text.split(' ').nth(1))
            .map(str::to_owned),
        cookie: start["cookie"]
            .as_str()
            .filter(|cookie| !cookie.is_empty())
            .map(str::to_owned),
        started_unix_ms: test
            .header
            .as_ref()
            .map(|header| header.started_at_unix_ms)
            .filter(|ms| *ms > 0),
        events,
        notes,
    }
}

/// Facts of a test from the start of its report.
struct Test<'a> {
    endpoint: Endpoint,
    header: Option<TestHeader>,
    is_udp: bool,
    block_len_bytes: u64,
    mss_bytes: u32,
    streams: Vec<Stream>,
    /// The number of each stream in the report.
    sockets: Vec<Option<i64>>,
    intervals: &'a [Value],
}

impl<'a> Test<'a> {
    fn of(document: &'a Value) -> Self {
        let start = &document["start"];
        // The server's report has the accepted connection, the client's has `connecting_to`.
        let endpoint = if start["accepted_connection"].is_object() {
            Endpoint::Server
        } else {
            Endpoint::Client
        };

        let test_start = &start["test_start"];
        let intervals = document["intervals"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        // iperf3 writes `tcp_mss` with `-M`, and `tcp_mss_default` without.
        let mss = [&start["tcp_mss_default"], &start["tcp_mss"]]
            .map(|mss| u32_of(mss).filter(|mss| *mss > 0));

        let mut test = Self {
            endpoint,
            header: header(document, endpoint),
            is_udp: test_start["protocol"] == "UDP",
            block_len_bytes: u64_of(&test_start["blksize"]).unwrap_or(0),
            mss_bytes: mss.into_iter().flatten().next().unwrap_or(0),
            streams: Vec::new(),
            sockets: Vec::new(),
            intervals,
        };
        test.open_streams(document);

        // 3.12 does not report the direction.
        let has = |flow| test.streams.iter().any(|stream| stream.flow == flow);
        if has(Flow::Forward)
            && has(Flow::Reverse)
            && let Some(header) = &mut test.header
        {
            header.spec.direction = Direction::Bidirectional;
        }

        test
    }

    fn open_streams(&mut self, document: &Value) {
        let start = &document["start"];
        let is_reverse = start["test_start"]["reverse"] == 1;
        let is_sender = (self.endpoint == Endpoint::Client) != is_reverse;
        let rows = self.intervals.first().map(|interval| &interval["streams"]);
        let ends = &document["end"]["streams"];

        let connected = start["connected"]
            .as_array()
            .into_iter()
            .flatten()
            .take(STREAMS_MAX);
        for (position, connected) in connected.enumerate() {
            let socket = connected["socket"].as_i64();
            let of_socket = |row: &&Value| row["socket"].as_i64() == socket;
            let row = rows
                .and_then(Value::as_array)
                .and_then(|rows| rows.iter().find(of_socket));
            let end = &ends[position];
            let flags = [row.unwrap_or(&Value::Null), &end["sender"], &end["udp"]];
            let is_sender = flags
                .iter()
                .find_map(|flag| flag["sender"].as_bool())
                .unwrap_or(is_sender);
            let (role, flow) = role(is_sender, self.endpoint);
            let mut opened = Stream::new(
                StreamId(position as u32),
                role,
                flow,
                address(&connected["local_host"], &connected["local_port"]),
                address(&connected["remote_host"], &connected["remote_port"]),
            );
            opened.effective.send_buffer_bytes = u32_of(&start["sndbuf_actual"]);
            opened.effective.receive_buffer_bytes = u32_of(&start["rcvbuf_actual"]);
            self.streams.push(opened);
            self.sockets.push(socket);
        }
    }

    /// The stream of a row.
    fn stream(&self, row: &Value) -> Option<&Stream> {
        let socket = row["socket"].as_i64()?;
        self.streams.get(
            self.sockets
                .iter()
                .position(|known| *known == Some(socket))?,
        )
    }

    fn role_of(&self, flow: Flow) -> StreamRole {
        match (self.endpoint, flow) {
            (Endpoint::Client, Flow::Forward) | (Endpoint::Server, Flow::Reverse) => {
                StreamRole::Sender
            }
            _ => StreamRole::Receiver,
        }
    }
}

fn role(is_sender: bool, endpoint: Endpoint) -> (StreamRole, Flow) {
    let role = if is_sender {
        StreamRole::Sender
    } else {
        StreamRole::Receiver
    };
    (
        role,
        if is_sender == (endpoint == Endpoint::Client) {
            Flow::Forward
        } else {
            Flow::Reverse
        },
    )
}

fn address(host: &Value, port: &Value) -> SocketAddr {
    let host = host
        .as_str()
        // The zone of a link-local address has a meaning on its own host alone (RFC 4007, section
        // 6).
        .and_then(|host| host.split('%').next()?.parse().ok());
    let port = port.as_u64().and_then(|port| u16::try_from(port).ok());
    SocketAddr::new(
        host.unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        port.unwrap_or(0),
    )
}

/// `None` for a test that failed before it was agreed.
fn header(document: &Value, endpoint: Endpoint) -> Option<TestHeader> {
    let start = &document["start"];
    let peer = match endpoint {
        Endpoint::Client => &start["connecting_to"],
        Endpoint::Server => &start["accepted_connection"],
    };
    let time = &start["timestamp"];
    let started_ms = u64_of(&time["timemillisecs"]);
    let started_ms = started_ms.or_else(|| u64_of(&time["timesecs"])?.checked_mul(1000));
    let started_ms = started_ms.or_else(|| is_started(document).then_some(0))?;
    let interval_s = start["test_start"]["interval"]
        .as_f64()
        .filter(|seconds| *seconds > 0.0);
    let header = TestHeader {
        endpoint,
        peer_host: peer["host"].as_str().unwrap_or_default().to_owned(),
        peer_port: peer["port"]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .unwrap_or(0),
        cookie: start["cookie"].as_str().unwrap_or_default().to_owned(),
        started_at_unix_ms: started_ms,
        control_mss_bytes: u32_of(&start["tcp_mss_default"]).filter(|mss| *mss > 0),
        spec: spec(document),
        interval: interval_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        ..TestHeader::default()
    };

    Some(header)
}

fn spec(document: &Value) -> TestSpec {
    let start = &document["start"];
    let test = &start["test_start"];
    let set = |value: &Value| u64_of(value).filter(|number| *number > 0);
    let text = |name: &str| document[name].as_str().map(str::to_owned);
    let block_len_bytes = u32_of(&test["blksize"]).unwrap_or(0);
    let is_on = |name: &str| test[name] == 1;
    let sizes = |name: &str| {
        (is_on(name) && block_len_bytes > 0).then(|| Segmentation::of_datagrams(block_len_bytes))
    };
    let mut spec = TestSpec {
        transport: match test["protocol"].as_str() {
            Some("UDP") => Transport::Udp,
            Some("SCTP") => Transport::Sctp,
            _ => Transport::Tcp,
        },
        direction: match (is_on("bidir"), is_on("reverse")) {
            (true, _) => Direction::Bidirectional,
            (_, true) => Direction::Reverse,
            _ => Direction::Forward,
        },
        streams: u32_of(&test["num_streams"]).unwrap_or(1),
        end: match (
            set(&test["duration"]),
            set(&test["bytes"]),
            set(&test["blocks"]),
        ) {
            (Some(seconds), ..) => EndCondition::Duration(Duration::from_secs(seconds)),
            (_, Some(bytes), _) => EndCondition::Bytes(bytes),
            (_, _, Some(blocks)) => EndCondition::Blocks(blocks),
            _ => EndCondition::Unlimited,
        },
        omit: Duration::from_secs(set(&test["omit"]).unwrap_or(0)),
        block_len_bytes,
        ..TestSpec::default()
    };
    spec.pacing.rate_bps = set(&start["target_bitrate"]).or_else(|| set(&test["target_bitrate"]));
    spec.pacing.fq_rate_bps = set(&start["fq_rate"]).or_else(|| set(&test["fqrate"]));
    spec.socket.window_bytes = u32_of(&start["sock_bufsize"]).filter(|bytes| *bytes > 0);
    spec.socket.mss_bytes = u32_of(&start["tcp_mss"]).filter(|bytes| *bytes > 0);
    spec.socket.tos = test["tos"]
        .as_u64()
        .and_then(|tos| u8::try_from(tos).ok())
        .unwrap_or(0);
    spec.udp.gso = sizes("gso");
    spec.udp.gro = sizes("gro");
    spec.title = text("title");
    spec.extra_data = text("extra_data");

    spec
}

/// Intervals in order, and the end of the warm-up between them.
fn intervals(test: &Test<'_>) -> Vec<Event> {
    let grid = test.header.as_ref().and_then(|header| header.interval);
    let mut events = Vec::new();
    let mut was_omitted = false;

    for (position, value) in test.intervals.iter().enumerate() {
        let omitted = value["streams"][0]["omitted"] == true;
        if was_omitted && !omitted {
            events.push(Event::OmitEnded);
        }

        was_omitted = omitted;
        let rows = value["streams"].as_array().into_iter().flatten();
        let streams: Vec<StreamInterval> = rows.filter_map(|row| interval(test, row)).collect();
        // Only the end of a test cuts an interval short.
        let is_short = |row: &StreamInterval| {
            grid.is_some_and(|grid| row.seconds() < 0.9 * grid.as_secs_f64())
        };
        let last = position + 1 == test.intervals.len() && streams.iter().any(is_short);
        let mut report = IntervalReport::new(streams);
        report.omitted = omitted;
        report.last = last;
        events.push(Event::Interval(report));
    }

    events
}

fn interval(test: &Test<'_>, row: &Value) -> Option<StreamInterval> {
    let stream = test.stream(row)?;
    let (start_ns, end_ns) = (ns_of(&row["start"])?, ns_of(&row["end"])?);
    let mut interval = StreamInterval::new(stream, start_ns, end_ns, u64_of(&row["bytes"])?);
    interval.tcp = tcp(test, row);
    interval.udp = u64_of(&row["packets"])
        .filter(|_| test.is_udp)
        .map(|packets| {
            UdpInterval::new(
                packets,
                row["lost_packets"].as_i64().unwrap_or(0),
                0,
                row["jitter_ms"].as_f64().unwrap_or(0.0) / 1e3,
            )
        });

    Some(interval)
}

fn tcp(test: &Test<'_>, row: &Value) -> Option<TcpInterval> {
    let tcp = TcpInterval {
        retransmits: u64_of(&row["retransmits"])?,
        snd_cwnd_bytes: u64_of(&row["snd_cwnd"])?,
        snd_wnd_bytes: u64_of(&row["snd_wnd"]).filter(|bytes| *bytes > 0),
        rtt_us: u32_of(&row["rtt"])?,
        rttvar_us: u32_of(&row["rttvar"]).unwrap_or(0),
        pmtu_bytes: u32_of(&row["pmtu"]).unwrap_or(0),
        reorder_events: u64_of(&row["reorder"]),
        mss_bytes: test.mss_bytes,
        ..TcpInterval::default()
    };

    Some(tcp)
}

fn server_output(document: &Value) -> Option<ServerOutput> {
    let json = document
        .get("server_output_json")
        .map(|json| ServerOutput::Json(json.to_string()));
    json.or_else(|| {
        Some(ServerOutput::Text(
            document["server_output_text"].as_str()?.to_owned(),
        ))
    })
}

/// The end that a signal ended is named in the message.
pub(super) fn failed(error: &str, endpoint: Endpoint) -> Event {
    let ends = |who: &str| error.contains(&format!("the {who} has terminated"));
    let kind = match endpoint {
        Endpoint::Client if ends("client") => FailureKind::Interrupted,
        Endpoint::Server if ends("server") => FailureKind::Interrupted,
        _ if ends("client") || ends("server") => FailureKind::PeerTerminated,
        _ if error.contains("control socket has closed unexpectedly") => FailureKind::PeerClosed,
        _ => FailureKind::Error,
    };

    let message = error
        .strip_prefix("interrupt - ")
        .unwrap_or(error)
        .to_owned();
    Event::Failed(Failure::new(kind, message))
}

/// A count. Some writers of JSON write large ones as floating-point numbers; sums of what is
/// accepted cannot overflow.
pub(super) fn u64_of(value: &Value) -> Option<u64> {
    // Larger whole numbers are not exact in JSON everywhere (RFC 8259, section 6).
    const MAX: u64 = 1 << 53;

    let float = || {
        value
            .as_f64()
            .filter(|number| (0.0..=MAX as f64).contains(number))
            .map(|number| number as u64)
    };
    value.as_u64().or_else(float).filter(|count| *count <= MAX)
}

pub(super) fn u32_of(value: &Value) -> Option<u32> {
    u64_of(value).and_then(|number| u32::try_from(number).ok())
}

/// Seconds as nanoseconds.
pub(super) fn ns_of(seconds: &Value) -> Option<u64> {
    ns_of_s(seconds.as_f64()?)
}

pub(super) fn ns_of_s(seconds: f64) -> Option<u64> {
    (0.0..1e9)
        .contains(&seconds)
        .then(|| (seconds * 1e9).round() as u64)
}
