//! Requests and responses as fast as the server answers, under a limit on the rate.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::{Attacker, NativeHost, report};
use serde_json::{Value, json};

use super::attacked::AttackedServer;

const CONNECTIONS: u32 = 4;
const REQUEST_BYTES: usize = 1 << 10;
const RESPONSE_BYTES: usize = 64 << 10;
/// Responses under way on a connection: a server ends one whose client reads too little.
const OWED_BYTES_MAX: usize = 1 << 20;

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

/// A connection, and the bytes of responses that are under way.
struct Exchange {
    stream: TcpStream,
    owed: usize,
}

impl Exchange {
    /// Sends as many requests as may be under way, and reads what has arrived; false once the
    /// connection is closed.
    fn advance(&mut self, buffer: &mut [u8], moved: &AtomicU64) -> bool {
        if self.owed <= OWED_BYTES_MAX && !self.request(moved) {
            return false;
        }

        match self.stream.read(buffer) {
            Ok(0) => false,
            Ok(length) => {
                self.owed = self.owed.saturating_sub(length);
                moved.fetch_add(length as u64, Ordering::Relaxed);
                true
            }
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        }
    }

    /// One more request; the socket has room for it, because few are under way.
    fn request(&mut self, moved: &AtomicU64) -> bool {
        let is_sent = self.stream.write_all(&[b'q'; REQUEST_BYTES]).is_ok();
        self.owed += RESPONSE_BYTES;
        moved.fetch_add(REQUEST_BYTES as u64, Ordering::Relaxed);
        is_sent
    }
}

fn flood(attacker: &Attacker<'_>, moved: &AtomicU64) {
    let Some(mut session) = attacker.session(CONNECTIONS) else {
        return;
    };
    let Some(ready) = session.try_start_phase(1, &requests()) else {
        return;
    };
    let text = &ready["streams"][0];
    let connections = (0..CONNECTIONS).map_while(|_| requested(attacker, text));
    let mut exchanges: Vec<Exchange> = connections
        .map(|stream| Exchange { stream, owed: 0 })
        .collect();
    let mut buffer = vec![0; 256 << 10];
    let began = Instant::now();
    while attacker.goes_on_since(began) && !exchanges.is_empty() {
        exchanges.retain_mut(|exchange| exchange.advance(&mut buffer, moved));
    }
}

pub(super) fn attack(attacker: &Attacker<'_>) {
    flood(attacker, &AtomicU64::new(0));
}

#[test]
fn timed_floods_of_requests_leave_others_their_time() {
    AttackedServer::start(&["--limit", "address:rate=200M"]).withstands(&[attack]);
}

/// Bytes that the flood moves within this time, and those that the limit allows; buffers of the
/// kernel fill at once.
const FLOOD: Duration = Duration::from_secs(4);
const ALLOWED_BYTES: u64 = 4 * 50_000_000 / 8;
const BUFFERED_BYTES: u64 = 32 << 20;

#[test]
fn timed_requests_and_responses_hold_the_limit_of_the_rate() {
    let service = NativeHost::here().serve(&["--limit", "server:rate=50M"]);
    let server = SocketAddr::from((Ipv4Addr::LOCALHOST, service.port));
    let (is_over, moved) = (AtomicBool::new(false), AtomicU64::new(0));

    let attacker = Attacker::new(
        Ipv4Addr::new(127, 0, 7, 1),
        Ipv4Addr::LOCALHOST,
        server,
        &is_over,
    );
    thread::scope(|scope| {
        scope.spawn(|| flood(&attacker, &moved));
        attacker.pause(FLOOD);
        is_over.store(true, Ordering::Relaxed);
    });
    let moved = moved.into_inner();
    report(&format!("{moved} bytes in {FLOOD:?}"));
    assert!(
        moved > 0 && moved <= ALLOWED_BYTES + BUFFERED_BYTES,
        "{moved} bytes in {FLOOD:?}: {service:?}"
    );
}
