//! Texts that a reviewer has read, as files below a crate's folder `src/expected`.

use std::path::Path;

/// The text is the one of this file of the crate. With `UPDATE_SNAPSHOTS` set, the file is written
/// instead.
///
/// # Panics
///
/// Where they differ.
pub fn assert_expected_in(crate_folder: &str, name: &str, text: &str) {
    let path = Path::new(crate_folder).join("src/expected").join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).expect("a writable source folder");
    }

    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}");
}
