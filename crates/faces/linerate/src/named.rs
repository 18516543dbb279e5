//! Runs that a command line names: of the history, or in a file.

use linerate_model::record::RunRecord;
use linerate_store::{Place, is_file_name};

use crate::Error;
use crate::history::error;
use crate::import::runs_in;

/// The records of a name. A file may be a record, a page of one, or any report that can be
/// imported.
///
/// # Errors
/// A name of no run, and a file that cannot be read or has no run.
pub(crate) fn load_named(place: Option<&Place>, name: &str) -> Result<Vec<RunRecord>, Error> {
    if is_file_name(name) {
        return runs_in(name);
    }
    linerate_store::load_named(place, name).map_err(error)
}
