//! Runs tests: control connections, stream workers, pacing, sampling, and the server.
//!
//! [`client::run`] and [`server::run`] are the two entrances of iperf3's dialect, [`iperf2::client::run`] and
//! [`iperf2::server::run`] those of iperf 2's. Both drive a sans-IO protocol machine over non-blocking
//! sockets from one control thread and leave moving bytes to worker threads; what happens goes out as
//! [`linerate_model::Event`]s. The engine does not know what a report looks like.

#![forbid(unsafe_code)]

mod budget;
pub mod client;
mod control_connection;
mod counters;
mod cpu_usage;
mod data_socket;
mod error;
mod files;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/mod.rs"]
pub mod fuzzing;
mod idle_timeout;
mod interrupts;
pub mod iperf2;
mod iperf3_error;
mod keepalive;
mod observations;
mod overflow;
mod pacing;
mod payload;
mod quota;
mod random;
mod reporter;
mod run;
mod sampler;
pub mod server;
mod stream_stats;
mod target;
mod timeline;
mod worker;

pub use interrupts::{Interrupts, StopHandle};
