//! Control connections over NATS: a broker between the coordinator and agents that are there first.
//!
//! * [`BusCarrier`] is the end of a coordinator. It holds the lease of its site, whose revision is
//!   the epoch of its commands.
//! * [`BusAgents`] is the end of agents, with a connection for each.
//!
//! Both are a thread with an executor, joined to the loop of their owner by channels and a
//! descriptor. Reconnection, encryption, permissions and the log of results are those of NATS.

mod agents;
mod connection;
mod coordinator;
mod events;
mod lease;
mod names;
mod options;
mod results;

use std::fmt::Display;

use linerate_model::outcome::Error;

pub use agents::BusAgents;
pub use coordinator::{BusCarrier, BusSetup, LeaseState, LeaseTerm};

/// The broker refused a stream or bucket. Without JetStream it has none.
fn refused(name: &str, reason: &dyn Display) -> Error {
    Error::failed(format!(
        "{name}: {reason}; a coordinator needs JetStream and its own permissions"
    ))
}
