//! `linerate fleet cancel`: ends an active run.
//!
//! The coordinator of a run over ssh is a process of this host, which the history names while the
//! run is active. At `SIGTERM` it ends the tests at all hosts, and its record states which of them
//! confirmed that.

use std::time::Duration;

use linerate_history::run::named::one;
use linerate_model::record::{Body, RunId, RunKind, RunState};
use linerate_store::{Filter, Place, Store};
use linerate_sys::OsError;
use linerate_sys::other_process::OtherProcess;

use linerate_model::outcome::Error;

/// Longest wait for the end of the coordinator: 2 s until all hosts confirm, 3 s until connections
/// end, and its report.
const END_MAX: Duration = Duration::from_secs(15);

/// A run that was ended.
#[derive(Debug)]
pub struct Cancelled {
    /// The run.
    pub run: RunId,
    /// Its hosts that confirmed that nothing runs any more.
    pub confirmed: Vec<String>,
    /// Those that did not.
    pub unconfirmed: Vec<String>,
}

/// Ends the run of this name in a history, or the only active one, and waits for its coordinator.
///
/// # Errors
/// There is no such run, its coordinator is on another host or of another user, or it does not end.
pub fn cancel(name: Option<&str>, store: Option<&str>) -> Result<Cancelled, Error> {
    let store = opened(store)?;
    let run = match name {
        Some(name) => one(&store, name)?,
        None => only_running(&store)?,
    };
    let id = run.short();

    let Some(process) = store.process_of(run)? else {
        return Err(Error::usage(format!("run {id} has finished")));
    };
    let Some(pid) = process.pid else {
        let host = process.host;
        return Err(Error::failed(format!(
            "the coordinator of run {id} is a process of {host}; cancel it there"
        )));
    };
    end(&store, run, pid)?;

    let record = store.load(run)?;
    let Body::Fleet(found) = &record.body else {
        return Err(Error::usage(format!("run {id} is none of a fleet")));
    };
    let unconfirmed: Vec<String> = found.unconfirmed.iter().map(ToString::to_string).collect();

    // A run that had not begun has no hosts yet, and at a server without an agent nothing has to
    // end.
    let mut confirmed = Vec::new();
    if let Some(report) = &found.report {
        for host in &report.header.hosts {
            let id = host.id.to_string();
            let is_known = record.hosts.iter().any(|known| known.role == id);
            if is_known && !host.is_target_only && !unconfirmed.contains(&id) {
                confirmed.push(id);
            }
        }
    }

    Ok(Cancelled {
        run,
        confirmed,
        unconfirmed,
    })
}

/// The mark of a coordinator.
pub(super) fn mark(run: RunId) -> String {
    format!("linerate-fleet-{run}")
}

fn not_coordinator(run: RunId, pid: u32) -> Error {
    let id = run.short();
    Error::failed(format!(
        "the history names process {pid}, but process {pid} does not coordinate run {id} and gets \
         no signal; end the run where it was started, with Ctrl-C: `pgrep -af 'linerate fleet'` \
         lists such processes"
    ))
}

/// The history of `--store`.
pub(super) fn opened(store: Option<&str>) -> Result<Store, Error> {
    let place =
        Place::find(store)?.ok_or_else(|| Error::usage("--store off: there is no history"))?;
    Store::open_existing(&place).map_err(Error::from)
}

fn only_running(store: &Store) -> Result<RunId, Error> {
    let filter = Filter {
        kind: Some(RunKind::Fleet),
        state: Some(RunState::Running),
        ..Filter::default()
    };

    match store.list(&filter)?.as_slice() {
        [] => Err(Error::usage("no fleet run is active")),
        [row] => Ok(row.run_id),
        rows => {
            let ids: Vec<String> = rows.iter().map(|row| row.run_id.short()).collect();
            let ids = ids.join(", ");
            let text = format!("several fleet runs are active; specify one: {ids}");
            Err(Error::usage(text))
        }
    }
}

fn end(store: &Store, run: RunId, pid: u32) -> Result<(), Error> {
    let failed = |error: OsError| Error::failed(error.text());
    let coordinator = OtherProcess::open(pid).map_err(failed)?;

    // Asked again: the number may have come to mean another process before it was opened.
    let process = store.process_of(run)?;
    if process.is_some_and(|process| process.pid == Some(pid)) {
        // A history is a file or a database that others may write: it alone is no reason to end a
        // process.
        if !coordinator.has_mark(&mark(run)).unwrap_or(false) {
            return Err(not_coordinator(run, pid));
        }

        coordinator.terminate().map_err(failed)?;
    }

    if coordinator.ends_within(END_MAX).map_err(Error::failed)? {
        return Ok(());
    }
    let seconds = END_MAX.as_secs();
    Err(Error::failed(format!(
        "process {pid} has not ended within {seconds} s"
    )))
}
