//! The control channel: how a client gets the server's own figures.
//!
//! It has a listener and threads of its own, so it answers when the port under test does not. Plain HTTP/1.1 and JSON:
//!
//! | request | answer |
//! |---|---|
//! | `GET /v1/nonce` | what a client needs to show that it knows the secret, and to have it shown |
//! | `GET /v1/info?peer=ADDRESS` | [`Info`]: who this is, and what its host is like on the way to that address |
//! | `GET /v1/clock` | [`Clock`] |
//! | `POST /v1/cell` with a [`CellMark`] | [`CellBegun`]: figures count from here |
//! | `DELETE /v1/cell/ID` | the figures of that cell; the same again when asked again |
//! | `GET /v1/samples?from=N` | a line of JSON for every reading from number `N` on, without end |
//! | `POST /v1/restart-workers` | nothing, when the threads under test are as if newly started |
//!
//! Our client never sends the secret: request and answer carry proofs of it (module `proof`). Other clients may send it, as
//! `Authorization: Bearer`, to a server they trust on a network they trust.
//!
//! What is refused is answered with `{"error": "why"}`; so is whatever a browser asks in the name of a page.

mod agent;
mod client;
mod connection;
mod link;
mod message;
mod proof;
mod route;
mod server;
mod token;
mod transport;

pub use agent::{Agent, Refusal};
pub use client::{ClockOffset, ControlClient, ControlError};
pub use message::{CellBegun, CellMark, Clock, Info, PROGRAM, TCP_CAPABILITY};
pub use server::{Control, ControlSpec};
pub use token::{BadToken, Token};

#[cfg(test)]
mod tests;
