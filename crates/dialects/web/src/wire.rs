//! Protocol of browsers and of ndt7, without I/O.
//!
//! A connection begins with a [`request`]; a WebSocket one continues with [`frame`]s, and over TLS a
//! client may use [`http2`] instead.

pub mod client;
pub mod frame;
pub mod http2;
pub mod measurement;
pub mod page;
pub mod request;
pub mod response;
pub mod responsiveness;

use serde::Serialize;

/// Subprotocol of ndt7 (ndt-server, `spec/ndt7-protocol.md`).
pub const NDT7: &str = "net.measurementlab.ndt.v7";

/// Message of text with this content.
pub fn json(content: &impl Serialize) -> Vec<u8> {
    // Plain data with string keys cannot fail.
    frame::message(
        frame::Opcode::Text,
        &serde_json::to_vec(content).unwrap_or_default(),
    )
}
