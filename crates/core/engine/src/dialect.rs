//! The dialects: clients and servers of the protocols.

pub mod iperf2;
pub mod iperf3;
#[cfg(feature = "native")]
pub mod native;
pub mod stamp;
mod web;

use linerate_model::sink::PeerRequests;
use linerate_model::spec::ServerSpec;
use linerate_model::{Failure, ServerReporter};

use crate::interrupts::Interrupts;

/// Serves all dialects of the policy until interrupted; calls `opened` when all ports are bound,
/// before the first client is accepted. `requests` makes what clients may request beside their
/// results.
///
/// # Errors
/// When the server cannot listen, cannot report, or was interrupted while no test could report it,
/// and that of `opened`.
pub fn serve(
    spec: &ServerSpec,
    requests: &PeerRequests,
    reporter: &mut dyn ServerReporter,
    interrupts: &dyn Interrupts,
    opened: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut server = iperf3::server::listening(spec, reporter, interrupts)?;

    // The first dialect takes the shared listener: it reports where it is and refuses what no
    // dialect recognises.
    if spec.policy.iperf3 {
        let dialect = iperf3::server::dialect(server.spec(), requests.clone())?;
        server.add(Box::new(dialect))?;
    }

    #[cfg(feature = "native")]
    if let Some(dialect) = native::server::beside_others(server.spec(), requests.clone())? {
        server.add(Box::new(dialect))?;
    }

    if let Some(dialect) = web::beside_others(server.spec(), requests)? {
        server.add(Box::new(dialect))?;
    }

    if let Some(dialect) = iperf2::server::beside_others(server.spec())? {
        server.add(Box::new(dialect))?;
    }

    if let Some(dialect) = stamp::beside_others(server.spec(), server.address())? {
        server.add(Box::new(dialect))?;
    }

    server.run(opened)
}
