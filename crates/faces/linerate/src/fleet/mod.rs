//! `linerate fleet`: many hosts measured as one system.
//!
//! An [`agent`] runs on every host. It joins the protocol machine of `linerate_fleet` with this
//! host: standard streams, worker processes, probes, facts. A [`worker`] is one such process: a
//! test as client, or the server of one address. [`run`](mod@run) is the coordinator: it connects
//! to the hosts of an [`inventory`] and runs the rounds of a plan. [`check`](mod@check) connects to
//! them without any load. [`cancel`](mod@cancel) ends a run that goes on, and [`leftovers`] finds
//! what earlier ones left on the hosts.

pub mod agent;
#[cfg_attr(not(feature = "bus"), path = "../absent/bus.rs")]
mod bus;
pub mod cancel;
pub mod check;
mod connect;
mod control;
mod host_rules;
pub mod hosts;
pub mod inventory;
pub mod leftovers;
mod members;
mod prepare;
pub mod run;
mod script;
mod targets;
pub mod worker;

/// Input of hosts as arbitrary bytes.
#[cfg(any(test, fuzzing))]
pub mod fuzzing {
    pub use super::run::fuzzing::results;
    pub use super::script::fuzzing::script;
}

pub use bus::BusOptions;
pub use connect::{FleetHosts, SITE_DEFAULT};
pub use linerate_fleet::plan::Topology;
