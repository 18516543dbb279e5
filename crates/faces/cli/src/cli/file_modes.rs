//! Files of a server that others than their owner may read or change.

use std::fs;
use std::path::Path;

use linerate_sys::file_access::{Protected, exposure};

/// Access that others have to this file, which holds a secret. `what` names its content.
pub(crate) fn secret(what: &str, path: &Path) -> Option<String> {
    exposed(what, path, Protected::Secret)
}

/// Access by which others can change this file.
pub(crate) fn trusted(what: &str, path: &Path) -> Option<String> {
    exposed(what, path, Protected::Trusted)
}

/// A file without metadata is reported by who opens it.
fn exposed(what: &str, path: &Path, protected: Protected) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    exposure(path, &metadata, protected).map(|exposure| format!("{what} {exposure}"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_what_others_may_read_or_change_is_reported() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let set = |mode| {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode))
                .expect("the file is ours");
        };

        for (mode, is_secret, is_trusted) in [
            (0o600, true, true),
            (0o400, true, true),
            (0o644, false, true),
            (0o640, false, true),
            (0o620, false, false),
            (0o602, false, false),
        ] {
            set(mode);
            assert_eq!(secret("key", file.path()).is_none(), is_secret, "{mode:o}");
            assert_eq!(
                trusted("users", file.path()).is_none(),
                is_trusted,
                "{mode:o}"
            );
        }

        let text = secret("private key", file.path()).expect("a warning");
        assert!(
            text.contains("mode 0602") && text.contains("chmod 600"),
            "{text}"
        );
        assert_eq!(secret("key", Path::new("/dev/null")), None);
        assert_eq!(secret("key", Path::new("/nowhere")), None);
    }
}
