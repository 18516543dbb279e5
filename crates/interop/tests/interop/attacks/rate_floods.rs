//! Requests and responses as fast as the server answers, under a limit on the rate.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, NativeHost};
use serde_json::{Value, json};

use super::attacked::AttackedServer;

const CONNECTIONS: u32 = 4;
const REQUEST_BYTES: usize = 1 << 10;
const RESPONSE_BYTES: usize = 64 << 10;

fn requests() -> Value {
    json!({
        "kind": "rr", "transport": "tcp", "streams_max": CONNECTIONS, "probe_flows": 0,
        "duration_max_ns": 60_000_000_000_u64,
        "transaction": { "request_bytes": REQUEST_BYTES, "response_bytes": RESPONSE_BYTES },
    })
}

fn requested(attacker: &Attacker<'_>, text: &Value) -> Option<TcpStream> {
    let stream = attacker.stream(3, text)?;
    stream.set_nonblocking(true).ok()?;
    Some(stream)
}

/// Sends requests as far as there is room, and reads what has arrived; false once the connection is closed.
fn exchange(stream: &mut TcpStream, buffer: &mut [u8], moved: &AtomicU64) -> bool {
    let outcomes = [stream.write(&[b'q'; 16 * REQUEST_BYTES]), stream.read(buffer)];
    for outcome in outcomes {
        match outcome {
            Ok(0) => return false,
            Ok(length) => drop(moved.fetch_add(length as u64, Ordering::Relaxed)),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return false,
        }
    }
    true
}

fn flood(attacker: &Attacker<'_>, moved: &AtomicU64) {
    let Some(mut session) = attacker.session(CONNECTIONS) else { return };
    let Some(ready) = session.try_start_phase(1, &requests()) else { return };
    let text = &ready["streams"][0];
    let mut connections: Vec<TcpStream> = (0..CONNECTIONS).map_while(|_| requested(attacker, text)).collect();
    let mut buffer = vec![0; 256 << 10];
    let began = Instant::now();
    while attacker.goes_on_since(began) && !connections.is_empty() {
        connections.retain_mut(|stream| exchange(stream, &mut buffer, moved));
    }
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    flood(attacker, &AtomicU64::new(0));
}

#[test]
fn timed_floods_of_requests_leave_others_their_time() {
    AttackedServer::start(&["--limit", "address:rate=200M"]).withstands(&[attack]);
}

/// What the flood moves within this time, and what the limit allows in it; buffers of the kernel fill at once.
const FLOOD: Duration = Duration::from_secs(4);
const ALLOWED_BYTES: u64 = 4 * 50_000_000 / 8;
const BUFFERED_BYTES: u64 = 32 << 20;

#[test]
fn timed_requests_and_responses_hold_the_limit_of_the_rate() {
    let service = NativeHost::here().serve(&["--limit", "server:rate=50M"]);
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, service.port));
    let (is_over, moved) = (AtomicBool::new(false), AtomicU64::new(0));
    let attacker = Attacker::new(Ipv4Addr::new(127, 0, 7, 1), Ipv4Addr::LOCALHOST, server, &is_over);
    thread::scope(|scope| {
        scope.spawn(|| flood(&attacker, &moved));
        attacker.pause(FLOOD);
        is_over.store(true, Ordering::Relaxed);
    });
    let moved = moved.into_inner();
    assert!(moved > 0 && moved <= ALLOWED_BYTES + BUFFERED_BYTES, "{moved} bytes in {FLOOD:?}: {service:?}");
}
