//! Runs a fleet: connections, clocks and processes around the machines of the protocol.
//!
//! An [`agent`] runs on every host. It joins the protocol machine with its host: standard streams,
//! worker processes, probes, facts. A [`worker`] is one such process: a test as client, or the
//! server of one address. [`coordinate`] connects to the hosts of an [`inventory`] and runs the
//! rounds of a plan. [`check`](mod@check) connects to them without any load.
//! [`cancel`](mod@cancel) ends a run that is active, and [`leftovers`] finds processes of earlier
//! ones on the hosts.

pub mod agent;
mod bus;
pub mod cancel;
pub mod carrier;
pub mod check;
mod connect;
mod control;
pub mod coordinate;
pub mod hosts;
pub mod inventory;
pub mod leftovers;
mod members;
mod prepare;
mod script;
pub mod worker;

/// Input of hosts as arbitrary bytes.
#[cfg(any(test, fuzzing))]
pub mod fuzzing {
    pub use super::coordinate::fuzzing::results;
    pub use super::script::fuzzing::script;
}
