//! Outcome of a test without a result.

use linerate_engine::dialect::native::client::{NativeError, Target};
use linerate_host::connect_advice::{TEST_SERVER, connect_failure};
use linerate_model::outcome::{Error, Outcome};

/// The outcome of a test in which nothing was measured.
pub(super) fn failed(error: &NativeError, target: &Target) -> Error {
    let outcome = match error {
        NativeError::Unreachable(_)
        | NativeError::ConnectionRefused(_)
        | NativeError::NotNative(_)
        | NativeError::Identity(_)
        | NativeError::Refused { .. } => Outcome::Unreachable,
        NativeError::Interrupted(_) => Outcome::Interrupted,
        _ => Outcome::NotCompleted,
    };
    match error {
        NativeError::Unreachable(_) | NativeError::ConnectionRefused(_) => {
            // The advice concerns the address that the connection was made to.
            let (host, port) = target
                .control_via
                .clone()
                .unwrap_or_else(|| (target.host.clone(), target.port));
            Error::new(
                outcome,
                connect_failure(&error.to_string(), &host, port, TEST_SERVER),
            )
        }
        _ => Error::new(outcome, error),
    }
}
