//! Ends of probe connections.

use std::net::SocketAddr;

use linerate_model::spec::BindSpec;

/// Remote and local end of new connections.
#[derive(Debug, Clone)]
pub(crate) struct ProbeTarget {
    pub(crate) remote: SocketAddr,
    pub(crate) bind: BindSpec,
    pub(crate) dscp: u8,
}
