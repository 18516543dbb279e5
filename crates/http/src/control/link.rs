//! Client side of one connection: requests and responses, with proofs if there is a token.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::error::{ControlError, text};
use super::proof::{self, Challenge, Exchange, Nonce};
use super::token::{self, Token};
use crate::load::{Local, opener};
use crate::message::response::{self, ResponseHeader};
use crate::transport::{TransferError, Transport};

/// Longest response.
const RESPONSE_BYTES_MAX: u64 = 1 << 20;
/// Path of nonces.
const NONCE_PATH: &str = "/v1/nonce";

/// A connection and its authentication state.
#[derive(Debug)]
pub(super) struct Link {
    server: SocketAddr,
    transport: Transport,
    /// The server's nonce, once received.
    nonce: Option<Nonce>,
    /// Authenticated requests.
    proofs: u64,
}

impl Link {
    pub(super) fn open(server: SocketAddr, deadline: Instant) -> io::Result<Self> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let stream = opener::connect_one(&Local::default(), server, left)?;
        stream.set_nodelay(true)?;
        Ok(Self { server, transport: Transport::new(stream), nonce: None, proofs: 0 })
    }

    /// Whether it can carry another request.
    pub(super) fn is_idle(&self) -> bool {
        self.transport.buffer.is_empty() && !self.transport.is_closed()
    }

    /// One request and its response.
    pub(super) fn request(
        &mut self,
        token: Option<&Token>,
        method: &str,
        path: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<(ResponseHeader, Vec<u8>), Failure> {
        let Some(token) = token else {
            let (head, _) = self.send(method, path, "", body, deadline)?;
            return Ok((head, self.response_body(&head, deadline)?));
        };
        let exchange = self.next_exchange(deadline)?;
        let proof = exchange.of_request(token, method, path, body);
        let field = format!("Authorization: Linerate nonce={}, proof={proof}\r\n", exchange.client);
        let (head, given) = self.send(method, path, &field, body, deadline)?;
        let response = self.response_body(&head, deadline)?;
        let expected = exchange.of_response(token, head.status, &response);
        let is_proved = given.is_some_and(|given| token::is_same(&expected, &given));
        match (is_proved, head.status) {
            (true, _) => Ok((head, response)),
            (false, 401) => Err(Failure::Final(ControlError::Unauthorized)),
            (false, _) => Err(Failure::Final(ControlError::Unproved)),
        }
    }

    /// Nonces of the next request; requests that of the server first.
    fn next_exchange(&mut self, deadline: Instant) -> Result<Exchange, Failure> {
        let server = match self.nonce.take() {
            Some(known) => known,
            None => {
                let (head, _) = self.send("GET", NONCE_PATH, "", b"", deadline)?;
                let response = self.response_body(&head, deadline)?;
                let challenge = serde_json::from_str::<Challenge>(&String::from_utf8_lossy(&response)).ok();
                let challenge = challenge.filter(|_| head.status == 200 && head.keeps_alive);
                challenge.ok_or(Failure::Final(ControlError::Unproved))?.nonce
            }
        };
        self.nonce = Some(server.clone());
        self.proofs += 1;
        Ok(Exchange { server, client: Nonce::fresh()?, number: self.proofs })
    }

    /// Sends a request with one additional field; reads the header of its response and the proof in it.
    fn send(
        &mut self,
        method: &str,
        path: &str,
        field: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<(ResponseHeader, Option<Vec<u8>>), Failure> {
        let (server, length) = (self.server, body.len());
        let head = format!("{method} {path} HTTP/1.1\r\nHost: {server}\r\n{field}Content-Length: {length}\r\n\r\n");
        let mut message = head.into_bytes();
        message.extend(body);
        self.transport.send(&message, deadline)?;
        loop {
            let buffer = &mut self.transport.buffer;
            match response::parse(buffer, false) {
                Ok(Some(head)) => {
                    let bytes: Vec<u8> = buffer.drain(..head.len.min(buffer.len())).collect();
                    if !head.is_interim() {
                        return Ok((head, proof::read_response(&bytes)));
                    }
                }
                Ok(None) => self.transport.fill(deadline)?,
                Err(error) => return Err(Failure::Final(ControlError::Foreign(error.to_string()))),
            }
        }
    }

    fn response_body(&mut self, head: &ResponseHeader, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let body = self.transport.body(head.framing, RESPONSE_BYTES_MAX, deadline);
        body.map_err(|error| match error {
            TransferError::Io(error) => Failure::from(error),
            other => Failure::Final(ControlError::Foreign(other.to_string())),
        })
    }
}

/// Why an attempt failed.
pub(super) enum Failure {
    /// A retry may succeed.
    Lost(String),
    /// A retry would fail as well.
    Final(ControlError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Lost(text(&error))
    }
}
