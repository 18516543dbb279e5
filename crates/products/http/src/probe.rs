//! The probe: one request before a load.

mod by_hyper;

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use linerate_model::http::NegotiatedProtocol;

use crate::load::response::{ReadProgress, ReaderContext, ReceivedResponse, ResponseReader};
use crate::load::{Local, opener};
use crate::protocol::Protocol;

/// Response to the probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeResult {
    /// Negotiated protocol.
    pub protocol: NegotiatedProtocol,
    /// Status code.
    pub status: u16,
    /// Bytes of the header; `None` inside TLS and in HTTP/2, where they are not counted.
    pub head_bytes: Option<u64>,
    /// Bytes of the body, without the framing of chunks.
    pub body_bytes: u64,
    /// The connection is persistent.
    pub keeps_alive: bool,
    /// `Server` field.
    pub server: Option<String>,
    /// `Location` field.
    pub location: Option<String>,
    /// From sending the request to the complete response.
    pub elapsed: Duration,
}

/// Failure of the probe.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The connection could not be opened.
    #[error("cannot connect to {0}: {text}", text = linerate_sys::error::io_text(.1))]
    Connect(SocketAddr, #[source] io::Error),
    /// The connection failed.
    #[error("no response from {0}: {text}", text = linerate_sys::error::io_text(.1))]
    Exchange(SocketAddr, #[source] io::Error),
    /// No complete response within the timeout.
    #[error("no response from {0} within {1:?}")]
    Silent(SocketAddr, Duration),
    /// The response is not HTTP.
    #[error("{0} does not respond in {1}: {2}")]
    Protocol(SocketAddr, &'static str, String),
    /// The certificate is not trusted.
    #[error(
        "{0} cannot be trusted: {1}; --cacert FILE trusts the authority in a file, --pin-sha256 \
         HEX this certificate, --insecure any"
    )]
    Untrusted(SocketAddr, String),
    /// TLS failed otherwise.
    #[error("no TLS with {0}: {1}")]
    Tls(SocketAddr, String),
    /// The request cannot be sent.
    #[error("{0}")]
    Request(String),
}

/// Destination, source and protocol of a probe.
#[derive(Debug, Clone, Copy)]
pub struct ProbeTarget<'a> {
    /// Address of the server.
    pub address: SocketAddr,
    /// Local address and port.
    pub local: Local<'a>,
    /// Protocol.
    pub protocol: &'a Protocol,
    /// Longest time to connect.
    pub connect_timeout: Duration,
    /// Longest time for what follows: the handshake of TLS, the request and its response.
    pub timeout: Duration,
}

fn connect(target: ProbeTarget<'_>) -> Result<TcpStream, ProbeError> {
    let connected = opener::connect_one(&target.local, target.address, target.connect_timeout);
    connected.map_err(|error| ProbeError::Connect(target.address, error))
}

/// Sends `request` and reads the response. A body beyond 1 GiB is an error.
///
/// # Errors
/// Failure of the probe.
pub fn send(
    target: ProbeTarget<'_>,
    request: &[u8],
    is_head: bool,
) -> Result<ProbeResult, ProbeError> {
    if target.protocol.is_plain_http1() {
        return send_plain(target, request, is_head);
    }

    by_hyper::send(target, request)
}

fn send_plain(
    target: ProbeTarget<'_>,
    request: &[u8],
    is_head: bool,
) -> Result<ProbeResult, ProbeError> {
    let ProbeTarget {
        address, timeout, ..
    } = target;
    let mut stream = connect(target)?;
    let begin = Instant::now();
    let completed = stream
        // The standard library refuses a timeout of zero.
        .set_write_timeout(Some(timeout.max(Duration::from_nanos(1))))
        .and_then(|()| stream.write_all(request))
        .and_then(|()| read(&mut stream, is_head, begin + timeout));

    let completed = completed.map(|response| ProbeResult {
        elapsed: begin.elapsed(),
        ..response
    });

    completed.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => ProbeError::Protocol(address, "HTTP/1.1", error.to_string()),
        // The kernel reports its timeout as `EAGAIN`.
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => ProbeError::Silent(address, timeout),
        _ => ProbeError::Exchange(address, error),
    })
}

fn read(stream: &mut TcpStream, is_head: bool, deadline: Instant) -> io::Result<ProbeResult> {
    let mut reader = ResponseReader::default();
    let mut context = ReaderContext::new(is_head, false);
    let mut head = Vec::new();
    let mut total = 0;
    let mut step = [0; STEP_BYTES];
    let mut buffer = Vec::new();
    let invalid =
        |why: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, why.to_string());

    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }

        // The timeout of the socket holds for one call, so it is set to what is left before each.
        stream.set_read_timeout(Some(left))?;
        let len = match stream.read(&mut step) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        // The end of the connection completes a body without a length (RFC 9112, section 6.3).
        if len == 0 {
            let response = reader.end().ok_or(io::ErrorKind::UnexpectedEof)?;
            return Ok(probe_result(&head, &response));
        }

        buffer.extend_from_slice(step.get(..len).unwrap_or_default());
        total += len as u64;
        // A foreign server can send a body without end.
        if total > BYTES_MAX {
            return Err(invalid(&"the body is larger than 1 GiB"));
        }

        // The parser keeps no fields; `Server` and `Location` are read from this copy.
        if head.len() < HEADER_KEPT_MAX && !reader.has_begun() {
            head.clone_from(&buffer);
        }

        match reader
            .feed(&buffer, &mut context)
            .map_err(|error| invalid(&error))?
        {
            ReadProgress::Complete(_, response) => return Ok(probe_result(&head, &response)),
            ReadProgress::More => buffer.clear(),
            ReadProgress::Incomplete(used) => drop(buffer.drain(..used)),
        }
    }
}

fn probe_result(head: &[u8], response: &ReceivedResponse) -> ProbeResult {
    let field = |name: &str| {
        let mut fields = [httparse::EMPTY_HEADER; crate::message::response::FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        // It has been parsed before, so the only possible error is a body that follows.
        let _ = response.parse(head);
        let found = response
            .headers
            .iter()
            .find(|field| field.name.eq_ignore_ascii_case(name));

        found.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    ProbeResult {
        protocol: NegotiatedProtocol::default(),
        status: response.status,
        head_bytes: response.head_bytes,
        body_bytes: response.body_bytes,
        keeps_alive: response.keeps_alive,
        server: field("server"),
        location: field("location"),
        elapsed: Duration::ZERO,
    }
}

/// Bytes per read.
const STEP_BYTES: usize = 16 * 1024;
const HEADER_KEPT_MAX: usize = 64 * 1024;
const BYTES_MAX: u64 = 1 << 30;

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{IpAddr, TcpListener};
    use std::thread;

    use linerate_model::http::Ports;

    use super::*;

    const LONG: Duration = Duration::from_secs(20);

    fn probe_from(local: Local<'_>, address: SocketAddr) -> Result<ProbeResult, ProbeError> {
        let target = ProbeTarget {
            address,
            local,
            protocol: &Protocol::default(),
            connect_timeout: LONG,
            timeout: LONG,
        };
        send(target, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", false)
    }

    #[test]
    fn result_has_status_server_and_location_and_the_source_address_is_used() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");

        let server = thread::spawn(move || {
            let (mut stream, client) = listener.accept().expect("a client");
            let header = "HTTP/1.1 302 Found\r\nServer: x/1\r\nLocation: \
                          http://other/\r\nContent-Length: 3\r\n\r\nabc";
            let _ = stream.write_all(header.as_bytes());
            client.ip()
        });
        let source = IpAddr::from([127, 0, 0, 9]);
        let local = Local {
            address: Some(source),
            ..Local::default()
        };
        let response = probe_from(local, address).expect("a response");
        assert_eq!(
            (response.status, response.body_bytes, response.keeps_alive),
            (302, 3, true)
        );
        assert_eq!(
            (response.server.as_deref(), response.location.as_deref()),
            (Some("x/1"), Some("http://other/"))
        );
        assert_eq!(server.join().expect("the server ends"), source);
    }

    #[test]
    fn a_silent_server_has_the_timeout_of_a_request_and_no_longer() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let short = Duration::from_millis(50);
        let protocol = Protocol::default();
        let target = ProbeTarget {
            address,
            local: Local::default(),
            protocol: &protocol,
            connect_timeout: LONG,
            timeout: short,
        };
        let silent = send(target, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", false)
            .expect_err("it does not respond");
        assert_eq!(
            silent.to_string(),
            format!("no response from {address} within 50ms")
        );
    }

    #[test]
    fn foreign_address_has_no_port() {
        for ports in [Ports::Kernel, Ports::Explicit, Ports::Auto] {
            let foreign = Local {
                address: Some(IpAddr::from([192, 0, 2, 1])),
                ports,
                ports_skipped: &[],
            };
            let refused = probe_from(foreign, SocketAddr::from(([127, 0, 0, 1], 1)))
                .expect_err("it cannot be bound");
            assert!(
                refused
                    .to_string()
                    .ends_with("Cannot assign requested address"),
                "{refused}"
            );
        }
    }
}
