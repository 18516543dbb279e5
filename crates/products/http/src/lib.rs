//! The HTTP lab: a server of fixed payloads, a load generator, and experiments with both.
//!
//! An experiment is a [`plan`] of cells, each one load, that [`run`] works off; [`conclude`] judges
//! what the loads measured and [`report`] writes it. All but [`run`] perform no I/O.
//!
//! Server and generator speak plaintext HTTP/1.1 over an epoll loop of their own, because what is measured is the
//! path and not the program: a connection that is idle owns no buffer, and a request costs two
//! system calls. The load generator runs TLS and HTTP/2 over hyper.

#![forbid(unsafe_code)]

mod client;
pub mod conclude;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing/mod.rs"]
pub mod fuzzing;
pub mod load;
mod message;
pub mod plan;
pub mod probe;
pub mod protocol;
pub mod report;
pub mod request;
pub mod run;
pub mod safety_limits;
pub mod server;
pub mod target;
