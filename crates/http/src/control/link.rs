//! One connection of a client: requests and their answers, with proofs where there is a secret.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::client::{ControlError, text};
use super::proof::{self, Challenge, Exchange, Nonce};
use super::token::{self, Token};
use super::transport::{BodyError, Transport};
use crate::load::{Local, single};
use crate::message::response::{self, ResponseHead};

/// Longest answer.
const ANSWER_BYTES_MAX: usize = 1 << 20;
/// Where a server gives nonces.
const NONCE_PATH: &str = "/v1/nonce";

/// A connection, and what proofs on it depend on.
#[derive(Debug)]
pub(super) struct Link {
    server: SocketAddr,
    transport: Transport,
    /// The server's, once it was asked for.
    nonce: Option<Nonce>,
    /// Requests with a proof.
    proofs: u64,
}

impl Link {
    pub(super) fn open(server: SocketAddr, deadline: Instant) -> io::Result<Self> {
        let left = deadline
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        let stream = single::connect(&Local::default(), server, left)?;
        stream.set_nodelay(true)?;
        Ok(Self {
            server,
            transport: Transport::new(stream),
            nonce: None,
            proofs: 0,
        })
    }

    /// Whether it can take another request.
    pub(super) fn is_idle(&self) -> bool {
        self.transport.buffer.is_empty() && !self.transport.is_closed()
    }

    /// One request and its answer.
    pub(super) fn request(
        &mut self,
        token: Option<&Token>,
        method: &str,
        path: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<(ResponseHead, Vec<u8>), Failure> {
        let Some(token) = token else {
            let (head, _) = self.send(method, path, "", body, deadline)?;
            return Ok((head, self.answer_body(&head, deadline)?));
        };
        let exchange = self.next_exchange(deadline)?;
        let proof = exchange.of_request(token, method, path, body);
        let field = format!("Authorization: Linerate nonce={}, proof={proof}\r\n", exchange.client);
        let (head, shown) = self.send(method, path, &field, body, deadline)?;
        let answer = self.answer_body(&head, deadline)?;
        let expected = exchange.of_answer(token, head.status, &answer);
        let is_proved = shown.is_some_and(|shown| token::is_same(&expected, &shown));
        match (is_proved, head.status) {
            (true, _) => Ok((head, answer)),
            (false, 401) => Err(Failure::Final(ControlError::Unauthorized)),
            (false, _) => Err(Failure::Final(ControlError::Unproved)),
        }
    }

    /// What the next proofs are about; asks for the server's nonce first.
    fn next_exchange(&mut self, deadline: Instant) -> Result<Exchange, Failure> {
        let server = match self.nonce.take() {
            Some(known) => known,
            None => {
                let (head, _) = self.send("GET", NONCE_PATH, "", b"", deadline)?;
                let answer = self.answer_body(&head, deadline)?;
                let challenge = serde_json::from_slice::<Challenge>(&answer).ok();
                let challenge = challenge.filter(|_| head.status == 200 && head.keeps_alive);
                challenge.ok_or(Failure::Final(ControlError::Unproved))?.nonce
            }
        };
        self.nonce = Some(server.clone());
        self.proofs += 1;
        Ok(Exchange {
            server,
            client: Nonce::fresh()?,
            number: self.proofs,
        })
    }

    /// Sends a request with one more field and reads the head of its answer, and the proof in it.
    fn send(
        &mut self,
        method: &str,
        path: &str,
        field: &str,
        body: &[u8],
        deadline: Instant,
    ) -> Result<(ResponseHead, Option<Vec<u8>>), Failure> {
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
                        return Ok((head, proof::read_answer(&bytes)));
                    }
                }
                Ok(None) => self.transport.fill(deadline)?,
                Err(error) => return Err(Failure::Final(ControlError::Foreign(error.to_string()))),
            }
        }
    }

    fn answer_body(&mut self, head: &ResponseHead, deadline: Instant) -> Result<Vec<u8>, Failure> {
        let body = self.transport.body(head.framing, ANSWER_BYTES_MAX, deadline);
        body.map_err(|error| match error {
            BodyError::Io(error) => Failure::from(error),
            other => Failure::Final(ControlError::Foreign(other.to_string())),
        })
    }
}

/// Why one attempt failed.
pub(super) enum Failure {
    /// Another may not.
    Lost(String),
    /// Any other would as well.
    Final(ControlError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Lost(text(&error))
    }
}
