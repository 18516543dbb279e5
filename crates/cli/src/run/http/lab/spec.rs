//! The specification of an experiment.

use std::path::PathBuf;

use linerate_http::protocol::Protocol;
use linerate_http::safety_limits::TargetOwnership;
use linerate_http::target::Target;
use linerate_lab::http::cells::Phases;
use linerate_lab::http::plan::Plan;

use crate::run::http::output::{Files, Output};
use crate::run::http::server_side::ControlPath;

/// The plan in a directory of runs.
pub(crate) const PLAN_FILE: &str = "plan.toml";

/// An experiment, resolved.
#[derive(Debug, Clone)]
pub(crate) struct LabSpec {
    pub(crate) target: Target,
    pub(crate) protocol: Protocol,
    pub(crate) plan: Plan,
    pub(crate) phases: Phases,
    pub(crate) control: ControlPath,
    pub(crate) claims: TargetOwnership,
    pub(crate) asks_first: bool,
    pub(crate) tolerates_failures: bool,
    pub(crate) stage: Stage,
    pub(crate) is_forced: bool,
    pub(crate) asserts: bool,
    pub(crate) directory: Directory,
    pub(crate) output: Output,
    pub(crate) files: Files,
}

/// How far it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
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
pub(crate) enum Directory {
    /// In a new one; absent for a name with the date.
    New(Option<PathBuf>),
    /// In one that holds the beginning of this experiment.
    Resumed(PathBuf),
}

/// Two experiments to compare.
#[derive(Debug)]
pub(crate) struct CompareSpec {
    pub(crate) before: PathBuf,
    pub(crate) after: PathBuf,
    pub(crate) json: bool,
    pub(crate) html: Option<PathBuf>,
}
