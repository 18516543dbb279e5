//! STAMP (RFC 8762): a session reflector beside the other dialects of a server, and a session
//! sender. Both state how far their clock may be wrong as the kernel knows it.

#[cfg(feature = "native")]
pub mod client;
mod clock_error;
mod server;

use std::net::SocketAddr;

use linerate_model::Failure;
use linerate_model::spec::ServerSpec;

use server::StampServer;

/// The reflector of a server that listens at `address`; `None` where the policy leaves it out.
pub(crate) fn beside_others(
    spec: &ServerSpec,
    address: SocketAddr,
) -> Result<Option<StampServer>, Failure> {
    let port = spec.policy.stamp;
    port.map(|port| StampServer::open(spec, SocketAddr::new(address.ip(), port)))
        .transpose()
}
