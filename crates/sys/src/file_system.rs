//! Files that may be longer than they should be, and the kind of file system a file is on (statfs(2)).

use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use crate::error::{During, Result};
use crate::syscall::syscall;

/// Reads a text of at most `bytes_max` bytes. Of a longer one nothing is returned, since its end may matter.
///
/// # Errors
/// The operating system's; [`ErrorKind::FileTooLarge`] for a longer text, [`ErrorKind::InvalidData`] for one that is not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let mut bytes = Vec::new();
    // A device has no length, so it is read until one byte too many has come.
    File::open(path)?.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(ErrorKind::FileTooLarge, format!("longer than {bytes_max} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Whether other hosts, or a program in user space, may hold the files: their memory mappings are not shared.
///
/// # Errors
/// The operating system's, opening or examining it.
pub fn is_remote(path: &Path) -> Result<bool> {
    let magic = File::open(path).and_then(magic).during("statfs", path.display())?;
    Ok(REMOTE.contains(&magic))
}

/// The magic number of the file system a file is on.
pub(crate) fn magic(file: impl AsFd) -> io::Result<i64> {
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel writes one `statfs` to where the pointer leads.
    syscall(unsafe { libc::fstatfs(file.as_fd().as_raw_fd(), facts.as_mut_ptr()) })?;
    // SAFETY: zeroes are a valid value, and the call has succeeded.
    let facts = unsafe { facts.assume_init() };
    #[allow(clippy::cast_possible_wrap, clippy::unnecessary_cast, reason = "the field's type depends on the C library")]
    Ok(facts.f_type as i64)
}

/// NFS, SMB of three generations, FUSE, 9P, Ceph, AFS, GFS2, OCFS2, Lustre.
const REMOTE: [i64; 11] = [
    0x6969,
    0x517B,
    0xFF53_4D42,
    0xFE53_4D42,
    0x6573_5546,
    0x0102_1997,
    0x00C3_6400,
    0x5346_414F,
    0x0116_1970,
    0x7461_636F,
    0x0BD0_0BD0,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_beyond_the_bound_is_an_error() {
        let kernel = Path::new("/proc/sys/kernel/ostype");
        assert_eq!(read_text(kernel, 6).expect("short enough"), "Linux\n");
        for path in [kernel, Path::new("/dev/zero")] {
            let error = read_text(path, 5).expect_err("too long");
            assert_eq!(error.to_string(), "longer than 5 bytes", "{}", path.display());
        }
    }

    #[test]
    fn proc_is_local_and_a_missing_path_is_an_error() {
        assert!(!is_remote(Path::new("/proc")).expect("proc is mounted"));
        assert!(is_remote(Path::new("/proc/no/such")).is_err());
    }
}
