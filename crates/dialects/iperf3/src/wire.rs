//! The iperf3 protocol without I/O: control dialogue, parameters, results, UDP header and
//! authentication.
//!
//! Nothing here opens a socket, reads a clock or starts a thread. [`Client`] and [`Server`] are fed
//! with bytes, local events and the current time, and are polled for actions; everything else is a
//! parser, an emitter or a table. Whatever comes from the peer is bounded before it is stored and
//! never leads to a panic.

pub mod auth;
pub mod client;
pub mod cookie;
mod dialogue;
pub mod error_code;
pub mod framing;
mod json;
pub mod params;
pub mod results;
pub mod sequence;
pub mod server;
pub mod state;
pub mod udp_header;

pub use client::{Client, ClientAction, ClientInput, ClientSetup};
pub use cookie::{COOKIE_WIRE_LEN, Cookie};
pub use error_code::ErrorCode;
pub use params::{MAX_STREAMS, MAX_STREAMS_EXTENDED, Params};
pub use results::{Results, StreamResult, merge_peer, stream_id, wire_id};
pub use sequence::SequenceTracker;
pub use server::{
    AcceptedTest, LoginAttempt, Policy, Server, ServerAction, ServerInput, ServerSetup,
};
pub use state::State;
pub use udp_header::UdpHeader;
