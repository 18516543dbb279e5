//! HTTP/1.1 messages (RFC 9112): headers, framing, bodies. No sockets, no clock.

pub mod chunked;
pub mod framing;
pub mod request;
pub mod response;

#[cfg(test)]
mod request_tests;
