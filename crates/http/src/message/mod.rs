//! HTTP/1.1 messages (RFC 9112): headers, framing, bodies. No sockets, no clock.

pub(crate) mod chunked;
pub(crate) mod framing;
pub(crate) mod request;
pub(crate) mod response;

#[cfg(test)]
mod request_tests;
