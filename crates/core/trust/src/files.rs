//! Files of secrets: read under a bound and only when they are private, written by rename.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use linerate_sys::file_access::{Exposure, Protected, exposure};
use linerate_sys::random;

/// Why a file of secrets cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The operating system refuses.
    #[error("{operation} {}: {source}", .path.display())]
    Io {
        /// The failed operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Other users have access that they must not have.
    #[error("{0}")]
    Exposed(Exposure),
    /// Longer than any such file.
    #[error("{}: longer than {bytes_max} bytes", .path.display())]
    TooLong {
        /// The file.
        path: PathBuf,
        /// Upper bound.
        bytes_max: u64,
    },
}

impl FileError {
    /// An error of the operating system.
    pub(crate) fn io(operation: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            operation,
            path: path.to_owned(),
            source,
        }
    }

    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// Reads a file that its owner alone may read.
pub(crate) fn read_private(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let file = open(path)?;
    // The mode is that of the open file: a rename after open(2) cannot exchange it.
    refuse_exposed(path, &file, Protected::Secret)?;
    read(path, &file, bytes_max)
}

/// Reads a file that its owner alone may change.
pub(crate) fn read_trusted(path: &Path, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let file = open(path)?;
    refuse_exposed(path, &file, Protected::Trusted)?;
    read(path, &file, bytes_max)
}

fn open(path: &Path) -> Result<File, FileError> {
    File::open(path).map_err(FileError::io("open", path))
}

fn refuse_exposed(path: &Path, file: &File, protected: Protected) -> Result<(), FileError> {
    let metadata = file.metadata().map_err(FileError::io("stat", path))?;
    exposure(path, &metadata, protected)
        .map_or(Ok(()), |exposure| Err(FileError::Exposed(exposure)))
}

fn read(path: &Path, file: &File, bytes_max: u64) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    // One byte beyond the bound distinguishes a file that is too long from one that fills it.
    file.take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(FileError::io("read", path))?;
    if bytes.len() as u64 > bytes_max {
        return Err(FileError::TooLong {
            path: path.to_owned(),
            bytes_max,
        });
    }

    Ok(bytes)
}

/// Creates a file with these bytes, mode 0600. `false` when another process created one meanwhile,
/// which is left as it is.
pub(crate) fn create(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let part = Part::write(path, bytes)?;
    // A link fails where a rename would replace the key that a second server has just created.
    match fs::hard_link(&part.0, path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        // Not every file system has links.
        Err(_) => part.rename(path).map(|()| true),
    }
}

/// Replaces a file with these bytes, or creates it, mode 0600. Its directory is created when it
/// does not exist.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    // A rename would replace a symbolic link instead of the file it leads to.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if let Some(directory) = path
        .parent()
        .filter(|directory| !directory.as_os_str().is_empty())
    {
        let mut builder = fs::DirBuilder::new();
        builder
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(FileError::io("create", directory))?;
    }

    Part::write(&path, bytes)?.rename(&path)
}

/// A complete file under a temporary name in the directory of its later place. Removed when
/// dropped.
struct Part(PathBuf);

impl Part {
    fn write(path: &Path, bytes: &[u8]) -> Result<Self, FileError> {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or("file");
        // Two processes that write at the same moment do not share a part.
        let part = Self(path.with_file_name(format!(".{name}.{}", random::hexadecimal::<8>())));

        // O_EXCL of open(2) follows no symbolic link that another user has placed there.
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&part.0);
        let mut file = opened.map_err(FileError::io("create", path))?;
        // Without fsync(2) a crash after the rename can leave an empty file.
        file.write_all(bytes)
            .and_then(|()| file.sync_all())
            .map_err(FileError::io("write", path))?;

        Ok(part)
    }

    fn rename(self, path: &Path) -> Result<(), FileError> {
        fs::rename(&self.0, path).map_err(FileError::io("write", path))
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // Absent after a rename.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o7777
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory");
        entries
            .map(|entry| {
                entry
                    .expect("an entry")
                    .file_name()
                    .into_string()
                    .expect("a name")
            })
            .collect()
    }

    #[test]
    fn created_files_are_private_and_never_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f");
        assert!(create(&path, b"one").expect("created"));
        assert!(!create(&path, b"two").expect("exists"));
        assert_eq!(fs::read(&path).expect("a file"), b"one");
        assert_eq!(mode(&path), 0o600);
        assert_eq!(names(directory.path()), ["f"], "no temporary file remains");
    }

    #[test]
    fn replaced_files_are_private_and_keep_symbolic_links() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("new/f");
        replace(&path, b"one").expect("created with its directory");
        assert_eq!(mode(path.parent().expect("a directory")), 0o700);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("our file");

        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        replace(&link, b"two").expect("replaced");
        assert_eq!(fs::read(&path).expect("a file"), b"two");
        assert_eq!(mode(&path), 0o600);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(names(path.parent().expect("a directory")), ["f"]);
    }

    #[test]
    fn modes_that_give_others_access_are_refused_with_the_remedy() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for (mode, is_private, is_trusted) in [
            (0o600, true, true),
            (0o400, true, true),
            (0o644, false, true),
            (0o640, false, true),
            (0o620, false, false),
            (0o602, false, false),
        ] {
            fs::set_permissions(file.path(), fs::Permissions::from_mode(mode)).expect("our file");
            assert_eq!(read_private(file.path(), 1).is_ok(), is_private, "{mode:o}");
            assert_eq!(read_trusted(file.path(), 1).is_ok(), is_trusted, "{mode:o}");
        }

        let text = read_private(file.path(), 1)
            .expect_err("exposed")
            .to_string();
        let path = file.path().display();
        assert_eq!(
            text,
            format!("{path}: mode 0602 lets others read it; chmod 600 {path}")
        );
    }

    #[test]
    fn length_is_bounded_also_for_devices() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        fs::write(file.path(), b"abc").expect("our file");
        assert_eq!(read_private(file.path(), 3).expect("short enough"), b"abc");

        for (path, bytes_max) in [(file.path(), 2), (Path::new("/dev/zero"), 4096)] {
            assert!(
                matches!(
                    read_private(path, bytes_max),
                    Err(FileError::TooLong { .. })
                ),
                "{}",
                path.display()
            );
        }

        assert!(
            read_private(Path::new("/nowhere/f"), 1)
                .expect_err("no file")
                .is_not_found()
        );
    }
}
