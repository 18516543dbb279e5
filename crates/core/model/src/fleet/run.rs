//! A run of a fleet in its record.

use linerate_macros::{sparse, stored};
use serde_json::Value;

use super::{FleetReport, HostId, PlanHash};

/// Data of a fleet run only. Its cells with a result are trials.
#[sparse(Vec)]
#[stored]
pub struct FleetRun {
    /// Identity of the plan.
    pub plan: PlanHash,
    /// Inputs of the plan: the hosts, and the options of the command line.
    pub inputs: Value,
    /// Result, and the cells without one; absent of a run that did not end.
    pub report: Option<Box<FleetReport>>,
    /// Hosts that did not confirm the end of their tests.
    pub unconfirmed: Vec<HostId>,
}

impl FleetRun {
    /// A run that has not ended.
    pub const fn new(plan: PlanHash, inputs: Value) -> Self {
        Self {
            plan,
            inputs,
            report: None,
            unconfirmed: Vec::new(),
        }
    }
}
