//! The specification of an experiment.

use std::path::PathBuf;

use linerate_http::protocol::Protocol;
use linerate_http::safety_limits::TargetOwnership;
use linerate_http::target::Target;
use linerate_lab::http::cells::Phases;
use linerate_lab::http::plan::Plan;

use crate::http::output::{Files, Output};
use crate::http::server_side::ControlPath;

/// The plan in a directory of runs.
pub const PLAN_FILE: &str = "plan.toml";

/// An experiment, resolved.
#[derive(Debug, Clone)]
pub struct LabSpec {
    pub target: Target,
    pub protocol: Protocol,
    pub plan: Plan,
    pub phases: Phases,
    pub control: ControlPath,
    pub claims: TargetOwnership,
    pub asks_first: bool,
    pub tolerates_failures: bool,
    pub stage: Stage,
    pub is_forced: bool,
    pub asserts: bool,
    pub directory: Directory,
    pub output: Output,
    pub files: Files,
}

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The plan is written as a file.
    PrintPlan,
    /// What would be run is shown.
    ShowPlan,
    /// The hosts are looked at.
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

/// Two experiments to compare.
#[derive(Debug)]
pub struct CompareSpec {
    pub before: PathBuf,
    pub after: PathBuf,
    pub json: bool,
    pub html: Option<PathBuf>,
}
