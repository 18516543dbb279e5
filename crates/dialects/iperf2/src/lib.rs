//! The iperf 2 dialect.
//!
//! * [`wire`]: the protocol without I/O
//! * [`options`]: its command line
//! * [`report`]: text and comma-separated values as iperf 2.1.8 and 2.2.1 print them

#![forbid(unsafe_code)]

pub mod options;
pub mod report;
pub mod wire;
