//! Runs that a command line names: of the history, or in a file.

use linerate_model::outcome::Error;
use linerate_model::record::{RunId, RunRecord};
use linerate_store::{Place, Store, is_file_name};

use super::import::runs_in;

/// The records of a name. A file may be a record, a page of one, or any report that can be
/// imported.
///
/// # Errors
/// A name of no run, and a file that cannot be read or has no run.
pub fn load_named(place: Option<&Place>, name: &str) -> Result<Vec<RunRecord>, Error> {
    if is_file_name(name) {
        return runs_in(name);
    }
    linerate_store::load_named(place, name).map_err(Error::from)
}

/// The only run of a name in a store.
///
/// # Errors
/// A name of no run, or of several.
pub fn one(store: &Store, name: &str) -> Result<RunId, Error> {
    match &*store.resolve(name)? {
        [run] => Ok(*run),
        several => Err(Error::usage(format!(
            "{name:?} names {} runs, and one is needed",
            several.len()
        ))),
    }
}
