//! Facts about this host, live: links, queues, interrupts, buses, kernel variables and counters.
//!
//! Nothing is judged here and nothing is changed. Facts the kernel keeps from this user, or that a driver does not
//! have, are recorded as absent with the reason. One interface takes a few milliseconds.

#![forbid(unsafe_code)]

pub mod fuzzing;
pub mod netlink;

mod collect;
mod cpu;
mod ethtool;
mod kernel;
mod links;
mod qdiscs;
mod route;
mod sysfs;

pub use collect::{Request, collect};
