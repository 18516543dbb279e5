//! `start`: who tests what with whom.

use linerate_document::{members, present};
use linerate_model::event::{Endpoint, TestHeader};
use linerate_model::{Direction, Stream, TestSpec, Transport, stored_name};
use serde_json::{Map, Value, json};

use crate::report::Options;
use crate::report::text::display_id;
use crate::report::wording::rfc1123;

pub(super) fn start(
    options: &Options,
    header: Option<&TestHeader>,
    streams: &[Stream],
    is_started: bool,
) -> Value {
    let connected: Vec<Value> = streams.iter().map(connected).collect();
    let mut members = members(json!({
        "connected": connected,
        "version": options.version,
        "system_info": options.system_info,
    }));

    if let Some(header) = header {
        add_test(&mut members, header, streams);
        if is_started {
            members.insert("test_start".into(), test_start(header));
        }
    }

    Value::Object(members)
}

fn connected(stream: &Stream) -> Value {
    json!({
        "socket": display_id(stream.id),
        "local_host": stream.local.ip().to_string(),
        "local_port": stream.local.port(),
        "remote_host": stream.remote.ip().to_string(),
        "remote_port": stream.remote.port(),
    })
}

/// A TCP server opens its listener with the test's options and so reports rate and buffers first.
fn add_test(members: &mut Map<String, Value>, header: &TestHeader, streams: &[Stream]) {
    let spec = &header.spec;
    let is_tcp = spec.transport == Transport::Tcp;
    let is_server = header.endpoint == Endpoint::Server;
    let rate_bps = spec.pacing.rate_bps.unwrap_or(0);
    if is_server && rate_bps != 0 {
        members.insert("target_bitrate".into(), rate_bps.into());
    }

    if is_server && is_tcp {
        members.extend(buffers(spec, streams));
    }

    let peer = if is_server {
        "accepted_connection"
    } else {
        "connecting_to"
    };
    let mss = spec.socket.mss_bytes;
    let mss_default = header.control_mss_bytes.unwrap_or(0);
    members.extend(present(json!({
        "timestamp": timestamp(header.started_at_unix_ms),
        peer: {"host": header.peer_host, "port": header.peer_port},
        "cookie": header.cookie,
        "tcp_mss": mss.filter(|_| is_tcp),
        "tcp_mss_default": (is_tcp && mss.is_none()).then_some(mss_default),
        "target_bitrate": rate_bps,
        "fq_rate": spec.pacing.fq_rate_bps.unwrap_or(0),
    })));
    if !(is_server && is_tcp) {
        members.extend(buffers(spec, streams));
    }
}

/// Buffer sizes requested and granted, of the first stream.
fn buffers(spec: &TestSpec, streams: &[Stream]) -> Map<String, Value> {
    let Some(first) = streams.first() else {
        return Map::new();
    };

    present(json!({
        "sock_bufsize": spec.socket.window_bytes.unwrap_or(0),
        "sndbuf_actual": first.effective.send_buffer_bytes,
        "rcvbuf_actual": first.effective.receive_buffer_bytes,
    }))
}

fn timestamp(unix_ms: u64) -> Value {
    json!({"time": rfc1123(unix_ms), "timesecs": unix_ms / 1000, "timemillisecs": unix_ms})
}

fn test_start(header: &TestHeader) -> Value {
    let spec = &header.spec;
    let (time, bytes, blocks) = spec.end.amounts();

    json!({
        "protocol": stored_name(spec.transport).to_uppercase(),
        "num_streams": spec.streams,
        "blksize": spec.block_len_bytes,
        "omit": spec.omit.as_secs(),
        "duration": time.as_secs(),
        "bytes": bytes,
        "blocks": blocks,
        "reverse": u8::from(spec.direction == Direction::Reverse),
        "tos": spec.socket.tos,
        "target_bitrate": spec.pacing.rate_bps.unwrap_or(0),
        "bidir": u8::from(spec.direction == Direction::Bidirectional),
        "fqrate": spec.pacing.fq_rate_bps.unwrap_or(0),
        "interval": header.interval.map_or(0.0, |i| i.as_secs_f64()),
        "gso": u8::from(spec.udp.gso.is_some()),
        "gro": u8::from(spec.udp.gro.is_some()),
    })
}
