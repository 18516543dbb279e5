//! Effects of hosts and pairs on the rates of a fleet.

use linerate_macros::{sparse, stored};

use super::HostId;

/// Effects of hosts and pairs on one path. Each effect is a ratio minus 1: −0.9 is a tenth of the
/// reference rate.
#[stored(Default)]
pub struct FleetEffects {
    /// Name of the path.
    pub path: String,
    /// Factor; empty without one.
    #[serde(default)]
    pub variant: String,
    /// Reference rate: bit/s, or the share of the nominal rate where that is known of all cells.
    pub reference: f64,
    /// The reference is a share of the nominal rate.
    pub is_relative: bool,
    /// Spread of what the effects do not explain, as a share of the rate: 0.005 or more.
    pub scale: f64,
    /// Every host with a cell, in the order of their ids.
    pub hosts: Vec<HostEffect>,
    /// Pairs that are slower than both ends explain, strongest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<PairEffect>,
}

/// Effect of a host.
#[stored]
pub struct HostEffect {
    /// The host.
    pub host: HostId,
    /// As the source.
    pub sends: EndEffect,
    /// As the sink.
    pub receives: EndEffect,
}

/// Effect of one direction of a host.
#[sparse]
#[stored(Copy, Default)]
pub struct EndEffect {
    /// Its best cell shows that it is as good as the reference.
    pub is_cleared: bool,
    /// The effect; 0 of a cleared end, absent where no cell to a cleared host decides.
    pub effect: Option<f64>,
    /// Cells that decide it.
    pub cells: u32,
    /// Significance after correction for the number of tests; absent without an effect.
    pub p: Option<f64>,
    /// The effect is slow by both gates and the corrected significance.
    pub is_slow: bool,
}

/// A pair that is slower than both ends explain.
#[stored]
pub struct PairEffect {
    /// The source.
    pub source: HostId,
    /// The sink.
    pub sink: HostId,
    /// Its rate against what both ends allow.
    pub effect: f64,
    /// Its explanation.
    pub suspect: PairSuspect,
}

/// Explanation of a slow pair.
#[stored(Copy, Eq)]
pub enum PairSuspect {
    /// Both ends are cleared: the way between them.
    Pair,
    /// No end is cleared and neither has a cleared partner: one of the two hosts, or the way
    /// between them.
    OneOfTwo,
}
