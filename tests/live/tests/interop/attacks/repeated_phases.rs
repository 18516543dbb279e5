//! Sessions that open one phase after the other, with all of its UDP flows, and end none of the
//! flows.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, RawNative, knock, token};
use serde_json::{Value, json};

use super::attacked::AttackedServer;

/// Messages of a session are limited to 64 per second: open, start, stop.
const PERIOD: Duration = Duration::from_millis(60);
/// Flows of an attacker, so that it does not run out of ports.
const FLOWS_MAX: usize = 2000;

fn idle() -> Value {
    json!({
        "kind": "idle", "transport": "tcp", "streams_max": 0, "probe_flows": 8, "duration_max_ns": 60_000_000_000_u64,
    })
}

/// Opens the flows of a phase and ends the phase; `None` once the session has ended.
fn phase(
    attacker: &Attacker<'_>,
    session: &mut RawNative,
    number: u32,
    flows: &mut Vec<UdpSocket>,
) -> Option<()> {
    let ready = session.try_start_phase(number, &idle())?;
    for granted in ready["flows"].as_array()? {
        let socket = attacker.own_udp()?;
        let number = u32::try_from(granted["flow"].as_u64()?).ok()?;
        // What is lost is not opened.
        let _ = socket.send(&knock(number, token(&granted["token"])));
        let _ = socket.recv(&mut [0; 128]);

        flows.push(socket);
    }

    session.send(json!({ "type": "stop", "phase": number }));
    session.try_expect("phase_result").map(|_| ())
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    let Some(mut session) = attacker.session(1) else {
        return;
    };
    let mut flows = Vec::new();
    let began = Instant::now();

    for number in 1.. {
        if !attacker.goes_on_since(began) || flows.len() > FLOWS_MAX {
            break;
        }
        if phase(attacker, &mut session, number, &mut flows).is_none() {
            break;
        }

        attacker.pause(PERIOD);
    }

    while attacker.goes_on_since(began) && !flows.is_empty() {
        attacker.pause(Duration::from_millis(200));
    }
}

#[test]
fn timed_flows_end_with_their_phase() {
    AttackedServer::start(&[]).withstands(&[attack]);
}
