//! `linerate sweep`: joins the plan, the runs, the reasons and the reports.

mod findings;
mod network;
mod space;

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use linerate_lab::{Better, Estimate, Plan, explore};
use linerate_report::sweep::{self as report, Objective, Sweep};
use linerate_sys::process;
use linerate_sys::signal::{Signal, Signals};

use crate::cli::sweep::SweepSpec;
use crate::exit_code::ExitCode;
use crate::run::teller::Teller;
use network::Network;
use space::Space;

/// How sure an answer must be.
const CONFIDENCE: f64 = 0.95;
/// Settings this close to the best one are as good: what nobody would change a setting for.
const TOLERANCE: f64 = 0.03;

/// Carries out a sweep.
///
/// # Errors
/// What is wrong with the command line, which only a look at this host can tell.
pub(crate) fn run(spec: &SweepSpec) -> Result<ExitCode, String> {
    let space = Space::new(spec)?;
    let plan = plan(spec, &space);
    let signals = match Signals::new(&[Signal::Interrupt, Signal::Terminate, Signal::Hangup]) {
        Ok(signals) => signals,
        Err(error) => return Ok(complain(&error.text())),
    };
    // Many streams need many descriptors; without the right to raise the limit fewer fit.
    let _ = process::raise_fd_limit();
    let teller = Teller::new(spec.output.quiet);
    let estimate = plan.estimate();
    announce(&teller, spec, estimate);
    let mut network = Network::new(spec, &space, &signals, teller);
    let outcome = explore(&plan, &mut network);
    let log = network.finish();
    let sweep = findings::sweep(spec, &space, &plan, estimate, &outcome, &log);
    let written = write_reports(spec, &sweep, log.has_result);
    Ok(match (&outcome.ended_by, written) {
        _ if log.is_interrupted => ExitCode::Interrupted,
        (Some(reason), _) => complain(reason),
        (None, Err(trouble)) => complain(&trouble),
        (None, Ok(())) => ExitCode::Done,
    })
}

fn plan(spec: &SweepSpec, space: &Space<'_>) -> Plan {
    Plan {
        factors: space.factors(),
        better: match spec.objective {
            Objective::Throughput => Better::Higher,
            Objective::CpuPerByte | Objective::Latency => Better::Lower,
        },
        repetitions: spec.repetitions,
        seed: spec.seed,
        run_time: network::run_time(spec),
        budget: spec.budget,
        confidence: CONFIDENCE,
        tolerance: TOLERANCE,
    }
}

fn announce(teller: &Teller, spec: &SweepSpec, estimate: Estimate) {
    let names: Vec<&str> = spec.over.iter().map(|swept| swept.name).collect();
    teller.say(&format!(
        "{} over {}: about {} runs of {} s, {} in all",
        spec.host,
        names.join(", "),
        estimate.runs,
        spec.time_s + spec.omit_s,
        report::clock(estimate.time.as_secs_f64()),
    ));
    if estimate.runs_if_dependent > estimate.runs {
        teller.say(&format!(
            "Up to {} runs, {}, if the best level of one depends on the others; the budget is {}",
            estimate.runs_if_dependent,
            report::clock(estimate.time_if_dependent.as_secs_f64()),
            report::clock(spec.budget.as_secs_f64()),
        ));
    }
    if !estimate.fits {
        teller.say(&format!(
            "The budget of {} allows fewer of them; a longer --budget, fewer --repetitions or a narrower range may be \
             needed for an answer",
            report::clock(spec.budget.as_secs_f64())
        ));
    }
}

/// Writes what was asked for. Without any result only programs get a report: people have the reason.
fn write_reports(spec: &SweepSpec, sweep: &Sweep, has_result: bool) -> Result<(), String> {
    let text = match (spec.output.json, has_result) {
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
    let csv = spec
        .output
        .csv
        .as_deref()
        .map_or(Ok(()), |path| write(path, report::csv(sweep)));
    let html = spec
        .output
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
