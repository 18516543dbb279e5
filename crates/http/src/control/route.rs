//! Dispatches requests.

use std::net::IpAddr;

use linerate_sys::clock;
use serde::Serialize;

use super::agent::{Agent, Refusal};
use super::message::{CellMark, Clock, ErrorText};
use crate::message::request::{RequestHeader, Target};

/// A response.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ControlResponse {
    /// Status and JSON body, possibly empty.
    Complete(u16, Vec<u8>),
    /// Endless stream of samples from this number on, one line each.
    Samples(u64),
}

impl ControlResponse {
    /// An error response.
    pub(super) fn refusal(status: u16, why: impl Into<String>) -> Self {
        Self::json(status, &ErrorText { error: why.into() })
    }

    pub(super) fn json(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::Complete(status, body),
            Err(_) => Self::Complete(500, Vec::new()),
        }
    }

    fn of<T: Serialize>(found: Result<T, Refusal>) -> Self {
        match found {
            Ok(value) => Self::json(200, &value),
            Err(refusal) => Self::refusal(refusal.status(), refusal.to_string()),
        }
    }
}

/// Handles an authenticated request.
pub(super) fn response(head: &RequestHeader<'_>, body: &[u8], peer: IpAddr, agent: &dyn Agent) -> ControlResponse {
    let Target::Path { path, query } = head.target else {
        return ControlResponse::refusal(
            404,
            "requests are about /v1/info, clock, cell, sample, samples and restart-workers",
        );
    };
    match (head.method, path) {
        ("GET", "/v1/clock") => ControlResponse::json(200, &now()),
        ("GET", "/v1/info") => match parameter(query, "peer").map_or(Ok(peer), str::parse) {
            Ok(peer) => ControlResponse::json(200, &agent.info(peer)),
            Err(_) => ControlResponse::refusal(400, "peer is an IP address"),
        },
        ("GET", "/v1/sample") => ControlResponse::json(200, &agent.last_reading()),
        ("GET", "/v1/samples") => match parameter(query, "from").map_or(Ok(1), str::parse) {
            Ok(from) => ControlResponse::Samples(from),
            Err(_) => ControlResponse::refusal(400, "from is the number of a reading"),
        },
        ("POST", "/v1/cell") => begin(body, peer, agent),
        ("POST", "/v1/restart-workers") => match agent.restart_workers() {
            Ok(()) => ControlResponse::Complete(204, Vec::new()),
            Err(refusal) => ControlResponse::refusal(refusal.status(), refusal.to_string()),
        },
        ("DELETE", path) if path.starts_with("/v1/cell/") => {
            ControlResponse::of(agent.end_cell(path.trim_start_matches("/v1/cell/")))
        }
        (_, "/v1/clock" | "/v1/info" | "/v1/sample" | "/v1/samples") => {
            ControlResponse::refusal(405, "only GET is understood here")
        }
        (_, "/v1/cell" | "/v1/restart-workers") => ControlResponse::refusal(405, "only POST is understood here"),
        _ => ControlResponse::refusal(404, "nothing has this name"),
    }
}

fn begin(body: &[u8], peer: IpAddr, agent: &dyn Agent) -> ControlResponse {
    match serde_json::from_str::<CellMark>(&String::from_utf8_lossy(body)) {
        Ok(mark) if mark.has_valid_id() => ControlResponse::of(agent.begin_cell(&mark, mark.peer.unwrap_or(peer))),
        Ok(_) => ControlResponse::refusal(400, "an id is 1 to 64 letters, digits, dots, underscores and hyphens"),
        Err(error) => ControlResponse::refusal(400, format!("the body describes no cell: {error}")),
    }
}

fn now() -> Clock {
    Clock { monotonic_ns: clock::monotonic_ns(), unix_ns: clock::unix_ns() }
}

/// Value of a query parameter; empty for a name alone.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
