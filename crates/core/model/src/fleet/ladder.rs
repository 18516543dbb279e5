//! Results of a ladder: several senders to one sink, or several sinks of one sender.

use linerate_macros::{sparse, stored};

use super::HostId;

/// Who sends in a ladder.
#[stored(Copy, Default, Eq, PartialOrd, Ord, Hash)]
pub enum LadderDirection {
    /// Several hosts send to one.
    #[default]
    Incast,
    /// One host sends to several.
    Fanout,
}

/// Steps of one level with a result, over all repetitions.
#[sparse]
#[stored]
pub struct LadderRow {
    /// Who sends.
    #[serde(default)]
    pub direction: LadderDirection,
    /// Name of the path.
    pub path: String,
    /// Factor of the plan; empty without one.
    #[serde(default)]
    pub variant: String,
    /// Hosts at the same time.
    pub level: usize,
    /// Sum of their rates in bit/s, one for each repetition; empty at level 1.
    #[serde(default)]
    pub sums_bps: Vec<f64>,
    /// Median rate of each host in bit/s.
    pub hosts_bps: Vec<(HostId, f64)>,
    /// Index of fairness of the hosts; absent at level 1.
    pub jain: Option<f64>,
    /// Retransmitted segments of all; absent where no source reports them.
    pub retransmits: Option<u64>,
    /// Median round-trip time in µs; absent where no source reports it.
    pub rtt_us: Option<u64>,
}

/// Rates of the others with and without a suspect.
#[stored]
pub struct Poisoning {
    /// Median sum of the others with the suspect, in bit/s.
    pub with_bps: f64,
    /// Median sum of the others without the suspect, in bit/s.
    pub without_bps: f64,
    /// Median rate of the suspect among the others, in bit/s.
    pub own_bps: f64,
    /// Gain of the others without the suspect, in bit/s.
    pub gain_bps: f64,
    /// Largest gain that its absence alone and the spread of the repetitions explain, in bit/s.
    pub gain_explained_bps: f64,
}

impl Poisoning {
    /// True if the others gain more than the share of the suspect.
    pub fn is_found(&self) -> bool {
        self.gain_bps > self.gain_explained_bps
    }
}
