//! Network throughput tests and diagnosis as a library.

#![forbid(unsafe_code)]

mod client;
pub mod command_line;
pub mod diagnose;
pub mod http;
mod outcome;
pub mod progress;
pub mod server;
pub mod sweep;
pub mod trial;

pub use client::Client;
pub use diagnose::diagnose;
pub use linerate_engine::dialect::iperf3::client::ClientResult;
pub use outcome::{Error, Outcome};
pub use progress::Progress;
pub use server::Server;
pub use sweep::sweep;
