//! The client of the control channel: blocking calls, each with an end.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::http::SideFigures;
use linerate_sys::{clock, socket};
use serde::de::DeserializeOwned;

use super::link::{Failure, Link};
use super::message::{CellBegun, CellMark, Clock, ErrorText, Info, PROGRAM};
use super::token::Token;

/// Time for one request and its answer; looking at a host takes the server a part of a second.
const PATIENCE: Duration = Duration::from_secs(4);
/// Pauses before a request is made once more, all of them within ten seconds.
const RETRY_PAUSES: [Duration; 3] = [
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(2),
];
/// All attempts together.
const PATIENCE_ALL: Duration = Duration::from_secs(10);
/// Rounds of which the quickest tells the difference of two clocks.
const CLOCK_ROUNDS: u32 = 16;
/// Where a URL names no port.
const PORT: u16 = 8081;

/// Why the control channel gave no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// The address cannot be understood or resolved.
    #[error("{0}")]
    Address(String),
    /// Nobody answered, however often.
    #[error("the control channel at {server} does not answer: {why}")]
    Lost {
        /// Where.
        server: SocketAddr,
        /// The last attempt's failure.
        why: String,
    },
    /// The secret is missing or wrong.
    #[error("the control channel refuses the token; give the one the server printed")]
    Unauthorized,
    /// Whoever answers does not show that it knows the secret. It has not learned it.
    #[error("whoever answers as the control channel does not know the token")]
    Unproved,
    /// The server understood and refused.
    #[error("the control channel refuses: {text} (status {status})")]
    Refused {
        /// Status code.
        status: u16,
        /// Its words.
        text: String,
    },
    /// Whoever answers is no linerate, or of another kind.
    #[error("whoever answers is no control channel of linerate: {0}")]
    Foreign(String),
}

/// How far the server's monotonic clock is from ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Their clock minus ours.
    pub offset_ns: i64,
    /// Round-trip time of the quickest round; the offset is off by half of it at most.
    pub rtt_ns: u64,
}

/// A client of one control channel. Keeps a connection while it can.
#[derive(Debug)]
pub struct ControlClient {
    server: SocketAddr,
    token: Option<Token>,
    connection: Option<Link>,
}

impl ControlClient {
    /// For a channel at `http://HOST[:PORT]`. Nothing is sent yet.
    ///
    /// # Errors
    /// [`ControlError::Address`].
    pub fn new(url: &str, token: Option<Token>) -> Result<Self, ControlError> {
        let (host, port) = authority(url).ok_or_else(|| {
            ControlError::Address(format!("{url:?} is no control channel: expected http://HOST:PORT"))
        })?;
        let found = socket::resolve(host, port, None).map_err(|error| ControlError::Address(error.to_string()))?;
        let server = found.first().copied();
        let server = server.ok_or_else(|| ControlError::Address(format!("{host} has no address")))?;
        Ok(Self::at(server, token))
    }

    /// For a channel at an address.
    #[must_use]
    pub fn at(server: SocketAddr, token: Option<Token>) -> Self {
        Self {
            server,
            token,
            connection: None,
        }
    }

    /// Where the channel is.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Who answers, and what its host is like on the way to `peer`, by default to whoever asks.
    ///
    /// # Errors
    /// [`ControlError::Foreign`] when that is no linerate.
    pub fn info(&mut self, peer: Option<std::net::IpAddr>) -> Result<Info, ControlError> {
        let path = peer.map_or_else(|| "/v1/info".to_owned(), |peer| format!("/v1/info?peer={peer}"));
        let info: Info = self.ask("GET", &path, b"")?;
        if info.program != PROGRAM {
            return Err(ControlError::Foreign("it calls itself otherwise".to_owned()));
        }
        Ok(info)
    }

    /// As [`Self::info`], with one attempt: for a channel that may well not be there.
    ///
    /// # Errors
    /// As [`Self::info`].
    pub fn info_if_there(&mut self) -> Result<Info, ControlError> {
        let answer = self.exchange_with("GET", "/v1/info", b"", &[])?;
        let info: Info = serde_json::from_slice(&answer).map_err(|error| ControlError::Foreign(error.to_string()))?;
        if info.program != PROGRAM {
            return Err(ControlError::Foreign("it calls itself otherwise".to_owned()));
        }
        Ok(info)
    }

    /// How far the two monotonic clocks are apart.
    ///
    /// # Errors
    /// Any.
    pub fn clock_offset(&mut self) -> Result<ClockOffset, ControlError> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..CLOCK_ROUNDS {
            let before = clock::monotonic_ns();
            let theirs: Clock = self.ask("GET", "/v1/clock", b"")?;
            let rtt_ns = clock::monotonic_ns().saturating_sub(before);
            if best.is_none_or(|best| rtt_ns < best.rtt_ns) {
                let middle = before.saturating_add(rtt_ns / 2);
                let offset = i128::from(theirs.monotonic_ns) - i128::from(middle);
                best = Some(ClockOffset {
                    offset_ns: i64::try_from(offset).unwrap_or(i64::MAX),
                    rtt_ns,
                });
            }
        }
        best.ok_or_else(|| ControlError::Foreign("no clock".to_owned()))
    }

    /// Begins a cell.
    ///
    /// # Errors
    /// Any.
    pub fn begin_cell(&mut self, mark: &CellMark) -> Result<CellBegun, ControlError> {
        let body = serde_json::to_vec(mark).unwrap_or_default();
        self.ask("POST", "/v1/cell", &body)
    }

    /// Ends a cell: what it cost the server.
    ///
    /// # Errors
    /// Any; [`ControlError::Refused`] with status 404 for a cell that did not begin there.
    pub fn end_cell(&mut self, id: &str) -> Result<SideFigures, ControlError> {
        self.ask("DELETE", &format!("/v1/cell/{id}"), b"")
    }

    /// Makes the server's threads as if newly started.
    ///
    /// # Errors
    /// Any; [`ControlError::Refused`] with status 501 where there is nothing to restart.
    pub fn restart_workers(&mut self) -> Result<(), ControlError> {
        self.exchange("POST", "/v1/restart-workers", b"").map(drop)
    }

    fn ask<T: DeserializeOwned>(&mut self, method: &str, path: &str, body: &[u8]) -> Result<T, ControlError> {
        let answer = self.exchange(method, path, body)?;
        serde_json::from_slice(&answer).map_err(|error| ControlError::Foreign(format!("{path}: {error}")))
    }

    /// One request, made again while it gets lost. All requests may be made twice.
    fn exchange(&mut self, method: &str, path: &str, body: &[u8]) -> Result<Vec<u8>, ControlError> {
        self.exchange_with(method, path, body, &RETRY_PAUSES)
    }

    fn exchange_with(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        pauses: &[Duration],
    ) -> Result<Vec<u8>, ControlError> {
        let end = Instant::now() + PATIENCE_ALL;
        let mut pauses = pauses.iter().copied();
        loop {
            let deadline = end.min(Instant::now() + PATIENCE);
            let why = match self.attempt(method, path, body, deadline) {
                Ok(answer) => return Ok(answer),
                Err(Failure::Lost(why)) => why,
                Err(Failure::Final(error)) => return Err(error),
            };
            self.connection = None;
            match pauses.next().filter(|pause| Instant::now() + *pause < end) {
                Some(pause) => thread::sleep(pause),
                None => {
                    return Err(ControlError::Lost {
                        server: self.server,
                        why,
                    });
                }
            }
        }
    }

    fn attempt(&mut self, method: &str, path: &str, body: &[u8], deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut link = match self.connection.take() {
            Some(kept) if kept.is_idle() => kept,
            _ => Link::open(self.server, deadline)?,
        };
        let (head, answer) = link.request(self.token.as_ref(), method, path, body, deadline)?;
        if head.keeps_alive {
            self.connection = Some(link);
        }
        if (200..300).contains(&head.status) {
            Ok(answer)
        } else {
            Err(Failure::Final(refused(head.status, &answer)))
        }
    }
}

/// Why a connection broke, in words.
pub(super) fn text(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        io::ErrorKind::UnexpectedEof => "the connection was closed".to_owned(),
        _ => linerate_sys::error::io_text(error),
    }
}

fn refused(status: u16, body: &[u8]) -> ControlError {
    if status == 401 {
        return ControlError::Unauthorized;
    }
    match serde_json::from_slice::<ErrorText>(body) {
        Ok(ErrorText { error }) => ControlError::Refused { status, text: error },
        Err(_) => ControlError::Foreign(format!("status {status} without a reason")),
    }
}

/// Host and port of a URL without path, user or query.
fn authority(url: &str) -> Option<(&str, u16)> {
    let rest = url.strip_prefix("http://")?;
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    if authority.is_empty() || authority.contains(['/', '?', '#', '@', ' ']) {
        return None;
    }
    let (host, port) = match authority.strip_prefix('[') {
        Some(bracketed) => {
            let (host, behind) = bracketed.split_once(']')?;
            (
                host,
                if behind.is_empty() {
                    None
                } else {
                    Some(behind.strip_prefix(':')?)
                },
            )
        }
        None => match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        },
    };
    let port = port.map_or(Some(PORT), |port| port.parse().ok())?;
    (!host.is_empty() && port != 0).then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_name_a_host_and_a_port() {
        let rows = [
            ("http://h", Some(("h", 8081))),
            ("http://10.9.0.2:9000/", Some(("10.9.0.2", 9000))),
            ("http://[::1]:9000", Some(("::1", 9000))),
            ("http://[::1]", Some(("::1", 8081))),
            ("https://h", None),
            ("h:1", None),
            ("http://", None),
            ("http://:1", None),
            ("http://h:0", None),
            ("http://h:x", None),
            ("http://h:70000", None),
            ("http://u@h", None),
            ("http://h/v1", None),
            ("http://[::1", None),
            ("http://[::1]9", None),
        ];
        for (url, expected) in rows {
            assert_eq!(authority(url), expected, "{url}");
        }
    }
}
