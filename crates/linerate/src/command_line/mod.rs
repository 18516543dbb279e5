//! The command lines of the dialects.

pub mod getopt;
mod help_layout;
pub mod iperf2;
pub mod iperf3;
pub mod numbers;
pub mod policy;
pub mod suggest;
