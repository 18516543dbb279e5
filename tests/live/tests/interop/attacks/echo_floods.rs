//! Probe connections that send without an end and read none of the echo.

use std::iter;
use std::time::Instant;

use linerate_interop::{Attacker, RawNative};
use serde_json::{Value, json};

use super::attacked::AttackedServer;

const CONNECTIONS: usize = 2;
/// Plaintext of a record: so little that the server, which decrypts each, reads more slowly than
/// the client sends.
const RECORD: [u8; 1 << 10] = [b'x'; 1 << 10];
/// Records of a connection: 96 MB.
const RECORDS: usize = 96 << 10;

fn idle() -> Value {
    json!({
        "kind": "idle", "transport": "tcp", "streams_max": 0, "probe_flows": 0, "duration_max_ns": 60_000_000_000_u64,
    })
}

/// A connection whose echo has begun.
fn probe(attacker: &Attacker<'_>, text: &Value) -> Option<RawNative> {
    RawNative::over(attacker.stream(2, text)?)
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let Some(mut session) = attacker.session(1) else {
        return;
    };
    let Some(ready) = session.try_start_phase(1, &idle()) else {
        return;
    };
    let tokens = ready["probes"]
        .as_array()
        .into_iter()
        .flatten()
        .take(CONNECTIONS);
    let mut connections: Vec<RawNative> =
        tokens.filter_map(|token| probe(attacker, token)).collect();
    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        connections.retain_mut(|connection| connection.pour(iter::repeat_n(&RECORD[..], RECORDS)));
    }
}

#[test]
fn timed_an_echo_that_is_not_read_is_not_stored() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
