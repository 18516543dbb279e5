//! The iperf 2 dialect: the command line of iperf 2.1.8 and 2.2.1, option for option and message for message.

pub mod args;
mod conflicts;
mod effects;
pub mod help;
pub mod message;
pub mod options;
pub mod resolve;
mod tos;
