//! Facts about this host, live: links, queues, interrupts, buses, kernel variables and counters, and what the processes
//! of a test use.
//!
//! [`collect`] takes a snapshot of everything, [`Sampler`] cheap samples of what changes during a test. Both record facts
//! and counters under the keys of [`linerate_model::facts`]; [`Period`], [`Seconds`], [`reading`] and [`environment`] are
//! the HTTP lab's views of them. Nothing is judged here and nothing is changed. Facts the kernel keeps from this user, or
//! that a driver does not have, are recorded as absent with the reason. One interface takes a few milliseconds.

#![forbid(unsafe_code)]

pub mod fuzzing;
pub mod netlink;

mod cgroup;
mod collect;
mod config_space;
mod cpu;
mod endpoint;
mod environment;
mod error;
mod ethtool;
mod filters;
mod firewall;
mod kernel;
mod kernel_file;
mod links;
mod netlink_client;
mod pci;
mod process;
mod qdiscs;
mod route;
mod rss;
mod sampler;
mod seconds;
mod shapers;
mod sockets;
mod sysfs;

pub use collect::{Request, collect};
pub use endpoint::{Period, reading};
pub use environment::{EnvironmentQuery, environment};
pub use error::ReadError;
pub use process::listening_processes;
pub use sampler::{Depth, Sampler, Watched};
pub use seconds::Seconds;
pub use sockets::Tested;
