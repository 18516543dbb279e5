//! Short files of `/proc` and `/sys`, read whole, and the names in their directories.

use std::fs;
use std::path::{Path, PathBuf};

/// A short file as text without the line's end.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// Entries of a directory; none of one that cannot be read.
pub(crate) fn entries(directory: impl AsRef<Path>) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Names of the entries of a directory.
pub(crate) fn names(directory: impl AsRef<Path>) -> impl Iterator<Item = String> {
    entries(directory).filter_map(|path| Some(path.file_name()?.to_str()?.to_owned()))
}

/// A short file that holds a whole number.
pub(crate) fn read_number(path: impl AsRef<Path>) -> Option<i64> {
    read(path)?.parse().ok()
}
