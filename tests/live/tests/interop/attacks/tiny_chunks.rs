//! Bodies of `http serve` in chunks of a few bytes, read without an end.

use std::io::Read;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use linerate_interop::HttpServer;

const PATHS: [&str; 4] = [
    "/b/64m?chunked=1",
    "/b/64m?chunked=3",
    "/b/64m?chunked=16",
    "/b/64m?chunked=256",
];
const OTHERS: usize = 40;
/// Time of one request on a busy machine.
const SERVED_WITHIN: Duration = Duration::from_secs(2);

/// Time without a byte after which an attacker opens another connection.
const SILENCE: Duration = Duration::from_millis(500);

/// Reads one body after the other; a server may refuse the request.
fn read_chunks(server: &HttpServer, path: &str, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let mut client = server.connect();
        // A refused request leaves a connection on which nothing follows.
        client
            .stream
            .set_read_timeout(Some(SILENCE))
            .expect("the time is not zero");
        client.ask(path);
        let mut buffer = vec![0; 64 << 10];

        while !is_over.load(Ordering::Relaxed)
            && client
                .stream
                .read(&mut buffer)
                .is_ok_and(|length| length > 0)
        {}
    }
}

/// Ends the attack, however the test ends.
struct EndOfAttack<'a>(&'a AtomicBool);

impl Drop for EndOfAttack<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn timed_tiny_chunks_do_not_delay_other_connections() {
    let server = HttpServer::start(&["--threads", "2"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let end = EndOfAttack(&is_over);
        for path in PATHS {
            let (server, is_over) = (&server, &is_over);
            scope.spawn(move || read_chunks(server, path, is_over));
        }

        for number in 0..OTHERS {
            let began = Instant::now();
            let mut client = server.connect();
            client
                .stream
                .set_read_timeout(Some(SERVED_WITHIN))
                .expect("the time is not zero");
            assert_eq!(client.get("/1k").body.len(), 1024, "connection {number}");
            assert!(
                began.elapsed() <= SERVED_WITHIN,
                "connection {number} after {:?}",
                began.elapsed()
            );
        }

        drop(end);
    });
}
