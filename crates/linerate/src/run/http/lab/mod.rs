//! `linerate http lab`, `matrix`, `c10k` and `check`: joins the plan, the hosts, the runs, the verdicts and the reports.

mod baseline;
mod cooldown;
mod needs;
mod progress;
mod record;
mod runner;
mod site;
pub(super) mod written;

use linerate_lab::http::cells;

use super::trouble::Trouble;
use crate::cli::http::compare::CompareArgs;
use crate::cli::http::lab::{LabSpec, Stage};
use crate::exit_code::ExitCode;
use site::Site;

pub(super) use cooldown::{REST_WINDOW, is_quiet};
pub(super) use runner::is_wanted;
pub(super) use site::is_local;

/// Carries out an experiment, or the part of it that was asked for.
///
/// # Errors
/// What is wrong with the command line, which only a look at this host and the server can tell.
pub(crate) fn run(spec: &LabSpec) -> Result<ExitCode, String> {
    match carry_out(spec) {
        Ok(code) => Ok(code),
        Err(trouble) if trouble.code == ExitCode::Usage => Err(trouble.to_string()),
        Err(trouble) => {
            super::say(&trouble.to_string());
            Ok(trouble.code)
        }
    }
}

/// Compares two experiments that were made.
///
/// # Errors
/// One that cannot be read.
pub(crate) fn compare(args: &CompareArgs) -> Result<ExitCode, String> {
    let [before, after] = [&args.before, &args.after].map(|path| record::study(path));
    let (before, after) = (
        before.map_err(|trouble| trouble.to_string())?,
        after.map_err(|trouble| trouble.to_string())?,
    );
    let Err(trouble) = written::comparison(&before, &after, args) else {
        return Ok(ExitCode::Done);
    };
    super::say(&trouble.to_string());
    Ok(trouble.code)
}

fn carry_out(spec: &LabSpec) -> Result<ExitCode, Trouble> {
    match spec.stage {
        Stage::PrintPlan => written::print(&spec.plan.to_toml())?,
        Stage::ShowPlan => written::print(&needs::listing(spec))?,
        Stage::Check => return check(spec),
        Stage::Run => {
            let site = Site::contact(spec)?;
            let spec = &site.adapted(spec);
            return runner::run(spec, site);
        }
    }
    Ok(ExitCode::Done)
}

/// Looks at both hosts and says what is missing.
fn check(spec: &LabSpec) -> Result<ExitCode, Trouble> {
    let site = Site::contact(spec)?;
    let keys = cells::keys(&cells::runs(&spec.plan, spec.phases));
    let hosts = needs::hosts(&site);
    let checks = needs::checks(spec, &site, &hosts, &keys);
    written::checks(&checks, spec.output.json)?;
    let has_failed = needs::has_failed(&checks);
    Ok(if has_failed {
        ExitCode::CheckFailed
    } else {
        ExitCode::Done
    })
}
