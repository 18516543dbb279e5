//! STAMP (RFC 8762): a session reflector beside the other dialects of a server, and a session
//! sender. Both state how far their clock may be wrong as the kernel knows it.

#[cfg(feature = "native")]
pub mod client;
mod server;

use std::net::SocketAddr;

use linerate_model::Failure;
use linerate_model::spec::ServerSpec;
use linerate_stamp::wire::timestamp::ErrorEstimate;
use linerate_sys::clock;

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

/// Error of the wall clock. Without a time source it is not known.
fn clock_error() -> ErrorEstimate {
    let error_ns = clock::realtime_error_max_ns().ok().flatten();
    ErrorEstimate {
        is_synchronized: error_ns.is_some(),
        error_ns: error_ns.unwrap_or(u64::MAX),
        ..ErrorEstimate::default()
    }
}
