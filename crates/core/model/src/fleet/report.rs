//! All results of a fleet run, as they are stored.

use linerate_macros::{sparse, stored};

use super::{
    Cell, FleetEffects, FleetMode, HostId, LadderDirection, LadderRow, NotRun, PairDirection,
    PlanHash, Poisoning,
};
use crate::finding::Finding;

/// Schema name of a [`FleetReport`] on disk.
pub const FLEET_SCHEMA: &str = "linerate.fleet/1";

/// A run of a fleet with its findings.
#[stored]
pub struct FleetReport {
    /// Always [`FLEET_SCHEMA`].
    pub schema: String,
    /// The plan that was run.
    pub header: FleetHeader,
    /// A cell of every task, with a result or a reason.
    pub cells: Vec<Cell>,
    /// Effects of hosts and pairs, one for each path and variant; empty of a ladder.
    #[serde(default)]
    pub effects: Vec<FleetEffects>,
    /// Rows of a ladder.
    #[serde(default)]
    pub ladder: Vec<LadderRow>,
    /// Effect of each suspect of a ladder on the others.
    #[serde(default)]
    pub poisonings: Vec<HostPoisoning>,
    /// Findings, strongest first.
    pub findings: Vec<Finding>,
}

/// Description of a fleet run.
#[sparse]
#[stored]
pub struct FleetHeader {
    /// Id of the run; absent of a run that is not stored.
    pub run_id: Option<String>,
    /// Identity of the plan.
    pub plan: PlanHash,
    /// Its hosts.
    pub hosts: Vec<FleetHost>,
    /// Which of them exchange data.
    pub topology: FleetTopology,
    /// Which tests run at the same time.
    pub mode: FleetMode,
    /// Treatment of the two directions of a pair.
    pub direction: PairDirection,
    /// Control connections use the network under test, or it is not known that they do not.
    pub is_control_shared: bool,
    /// Rounds that were run.
    pub rounds: usize,
    /// Time of the run in ns.
    pub elapsed_ns: u64,
    /// Seed of the plan.
    pub seed: u64,
    /// Why the run ended before all of its rounds; absent of a complete one.
    pub ended: Option<NotRun>,
}

/// A host of a fleet run.
#[sparse]
#[stored]
pub struct FleetHost {
    /// Its id.
    pub id: HostId,
    /// Its rack, where that is known.
    pub rack: Option<String>,
    /// Speed of the link under test in bit/s, where that is known.
    pub link_bps: Option<f64>,
    /// It is a server without an agent: its facts, CPU and clock are not known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_target_only: bool,
}

/// Which hosts exchange data.
#[stored(Eq)]
pub enum FleetTopology {
    /// Each with each other.
    Mesh,
    /// A list of pairs.
    Pairs,
    /// All others send to this one.
    Incast(HostId),
    /// This one sends to all others.
    Fanout(HostId),
    /// All others send to this one, and it sends to all others.
    IncastAndFanout(HostId),
}

/// Effect of a host on the others of a ladder.
#[stored]
pub struct HostPoisoning {
    /// Who sends.
    #[serde(default)]
    pub direction: LadderDirection,
    /// The host.
    pub suspect: HostId,
    /// Rates of the others with and without it.
    pub rates: Poisoning,
}
