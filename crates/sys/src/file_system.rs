//! What kind of file system a file is on (statfs(2)).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use crate::error::{During, Result};
use crate::syscall::syscall;

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
    fn proc_is_local_and_a_missing_path_is_an_error() {
        assert!(!is_remote(Path::new("/proc")).expect("proc is mounted"));
        assert!(is_remote(Path::new("/proc/no/such")).is_err());
    }
}
