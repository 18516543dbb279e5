//! The iperf3 dialect: the command line of iperf3, option for option and message for message.

pub mod args;
mod dscp;
mod effects;
pub mod error;
pub mod help;
pub mod options;
pub mod password;
pub mod resolve;
pub mod version;
