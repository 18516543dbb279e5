//! Sessions of one stream that open a connection after the other, in phases of requests and of new
//! connections, and close none.

use std::time::{Duration, Instant};

use linerate_interop::Attacker;
use serde_json::{Value, json};

use super::attacked::AttackedServer;

/// Kind of the phase, and that of its streams.
const PHASES: [(&str, u8); 3] = [("rr", 3), ("crr", 4), ("cps", 4)];
/// Connections per phase: with three phases and three addresses three times as many as the server
/// has descriptors. More than the session has announced; a server that minds may grant fewer.
const CONNECTIONS: [u32; 5] = [350, 180, 60, 16, 1];

fn phase(kind: &str, streams: u32) -> Value {
    json!({
        "kind": kind, "transport": "tcp", "streams_max": streams, "probe_flows": 0, "duration_max_ns": 60_000_000_000_u64,
        "connections_per_s": 1000, "transaction": { "request_bytes": 1, "response_bytes": 1 },
    })
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let Some(mut session) = attacker.session(1) else {
        return;
    };
    let mut connections = Vec::new();
    let mut number = 0;

    for (kind, stream_kind) in PHASES {
        let granted =
            session.try_start_largest(&mut number, &CONNECTIONS, |streams| phase(kind, streams));
        let Some((_, ready)) = granted else { continue };
        let text = &ready["streams"][0];

        // More than were granted, until the server answers none.
        connections.extend((0..CONNECTIONS[0]).map_while(|_| attacker.stream(stream_kind, text)));
        session.send(json!({ "type": "stop", "phase": number }));
        if session.try_expect("phase_result").is_none() {
            break;
        }
    }

    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        attacker.pause(Duration::from_millis(200));
    }
}

#[test]
fn timed_a_session_of_one_stream_holds_no_descriptors_of_others() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
