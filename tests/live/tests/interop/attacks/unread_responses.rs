//! Requests for the longest responses, of which the client reads none.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use linerate_interop::Attacker;
use serde_json::{Value, json};

use super::attacked::AttackedServer;

/// Connections of a session. A server that refuses as many may grant fewer.
const CONNECTIONS: [u32; 5] = [250, 128, 60, 16, 1];
/// Each byte asks for a response of [`RESPONSE_BYTES`].
const REQUESTS: [u8; 4] = [0; 4];
const RESPONSE_BYTES: u32 = 1 << 20;

fn requests(streams: u32) -> Value {
    json!({
        "kind": "rr", "transport": "tcp", "streams_max": streams, "probe_flows": 0, "duration_max_ns": 60_000_000_000_u64,
        "transaction": { "request_bytes": 1, "response_bytes": RESPONSE_BYTES },
    })
}

fn requested(attacker: &Attacker<'_>, text: &Value) -> Option<TcpStream> {
    let mut stream = attacker.stream(3, text)?;
    stream.write_all(&REQUESTS).ok()?;
    Some(stream)
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let Some(mut session) = attacker.session(1) else {
        return;
    };
    let Some((streams, ready)) = session.try_start_largest(&mut 0, &CONNECTIONS, requests) else {
        return;
    };
    let text = &ready["streams"][0];
    let connections: Vec<TcpStream> = (0..streams)
        .map_while(|_| requested(attacker, text))
        .collect();
    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        attacker.pause(Duration::from_millis(200));
    }
}

#[test]
fn timed_responses_that_are_not_read_are_bounded() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
