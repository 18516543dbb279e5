//! Files that [`crate::stream_io::send_file`] sends from.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd};
use std::os::unix::fs::OpenOptionsExt;

use crate::error::{During, Result};
use crate::file_system::magic;
use crate::syscall::syscall;

/// A file that is never read from a disk and vanishes with its last descriptor.
///
/// Where it can be, it is a file without a name on a disk (open(2), `O_TMPFILE`, Linux 3.11): its
/// pages lie together in large folios and are handed to a socket many at a time, while those of a
/// file in memory are looked up one by one, which costs a third more per byte sent. Elsewhere it is
/// a file in memory (memfd_create(2), Linux 3.17).
#[derive(Debug)]
pub struct SourceFile(File);

impl SourceFile {
    /// A file that holds `content`; `name` shows in `/proc` only.
    ///
    /// # Errors
    /// The operating system's, for instance `ENOMEM`.
    pub fn filled(name: &str, content: &[u8]) -> Result<Self> {
        if let Ok(file) = on_disk(content) {
            return Ok(Self(file));
        }

        let mut file = create_memfd(name).during("memfd_create", name)?;
        file.write_all(content).during("write memfd", name)?;
        Ok(Self(file))
    }
}

impl AsFd for SourceFile {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn on_disk(content: &[u8]) -> io::Result<File> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .mode(0o600)
        .custom_flags(libc::O_TMPFILE)
        .open(DISK_FOLDER)?;
    if !KINDS.contains(&magic(&file)?) {
        return Err(io::ErrorKind::Unsupported.into());
    }

    file.write_all(content)?;
    Ok(file)
}

pub(crate) fn create_memfd(name: &str) -> io::Result<File> {
    let name = CString::new(name)?;
    // SAFETY: `name` is NUL-terminated and outlives the call.
    let fd = syscall(unsafe { libc::memfd_create(name.as_ptr(), libc::MFD_CLOEXEC) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Unlike `/tmp` it is never in memory by default (file-hierarchy(7)).
const DISK_FOLDER: &str = "/var/tmp";
/// Local file systems whose files lie in the page cache: ext4, XFS, Btrfs (statfs(2)).
const KINDS: [i64; 3] = [0xef53, 0x5846_5342, 0x9123_683e];
