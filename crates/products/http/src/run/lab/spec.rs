//! The specification of an experiment.

use std::path::PathBuf;

use linerate_history::run::record::RecordOptions;

use crate::plan::Plan;
use crate::plan::cells::Phases;
use crate::protocol::Protocol;
use crate::run::Output;
use crate::run::server_side::ControlPath;
use crate::safety_limits::TargetOwnership;
use crate::target::Target;

/// The plan in a directory of runs.
pub const PLAN_FILE: &str = "plan.toml";

/// An experiment, resolved.
#[derive(Debug, Clone)]
pub struct LabSpec {
    /// The server and the path.
    pub target: Target,
    /// HTTP/1.1 or HTTP/2, with or without TLS.
    pub protocol: Protocol,
    /// Plan: the varied parameters, repetitions and durations.
    pub plan: Plan,
    /// The selected parts.
    pub phases: Phases,
    /// Access to the control channel of the server.
    pub control: ControlPath,
    /// Statements about the ownership of the server.
    pub claims: TargetOwnership,
    /// True if the user is asked before a load on a foreign server.
    pub asks_first: bool,
    /// True if a load continues although the server fails.
    pub tolerates_failures: bool,
    /// Stage at which the experiment ends.
    pub stage: Stage,
    /// True if failed checks and a changed environment are accepted.
    pub is_forced: bool,
    /// True if a missed service level is the outcome.
    pub asserts: bool,
    /// Where runs are kept.
    pub directory: Directory,
    /// Form of the output.
    pub output: Output,
    /// The text has everything that was measured.
    pub is_verbose: bool,
    /// Where the record goes.
    pub record: RecordOptions,
    /// File for an HTML report.
    pub html: Option<PathBuf>,
}

/// Stages at which an experiment can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The plan is written as a file.
    PrintPlan,
    /// The runs are listed.
    ShowPlan,
    /// The hosts are checked.
    Check,
    /// Everything.
    Run,
}

/// Where runs are kept.
#[derive(Debug, Clone)]
pub enum Directory {
    /// In a new one; absent for a name with the date.
    New(Option<PathBuf>),
    /// In one that holds the beginning of this experiment.
    Resumed(PathBuf),
}
