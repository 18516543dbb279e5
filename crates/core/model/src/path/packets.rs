//! Sizes and marks of packets that a path carries.

use serde::{Deserialize, Serialize};

use super::{PathDirection, SizeResult};

/// Largest packets by direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathMtu {
    /// From client to server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub up: Option<SizeResult>,
    /// From server to client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub down: Option<SizeResult>,
}

/// What becomes of marks in the IP header.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Marks {
    /// Per direction and DSCP sent: what arrived.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dscp: Vec<(PathDirection, u8, u8)>,
    /// Per direction.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ecn: Vec<(PathDirection, EcnTreatment)>,
}

/// What becomes of the ECN field, RFC 3168.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum EcnTreatment {
    /// Arrives as it was sent.
    Kept,
    /// Arrives as not capable.
    Cleared,
    /// Arrives with another code point.
    Changed,
}
