//! Experiments: joins the plan, the hosts, the runs, the verdicts and the reports.

mod cooldown;
mod kept;
pub(crate) mod outputs;
mod progress;
mod record;
mod requirements;
mod runner;
mod spec;
mod target;

use linerate_http::plan::cells;
use linerate_http::report::{preflight, preflight_json};

use crate::{Error, Outcome};
use target::TargetServer;

pub use spec::{Directory, LabSpec, PLAN_FILE, Stage};

pub(crate) use runner::is_wanted;
pub(crate) use target::local_address;

/// Carries out an experiment, or the selected part of it.
///
/// # Errors
/// An invalid plan, hosts that do not have what it needs, or a server that does not answer.
pub fn run(spec: &LabSpec) -> Result<Outcome, Error> {
    match spec.stage {
        Stage::PrintPlan => outputs::print(&spec.plan.to_toml())?,
        Stage::ShowPlan => outputs::print(&requirements::listing(spec))?,
        Stage::Check => return check(spec),
        Stage::Run => {
            let target = TargetServer::contact(spec)?;
            let spec = &target.adapted(spec);
            return runner::run(spec, target);
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
