//! Runs tests: control connections, stream workers, pacing, sampling, and servers.
//!
//! Each module of [`dialect`] has a `client::run` and a `server::run`. They drive a sans-IO
//! protocol machine over non-blocking sockets from one control thread and leave moving bytes to
//! worker threads; the output is a sequence of [`linerate_model::Event`]s.

#![forbid(unsafe_code)]

mod data;
pub mod dialect;
mod error;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/mod.rs"]
pub mod fuzzing;
#[cfg(feature = "native")]
pub mod hops;
mod interrupts;
mod layer;
mod lock;
mod measure;
mod random;
mod reporter;
mod send_buffer;
mod server;
#[cfg(feature = "native")]
mod tls_stream;
mod wait;

pub use interrupts::{Interrupts, Settings, StopHandle};
#[cfg(feature = "native")]
pub use layer::ClientLayer;
#[cfg(feature = "native")]
pub use measure::sampler::tcp_whole;
