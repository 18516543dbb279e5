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
mod hosts;
mod lease;
mod names;
mod options;
mod results;

use thiserror::Error;

pub use agents::BusAgents;
pub use coordinator::{BusCarrier, BusSetup, LeaseState, LeaseTerm};
pub use options::BusOptions;

/// Why a bus cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum BusError {
    /// The options contradict each other or the rules of a bus. The user's.
    #[error("{0}")]
    Options(String),
    /// The broker cannot be reached, or refused the connection.
    #[error("{broker}: {reason}")]
    Connect {
        /// Host and port.
        broker: String,
        /// Explanation.
        reason: String,
    },
    /// The broker is too old.
    #[error("{broker}: nats-server {version}, 2.10 or later is needed")]
    Version {
        /// Host and port.
        broker: String,
        /// Its version.
        version: String,
    },
    /// The broker refused a stream or bucket. Without JetStream it has none.
    #[error("{name}: {reason}; a coordinator needs JetStream and its own permissions")]
    Store {
        /// Name of the stream or bucket.
        name: String,
        /// Explanation.
        reason: String,
    },
    /// Another coordinator has the lease of the site.
    #[error("another coordinator has the lease of site {site}")]
    Held {
        /// The site.
        site: String,
    },
}
