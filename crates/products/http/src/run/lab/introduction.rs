//! The experiment in words, before it begins.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use linerate_model::outcome::Error;

use super::spec::LabSpec;
use super::target::TargetServer;
use crate::run::progress::SecondsPrinter;
use crate::run::{OpenView, protocol_name};

/// The progress of an experiment, whose first lines have the target and the time. Asks the user
/// where a stranger's server would carry the load.
pub(super) fn introduced(
    spec: &LabSpec,
    target: &TargetServer,
    open_view: OpenView,
    runs: usize,
    expected: Duration,
) -> Result<SecondsPrinter, Error> {
    let count = u32::try_from(runs).unwrap_or(u32::MAX);
    let mut progress =
        SecondsPrinter::of_experiment(spec.output.quiet, spec.output.json_stream, count);

    target
        .server
        .iter()
        .flat_map(|side| &side.remarks)
        .for_each(|remark| progress.line(remark));
    progress.line(&introduction(target, expected));
    if spec.asks_first && !target.claims.is_ours && !target.is_local() && !is_wanted()? {
        return Err(Error::failed("cancelled by the user"));
    }

    if let Some(view) = spec.output.tui.then(open_view).flatten() {
        progress.show(view, target.url.to_string());
    }

    Ok(progress)
}

/// Circumstances a reader of the report must know.
pub(super) fn circumstances(target: &TargetServer) -> Vec<String> {
    let mut notes = Vec::new();
    if target.server.is_none() {
        notes.push(
            "no control channel at the server: what its host did is unknown, and so are the \
             verdicts that need it; `linerate http serve --token-file FILE` opens one for other \
             hosts"
                .to_owned(),
        );
    }

    if !target.has_sizes {
        let why = if target.url.path == "/" {
            "the server has no payloads of linerate's"
        } else {
            "the URL names a path"
        };
        notes.push(format!(
            "{why}: every cell asks for {}, {} bytes",
            target.url.path, target.answer.body_bytes
        ));
    }

    notes
}

fn introduction(target: &TargetServer, time: Duration) -> String {
    let protocol = protocol_name(&target.answer.protocol);
    let whose = match (&target.server, target.claims.is_ours) {
        (Some(side), true) => format!("linerate {}", side.info.version),
        (Some(_), false) => "watched by an agent".to_owned(),
        (None, _) => "nothing is known of its host".to_owned(),
    };
    format!(
        "{} at {}: {protocol}status {}, {whose}; about {} in all",
        target.url,
        target.address(),
        target.answer.status,
        linerate_model::numbers::clock(time.as_secs_f64()),
    )
}

/// Asks the user whether to continue; without a terminal the command line is the answer.
pub(in crate::run) fn is_wanted() -> Result<bool, Error> {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return Ok(true);
    }

    let error = |error: io::Error| Error::failed(format!("cannot ask: {error}"));
    write!(io::stderr(), "Start the load? [y/N] ").map_err(error)?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).map_err(error)?;

    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}
