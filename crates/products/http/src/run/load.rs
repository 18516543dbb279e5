//! `linerate http load`: one load against a server, and the report of it.

mod baseline;
mod planned;
mod progress;
mod report;

use std::io;

use linerate_document::progress::Progress;
use linerate_history::run::record::RecordOptions;
use linerate_model::outcome::{Error, Outcome};
use linerate_model::record::Trial;
use linerate_sys::process;

use super::generator::Opening;
use super::lab::is_wanted;
use super::server_side::ControlPath;
use super::signals::Stop;
use super::{Embedding, Output};
use crate::load::{self, LoadSpec};
use crate::safety_limits::TargetOwnership;
use crate::target::Target;
use planned::PlannedLoad;
use progress::SecondsPrinter;
use report::Reporting;

/// A load as far as the command line determines it.
#[derive(Debug, Clone)]
pub struct LoadPlan {
    /// The server and the path.
    pub target: Target,
    /// The load; the addresses of the server, the device's addresses and the port settings of this
    /// host are added.
    pub spec: LoadSpec,
    /// Statements about the ownership of the server.
    pub claims: TargetOwnership,
    /// Access to the control channel of the server.
    pub control: ControlPath,
    /// Settings that this host resolves: threads, processes, addresses.
    pub opening: Opening,
    /// True if the user is asked before a load on a foreign server.
    pub asks_first: bool,
    /// True if the load continues although the server fails.
    pub tolerates_failures: bool,
    /// Rate of the path in bit/s as the user knows it.
    pub line_rate_bps: Option<f64>,
    /// True if the text contains everything that was counted.
    pub is_verbose: bool,
    /// Form of the output.
    pub output: Output,
    /// Where the record goes.
    pub record: RecordOptions,
}

impl LoadPlan {
    /// A load that is not confirmed, ends when the server fails, and keeps no record. The control
    /// channel and what this host resolves have their defaults.
    #[must_use]
    pub fn new(target: Target, spec: LoadSpec, claims: TargetOwnership) -> Self {
        Self {
            target,
            spec,
            claims,
            control: ControlPath::default(),
            opening: Opening::default(),
            asks_first: false,
            tolerates_failures: false,
            line_rate_bps: None,
            is_verbose: false,
            output: Output::default(),
            record: RecordOptions::default(),
        }
    }
}

/// End of a load.
#[derive(Debug)]
pub struct LoadEnd {
    /// The exit code.
    pub outcome: Outcome,
    /// The measurement; `None` of a load that the user did not want.
    pub trial: Option<Trial>,
    /// Message for the user about the record.
    pub record_message: Option<String>,
}

/// Runs a load: probes the server, sends requests, reports what was measured.
///
/// # Errors
/// Options that this host or the server does not allow, or a server that does not answer.
pub fn run(plan: &LoadPlan, embedding: Embedding) -> Result<LoadEnd, Error> {
    let mut progress = Progress::new(plan.output.quiet);
    let mut load = PlannedLoad::resolve(plan, embedding)?;
    let introduction = load.introduction();
    load.remarks()
        .chain([introduction.as_str()])
        .for_each(|remark| progress.line(remark));

    load.refuse_redirection()?;
    if load.needs_confirmation(plan.asks_first) && !is_wanted()? {
        return Ok(LoadEnd {
            outcome: Outcome::NotCompleted,
            trial: None,
            record_message: None,
        });
    }

    // Before the thread of a view, which would otherwise take the signals.
    let mut stop = Stop::new()?;
    let view = plan.output.tui.then(embedding.open_view).flatten();
    let mut printer = SecondsPrinter::new(progress, view, plan.output.json_stream, &load);
    let reporting = Reporting::begin(&load, plan.output, plan.is_verbose, &plan.record);

    let kept = baseline::measure(&mut load, &mut stop);
    let remarks = baseline::remarks(&kept);
    remarks.iter().for_each(|remark| printer.line(remark));

    // The view ends with its printer, before the report is written.
    let measured = load.measure(&mut stop, printer);
    reporting.end(
        &load,
        measured,
        kept,
        &[vec![introduction], remarks].concat(),
    )
}

/// Runs the workers a parent assigns over standard input, and reports over standard output.
///
/// # Errors
/// An assignment that cannot be read, or a lost parent.
pub fn work() -> Result<(), Error> {
    // Each process has its own limit, which is its purpose.
    let _ = process::raise_fd_limit();
    load::work(io::stdin(), io::stdout()).map_err(|error| Error::failed(format!("worker: {error}")))
}
