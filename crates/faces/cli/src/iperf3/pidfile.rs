//! The file that holds the process id while the process lives.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use linerate_iperf3::wire::ErrorCode;
use linerate_model::{Failure, FailureKind};
use linerate_sys::error::io_text;
use linerate_sys::{file_system, process};

/// Removes its file when it is dropped.
#[derive(Debug)]
pub(super) struct Pidfile {
    path: PathBuf,
}

/// More is no process id.
const CONTENT_MAX_BYTES: u64 = 32;

impl Pidfile {
    /// Writes the id of this process, unless the file names another one that lives.
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        // The file of a process that ended without removing it does not block the next one.
        if let Some(pid) = read(path)
            && process::pid_is_alive(pid)
        {
            let message = "Another instance of iperf3 appears to be running".to_owned();
            return Err(Failure::new(FailureKind::Error, message));
        }

        write(path).map_err(|e| ErrorCode::PidFile.failure(Some(&io_text(&e))))?;
        Ok(Self {
            // The file is removed at the end, whatever the working directory is by then.
            path: std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
        })
    }
}

impl Drop for Pidfile {
    fn drop(&mut self) {
        // A file that is gone already is what this is about.
        let _ = fs::remove_file(&self.path);
    }
}

/// Only the owner may read and write it, as with the original.
fn write(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let mut file = options
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(std::process::id().to_string().as_bytes())
}

/// The id in the file; releases up to 3.9 wrote a NUL behind it.
fn read(path: &Path) -> Option<i32> {
    let content = file_system::read_bytes(path, CONTENT_MAX_BYTES).ok()?;
    let text = std::str::from_utf8(&content).ok()?;
    text.trim_matches(|c: char| c == '\0' || c.is_whitespace())
        .parse()
        .ok()
}
