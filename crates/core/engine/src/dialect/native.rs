//! The native dialect: examines a path phase by phase.
//!
//! The protocol is in `linerate-native`, identities and TLS in `linerate-trust`. A client runs one
//! phase after the other: [`client`] opens streams and flows with tokens that the server granted
//! over the control connection. A load is a run of the engine's data plane with pumps of this
//! dialect (`load`); probes have a thread of their own at either end, so that no load of the same
//! process delays them.

pub mod client;
mod datagrams;
mod drops;
mod load;
mod probe_budget;
pub mod server;

#[cfg(any(test, fuzzing))]
pub(crate) mod fuzzing {
    pub use super::server::responder::transactions::fuzzing::transactions;
    pub use crate::tls_stream::fuzzing::tls_stream;
}

use linerate_model::TestSpec;
use linerate_model::spec::LocalOptions;
use linerate_native::wire::hex;

use crate::data::run::RunSettings;

/// Digest of the identity of this boot (random(4)): both ends of a path have the same one if they
/// read one clock.
fn boot_id() -> Option<String> {
    let id = linerate_sys::clock::boot_id().ok()?;
    Some(hex::encode(&linerate_trust::digest(id.as_bytes())))
}

/// A run of the data plane in a phase, whose end and CPU time the phase decides and reports.
fn run_settings(spec: TestSpec, local: LocalOptions) -> RunSettings {
    RunSettings {
        spec,
        local,
        independent: true,
        measures_cpu: true,
        ..RunSettings::default()
    }
}
