//! `linerate http load`: one load against a server, and the report of it.

mod baseline;
mod planned;
mod report;
mod spec;

use std::io;

use linerate_document::progress::Progress;
use linerate_model::outcome::{Error, Outcome};
use linerate_sys::process;

use super::lab::is_wanted;
use super::progress::SecondsPrinter;
use super::{OpenView, Stop};
use crate::load;
use planned::PlannedLoad;
use report::Reporting;

pub use spec::{LoadEnd, LoadPlan};

/// Runs a load: probes the server, sends requests, reports what was measured.
///
/// # Errors
/// Options that this host or the server does not allow, or a server that does not answer.
pub fn run(plan: &LoadPlan, open_view: OpenView) -> Result<LoadEnd, Error> {
    let mut printer =
        SecondsPrinter::new(Progress::new(plan.output.quiet), plan.output.json_stream);
    let mut load = PlannedLoad::resolve(plan)?;
    let introduction = load.introduction();
    load.remarks()
        .chain([introduction.as_str()])
        .for_each(|remark| printer.line(remark));

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
    if let Some(view) = plan.output.tui.then(open_view).flatten() {
        printer.show(view, load.target.to_string());
    }
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
