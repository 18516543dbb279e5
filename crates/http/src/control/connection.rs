//! Server side of one connection of the control channel.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

use super::agent::Agent;
use super::proof::{self, Challenge, Exchange, Nonce};
use super::route::{self, ControlResponse};
use super::session::Session;
use super::token::{self, Token};
use crate::message::body::BodyError;
use crate::message::framing::BodyFraming;
use crate::message::request::{RequestHeader, Target};
use crate::message::{chunked, reason};
use crate::transport::{TransferError, Transport};

/// Timeout of a request from its first byte or from the start of the connection, and of its response.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Idle timeout of an authenticated connection.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);
/// Time for the last response to arrive.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// Longest request body.
const BODY_BYTES_MAX: u64 = 64 << 10;
/// Interval at which an idle stream of samples checks its client.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Serves a connection until either end closes it.
pub(super) fn serve(transport: Transport, peer: IpAddr, token: Option<&Token>, agent: &dyn Agent, session: &Session) {
    let mut connection = Connection { transport, peer, token, agent, session, nonce: None, proofs: 0, exchange: None };
    connection.serve();
    connection.transport.close(Instant::now() + CLOSE_TIMEOUT);
}

struct Connection<'a> {
    transport: Transport,
    peer: IpAddr,
    token: Option<&'a Token>,
    agent: &'a dyn Agent,
    session: &'a Session,
    /// The server's nonce, once requested.
    nonce: Option<Nonce>,
    /// Authenticated requests.
    proofs: u64,
    /// Nonces of the current request, if it carried a proof.
    exchange: Option<Exchange>,
}

/// Why a connection ends.
enum End {
    /// After this response.
    Refused(ControlResponse),
    /// It is broken, which concerns its client alone.
    Broken,
}

impl From<io::Error> for End {
    fn from(_: io::Error) -> Self {
        Self::Broken
    }
}

impl From<TransferError> for End {
    fn from(error: TransferError) -> Self {
        match error {
            TransferError::Body(BodyError::TooLarge(max)) => {
                Self::refused(413, format!("a body has at most {max} bytes"))
            }
            TransferError::Body(error) => Self::refused(400, error.to_string()),
            TransferError::Io(error) => Self::unread(&error),
        }
    }
}

impl End {
    fn refused(status: u16, why: impl Into<String>) -> Self {
        Self::Refused(ControlResponse::refusal(status, why))
    }

    fn unauthorized() -> Self {
        Self::refused(401, "the token is missing or wrong")
    }

    /// A request could not be read.
    fn unread(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::TimedOut => Self::refused(408, "the request did not arrive in time"),
            _ => Self::Broken,
        }
    }
}

impl Connection<'_> {
    fn serve(&mut self) {
        loop {
            let served = match self.serve_request() {
                Err(End::Refused(response)) => self.reply(response, false),
                served => served,
            };
            if !matches!(served, Ok(true)) || self.session.is_closing() {
                return;
            }
            self.exchange = None;
        }
    }

    /// Reads and serves one request; `false` when it was the last.
    fn serve_request(&mut self) -> Result<bool, End> {
        if self.transport.buffer.is_empty() && self.session.is_authenticated() {
            self.transport.fill(Instant::now() + IDLE_TIMEOUT)?;
        }
        let deadline = Instant::now() + TIMEOUT;
        loop {
            // The parsed header borrows the bytes, and the body is appended to the buffer.
            let bytes = self.transport.buffer.clone();
            match RequestHeader::parse(&bytes).map_err(|error| End::refused(error.status(), error.to_string()))? {
                Some(head) => {
                    self.transport.buffer.drain(..head.len.min(bytes.len()));
                    return self.handle(&head, deadline);
                }
                None => self.transport.fill(deadline).map_err(|error| End::unread(&error))?,
            }
        }
    }

    fn handle(&mut self, head: &RequestHeader<'_>, deadline: Instant) -> Result<bool, End> {
        let stays_open = head.keep_alive && head.is_http11;
        if head.has_origin {
            // Web pages have no access, not even with a token known to the user's browser.
            return Err(End::refused(403, "requests of a web page (with Origin) are refused"));
        }
        if self.token.is_none() && head.host.is_some_and(|host| !is_address(host)) {
            let why = "without a token, Host must be an IP address or localhost";
            return Err(End::refused(421, why));
        }
        if self.token.is_some() && self.nonce.is_none() && is_for_nonce(head) {
            let nonce = self.nonce.insert(Nonce::fresh()?).clone();
            return self.reply(ControlResponse::json(200, &Challenge { nonce }), stays_open);
        }
        let given = head.authorization.unwrap_or_default();
        let claim = proof::read_authorization(given).filter(|_| self.nonce.is_some());
        if self.token.is_some_and(|token| claim.is_none() && !token.is_in(given)) {
            // Without a token the body is not read.
            return Err(End::unauthorized());
        }
        if head.expects_continue && head.framing != BodyFraming::None {
            self.transport.send(b"HTTP/1.1 100 Continue\r\n\r\n", deadline)?;
        }
        let body = self.transport.body(head.framing, BODY_BYTES_MAX, deadline)?;
        if claim.is_some_and(|(client, given)| !self.is_proved(head, &body, client, given)) {
            return Err(End::unauthorized());
        }
        self.session.authenticate();
        match route::response(head, &body, self.peer, self.agent) {
            // Only HTTP/1.1 has the chunked coding, which an endless response needs.
            ControlResponse::Samples(_) if !head.is_http11 => {
                Err(End::refused(505, "a stream of readings takes HTTP/1.1"))
            }
            ControlResponse::Samples(from) => Ok(self.stream(from).map(|()| false)?),
            response => self.reply(response, stays_open),
        }
    }

    /// Checks the proof of a request; its response carries one as well.
    fn is_proved(&mut self, head: &RequestHeader<'_>, body: &[u8], client: Nonce, given: &[u8]) -> bool {
        let (Some(token), Some(server)) = (self.token, self.nonce.clone()) else {
            return self.token.is_none();
        };
        self.proofs += 1;
        let exchange = Exchange { server, client, number: self.proofs };
        let expected = exchange.of_request(token, head.method, &target_of(head), body);
        let is_proved = token::is_same(&expected, given);
        self.exchange = Some(exchange).filter(|_| is_proved);
        is_proved
    }

    /// The field that proves a response to a client that proved its request.
    fn proof_field(&self, status: u16, body: &[u8]) -> String {
        let proof = self.token.zip(self.exchange.as_ref());
        let proof = proof.map(|(token, exchange)| exchange.of_response(token, status, body));
        proof.map_or_else(String::new, |proof| format!("Authentication-Info: proof={proof}\r\n"))
    }

    /// Sends a response; returns whether the connection stays open.
    fn reply(&mut self, response: ControlResponse, stays_open: bool) -> Result<bool, End> {
        let ControlResponse::Complete(status, body) = response else {
            return Ok(false);
        };
        let mut message = header_of(status) + &self.proof_field(status, &body);
        if status != 204 {
            let length = body.len();
            message += &format!("Content-Type: application/json\r\nContent-Length: {length}\r\n");
        }
        message.push_str(if stays_open { "\r\n" } else { "Connection: close\r\n\r\n" });
        let mut message = message.into_bytes();
        message.extend(body);
        self.transport.send(&message, Instant::now() + TIMEOUT)?;
        Ok(stays_open)
    }

    fn stream(&mut self, mut from: u64) -> io::Result<()> {
        let head = header_of(200)
            + &self.proof_field(200, b"")
            + "Content-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n";
        self.transport.send(head.as_bytes(), Instant::now() + TIMEOUT)?;
        while !self.session.is_closing() {
            let readings = self.agent.readings(from, POLL_INTERVAL);
            // A closing channel shuts down reading, and still ends the stream in order.
            if readings.is_empty() && self.transport.is_closed() && !self.session.is_closing() {
                return Ok(());
            }
            let mut lines = Vec::new();
            for reading in readings {
                from = reading.sequence.saturating_add(1);
                lines.extend(serde_json::to_vec(&reading)?);
                lines.push(b'\n');
            }
            if !lines.is_empty() {
                let mut chunk = chunked::head(lines.len() as u64).into_bytes();
                chunk.extend(lines);
                chunk.extend(b"\r\n");
                self.transport.send(&chunk, Instant::now() + TIMEOUT)?;
            }
        }
        self.transport.send(chunked::LAST_CHUNK, Instant::now() + TIMEOUT)
    }
}

fn is_for_nonce(head: &RequestHeader<'_>) -> bool {
    let target = Target::Path { path: "/v1/nonce", query: "" };
    (head.method, head.target) == ("GET", target) && head.framing == BodyFraming::None
}

/// The target in the form in which our client sends it.
fn target_of(head: &RequestHeader<'_>) -> String {
    match head.target {
        Target::Path { path, query: "" } => path.to_owned(),
        Target::Path { path, query } => format!("{path}?{query}"),
        Target::Server => "*".to_owned(),
    }
}

fn header_of(status: u16) -> String {
    let challenge = if status == 401 { "WWW-Authenticate: Bearer, Linerate\r\n" } else { "" };
    let reason = reason(status);
    format!("HTTP/1.1 {status} {reason}\r\nCache-Control: no-store\r\n{challenge}")
}

/// Whether `Host` is an IP address or `localhost`, with or without a port. A web page can make its own name resolve to any
/// host its visitor can reach (DNS rebinding). Without a token only the name in `Host` reveals that.
fn is_address(host: &[u8]) -> bool {
    let Ok(host) = str::from_utf8(host) else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let bracketed = name.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    match bracketed {
        Some(inner) => inner.parse::<Ipv6Addr>().is_ok(),
        None => name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_token_only_addresses_and_localhost_pass() {
        for host in
            ["127.0.0.1", "127.0.0.1:8081", "192.0.2.7:1", "[::1]", "[2001:db8::1]:80", "localhost", "LOCALHOST:80"]
        {
            assert!(is_address(host.as_bytes()), "{host}");
        }
        for host in [
            "",
            "a",
            "rebound.example",
            "rebound.example:8081",
            "localhost.example",
            "127.0.0.1.example",
            "::1",
            "[::1",
            ":80",
            "127.0.0.1:x",
        ] {
            assert!(!is_address(host.as_bytes()), "{host}");
        }
    }
}
