//! Files that are sent or received instead of generated payload.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use linerate_sys::{OsError, PageBuffer};

use crate::data::worker::{Sink, Source};

/// Opens the file to send; it is read in portions of a block.
pub(crate) fn source(path: &Path, block_len: usize) -> Result<Source, OsError> {
    let file = File::open(path).map_err(|source| named("open", path, source))?;
    Ok(Source::File {
        file,
        buffer: PageBuffer::zeroed(block_len.max(1))?,
        filled: 0,
        sent: 0,
    })
}

/// Opens the file to write; an older one is emptied.
pub(crate) fn sink(path: &Path) -> Result<Sink, OsError> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options
        .open(path)
        .map(Sink::File)
        .map_err(|source| named("open", path, source))
}

fn named(operation: &'static str, path: &Path, source: std::io::Error) -> OsError {
    OsError::new(operation, path.display(), source)
}
