//! A load as the command line has it, and how it ended.

use linerate_history::run::record::RecordOptions;
use linerate_model::outcome::Outcome;
use linerate_model::record::Trial;

use crate::load::LoadSpec;
use crate::run::Output;
use crate::run::generator::Opening;
use crate::run::server_side::ControlPath;
use crate::safety_limits::TargetOwnership;
use crate::target::Target;

/// A load as far as the command line determines it.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The server and the path.
    pub target: Target,
    /// The load; the addresses of the server, the device's addresses and the port settings of this
    /// host are added.
    pub spec: LoadSpec,
    /// Statements about the ownership of the server.
    pub claims: TargetOwnership,
    /// Access to the control channel of the server.
    pub control: ControlPath,
    /// Settings that this host resolves: threads, processes, addresses.
    pub opening: Opening,
    /// True if the user is asked before a load on a foreign server.
    pub asks_first: bool,
    /// True if the load continues although the server fails.
    pub tolerates_failures: bool,
    /// Rate of the path in bit/s as the user knows it.
    pub line_rate_bps: Option<f64>,
    /// True if the text contains everything that was counted.
    pub is_verbose: bool,
    /// Form of the output.
    pub output: Output,
    /// Where the record goes.
    pub record: RecordOptions,
}

/// End of a load.
#[derive(Debug)]
pub struct LoadEnd {
    /// The exit code.
    pub outcome: Outcome,
    /// The measurement; `None` of a load that the user did not want.
    pub trial: Option<Trial>,
    /// Message for the user about the record.
    pub record_message: Option<String>,
}
