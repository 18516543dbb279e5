//! `linerate sweep`: joins the plan, the runs, the reasons and the reports.

mod network;

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use linerate_doctor::sweep_reasons;
use linerate_lab::sweep::{HostChoices, SettingSpace, Sweep, SweepSpec, sweep};
use linerate_lab::{Estimate, explore};
use linerate_report::sweep as report;
use linerate_sys::signal::{Signal, Signals};
use linerate_sys::{cpu, process};

use crate::exit_code::ExitCode;
use crate::run::progress::Progress;
use network::Network;

/// Destinations and forms of the reports.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct SweepOutput {
    pub(crate) json: bool,
    pub(crate) csv: Option<PathBuf>,
    pub(crate) html: Option<PathBuf>,
    pub(crate) quiet: bool,
}

/// Carries out a sweep.
///
/// # Errors
/// A command line that does not fit this host.
pub(crate) fn run(spec: &SweepSpec, output: &SweepOutput) -> Result<ExitCode, String> {
    let space = SettingSpace::new(spec, &host_choices())?;
    let plan = spec.plan(&space);
    let signals = match Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]) {
        Ok(signals) => signals,
        Err(error) => return Ok(complain(&error.text())),
    };
    // Many streams need many descriptors; without the right to raise the limit fewer fit.
    let _ = process::raise_fd_limit();
    let mut progress = Progress::new(output.quiet);
    let estimate = plan.estimate();
    announce(&mut progress, spec, estimate);
    let mut network = Network::new(spec, &space, &signals, progress);
    let outcome = explore(&plan, &mut network);
    let (log, ending) = network.finish();
    let sweep = sweep(spec, &space, &plan, estimate, &outcome, &log, sweep_reasons);
    let written = write_reports(output, &sweep, ending.has_result);
    Ok(match (&outcome.ended_by, written) {
        _ if ending.is_interrupted => ExitCode::Interrupted,
        (Some(reason), _) => complain(reason),
        (None, Err(trouble)) => complain(&trouble),
        (None, Ok(())) => ExitCode::Done,
    })
}

fn host_choices() -> HostChoices {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{name}")).unwrap_or_default();
    let available = read("tcp_available_congestion_control");
    let cpus = cpu::affinity().map(|affinity| affinity.cpus().filter_map(|cpu| u32::try_from(cpu).ok()).collect());
    HostChoices {
        congestion: available.split_whitespace().map(str::to_owned).collect(),
        congestion_in_use: read("tcp_congestion_control").trim().to_owned(),
        cpus: cpus.unwrap_or_default(),
    }
}

fn announce(progress: &mut Progress, spec: &SweepSpec, estimate: Estimate) {
    let names: Vec<&str> = spec.over.iter().map(|swept| swept.name).collect();
    progress.line(&format!(
        "{} over {}: about {} runs of {} s, {} in all",
        spec.host,
        names.join(", "),
        estimate.runs,
        spec.time_s + spec.omit_s,
        report::clock(estimate.time.as_secs_f64()),
    ));
    if estimate.runs_if_dependent > estimate.runs {
        progress.line(&format!(
            "Up to {} runs, {}, if the best level of one depends on the others; the budget is {}",
            estimate.runs_if_dependent,
            report::clock(estimate.time_if_dependent.as_secs_f64()),
            report::clock(spec.budget.as_secs_f64()),
        ));
    }
    if !estimate.fits {
        progress.line(&format!(
            "The budget of {} allows fewer of them; a longer --budget, fewer --repetitions or a narrower range may be \
             needed for an answer",
            report::clock(spec.budget.as_secs_f64())
        ));
    }
}

/// Writes the reports. Without any result only JSON is written: people have the reason.
fn write_reports(output: &SweepOutput, sweep: &Sweep, has_result: bool) -> Result<(), String> {
    let text = match (output.json, has_result) {
        (true, _) => report::json(sweep),
        (false, true) => report::text(sweep, crate::run::glyphs()),
        (false, false) => String::new(),
    };
    let printed = match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to the standard output: {error}"))
        }
        _ => Ok(()),
    };
    let write = |path: &Path, text: String| {
        fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    };
    let csv = output
        .csv
        .as_deref()
        .map_or(Ok(()), |path| write(path, report::csv(sweep)));
    let html = output
        .html
        .as_deref()
        .map_or(Ok(()), |path| write(path, report::html(sweep)));
    printed.and(csv).and(html)
}

fn complain(trouble: &str) -> ExitCode {
    // There is nowhere left to complain if stderr is gone.
    let _ = writeln!(io::stderr(), "linerate sweep: {trouble}");
    ExitCode::NotCompleted
}
