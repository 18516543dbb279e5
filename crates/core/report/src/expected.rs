//! Texts that a reviewer has read, as files in `src/expected`.

use std::path::Path;

/// The text is the one of this file. With `UPDATE_SNAPSHOTS` set, the file is written instead.
pub(crate) fn assert_expected(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/expected")
        .join(name);
    if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, text).expect("a writable source folder");
    }

    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}");
}
