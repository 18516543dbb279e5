//! The command line of `linerate http lab`.

use std::path::{Path, PathBuf};

use clap::Args;
use linerate_http::protocol::Protocol;

use linerate_http::plan::cells::Phases;
use linerate_http::plan::{Plan, TEXT_BYTES_MAX};
use linerate_http::target::Target;
use linerate_sys::error::io_text;
use linerate_sys::file_system;

use super::OutputArgs;
use super::protocol::{self, ProtocolArgs};
use super::target_access::{ControlAccess, SafetyArgs};
use crate::record::RecordArgs;

use linerate::http::lab::{Directory, LabSpec, PLAN_FILE, Stage};

/// An experiment: what it is about, which parts of it, and how it is reported.
#[derive(Debug, Args)]
#[command(after_help = NOTES)]
pub(crate) struct LabArgs {
    /// The server; with a path other than /, that path is asked for instead of linerate's payloads
    #[arg(value_name = "URL")]
    url: Option<String>,
    /// Plan file, TOML; --print-plan writes one with every key explained
    #[arg(value_name = "PLAN")]
    plan: Option<PathBuf>,
    /// Parts: 0 TCP alone, 1 payloads, 2 payloads by connections, 3 ten thousand connections
    #[arg(long, value_name = "PHASES", value_parser = Phases::parse)]
    phases: Option<Phases>,
    /// One short run of each cell: minutes instead of half an hour
    #[arg(long)]
    quick: bool,
    /// Only check whether both hosts can do what the plan needs, and say what to change; nothing is
    /// changed
    #[arg(long, conflicts_with_all = ["plan_only", "print_plan", "resume"])]
    check: bool,
    /// Only show what would be run, how long it would take and what it needs
    #[arg(long, conflicts_with = "print_plan")]
    plan_only: bool,
    /// Only write the plan as a file with every key
    #[arg(long)]
    print_plan: bool,
    /// Run what the checks advise against, and continue in a changed environment
    #[arg(long)]
    force: bool,
    /// Exit with 5 when the plan's slo table is missed
    #[arg(long)]
    assert: bool,
    /// Keep the runs in this directory [default: linerate-http-DATE]
    #[arg(long, value_name = "DIR", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Resume an interrupted experiment; finished cells are not repeated
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// Rate of the path in bit/s, such as 1G, for the ceiling of the network [default: measured, or
    /// that of the link]
    #[arg(long, value_name = "RATE", value_parser = linerate_http::plan::line_rate)]
    line_rate: Option<f64>,
    #[command(flatten)]
    protocol: ProtocolArgs,
    #[command(flatten)]
    control: ControlAccess,
    #[command(flatten)]
    safety: SafetyArgs,
    #[command(flatten, next_help_heading = "Report")]
    output: OutputArgs,
    /// Write all tables: each cell, its limit, checks and both hosts
    #[arg(short, long)]
    verbose: bool,
    /// Write the report as one HTML file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    #[command(flatten)]
    record: RecordArgs,
}

const NOTES: &str = "\
Examples:
  server$ linerate http serve --token-file t
  client$ linerate http lab http://192.0.2.7:8080 --token-file t --html report.html
  client$ linerate http lab http://192.0.2.7:8080 --check --token-file t
  client$ linerate http lab https://192.0.2.7:8443 --phases 2 --h2 -m 8 --pin-sha256 HEX --token-file t
  client$ linerate http lab --resume linerate-http-20260131-120000 --token-file t

Ctrl-C ends it after the current second with what is known until then; twice ends it at once.

Exit codes: 0 done, 1 not completed, 2 wrong command line, 3 a check failed, 4 no answer from \
the server, 5 --assert missed, 6 more than a fifth of the cells say nothing, 130 interrupted.";

impl LabArgs {
    /// # Errors
    /// What is wrong with the command line or the plan file.
    pub(crate) fn resolve(&self) -> Result<LabSpec, String> {
        let (url, file) = positional(self.url.as_deref(), self.plan.as_deref());
        // A resumed experiment has its plan in its directory.
        let kept = self
            .resume
            .as_ref()
            .map(|directory| directory.join(PLAN_FILE));
        let mut plan = read_plan(file.as_deref().or(kept.as_deref()))?;

        if self.quick {
            plan = plan.quick();
        }

        plan.line_rate_bps = self.line_rate.or(plan.line_rate_bps);
        let stage = match (self.print_plan, self.plan_only, self.check) {
            (true, _, _) => Stage::PrintPlan,
            (_, true, _) => Stage::ShowPlan,
            (_, _, true) => Stage::Check,
            _ => Stage::Run,
        };
        let (target, protocol) = server(url, &self.protocol, &mut plan, stage)?;
        let claims = self.safety.claims(&target)?;
        Ok(LabSpec {
            target,
            protocol,
            plan,
            stage,
            claims,
            phases: self.phases.unwrap_or(Phases::ALL),
            control: self.control.resolve()?,
            asks_first: !self.safety.yes,
            tolerates_failures: self.safety.no_breaker,
            is_forced: self.force,
            asserts: self.assert,
            directory: match &self.resume {
                Some(directory) => Directory::Resumed(directory.clone()),
                None => Directory::New(self.out.clone()),
            },
            output: self.output.resolve(),
            is_verbose: self.verbose,
            // Only a run has results to record.
            record: self.record.resolve(stage == Stage::Run)?,
            html: self.html.clone(),
        })
    }
}

/// A word that is no URL is the plan file, with its target.
fn positional(url: Option<&str>, plan: Option<&Path>) -> (Option<String>, Option<PathBuf>) {
    match (url, plan) {
        (Some(word), None) if !word.contains("://") => (None, Some(PathBuf::from(word))),
        (url, plan) => (url.map(str::to_owned), plan.map(Path::to_path_buf)),
    }
}

fn read_plan(path: Option<&Path>) -> Result<Plan, String> {
    let Some(path) = path else {
        return Ok(Plan::default());
    };
    let trouble = |error: std::io::Error| {
        format!(
            "cannot read the plan {}: {}",
            path.display(),
            io_text(&error)
        )
    };
    let text = file_system::read_text(path, TEXT_BYTES_MAX as u64).map_err(trouble)?;

    Plan::parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The server that is named on the command line, or in the plan, and its protocol; both become part
/// of the plan.
fn server(
    url: Option<String>,
    args: &ProtocolArgs,
    plan: &mut Plan,
    stage: Stage,
) -> Result<(Target, Protocol), String> {
    plan.protocol = args.over(&plan.protocol)?;
    plan.target = url.or_else(|| plan.target.take());

    let Some(url) = &plan.target else {
        return match stage {
            // A plan may leave the server to those who use it.
            Stage::PrintPlan => Ok((
                PLACEHOLDER.parse().map_err(|error| format!("{error}"))?,
                Protocol::default(),
            )),
            _ => Err("no server: name it as http://HOST:PORT, or as target in the plan".to_owned()),
        };
    };
    let target: Target = url.parse().map_err(|error| format!("{error}"))?;
    let protocol = protocol::resolve(&plan.protocol, &target)?;

    Ok((target, protocol))
}

const PLACEHOLDER: &str = "http://127.0.0.1:8080/";
