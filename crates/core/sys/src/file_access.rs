//! Who besides this process may read or change a file, by its owner and its mode (inode(7)).

use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::privileges::effective_user;

/// Access to a file that other users must not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protected {
    /// Read or change it: it is a secret.
    Secret,
    /// Change it: it is trusted.
    Trusted,
    /// Change what is in it: a directory of such files.
    Directory,
}

/// Access that others have and must not have. Its text names the file, the access and the command
/// that ends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exposure {
    path: PathBuf,
    reason: Reason,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// Another user than root and that of this process owns it, and so may change its mode.
    Owner { owner: u32, own: u32 },
    Mode {
        mode: u32,
        access: &'static str,
        remedy: &'static str,
    },
}

/// Group and others may read or write.
const NOT_PRIVATE: u32 = 0o077;
/// Group or others may write.
const WRITABLE: u32 = 0o022;
/// Only the owner of a file may rename or remove it in the directory.
const STICKY: u32 = 0o1000;

/// Who has access to a file with this metadata and must not have it; `None` without one. A pipe or
/// a device has no content that others could read or change later.
pub fn exposure(path: &Path, metadata: &Metadata, protected: Protected) -> Option<Exposure> {
    let is_directory = protected == Protected::Directory;
    let is_concerned = if is_directory {
        metadata.is_dir()
    } else {
        metadata.is_file()
    };
    if !is_concerned {
        return None;
    }

    let reason = exposing(metadata.uid(), effective_user(), metadata.mode(), protected)?;
    Some(Exposure {
        path: path.to_owned(),
        reason,
    })
}

fn exposing(owner: u32, own: u32, mode: u32, protected: Protected) -> Option<Reason> {
    if owner != 0 && owner != own {
        return Some(Reason::Owner { owner, own });
    }

    let mode = mode & 0o7777;
    let (unwanted, access, remedy) = match protected {
        Protected::Secret => (NOT_PRIVATE, "read it", "600"),
        Protected::Trusted => (WRITABLE, "change it", "600"),
        Protected::Directory if mode & STICKY != 0 => return None,
        Protected::Directory => (WRITABLE, "replace files in it", "700"),
    };
    (mode & unwanted != 0).then_some(Reason::Mode {
        mode,
        access,
        remedy,
    })
}

impl fmt::Display for Exposure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        let word = shell_word(&self.path);

        match self.reason {
            Reason::Owner { owner, own } => {
                write!(
                    f,
                    "{path}: user {owner} owns it and may change it; as root: chown {own} {word}"
                )
            }
            Reason::Mode {
                mode,
                access,
                remedy,
            } => {
                write!(
                    f,
                    "{path}: mode {mode:04o} lets others {access}; chmod {remedy} {word}"
                )
            }
        }
    }
}

/// A path as one word of a shell command that is no option.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:,@".contains(c);
    let begin = if text.starts_with('-') { "./" } else { "" };
    if !text.is_empty() && text.chars().all(is_plain) {
        return format!("{begin}{text}");
    }

    format!("'{begin}{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: Protected = Protected::Secret;
    const TRUSTED: Protected = Protected::Trusted;
    const DIRECTORY: Protected = Protected::Directory;

    #[test]
    fn only_the_owner_and_root_may_have_access() {
        for (mode, is_secret, is_trusted) in [
            (0o100_600, true, true),
            (0o100_400, true, true),
            (0o100_644, false, true),
            (0o100_640, false, true),
            (0o100_620, false, false),
            (0o100_602, false, false),
        ] {
            assert_eq!(
                exposing(7, 7, mode, SECRET).is_none(),
                is_secret,
                "{mode:o}"
            );
            assert_eq!(
                exposing(7, 7, mode, TRUSTED).is_none(),
                is_trusted,
                "{mode:o}"
            );
        }

        for (mode, is_safe) in [
            (0o700, true),
            (0o755, true),
            (0o1777, true),
            (0o775, false),
            (0o757, false),
        ] {
            assert_eq!(
                exposing(7, 7, mode, DIRECTORY).is_none(),
                is_safe,
                "{mode:o}"
            );
        }

        for protected in [SECRET, TRUSTED, DIRECTORY] {
            for (owner, own, is_safe) in [
                (0, 0, true),
                (0, 7, true),
                (7, 7, true),
                (8, 7, false),
                (7, 0, false),
            ] {
                assert_eq!(
                    exposing(owner, own, 0o700, protected).is_none(),
                    is_safe,
                    "{owner} {own}"
                );
            }
        }

        assert!(
            exposure(
                Path::new("/dev/null"),
                &Path::new("/dev/null").metadata().expect("a device"),
                SECRET
            )
            .is_none()
        );
    }

    #[test]
    fn text_has_the_command_that_ends_the_access() {
        let text = |path: &str, reason: Option<Reason>| {
            Exposure {
                path: path.into(),
                reason: reason.expect("exposed"),
            }
            .to_string()
        };
        let mode = |mode: u32, protected: Protected| exposing(7, 7, mode, protected);
        assert_eq!(
            text("/a/k", mode(0o640, SECRET)),
            "/a/k: mode 0640 lets others read it; chmod 600 /a/k"
        );
        assert_eq!(
            text("-k", mode(0o620, TRUSTED)),
            "-k: mode 0620 lets others change it; chmod 600 ./-k"
        );

        let directory = text("/a b", mode(0o777, DIRECTORY));
        assert_eq!(
            directory,
            "/a b: mode 0777 lets others replace files in it; chmod 700 '/a b'"
        );
        let owner = text("/a'b", exposing(8, 7, 0o600, SECRET));
        assert_eq!(
            owner,
            "/a'b: user 8 owns it and may change it; as root: chown 7 '/a'\\''b'"
        );
    }
}
