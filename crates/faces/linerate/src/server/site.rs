//! A small HTTP/1.1 server (RFC 9112) for metrics: one request per connection, a thread
//! for each, everything bounded. A connection that asks nothing makes room for later ones, and none
//! can harm the tests.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use linerate_sys::process;
use linerate_web::wire::request::{HeadError, Request};
use linerate_web::wire::response;

/// Time for a request, and for each write of its response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections whose request or response is under way; the oldest is closed for one more.
const CONNECTIONS_MAX: usize = 16;
/// Pause after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// A host that a request names is the address of the connection or, except on loopback addresses,
/// begins with the name of this host. A page of others can make its own name resolve to this host
/// (DNS rebinding); only the name reveals that.
fn is_own(host: &str, local: SocketAddr, host_name: &str) -> bool {
    // A socket of both families has mapped addresses for IPv4 (ipv6(7)).
    let local = SocketAddr::new(local.ip().to_canonical(), local.port());
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        // The default port of http (RFC 9110, section 4.2.1).
        _ => (host, Some(80)),
    };
    if port != Some(local.port()) {
        return false;
    }

    let is_address = match name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
    {
        Some(inner) => inner.parse() == Ok(local.ip()),
        None => local.is_ipv4() && name.parse() == Ok(local.ip()),
    };
    let (own, given) = if local.ip().is_loopback() {
        ("localhost", name)
    } else {
        (first_label(host_name), first_label(name))
    };
    is_address || (!own.is_empty() && given.eq_ignore_ascii_case(own))
}

fn first_label(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// Response to a request.
type Answer = dyn Fn(&Request) -> Vec<u8> + Send + Sync;

/// Serves on a listener in a thread of its own.
///
/// # Errors
/// When there can be no thread.
pub(super) fn start(listener: TcpListener, answer: Arc<Answer>) -> io::Result<()> {
    thread::Builder::new()
        .name("linerate-site".into())
        .spawn(move || accept_all(&listener, &answer))
        .map(drop)
}

fn accept_all(listener: &TcpListener, answer: &Arc<Answer>) {
    let mut open: VecDeque<Weak<TcpStream>> = VecDeque::new();
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Without a free descriptor accept(2) fails at once and the connection stays in the
            // queue.
            thread::sleep(PAUSE);
            continue;
        };
        open.retain(|connection| connection.strong_count() > 0);

        if open.len() >= CONNECTIONS_MAX
            && let Some(oldest) = open.pop_front().and_then(|connection| connection.upgrade())
        {
            // Its thread ends at the end of the stream.
            let _ = oldest.shutdown(Shutdown::Both);
        }

        let connection = Arc::new(stream);
        let answer = Arc::clone(answer);
        open.push_back(Arc::downgrade(&connection));

        let work = move || serve(&connection, &*answer);
        // Without a thread the connection is closed; a client that fails to ask or to read harms
        // itself alone.
        let _ = thread::Builder::new()
            .name("linerate-page".into())
            .spawn(work);
    }
}

fn serve(mut stream: &TcpStream, answer: &Answer) -> io::Result<()> {
    let read = read_request(stream)?;
    let local = stream.local_addr()?;
    let response = match read {
        Ok(request) if !is_own(&request.host, local, &process::uname().node) => {
            let text = "Host names neither the address of this server nor, on other addresses than \
                        loopback, its host.";
            response::line("421 Misdirected Request", text)
        }
        Ok(request) if request.method == "GET" => answer(&request),
        Ok(_) => response::line("405 Method Not Allowed", "Only GET is understood."),
        Err(error) => response::line("400 Bad Request", &error.to_string()),
    };

    // A reader that takes nothing would hold the thread forever.
    stream.set_write_timeout(Some(TIMEOUT))?;
    stream.write_all(&response)
}

/// Reads a head. Progress does not extend the time.
fn read_request(mut stream: &TcpStream) -> io::Result<Result<Request, HeadError>> {
    let end = Instant::now() + TIMEOUT;
    let mut read = Vec::new();
    let mut chunk = [0; 1024];

    loop {
        match Request::parse(&read) {
            Ok(None) => {}
            Ok(Some((request, _))) => return Ok(Ok(request)),
            Err(error) => return Ok(Err(error)),
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }

        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => read.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_for_the_address_of_the_connection_or_the_name_of_the_host() {
        let v4 = SocketAddr::from(([127, 0, 0, 1], 8080));
        let v6: SocketAddr = "[::1]:80".parse().expect("an address");
        let lan = SocketAddr::from(([192, 0, 2, 1], 80));

        for (host, local, expected) in [
            ("127.0.0.1:8080", v4, true),
            ("localhost:8080", v4, true),
            ("127.0.0.1", v4, false),
            ("127.0.0.1:8081", v4, false),
            ("127.0.0.2:8080", v4, false),
            ("a.example:8080", v4, false),
            ("lab1:8080", v4, false),
            ("", v4, false),
            ("[::1]", v6, true),
            ("[::1]:80", v6, true),
            ("::1", v6, false),
            (
                "192.0.2.1:80",
                "[::ffff:192.0.2.1]:80".parse().expect("an address"),
                true,
            ),
            ("lab1", lan, true),
            ("LAB1.example.net", lan, true),
            ("lab12", lan, false),
            ("a.example", lan, false),
            ("localhost", lan, false),
        ] {
            let found = is_own(host, local, "lab1.example.com");
            assert_eq!(found, expected, "{host} {local}");
        }

        assert!(!is_own("", lan, ""));
    }
}
