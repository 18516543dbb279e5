//! Client of the control channel: blocking calls with timeouts.

use std::fmt;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use linerate_model::http::{EndpointStats, Reading};
use linerate_sys::{clock, socket};
use serde::de::DeserializeOwned;

use super::error::ControlError;
use super::link::{Failure, Link};
use super::message::{CellBegun, CellMark, Clock, ErrorText, Info, PROGRAM};
use super::token::Token;
use crate::target;

/// Timeout of one attempt; collecting facts takes the server a part of a second.
const TIMEOUT: Duration = Duration::from_secs(4);
/// Delays before retries, within ten seconds in total.
const RETRY_PAUSES: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(2)];
/// Timeout of all attempts together.
const TOTAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Rounds of the clock comparison; the fastest one counts.
const CLOCK_ROUNDS: u32 = 16;
/// Default port of a URL.
const PORT: u16 = 8081;

/// Offset of the server's monotonic clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClockOffset {
    /// Remote clock minus local clock.
    pub offset_ns: i64,
    /// Round-trip time of the fastest round; the offset is exact within half of it.
    pub rtt_ns: u64,
}

/// Client of one control channel. Keeps its connection open.
#[derive(Debug)]
pub struct ControlClient {
    server: SocketAddr,
    token: Option<Token>,
    connection: Option<Link>,
}

impl ControlClient {
    /// For a channel at `http://HOST[:PORT]`. Sends nothing yet.
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
        Self { server, token, connection: None }
    }

    /// Address of the channel.
    #[must_use]
    pub fn server(&self) -> SocketAddr {
        self.server
    }

    /// Identity of the server, and facts about its host on the path to `peer`, by default this host.
    ///
    /// # Errors
    /// [`ControlError::Foreign`] for other programs.
    pub fn info(&mut self, peer: Option<std::net::IpAddr>) -> Result<Info, ControlError> {
        let path = peer.map_or_else(|| "/v1/info".to_owned(), |peer| format!("/v1/info?peer={peer}"));
        self.info_at(&path, &RETRY_PAUSES)
    }

    /// As [`Self::info`], in one attempt: for a channel that may not exist.
    ///
    /// # Errors
    /// As [`Self::info`].
    pub fn info_if_there(&mut self) -> Result<Info, ControlError> {
        self.info_at("/v1/info", &[])
    }

    fn info_at(&mut self, path: &str, pauses: &[Duration]) -> Result<Info, ControlError> {
        let info: Info = parse(path, &self.exchange("GET", path, b"", pauses)?)?;
        if info.program != PROGRAM {
            return Err(ControlError::Foreign("it calls itself otherwise".to_owned()));
        }
        Ok(info)
    }

    /// Compares the monotonic clocks.
    ///
    /// # Errors
    /// Any.
    pub fn clock_offset(&mut self) -> Result<ClockOffset, ControlError> {
        let mut best: Option<ClockOffset> = None;
        for _ in 0..CLOCK_ROUNDS {
            let before = clock::monotonic_ns();
            let theirs: Clock = self.request("GET", "/v1/clock", b"")?;
            let rtt_ns = clock::monotonic_ns().saturating_sub(before);
            if best.is_none_or(|best| rtt_ns < best.rtt_ns) {
                let middle = before.saturating_add(rtt_ns / 2);
                let offset = i128::from(theirs.monotonic_ns) - i128::from(middle);
                best = Some(ClockOffset { offset_ns: i64::try_from(offset).unwrap_or(i64::MAX), rtt_ns });
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
        self.request("POST", "/v1/cell", &body)
    }

    /// Ends a cell and returns the measurements of the server.
    ///
    /// # Errors
    /// Any; [`ControlError::Refused`] with status 404 for an unknown cell.
    pub fn end_cell(&mut self, id: &str) -> Result<EndpointStats, ControlError> {
        self.request("DELETE", &format!("/v1/cell/{id}"), b"")
    }

    /// The server's last sample, in one attempt; `None` before its first.
    ///
    /// # Errors
    /// Any; [`ControlError::Refused`] with status 404 for an older server.
    pub fn last_reading(&mut self) -> Result<Option<Reading>, ControlError> {
        parse("/v1/sample", &self.exchange("GET", "/v1/sample", b"", &[])?)
    }

    /// A client of the same channel with a connection of its own.
    #[must_use]
    pub fn another(&self) -> Self {
        Self::at(self.server, self.token.clone())
    }

    /// Restarts the server's threads.
    ///
    /// # Errors
    /// Any; [`ControlError::Refused`] with status 501 without such threads.
    pub fn restart_workers(&mut self) -> Result<(), ControlError> {
        self.exchange("POST", "/v1/restart-workers", b"", &RETRY_PAUSES).map(drop)
    }

    fn request<T: DeserializeOwned>(&mut self, method: &str, path: &str, body: &[u8]) -> Result<T, ControlError> {
        parse(path, &self.exchange(method, path, body, &RETRY_PAUSES)?)
    }

    /// One request with retries after these pauses. All requests are idempotent.
    fn exchange(
        &mut self,
        method: &str,
        path: &str,
        body: &[u8],
        pauses: &[Duration],
    ) -> Result<Vec<u8>, ControlError> {
        let end = Instant::now() + TOTAL_TIMEOUT;
        let mut pauses = pauses.iter().copied();
        loop {
            let deadline = end.min(Instant::now() + TIMEOUT);
            let why = match self.attempt(method, path, body, deadline) {
                Ok(response) => return Ok(response),
                Err(Failure::Lost(why)) => why,
                Err(Failure::Final(error)) => return Err(error),
            };
            self.connection = None;
            match pauses.next().filter(|pause| Instant::now() + *pause < end) {
                Some(pause) => thread::sleep(pause),
                None => {
                    return Err(ControlError::Lost { server: self.server, why });
                }
            }
        }
    }

    fn attempt(&mut self, method: &str, path: &str, body: &[u8], deadline: Instant) -> Result<Vec<u8>, Failure> {
        let mut link = match self.connection.take() {
            Some(kept) if kept.is_idle() => kept,
            _ => Link::open(self.server, deadline)?,
        };
        let (head, response) = link.request(self.token.as_ref(), method, path, body, deadline)?;
        if head.keeps_alive {
            self.connection = Some(link);
        }
        if (200..300).contains(&head.status) {
            Ok(response)
        } else {
            Err(Failure::Final(refused(head.status, &response)))
        }
    }
}

fn parse<T: DeserializeOwned>(path: &str, response: &[u8]) -> Result<T, ControlError> {
    let foreign = |error: &dyn fmt::Display| ControlError::Foreign(format!("{path}: {error}"));
    let text = str::from_utf8(response).map_err(|error| foreign(&error))?;
    serde_json::from_str(text).map_err(|error| foreign(&error))
}

fn refused(status: u16, body: &[u8]) -> ControlError {
    if status == 401 {
        return ControlError::Unauthorized;
    }
    match parse("", body) {
        Ok(ErrorText { error }) => ControlError::Refused { status, text: error },
        Err(_) => ControlError::Foreign(format!("status {status} without a reason")),
    }
}

/// Host and port of a URL without path, user or query.
fn authority(url: &str) -> Option<(&str, u16)> {
    let authority = url.strip_prefix("http://")?;
    let (host, port) = target::split_authority(authority.strip_suffix('/').unwrap_or(authority)).ok()?;
    let port = if port.is_empty() { PORT } else { port.parse().ok()? };
    (port != 0).then_some((host, port))
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
