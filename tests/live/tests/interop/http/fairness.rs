//! Goal: connections of the HTTP server take turns, whatever one of them requests or sends. Method:
//! greedy clients that read or write as fast as they can, beside forty that request a kilobyte.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use linerate_interop::{HttpClient, HttpServer, TIMEOUT, wait_until};

/// Connections beside the greedy ones, on both threads of the server.
const OTHERS: usize = 40;
/// Until all of them have a response. The server needs milliseconds, a starved one would wait for
/// seconds or for ever.
const SERVED: Duration = Duration::from_secs(5);
/// Bytes that a greedy client has moved before the others request something.
const BEGUN_BYTES: u64 = 4 << 20;

/// A client that keeps its connection busy until it is dropped.
struct Greedy {
    stream: TcpStream,
    moved: Arc<AtomicU64>,
    threads: Vec<JoinHandle<()>>,
}

impl Greedy {
    /// Sends `input` over and over, and reads what comes.
    fn start(server: &HttpServer, input: &'static [u8]) -> Self {
        let stream = server.connect().stream;
        let moved = Arc::new(AtomicU64::new(0));
        let clone = || stream.try_clone().expect("a descriptor");
        let (mut to, mut from) = (clone(), clone());
        let (sent, received) = (Arc::clone(&moved), Arc::clone(&moved));
        let writer = thread::spawn(move || {
            while to.write_all(input).is_ok() {
                sent.fetch_add(input.len() as u64, Ordering::Relaxed);
            }
        });

        let reader = thread::spawn(move || {
            let mut buffer = vec![0; 1 << 20];
            loop {
                match from.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(count) => drop(received.fetch_add(count as u64, Ordering::Relaxed)),
                    Err(error)
                        if matches!(
                            error.kind(),
                            ErrorKind::WouldBlock | ErrorKind::Interrupted
                        ) => {}
                    Err(_) => return,
                }
            }
        });
        Self {
            stream,
            moved,
            threads: vec![writer, reader],
        }
    }

    fn has_begun(&self) -> bool {
        self.moved.load(Ordering::Relaxed) >= BEGUN_BYTES
    }
}

impl Drop for Greedy {
    fn drop(&mut self) {
        // The server may have closed it.
        let _ = self.stream.shutdown(Shutdown::Both);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Requests for 64 MiB, more of them than anybody can read in the time of a test.
fn requests(query: &str) -> &'static [u8] {
    leaked(format!("GET /b/64m{query} HTTP/1.1\r\nHost: a\r\n\r\n").repeat(64))
}

fn leaked(text: String) -> &'static [u8] {
    Box::leak(text.into_bytes().into_boxed_slice())
}

/// An upload of a mebibyte in chunks of one byte.
fn upload() -> &'static [u8] {
    let chunks = "1\r\nx\r\n".repeat(1 << 20);
    leaked(format!(
        "POST /sink HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}0\r\n\r\n"
    ))
}

/// True if the response to a request for a kilobyte has arrived in time.
fn has_kilobyte(client: &mut HttpClient, until: Instant) -> bool {
    let mut received = Vec::new();
    let mut buffer = [0; 4096];

    loop {
        let left = until
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        client
            .stream
            .set_read_timeout(Some(left))
            .expect("a deadline");
        let Ok(count) = client.stream.read(&mut buffer) else {
            return false;
        };
        received.extend_from_slice(buffer.get(..count).unwrap_or_default());

        let body = received
            .windows(4)
            .position(|four| four == b"\r\n\r\n")
            .map(|end| received.len() - end - 4);
        if count == 0 || body == Some(1024) {
            return body == Some(1024);
        }
    }
}

#[test]
fn forty_connections_are_served_while_greedy_ones_take_their_turns() {
    let small = "GET /b/32767 HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2_000);
    let long = "POST /sink HTTP/1.1\r\nHost: a\r\nContent-Length: 4194304\r\n\r\n".to_owned()
        + &"x".repeat(4 << 20);

    let rows = [
        ("chunks of one byte", requests("?chunked=1")),
        ("chunks of sixteen bytes", requests("?chunked=16")),
        ("chunks of 64 bytes", requests("?chunked=64")),
        ("whole bodies", requests("")),
        ("many bodies behind each other", leaked(small)),
        ("uploads in chunks of one byte", upload()),
        ("uploads", leaked(long)),
    ];
    for (name, input) in rows {
        for count in [1, 4] {
            let server =
                HttpServer::start(&["--threads", "2", "--allow-tiny-chunks", "--max-body", "1T"]);
            let mut others: Vec<_> = (0..OTHERS).map(|_| server.connect()).collect();
            others
                .iter_mut()
                .for_each(|client| assert_eq!(client.get("/0").status, 200));

            let greedy: Vec<Greedy> = (0..count).map(|_| Greedy::start(&server, input)).collect();
            assert!(
                wait_until(TIMEOUT, || greedy.iter().any(Greedy::has_begun)),
                "{name}"
            );

            others.iter_mut().for_each(|client| client.ask("/1k"));
            let until = Instant::now() + SERVED;
            let served = others
                .iter_mut()
                .map(|client| usize::from(has_kilobyte(client, until)))
                .sum::<usize>();

            drop(greedy);
            assert_eq!(served, OTHERS, "{name}, {count} greedy connections");
        }
    }
}

#[test]
fn tiny_chunks_are_refused_with_their_bound_unless_the_server_allows_them() {
    let server = HttpServer::start(&[]);
    let mut client = server.connect();
    let refusal = client.get("/1k?chunked=63");
    assert_eq!(refusal.status, 400);

    let text = String::from_utf8(refusal.body).expect("text");
    assert!(
        text.contains("at least 64 bytes") && text.contains("--allow-tiny-chunks"),
        "{text}"
    );
    client.ask("/1k?chunked=64");
    assert_eq!(client.response().status, 200);

    let server = HttpServer::start(&["--allow-tiny-chunks"]);
    assert_eq!(server.connect().get("/1k?chunked=1").status, 200);
}
