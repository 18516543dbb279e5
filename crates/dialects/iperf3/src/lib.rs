//! The iperf3 dialect.
//!
//! * [`wire`]: the protocol without I/O

#![forbid(unsafe_code)]

pub mod wire;
