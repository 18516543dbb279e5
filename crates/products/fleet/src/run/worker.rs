//! `linerate fleet worker`: one process per test as client, and one per address as server.
//!
//! A worker takes lines of JSON on its standard input and writes lines of JSON (module `lines`). It
//! ends with its input, and with the thread that started it.

mod client;
pub(crate) mod lines;
mod server;
mod task_events;

use linerate_model::record::RunId;
use linerate_sys::child::die_with_parent;

use lines::{FromWorker, ToWorker, WorkerInput, emit};
pub(super) use task_events::totals;

use linerate_model::outcome::Error;

/// Runs a worker of a run until its task is done, or its input ends. A failure is also a line of
/// its output.
///
/// # Errors
/// No task, or one that cannot be run.
pub fn run(run: RunId) -> Result<(), Error> {
    let ended = work(run);
    if let Err(error) = &ended {
        emit(&FromWorker::Failed(error.to_string()));
    }
    ended
}

fn work(run: RunId) -> Result<(), Error> {
    if !die_with_parent().map_err(Error::failed)? {
        return Ok(());
    }

    let input = WorkerInput::open().map_err(Error::failed)?;
    match input.next_until(None) {
        Some(ToWorker::Client(task)) => {
            client::run(run, &task, &input);
            Ok(())
        }
        Some(ToWorker::Server(task)) => server::run(run, &task, &input).map_err(Error::failed),
        Some(_) => Err(Error::usage("the first line is no task")),
        None if input.is_garbled() => Err(Error::usage("the first line is none of an agent")),
        // The agent ended, or has no task.
        None => Ok(()),
    }
}
