//! Errors of the system about files.

use std::io;
use std::path::Path;

use linerate_model::outcome::Error;
use linerate_sys::error::io_text;

/// An error of the system about a file.
pub(super) fn at(path: &Path) -> impl Fn(io::Error) -> Error {
    move |error| Error::failed(format!("{}: {}", path.display(), io_text(&error)))
}
