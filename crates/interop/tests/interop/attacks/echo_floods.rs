//! Probe connections that send without an end and read none of the echo.

use std::io::{Read, Write};
use std::time::Instant;

use linerate_interop::{Attacker, RawNative, probe_head, token};
use serde_json::{Value, json};

use super::attacked::AttackedServer;

const CONNECTIONS: usize = 20;
const RECORD: [u8; 16 << 10] = [b'x'; 16 << 10];
/// Answer to the head of a stream.
const ANSWER_BYTES: usize = 16;

fn idle() -> Value {
    json!({
        "kind": "idle", "transport": "tcp", "streams_max": 0, "probe_flows": 0, "duration_max_ns": 60_000_000_000_u64,
    })
}

/// A connection whose echo has begun.
fn probe(attacker: &Attacker<'_>, text: &Value) -> Option<RawNative> {
    let mut stream = attacker.connect()?;
    stream.write_all(&probe_head(2, token(text))).ok()?;
    stream.read_exact(&mut [0; ANSWER_BYTES]).ok()?;
    RawNative::over(stream)
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let Some(mut session) = attacker.session(1) else { return };
    let Some(ready) = session.try_start_phase(1, &idle()) else { return };
    let tokens = ready["probes"].as_array().into_iter().flatten().take(CONNECTIONS);
    let mut connections: Vec<RawNative> = tokens.filter_map(|token| probe(attacker, token)).collect();
    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        connections.retain_mut(|connection| connection.pour([&RECORD[..]; 16]));
    }
}

#[test]
fn timed_an_echo_that_is_not_read_is_not_stored() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
