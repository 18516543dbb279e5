//! Warnings about files of a server that others than their owner may read or change.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// A warning when group or others may read or write this file, which holds a secret. `what` names its content.
pub(crate) fn secret(what: &str, path: &Path) -> Option<String> {
    warning(what, path, 0o077, "read")
}

/// A warning when group or others may write to this file.
pub(crate) fn trusted(what: &str, path: &Path) -> Option<String> {
    warning(what, path, 0o022, "change")
}

/// Warns of a regular file with one of these permissions. What cannot be looked at is reported by who opens it; a pipe
/// or a device has no content that others could read later.
fn warning(what: &str, path: &Path, unwanted: u32, verb: &str) -> Option<String> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let mode = metadata.permissions().mode() & 0o7777;
    let path = path.display();
    (mode & unwanted != 0).then(|| format!("{what} {path}: mode {mode:04o} lets others {verb} it; chmod 600 {path}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_others_may_read_or_change_is_reported() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let set = |mode| fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).expect("the file is ours");
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
            assert_eq!(trusted("users", file.path()).is_none(), is_trusted, "{mode:o}");
        }
        let text = secret("private key", file.path()).expect("a warning");
        assert!(text.contains("mode 0602") && text.contains("chmod 600"), "{text}");
        assert_eq!(secret("key", Path::new("/dev/null")), None);
        assert_eq!(secret("key", Path::new("/nowhere")), None);
    }
}
