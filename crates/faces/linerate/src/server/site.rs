//! A small HTTP/1.1 server (RFC 9112) for metrics: one request per connection, a thread
//! for each, everything bounded. A connection that asks nothing makes room for later ones, and none
//! can harm the tests.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// Longest request that is read.
const REQUEST_BYTES_MAX: usize = 8 * 1024;
/// Time for a request, and for each write of its response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Connections whose request or response is under way; the oldest is closed for one more.
const CONNECTIONS_MAX: usize = 16;
/// Pause after the system had no descriptor for a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// A request as far as pages need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request<'a> {
    pub(super) method: &'a str,
    pub(super) path: &'a str,
    /// `None` for none, and for more than one.
    pub(super) host: Option<&'a str>,
    /// The end of the connection at this host.
    local: SocketAddr,
}

impl Request<'_> {
    /// `Host` is the address of the connection or, except on loopback addresses, begins with the
    /// name of this host. A page of others can make its own name resolve to this host (DNS
    /// rebinding); only the name reveals that.
    fn is_for(&self, host_name: &str) -> bool {
        let Some(host) = self.host else { return false };
        // A socket of both families has mapped addresses for IPv4 (ipv6(7)).
        let local = SocketAddr::new(self.local.ip().to_canonical(), self.local.port());
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
        let own_name = if local.ip().is_loopback() {
            "localhost"
        } else {
            first_label(host_name)
        };

        let given = if local.ip().is_loopback() {
            name
        } else {
            first_label(name)
        };
        is_address || (!own_name.is_empty() && given.eq_ignore_ascii_case(own_name))
    }
}

/// The name of this host (uname(2)); empty where procfs does not tell it.
fn host_name() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn first_label(name: &str) -> &str {
    name.split('.').next().unwrap_or_default()
}

/// A response: status, fields, each with its line end, and body.
pub(super) struct Answer {
    pub(super) status: &'static str,
    pub(super) fields: String,
    pub(super) body: String,
}

impl Answer {
    /// A line of text.
    pub(super) fn line(status: &'static str, text: &str) -> Self {
        let fields = "Content-Type: text/plain; charset=utf-8\r\n".to_owned();
        Self {
            status,
            fields,
            body: format!("{text}\n"),
        }
    }
}

/// The pages that are served.
pub(super) trait Site: Send + Sync {
    fn answer(&self, request: &Request<'_>) -> Answer;
}

/// Serves on a listener in a thread of its own.
///
/// # Errors
/// When there can be no thread.
pub(super) fn start(listener: TcpListener, site: Arc<dyn Site>) -> io::Result<()> {
    thread::Builder::new()
        .name("linerate-site".into())
        .spawn(move || accept_all(&listener, &site))
        .map(drop)
}

fn accept_all(listener: &TcpListener, site: &Arc<dyn Site>) {
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
        let site = Arc::clone(site);
        open.push_back(Arc::downgrade(&connection));

        let work = move || serve(&connection, &*site);
        // Without a thread the connection is closed; a client that fails to ask or to read harms
        // itself alone.
        let _ = thread::Builder::new()
            .name("linerate-page".into())
            .spawn(work);
    }
}

fn serve(mut stream: &TcpStream, site: &dyn Site) -> io::Result<()> {
    let bytes = read_request(stream)?;
    let local = stream.local_addr()?;
    let answer = match parse(&bytes, local) {
        Some(request) if !request.is_for(&host_name()) => {
            let text = "Host names neither the address of this server nor, on other addresses than \
                        loopback, its host.";
            Answer::line("421 Misdirected Request", text)
        }
        Some(request) if request.method == "GET" => site.answer(&request),
        Some(_) => Answer::line("405 Method Not Allowed", "Only GET is understood."),
        None => Answer::line("400 Bad Request", "This is no HTTP/1.1 request."),
    };

    // A reader that takes nothing would hold the thread forever.
    stream.set_write_timeout(Some(TIMEOUT))?;
    let Answer {
        status,
        fields,
        body,
    } = answer;
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\nAllow: GET\r\nConnection: \
         close\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}

/// Reads up to the empty line. Progress does not extend the time.
fn read_request(mut stream: &TcpStream) -> io::Result<Vec<u8>> {
    let end = Instant::now() + TIMEOUT;
    let mut request = Vec::new();
    let mut chunk = [0; 1024];

    while !request.windows(4).any(|w| w == b"\r\n\r\n") {
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > REQUEST_BYTES_MAX {
            return Err(io::ErrorKind::TimedOut.into());
        }

        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => request.extend_from_slice(chunk.get(..n).unwrap_or_default()),
        }
    }

    Ok(request)
}

fn parse(request: &[u8], local: SocketAddr) -> Option<Request<'_>> {
    let text = std::str::from_utf8(request).ok()?;
    let mut lines = text.split("\r\n");
    let mut parts = lines.next()?.split(' ');
    let (method, target, version) = (parts.next()?, parts.next()?, parts.next()?);
    // HTTP/0.9 has no version, and later ones have another framing.
    if parts.next().is_some() || !version.starts_with("HTTP/1.") {
        return None;
    }

    let path = target.split('?').next()?;
    let fields: Vec<(&str, &str)> = lines
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_once(':'))
        .collect();
    let only = |wanted: &str| {
        let mut values = fields
            .iter()
            .filter(|(name, _)| name.eq_ignore_ascii_case(wanted));
        let first = values.next()?.1.trim();
        // A repeated field has no single meaning; two Host fields are an error (RFC 9112, section
        // 3.2).
        values.next().is_none().then_some(first)
    };
    let host = only("Host");

    Some(Request {
        method,
        path,
        host,
        local,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local() -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 80))
    }

    #[test]
    fn only_requests_are_taken_for_requests() {
        type Row = (&'static [u8], Option<(&'static str, &'static str)>);

        let rows: &[Row] = &[
            (
                b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
                Some(("GET", "/metrics")),
            ),
            (
                b"GET /metrics?name=x HTTP/1.0\r\n\r\n",
                Some(("GET", "/metrics")),
            ),
            (
                b"POST /metrics HTTP/1.1\r\n\r\n",
                Some(("POST", "/metrics")),
            ),
            (b"GET /metrics\r\n\r\n", None),
            (b"GET /a b HTTP/1.1\r\n\r\n", None),
            (b"\xff\xfe\r\n\r\n", None),
            (b"\r\n\r\n", None),
        ];
        for (request, expected) in rows {
            let found = parse(request, local()).map(|request| (request.method, request.path));
            assert_eq!(found, *expected, "{request:?}");
        }
    }

    #[test]
    fn a_field_that_comes_twice_is_none() {
        let request =
            parse(b"GET /a?b=c HTTP/1.1\r\nhost: x:1\r\n\r\n", local()).expect("a request");
        assert_eq!((request.path, request.host), ("/a", Some("x:1")));
        let request =
            parse(b"GET / HTTP/1.1\r\nHost: x\r\nHOST: y\r\n\r\n", local()).expect("a request");
        assert_eq!(request.host, None);
    }

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
            let bytes = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
            let request = parse(bytes.as_bytes(), local).expect("a request");
            assert_eq!(
                request.is_for("lab1.example.com"),
                expected,
                "{host} {local}"
            );
        }

        let nameless = parse(b"GET / HTTP/1.1\r\nHost: \r\n\r\n", lan).expect("a request");
        assert!(!nameless.is_for(""));
    }
}
