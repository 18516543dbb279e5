//! An HTTP server whose every byte the test decides.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::deadline::{TIMEOUT, wait_for};
use crate::net::free_http_port;

/// A server with a thread per connection. Its threads end with the test program.
#[derive(Debug)]
pub struct RawServer {
    /// Where it listens.
    pub address: SocketAddr,
    requested: Arc<AtomicU64>,
}

/// State of a connection after an answer, or after what was sent instead of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    /// The next request is read.
    Next,
    /// It is closed in order.
    Close,
    /// It is reset.
    Reset,
    /// Nothing more is sent; it stays until the client closes it.
    Hold,
}

impl RawServer {
    /// Starts one that lets `response` write what follows each request without a body; it is given
    /// the number of the request since the start, from 0 on.
    pub fn start(response: impl Fn(u64, &mut TcpStream) -> Then + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", free_http_port())).expect("a port");
        let address = listener.local_addr().expect("it is bound");
        let requested = Arc::new(AtomicU64::new(0));
        let (response, counter) = (Arc::new(response), Arc::clone(&requested));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (response, counter) = (Arc::clone(&response), Arc::clone(&counter));
                thread::spawn(move || serve(stream, &*response, &counter));
            }
        });

        Self { address, requested }
    }

    /// One that writes the same bytes after each request.
    pub fn that_sends(bytes: impl Into<Vec<u8>>, then: Then) -> Self {
        let bytes = bytes.into();
        Self::start(move |_, stream| send_text(stream, &bytes, then))
    }

    /// The URL of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Requests so far.
    pub fn requested(&self) -> u64 {
        self.requested.load(Ordering::SeqCst)
    }
}

/// Writes bytes; a client that is gone is none of the server's business.
pub fn send_text(stream: &mut TcpStream, bytes: impl AsRef<[u8]>, then: Then) -> Then {
    match stream.write_all(bytes.as_ref()) {
        Ok(()) => then,
        Err(_) => Then::Close,
    }
}

fn serve(
    mut stream: TcpStream,
    response: &dyn Fn(u64, &mut TcpStream) -> Then,
    requested: &AtomicU64,
) {
    // Both fail only on a socket that is gone, which the next call notices.
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(TIMEOUT));

    while let Some(len) = next_request(&stream) {
        let then = response(requested.fetch_add(1, Ordering::SeqCst), &mut stream);
        // A socket that is closed with something unread in it sends a reset.
        if then == Then::Reset
            || stream.read_exact(&mut vec![0; len]).is_err()
            || then == Then::Close
        {
            return;
        }

        if then == Then::Hold {
            let _ = stream.read_to_end(&mut Vec::new());
            return;
        }
    }
}

/// Length of the next request, which stays in the socket; `None` at the end of the connection.
fn next_request(stream: &TcpStream) -> Option<usize> {
    let mut bytes = [0; 8192];
    let len = wait_for(TIMEOUT, || match stream.peek(&mut bytes) {
        Ok(0) | Err(_) => Some(None),
        Ok(count) => {
            let end = bytes[..count]
                .windows(4)
                .position(|four| four == b"\r\n\r\n");
            end.map(|end| Some(end + 4))
        }
    });
    len.flatten()
}
