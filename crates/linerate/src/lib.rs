//! Network throughput tests and diagnosis as a library.

#![forbid(unsafe_code)]

pub mod command_line;
pub mod diagnose;
pub mod exit_code;
pub mod http;
mod progress;
pub mod server;
pub mod sweep;
pub mod trial;
