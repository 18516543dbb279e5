//! The start of a report: what was tested, by which streams.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::spec::Segmentation;
use linerate_model::{
    Direction, EndCondition, Flow, Stream, StreamId, StreamRole, TestSpec, Transport,
};
use serde_json::Value;

use super::{above_zero, u32_of, u64_of};

/// True if the test of a report has started.
pub fn is_started(document: &Value) -> bool {
    document["start"]["test_start"].is_object()
}

/// Streams of a test that are read.
const STREAMS_MAX: usize = 1024;

/// Facts of a test from the start of its report.
pub(super) struct Test<'a> {
    pub endpoint: Endpoint,
    pub header: Option<TestHeader>,
    pub is_udp: bool,
    pub block_len_bytes: u64,
    pub mss_bytes: u32,
    pub streams: Vec<Stream>,
    /// The number of each stream in the report.
    sockets: Vec<Option<i64>>,
    pub intervals: &'a [Value],
}

impl<'a> Test<'a> {
    pub(super) fn of(document: &'a Value) -> Self {
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
        let mss = [&start["tcp_mss_default"], &start["tcp_mss"]].map(above_zero);

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
            // In a test of both directions each stream has its own, and the option none.
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
    pub(super) fn stream(&self, row: &Value) -> Option<&Stream> {
        let socket = row["socket"].as_i64()?;
        self.streams.get(
            self.sockets
                .iter()
                .position(|known| *known == Some(socket))?,
        )
    }

    pub(super) fn role_of(&self, flow: Flow) -> StreamRole {
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
    // Reports without ms have whole seconds.
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
        control_mss_bytes: above_zero(&start["tcp_mss_default"]),
        spec: spec(document),
        interval: interval_s.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        ..TestHeader::default()
    };

    Some(header)
}

fn spec(document: &Value) -> TestSpec {
    let start = &document["start"];
    let test = &start["test_start"];
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
        end: match ["duration", "bytes", "blocks"].map(|name| above_zero(&test[name])) {
            [Some(seconds), ..] => EndCondition::Duration(Duration::from_secs(seconds)),
            [_, Some(bytes), _] => EndCondition::Bytes(bytes),
            [_, _, Some(blocks)] => EndCondition::Blocks(blocks),
            _ => EndCondition::Unlimited,
        },
        omit: Duration::from_secs(above_zero(&test["omit"]).unwrap_or(0)),
        block_len_bytes,
        ..TestSpec::default()
    };
    spec.pacing.rate_bps =
        above_zero(&start["target_bitrate"]).or_else(|| above_zero(&test["target_bitrate"]));
    spec.pacing.fq_rate_bps = above_zero(&start["fq_rate"]).or_else(|| above_zero(&test["fqrate"]));
    spec.socket.window_bytes = above_zero(&start["sock_bufsize"]);
    spec.socket.mss_bytes = above_zero(&start["tcp_mss"]);
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
