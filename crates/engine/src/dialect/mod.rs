//! The dialects: clients and servers of the protocols.

pub mod iperf2;
pub mod iperf3;
