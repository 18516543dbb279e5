//! The control channel: gives clients measurements of the server's host.
//!
//! It has its own listener and threads, so that it responds when the port under test does not. Plain HTTP/1.1 and JSON:
//!
//! | request | response |
//! |---|---|
//! | `GET /v1/nonce` | nonce for mutual authentication |
//! | `GET /v1/info?peer=ADDRESS` | [`Info`]: identity, and facts about the host on the path to that address |
//! | `GET /v1/clock` | [`Clock`] |
//! | `POST /v1/cell` with a [`CellMark`] | [`CellBegun`]: counters start here |
//! | `DELETE /v1/cell/ID` | measurements of that cell; repeatable |
//! | `GET /v1/samples?from=N` | endless stream of samples from number `N` on, one line of JSON each |
//! | `POST /v1/restart-workers` | empty, once the threads under test are restarted |
//!
//! Our client never sends the token: request and response carry proofs of it (module `proof`). Other clients may send it as
//! `Authorization: Bearer` to a server they trust on a network they trust.
//!
//! Errors have the body `{"error": "why"}`. Requests of web pages are refused.

mod agent;
mod client;
mod connection;
mod error;
mod link;
mod message;
mod proof;
mod route;
mod server;
mod session;
mod token;

pub use agent::{Agent, Refusal};
pub use client::{ClockOffset, ControlClient};
pub use error::ControlError;
pub use message::{CellBegun, CellMark, Clock, Info, PROGRAM, TCP_CAPABILITY};
pub use server::{Control, ControlSpec};
pub use token::{BadToken, Token};

#[cfg(test)]
mod tests;
