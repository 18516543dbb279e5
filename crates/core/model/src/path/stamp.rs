//! What only a STAMP session shows (RFC 8762).

use serde::{Deserialize, Serialize};

use super::Delay;

/// Loss and queueing of each direction to a session reflector. Round trips and delays of one
/// direction are those of [`super::IdleDelays`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StampResult {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were lost on the way to the reflector, by its sequence numbers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_up: Option<u64>,
    /// Answers that were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_down: Option<u64>,
    /// Packets behind the last answer: no sequence number shows in which direction they were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_unplaced: Option<u64>,
    /// Delay to the reflector above the smallest one (RFC 5481).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_up: Option<Delay>,
    /// Delay from the reflector above the smallest one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue_down: Option<Delay>,
    /// Smallest time to live with which packets arrived at the reflector; absent where it does not
    /// report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_up: Option<u8>,
}
