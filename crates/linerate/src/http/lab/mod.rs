//! `linerate http lab`, `matrix`, `c10k` and `check`: joins the plan, the hosts, the runs, the verdicts and the reports.

mod baseline;
mod cooldown;
pub(crate) mod outputs;
mod progress;
mod record;
mod requirements;
mod runner;
pub mod spec;
mod target;

use linerate_lab::http::cells;

use super::command_error::CommandError;
use crate::exit_code::ExitCode;
use spec::{CompareSpec, LabSpec, Stage};
use target::TargetServer;

pub(crate) use cooldown::{REST_WINDOW, is_quiet};
pub(crate) use runner::is_wanted;
pub(crate) use target::is_local;

/// Carries out an experiment, or the selected part of it.
///
/// # Errors
/// A command line that does not fit this host or the server.
pub fn run(spec: &LabSpec) -> Result<ExitCode, String> {
    match carry_out(spec) {
        Ok(code) => Ok(code),
        Err(error) if error.code == ExitCode::Usage => Err(error.to_string()),
        Err(error) => {
            super::say(&error.to_string());
            Ok(error.code)
        }
    }
}

/// Compares two experiments that were made.
///
/// # Errors
/// One that cannot be read.
pub fn compare(args: &CompareSpec) -> Result<ExitCode, String> {
    let [before, after] = [&args.before, &args.after].map(|path| record::study(path));
    let (before, after) = (
        before.map_err(|error| error.to_string())?,
        after.map_err(|error| error.to_string())?,
    );
    let Err(error) = outputs::comparison(&before, &after, args) else {
        return Ok(ExitCode::Done);
    };
    super::say(&error.to_string());
    Ok(error.code)
}

fn carry_out(spec: &LabSpec) -> Result<ExitCode, CommandError> {
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
    Ok(ExitCode::Done)
}

/// Checks both hosts and reports what is missing.
fn check(spec: &LabSpec) -> Result<ExitCode, CommandError> {
    let target = TargetServer::contact(spec)?;
    let keys = cells::keys(&cells::runs(&spec.plan, spec.phases));
    let hosts = requirements::hosts(&target);
    let checks = requirements::checks(spec, &target, &hosts, &keys);
    outputs::checks(&checks, spec.output.json)?;
    let has_failed = requirements::has_failed(&checks);
    Ok(if has_failed {
        ExitCode::CheckFailed
    } else {
        ExitCode::Done
    })
}
