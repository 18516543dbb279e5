//! The dialect of browsers.
//!
//! * [`wire`]: HTTP/1.1 request heads, WebSocket (RFC 6455) and ndt7 without I/O.

#![forbid(unsafe_code)]

pub mod wire;
