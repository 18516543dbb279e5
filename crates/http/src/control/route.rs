//! Which request gets which answer.

use std::net::IpAddr;

use linerate_sys::clock;
use serde::Serialize;

use super::agent::{Agent, Refusal};
use super::message::{CellMark, Clock, ErrorText};
use crate::message::request::{Method, RequestHead, Target};

/// What a request is answered with.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// A status and a body of JSON, which may be empty.
    Whole(u16, Vec<u8>),
    /// Readings from this number on, one line each, without end.
    Readings(u64),
}

impl Answer {
    /// A refusal in words.
    pub(super) fn refusal(status: u16, why: impl Into<String>) -> Self {
        Self::json(status, &ErrorText { error: why.into() })
    }

    pub(super) fn json(status: u16, value: &impl Serialize) -> Self {
        match serde_json::to_vec(value) {
            Ok(body) => Self::Whole(status, body),
            Err(_) => Self::Whole(500, Vec::new()),
        }
    }

    fn of<T: Serialize>(found: Result<T, Refusal>) -> Self {
        match found {
            Ok(value) => Self::json(200, &value),
            Err(refusal) => Self::refusal(refusal.status(), refusal.to_string()),
        }
    }
}

/// Answers a request of somebody who may ask.
pub(super) fn answer(head: &RequestHead<'_>, body: &[u8], peer: IpAddr, agent: &dyn Agent) -> Answer {
    let Target::Path { path, query } = head.target else {
        return Answer::refusal(
            404,
            "requests are about /v1/info, clock, cell, samples and restart-workers",
        );
    };
    match (head.method, path) {
        (Method::Get, "/v1/clock") => Answer::json(200, &now()),
        (Method::Get, "/v1/info") => match parameter(query, "peer").map_or(Ok(peer), str::parse) {
            Ok(peer) => Answer::json(200, &agent.info(peer)),
            Err(_) => Answer::refusal(400, "peer is an IP address"),
        },
        (Method::Get, "/v1/samples") => match parameter(query, "from").map_or(Ok(1), str::parse) {
            Ok(from) => Answer::Readings(from),
            Err(_) => Answer::refusal(400, "from is the number of a reading"),
        },
        (Method::Post, "/v1/cell") => begin(body, peer, agent),
        (Method::Post, "/v1/restart-workers") => match agent.restart_workers() {
            Ok(()) => Answer::Whole(204, Vec::new()),
            Err(refusal) => Answer::refusal(refusal.status(), refusal.to_string()),
        },
        (Method::Delete, path) if path.starts_with("/v1/cell/") => {
            Answer::of(agent.end_cell(path.trim_start_matches("/v1/cell/")))
        }
        (_, "/v1/clock" | "/v1/info" | "/v1/samples") => Answer::refusal(405, "only GET is understood here"),
        (_, "/v1/cell" | "/v1/restart-workers") => Answer::refusal(405, "only POST is understood here"),
        _ => Answer::refusal(404, "nothing has this name"),
    }
}

fn begin(body: &[u8], peer: IpAddr, agent: &dyn Agent) -> Answer {
    match serde_json::from_slice::<CellMark>(body) {
        Ok(mark) if mark.has_valid_id() => Answer::of(agent.begin_cell(&mark, mark.peer.unwrap_or(peer))),
        Ok(_) => Answer::refusal(400, "an id is 1 to 64 letters, digits, dots, underscores and hyphens"),
        Err(error) => Answer::refusal(400, format!("the body describes no cell: {error}")),
    }
}

fn now() -> Clock {
    Clock {
        monotonic_ns: clock::monotonic_ns(),
        unix_ns: clock::unix_ns(),
    }
}

/// The value of a parameter of the query; empty for a name alone.
fn parameter<'a>(query: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
