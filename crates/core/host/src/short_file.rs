//! Short files of `/proc` and `/sys`, read whole.

use std::fs;
use std::path::Path;

/// A short file as text without the line's end.
pub(crate) fn read(path: impl AsRef<Path>) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    Some(text.trim().to_owned())
}

/// A short file that holds a whole number.
pub(crate) fn read_number(path: impl AsRef<Path>) -> Option<i64> {
    read(path)?.parse().ok()
}
