//! The probe: one request before a load.

#[cfg(feature = "tls")]
mod by_hyper;
mod target;

use std::io;
use std::time::Instant;

use linerate_model::http::NegotiatedProtocol;

use crate::load::response::{ReadProgress, ReaderContext, ReceivedResponse, ResponseReader};
use crate::transport::Transport;
use target::{BYTES_MAX, connect};

pub use target::{ProbeError, ProbeResult, ProbeTarget};

/// Sends `request` and reads the response. A body beyond 1 GiB is an error.
///
/// # Errors
/// Failure of the probe.
pub fn send(target: ProbeTarget<'_>, request: &[u8], is_head: bool) -> Result<ProbeResult, ProbeError> {
    if target.protocol.is_plain_http1() {
        return send_plain(target, request, is_head);
    }
    #[cfg(feature = "tls")]
    return by_hyper::send(target, request);
    #[cfg(not(feature = "tls"))]
    Err(ProbeError::Request("this build uses neither TLS nor HTTP/2".to_owned()))
}

fn send_plain(target: ProbeTarget<'_>, request: &[u8], is_head: bool) -> Result<ProbeResult, ProbeError> {
    let ProbeTarget { address, timeout, .. } = target;
    let deadline = Instant::now() + timeout;
    let mut transport = Transport::new(connect(target)?);
    let completed = transport.send(request, deadline).and_then(|()| read(&mut transport, is_head, deadline));
    completed.map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => ProbeError::Protocol(address, "HTTP/1.1", error.to_string()),
        _ => ProbeError::Exchange(address, error),
    })
}

fn read(transport: &mut Transport, is_head: bool, deadline: Instant) -> io::Result<ProbeResult> {
    let (mut reader, mut context) = (ResponseReader::default(), ReaderContext::new(is_head, false));
    let (mut head, mut total) = (Vec::new(), 0);
    let invalid = |why: &dyn std::fmt::Display| io::Error::new(io::ErrorKind::InvalidData, why.to_string());
    loop {
        let kept_len = transport.buffer.len();
        if !transport.fill_or_end(deadline)? {
            let response = reader.end().ok_or(io::ErrorKind::UnexpectedEof)?;
            return Ok(probe_result(&head, &response));
        }
        total += (transport.buffer.len() - kept_len) as u64;
        if total > BYTES_MAX {
            return Err(invalid(&"the body is larger than 1 GiB"));
        }
        if head.len() < HEADER_KEPT_MAX && !reader.has_begun() {
            head.clone_from(&transport.buffer);
        }
        match reader.feed(&transport.buffer, &mut context).map_err(|error| invalid(&error))? {
            ReadProgress::Complete(_, response) => return Ok(probe_result(&head, &response)),
            ReadProgress::More => transport.buffer.clear(),
            ReadProgress::Incomplete(used) => drop(transport.buffer.drain(..used)),
        }
    }
}

fn probe_result(head: &[u8], response: &ReceivedResponse) -> ProbeResult {
    let field = |name: &str| {
        let mut fields = [httparse::EMPTY_HEADER; crate::message::response::FIELDS_MAX];
        let mut response = httparse::Response::new(&mut fields);
        // It has been parsed before, so the only possible error is a body that follows.
        let _ = response.parse(head);
        let found = response.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name));
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
    }
}

const HEADER_KEPT_MAX: usize = 64 * 1024;

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{IpAddr, SocketAddr, TcpListener};
    use std::thread;
    use std::time::Duration;

    use linerate_model::http::Ports;
    use linerate_sys::socket;

    use super::*;
    use crate::load::Local;
    use crate::protocol::Protocol;

    fn target(address: SocketAddr, protocol: &Protocol) -> ProbeTarget<'_> {
        ProbeTarget { address, local: Local::default(), protocol, timeout: Duration::from_secs(20) }
    }

    /// A server that reads one request and writes `response`.
    fn probe_a_server_that_sends(response: &'static [u8]) -> Result<ProbeResult, ProbeError> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut request = [0; 1024];
            let _ = stream.read(&mut request);
            let _ = stream.write_all(response);
        });
        let found = send(target(address, &Protocol::default()), b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", false);
        server.join().expect("the server ends");
        found
    }

    #[test]
    fn result_has_status_server_and_location() {
        let response = probe_a_server_that_sends(
            b"HTTP/1.1 302 Found\r\nServer: x/1\r\nLocation: http://other/\r\nContent-Length: 3\r\n\r\nabc",
        );
        let response = response.expect("a response");
        assert_eq!((response.status, response.body_bytes, response.keeps_alive), (302, 3, true));
        assert_eq!(response.server.as_deref(), Some("x/1"));
        assert_eq!(response.location.as_deref(), Some("http://other/"));
    }

    #[test]
    fn probe_uses_the_given_source_address() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let server = thread::spawn(move || {
            let (mut stream, client) = listener.accept().expect("a client");
            let _ = stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n");
            client.ip()
        });
        let (source, protocol) = (IpAddr::from([127, 0, 0, 9]), Protocol::default());
        let target =
            ProbeTarget { local: Local { address: Some(source), ..Local::default() }, ..target(address, &protocol) };
        let response = send(target, b"GET / HTTP/1.1\r\nHost: h\r\n\r\n", false);
        assert_eq!(response.expect("a response").status, 204);
        assert_eq!(server.join().expect("the server ends"), source);
    }

    #[test]
    fn foreign_address_has_no_port() {
        let protocol = Protocol::default();
        for ports in [Ports::Kernel, Ports::Explicit, Ports::Auto] {
            let foreign = Local { address: Some(IpAddr::from([192, 0, 2, 1])), ports, ports_skipped: &[] };
            let target = ProbeTarget { local: foreign, ..target(SocketAddr::from(([127, 0, 0, 1], 1)), &protocol) };
            let refused = send(target, b"", false).expect_err("it cannot be bound");
            assert!(refused.to_string().ends_with("Cannot assign requested address"), "{refused}");
        }
    }

    #[test]
    fn invalid_responses_are_distinguished() {
        assert!(matches!(probe_a_server_that_sends(b"SSH-2.0-x\r\n"), Err(ProbeError::Protocol(..))));
        assert!(matches!(probe_a_server_that_sends(b"HTTP/1.1 200 OK\r\n"), Err(ProbeError::Exchange(..))));
        // A bound socket that does not listen keeps its port closed.
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        let closed = socket::open(&loopback, socket::Protocol::Tcp).expect("a socket");
        socket::bind(&closed, &loopback).expect("a port");
        let address = socket::local_addr(&closed).expect("an address");
        let protocol = Protocol::default();
        let refused = send(target(address, &protocol), b"", false).expect_err("a closed port");
        assert_eq!(refused.to_string(), format!("cannot connect to {address}: Connection refused"));
    }
}
