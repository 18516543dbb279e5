//! Reads recorded JSON back into the events that made it.

use std::time::Duration;

use linerate_model::event::{ControlConnected, Endpoint, Event, ServerOutput, TestHeader};
use linerate_model::spec::Segmentation;
use linerate_model::stream::EffectiveOptions;
use linerate_model::summary::{FileSummary, TcpSummary, UdpTotals};
use linerate_model::{
    CpuUsage, Direction, EndCondition, EndpointTotals, Failure, FailureKind, Flow, IntervalReport, Stream, StreamId,
    StreamInterval, StreamRole, StreamSummary, Summary, TcpInterval, TestSpec, Transport, UdpInterval,
};
use serde_json::Value;

/// The events of one test. `document` has `start`, `intervals`, `end` and what follows them.
pub(crate) fn events(document: &Value, endpoint: Endpoint) -> Vec<Event> {
    let reader = Reader { document, endpoint };
    let mut events = reader.opening();
    events.extend(reader.intervals());
    if document["end"].get("streams").is_some() {
        events.push(Event::Summary(Box::new(reader.summary())));
    }
    events.extend(reader.peer_output());
    events.push(match document["error"].as_str() {
        Some(error) => Event::Failed(reader.failure(error)),
        None => Event::Finished,
    });
    events
}

struct Reader<'a> {
    document: &'a Value,
    endpoint: Endpoint,
}

impl Reader<'_> {
    fn start(&self) -> &Value {
        &self.document["start"]
    }

    fn opening(&self) -> Vec<Event> {
        let mut events = Vec::new();
        if self.endpoint == Endpoint::Client {
            events.push(Event::ControlConnected(ControlConnected {
                local: "127.0.0.1:1".parse().expect("an address"),
                remote: "127.0.0.1:2".parse().expect("an address"),
                mss_bytes: Some(32768),
                chosen_block_len_bytes: None,
            }));
        }
        let start = self.start();
        if start.get("cookie").is_none() {
            return events;
        }
        let peer = match self.endpoint {
            Endpoint::Client => &start["connecting_to"],
            Endpoint::Server => &start["accepted_connection"],
        };
        let test = &start["test_start"];
        events.push(Event::TestAccepted(Box::new(TestHeader {
            endpoint: self.endpoint,
            peer_host: text(&peer["host"]),
            peer_port: u16::try_from(int(&peer["port"])).expect("a port"),
            cookie: text(&start["cookie"]),
            started_at_unix_ms: int(&start["timestamp"]["timemillisecs"]),
            control_mss_bytes: optional_int(&start["tcp_mss_default"]),
            spec: self.spec(),
            interval: test["interval"]
                .as_f64()
                .filter(|s| *s > 0.0)
                .map(Duration::from_secs_f64),
            file_name: None,
            first_stream_position: 0,
            first_socket: None,
            listener: None,
        })));
        events.extend(self.streams().into_iter().map(Event::StreamOpened));
        if !test.is_null() {
            events.push(Event::TestStarted);
        }
        events
    }

    fn spec(&self) -> TestSpec {
        let start = self.start();
        let test = &start["test_start"];
        let mut spec = TestSpec {
            transport: if test["protocol"] == "UDP" {
                Transport::Udp
            } else {
                Transport::Tcp
            },
            direction: self.direction(),
            streams: optional_int(&test["num_streams"]).unwrap_or(1),
            end: match (int(&test["bytes"]), int(&test["blocks"])) {
                (0, 0) => EndCondition::Duration(Duration::from_secs(int(&test["duration"]))),
                (0, blocks) => EndCondition::Blocks(blocks),
                (bytes, _) => EndCondition::Bytes(bytes),
            },
            omit: Duration::from_secs(int(&test["omit"])),
            block_len_bytes: optional_int(&test["blksize"]).unwrap_or(0),
            title: self.document["title"].as_str().map(String::from),
            extra_data: self.document["extra_data"].as_str().map(String::from),
            want_server_output: true,
            ..TestSpec::default()
        };
        spec.pacing.rate_bps = start["target_bitrate"].as_u64().filter(|rate| *rate > 0);
        spec.socket.mss_bytes = optional_int(&start["tcp_mss"]);
        spec.socket.window_bytes = optional_int(&start["sock_bufsize"]).filter(|size| *size > 0);
        spec.socket.tos = u8::try_from(int(&test["tos"])).expect("a byte");
        let offload = Segmentation {
            datagram_bytes: 1400,
            buffer_bytes: 64_400,
        };
        spec.udp.gso = (int(&test["gso"]) == 1).then_some(offload);
        spec.udp.gro = (int(&test["gro"]) == 1).then_some(offload);
        spec
    }

    fn direction(&self) -> Direction {
        let test = &self.start()["test_start"];
        match (int(&test["reverse"]), int(&test["bidir"])) {
            (_, 1) => Direction::Bidirectional,
            (1, _) => Direction::Reverse,
            _ => Direction::Forward,
        }
    }

    fn is_udp(&self) -> bool {
        self.start()["test_start"]["protocol"] == "UDP"
    }

    fn id(&self, socket: &Value) -> StreamId {
        let connected = items(&self.start()["connected"]);
        let index = connected
            .iter()
            .position(|c| c["socket"] == *socket)
            .expect("a known stream");
        StreamId(u32::try_from(index).expect("few"))
    }

    fn flow(&self, id: StreamId) -> Flow {
        let count = items(&self.start()["connected"]).len();
        match self.direction() {
            Direction::Forward => Flow::Forward,
            Direction::Reverse => Flow::Reverse,
            Direction::Bidirectional if (id.0 as usize) < count / 2 => Flow::Forward,
            Direction::Bidirectional => Flow::Reverse,
        }
    }

    fn role(&self, id: StreamId) -> StreamRole {
        match (self.flow(id), self.endpoint) {
            (Flow::Forward, Endpoint::Client) | (Flow::Reverse, Endpoint::Server) => StreamRole::Sender,
            _ => StreamRole::Receiver,
        }
    }

    fn streams(&self) -> Vec<Stream> {
        let start = self.start();
        let address = |host: &Value, port: &Value| {
            let host: std::net::IpAddr = text(host).parse().expect("an address");
            (host, u16::try_from(int(port)).expect("a port")).into()
        };
        let stream = |connected: &Value| {
            let id = self.id(&connected["socket"]);
            Stream {
                id,
                role: self.role(id),
                flow: self.flow(id),
                local: address(&connected["local_host"], &connected["local_port"]),
                remote: address(&connected["remote_host"], &connected["remote_port"]),
                effective: EffectiveOptions {
                    send_buffer_bytes: optional_int(&start["sndbuf_actual"]),
                    receive_buffer_bytes: optional_int(&start["rcvbuf_actual"]),
                    congestion: None,
                },
                facts: None,
            }
        };
        items(&start["connected"]).iter().map(stream).collect()
    }

    fn intervals(&self) -> Vec<Event> {
        let intervals = items(&self.document["intervals"]);
        let report = |(index, interval): (usize, &Value)| {
            let streams = items(&interval["streams"]);
            Event::Interval(IntervalReport {
                omitted: streams[0]["omitted"] == true,
                last: index + 1 == intervals.len(),
                streams: streams.iter().map(|s| self.stream_interval(s)).collect(),
            })
        };
        intervals.iter().enumerate().map(report).collect()
    }

    fn stream_interval(&self, row: &Value) -> StreamInterval {
        let id = self.id(&row["socket"]);
        let start_ns = ns(&row["start"]);
        StreamInterval {
            id,
            role: self.role(id),
            flow: self.flow(id),
            start_ns,
            end_ns: start_ns + ns(&row["seconds"]),
            bytes: int(&row["bytes"]),
            tcp: row.get("retransmits").map(|retransmits| TcpInterval {
                retransmits: int(retransmits),
                snd_cwnd_bytes: int(&row["snd_cwnd"]),
                snd_wnd_bytes: Some(int(&row["snd_wnd"])),
                rtt_us: optional_int(&row["rtt"]).expect("a time"),
                rttvar_us: optional_int(&row["rttvar"]).expect("a time"),
                pmtu_bytes: optional_int(&row["pmtu"]).expect("a size"),
                reorder_events: Some(int(&row["reorder"])),
                ..TcpInterval::default()
            }),
            udp: self.is_udp().then(|| UdpInterval {
                packets: int(&row["packets"]),
                lost: row["lost_packets"].as_i64().unwrap_or(0),
                out_of_order: 0,
                jitter_s: row["jitter_ms"].as_f64().unwrap_or(0.0) / 1000.0,
            }),
            metrics: None,
        }
    }

    fn summary(&self) -> Summary {
        let end = &self.document["end"];
        let streams = items(&end["streams"]).iter();
        let streams = streams.map(|s| {
            if self.is_udp() {
                self.udp_stream(&s["udp"])
            } else {
                self.tcp_stream(s)
            }
        });
        let cpu = &end["cpu_utilization_percent"];
        let usage = |who: &str| CpuUsage {
            total_percent: cpu[format!("{who}_total")].as_f64().expect("a number"),
            user_percent: cpu[format!("{who}_user")].as_f64().expect("a number"),
            system_percent: cpu[format!("{who}_system")].as_f64().expect("a number"),
        };
        let sender = end["sender_tcp_congestion"].as_str().map(String::from);
        let receiver = end["receiver_tcp_congestion"].as_str().map(String::from);
        // The document has the reverse direction of two.
        let (sender_congestion, receiver_congestion) = match self.direction() {
            Direction::Bidirectional => (receiver, sender),
            _ => (sender, receiver),
        };
        Summary {
            streams: streams.collect(),
            cpu_local: Some(usage("host")),
            cpu_remote: Some(usage("remote")).filter(|u| u.total_percent > 0.0),
            sender_congestion,
            receiver_congestion,
            overflows_local: None,
            overflows_remote: None,
        }
    }

    fn tcp_stream(&self, stream: &Value) -> StreamSummary {
        let (sender, receiver) = (&stream["sender"], &stream["receiver"]);
        let id = self.id(&sender["socket"]);
        let half = |half: &Value| EndpointTotals {
            bytes: int(&half["bytes"]),
            duration_ns: ns(&half["end"]),
            udp: None,
        };
        // Zero stands for a peer that said nothing.
        let said = |half: EndpointTotals| Some(half).filter(|h| h.bytes > 0);
        StreamSummary {
            id,
            role: self.role(id),
            flow: self.flow(id),
            sender: said(half(sender)),
            receiver: said(half(receiver)),
            tcp: sender.get("retransmits").map(|retransmits| TcpSummary {
                retransmits: Some(int(retransmits)),
                reorder_events: Some(int(&sender["reorder"])),
                max_snd_cwnd_bytes: Some(int(&sender["max_snd_cwnd"])),
                max_snd_wnd_bytes: Some(int(&sender["max_snd_wnd"])),
                max_rtt_us: optional_int(&sender["max_rtt"]),
                min_rtt_us: optional_int(&sender["min_rtt"]),
                mean_rtt_us: optional_int(&sender["mean_rtt"]),
            }),
            file: stream.get("diskfile").map(|file| FileSummary {
                name: text(&file["filename"]),
                size_bytes: int(&file["size"]),
            }),
            local_metrics: None,
            peer_metrics: None,
        }
    }

    /// What a receiver counted is only in the sum of its direction; the recorded streams did alike.
    fn udp_stream(&self, stream: &Value) -> StreamSummary {
        let id = self.id(&stream["socket"]);
        let is_second = self.direction() == Direction::Bidirectional && self.flow(id) == Flow::Reverse;
        let suffix = if is_second { "_bidir_reverse" } else { "" };
        let received = &self.document["end"][format!("sum_received{suffix}")];
        let count = int(&self.start()["test_start"]["num_streams"]);
        let udp = |packets: u64| UdpTotals {
            packets,
            lost: int(&stream["lost_packets"]),
            out_of_order: int(&stream["out_of_order"]),
            jitter_s: stream["jitter_ms"].as_f64().expect("a number") / 1000.0,
            omitted_packets: Some(0),
            omitted_lost: Some(0),
        };
        let sender = EndpointTotals {
            bytes: int(&stream["bytes"]),
            duration_ns: ns(&stream["end"]),
            udp: Some(udp(int(&stream["packets"]))),
        };
        let receiver = EndpointTotals {
            bytes: int(&received["bytes"]) / count,
            duration_ns: ns(&received["end"]),
            udp: Some(udp(int(&received["packets"]) / count)),
        };
        StreamSummary {
            id,
            role: self.role(id),
            flow: self.flow(id),
            sender: Some(sender).filter(|h| h.bytes > 0),
            receiver: Some(receiver).filter(|h| h.bytes > 0),
            tcp: None,
            file: None,
            local_metrics: None,
            peer_metrics: None,
        }
    }

    fn peer_output(&self) -> Option<Event> {
        let text = self.document.get("server_output_text");
        let json = self.document.get("server_output_json");
        Some(Event::PeerOutput(match (text, json) {
            (Some(text), _) => ServerOutput::Text(text.as_str().expect("text").into()),
            (_, Some(json)) => ServerOutput::Json(json.to_string()),
            _ => return None,
        }))
    }

    fn failure(&self, error: &str) -> Failure {
        let (kind, message) = match (error.strip_prefix("interrupt - "), error.strip_prefix("error - ")) {
            (Some(message), _) => (FailureKind::Interrupted, message),
            (_, Some(message)) => (FailureKind::Error, message),
            _ if error.ends_with("has terminated") => (FailureKind::PeerTerminated, error),
            _ => (FailureKind::Error, error),
        };
        Failure {
            kind,
            message: message.into(),
            code: None,
        }
    }
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// A whole number; 0 for what is not there.
fn int(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn optional_int(value: &Value) -> Option<u32> {
    value.as_u64().map(|n| u32::try_from(n).expect("fits"))
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").into()
}

fn ns(seconds: &Value) -> u64 {
    (seconds.as_f64().expect("a time") * 1e9).round() as u64
}
