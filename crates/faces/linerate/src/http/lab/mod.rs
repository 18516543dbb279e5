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

use std::path::Path;

use linerate_document::http::{preflight, preflight_json};
use linerate_lab::http::cells;

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

/// Compares two experiments that were made.
///
/// # Errors
/// One that cannot be read, or a report that cannot be written.
pub fn compare(
    before: &Path,
    after: &Path,
    is_json: bool,
    html: Option<&Path>,
) -> Result<Outcome, Error> {
    let study = |path| record::study(path).map_err(Error::usage);
    outputs::comparison(&study(before)?, &study(after)?, is_json, html)?;
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
