//! Relation of the clocks of both ends.

use linerate_macros::stored;

/// How two clocks were compared.
#[stored(Copy, Eq)]
#[serde(rename_all = "kebab-case")]
pub enum ClockMethod {
    /// Both ends read the clock of one kernel.
    OneClock,
    /// Both kernels keep to a time source and state their error (adjtimex(2)).
    Disciplined,
    /// By the bounds that all probes set.
    Exchange,
}

/// Relation of the other end's clock to this one's.
#[stored(Copy)]
pub struct ClockEstimate {
    /// How it is known.
    pub method: ClockMethod,
    /// The other clock minus this one, ns.
    pub offset_ns: i64,
    /// The true offset differs by at most this, ns.
    pub error_ns: u64,
    /// How much faster the other clock runs, parts per 10^9.
    pub skew_ppb: i64,
}
