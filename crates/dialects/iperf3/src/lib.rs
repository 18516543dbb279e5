//! The iperf3 dialect.
//!
//! * [`wire`]: the protocol without I/O
//! * [`options`]: its command line
//! * [`report`]: text, JSON document and JSON stream as iperf3 3.22 prints them

#![forbid(unsafe_code)]

pub mod options;
pub mod report;
mod version;
pub mod wire;

pub use version::FOLLOWS;
