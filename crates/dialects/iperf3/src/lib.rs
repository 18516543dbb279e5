//! The iperf3 dialect.
//!
//! * [`wire`]: the protocol without I/O
//! * [`report`]: text, JSON document and JSON stream as iperf3 3.22 prints them

#![forbid(unsafe_code)]

pub mod report;
pub mod wire;
