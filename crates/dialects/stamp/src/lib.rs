//! The dialect of routers: STAMP (RFC 8762), unauthenticated.
//!
//! * [`wire`]: test packets, session reflector and session sender without I/O.

#![forbid(unsafe_code)]

pub mod wire;
