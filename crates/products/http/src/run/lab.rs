//! Experiments: joins the plan, the hosts, the runs, the verdicts and the reports.

mod cooldown;
mod introduction;
mod record;
mod requirements;
mod runner;
mod spec;
mod target;

use linerate_model::outcome::{Error, Outcome};

use super::{OpenView, outputs};
use crate::plan::cells;
use crate::report::{preflight, preflight_json};
use target::TargetServer;

pub use spec::{Directory, LabSpec, PLAN_FILE, Stage};

pub(super) use introduction::is_wanted;

/// Carries out an experiment, or the selected part of it.
///
/// # Errors
/// An invalid plan, hosts that do not have what it needs, or a server that does not answer.
pub fn run(spec: &LabSpec, open_view: OpenView) -> Result<Outcome, Error> {
    match spec.stage {
        Stage::PrintPlan => outputs::print(&spec.plan.to_toml())?,
        Stage::ShowPlan => outputs::print(&requirements::listing(spec))?,
        Stage::Check => return check(spec),
        Stage::Run => {
            let target = TargetServer::contact(spec)?;
            let spec = &target.adapted(spec);
            return runner::run(spec, target, open_view);
        }
    }

    Ok(Outcome::Done)
}

/// Checks both hosts and reports what is missing.
fn check(spec: &LabSpec) -> Result<Outcome, Error> {
    let target = TargetServer::contact(spec)?;
    let keys = cells::keys(&cells::runs(&spec.plan, spec.phases));
    let hosts = requirements::hosts(&target);
    let checks = requirements::checks(spec, &target, &hosts, &keys);
    outputs::print(&if spec.output.json {
        preflight_json(&checks)
    } else {
        preflight(&checks, outputs::style())
    })?;

    let has_failed = requirements::has_failed(&checks);
    Ok(if has_failed {
        Outcome::CheckFailed
    } else {
        Outcome::Done
    })
}
