//! Facts about this host, live: links, queues, interrupts, buses, kernel variables and counters.
//!
//! Nothing is judged here and nothing is changed. Facts the kernel keeps from this user, or that a driver does not
//! have, are recorded as absent with the reason. One interface takes a few milliseconds.

#![forbid(unsafe_code)]

pub mod fuzzing;
pub mod load;
pub mod netlink;

mod collect;
mod config_space;
mod cpu;
mod dump;
mod ethtool;
mod filters;
mod firewall;
mod kernel;
mod links;
mod pci;
mod qdiscs;
mod route;
mod rss;
mod shapers;
mod sysfs;

pub use collect::{Request, collect};
