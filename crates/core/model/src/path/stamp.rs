//! What only a STAMP session shows (RFC 8762).

use linerate_macros::{sparse, stored};

use super::Delay;

/// Loss and queueing of each direction to a session reflector. Round trips and delays of one
/// direction are those of [`super::IdleDelays`].
#[sparse]
#[stored(Default)]
pub struct StampResult {
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were lost on the way to the reflector, by its sequence numbers.
    pub lost_up: Option<u64>,
    /// Answers that were lost.
    pub lost_down: Option<u64>,
    /// Packets behind the last answer: no sequence number shows in which direction they were lost.
    pub lost_unplaced: Option<u64>,
    /// Delay to the reflector above the smallest one (RFC 5481).
    pub queue_up: Option<Delay>,
    /// Delay from the reflector above the smallest one.
    pub queue_down: Option<Delay>,
    /// Smallest time to live with which packets arrived at the reflector; absent where it does not
    /// report it.
    pub ttl_up: Option<u8>,
}
