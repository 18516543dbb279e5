//! Facts about hosts: links, queues, interrupts, buses, kernel variables and counters, and what the
//! processes of a test use.
//!
//! [`collect`] takes a snapshot of everything, [`Sampler`] cheap samples of what changes during a
//! test, [`import`] reads pasted output of commands. All record facts and counters under the keys
//! of [`linerate_model::facts`]; [`Period`], [`Seconds`], [`reading`] and [`environment`] are the
//! HTTP lab's views of them. Nothing is judged here and nothing is changed. Facts the kernel keeps
//! from this user, or that a driver does not have, are recorded as absent with the reason. One
//! interface takes a few milliseconds.

#![forbid(unsafe_code)]

pub mod connect_advice;
#[cfg(any(test, fuzzing))]
#[path = "../fuzzing.rs"]
pub mod fuzzing;
pub mod import;

mod collect;
mod drops;
mod error;
mod growth;
mod kernel;
mod lab;
mod netlink;
mod nic;
mod permits;
mod prelude;
mod recorder;
mod sampler;
mod short_file;
mod tc;
mod trace;
mod watch;

pub use collect::{Request, collect};
pub use drops::drops;
pub use error::ReadError;
pub use growth::{Growth, Ticks};
pub use kernel::connections::Connections;
pub use kernel::namespaces::{has_other_namespaces, is_peer_in_other_namespace};
pub use kernel::process::listening_processes;
pub use kernel::programs::ProcessTimes;
pub use kernel::sockets::Tested;
pub use lab::endpoint::{Period, reading};
pub use lab::environment::{EnvironmentQuery, environment};
pub use lab::seconds::Seconds;
pub use nic::attachment::{Attachment, attachment};
pub use nic::bridge::{BridgePort, bridge_port};
pub use nic::route::{Route, routes};
pub use permits::{Permit, Permits};
pub use sampler::{Depth, Sampler, Watched};
pub use trace::cpu_profile::{CpuProfile, CpuStack};
pub use trace::cpu_watch::CpuWatch;
pub use trace::drop_counts::{DropCounts, DropRow};
pub use trace::drop_watch::DropWatch;
pub use trace::symbols::Function;
pub use watch::{Reader, Watch};
