//! Sizes and marks of packets that a path carries.

use linerate_macros::{sparse, stored};

use super::{PathDirection, SizeResult};

/// Largest packets by direction.
#[sparse]
#[stored(Copy, Default, Eq)]
pub struct PathMtu {
    /// From client to server.
    pub up: Option<SizeResult>,
    /// From server to client.
    pub down: Option<SizeResult>,
}

/// What becomes of marks in the IP header.
#[sparse(Vec)]
#[stored(Default, Eq)]
pub struct Marks {
    /// Per direction and DSCP sent: what arrived.
    pub dscp: Vec<(PathDirection, u8, u8)>,
    /// Per direction.
    pub ecn: Vec<(PathDirection, EcnTreatment)>,
}

/// What becomes of the ECN field, RFC 3168.
#[stored(Copy, Eq)]
pub enum EcnTreatment {
    /// Arrives as it was sent.
    Kept,
    /// Arrives as not capable.
    Cleared,
    /// Arrives with another code point.
    Changed,
}
