//! Files that may be longer than they should be, and the kind of file system a file is on
//! (statfs(2)).

use std::fs::File;
use std::io::{self, ErrorKind, Read};
#[cfg(target_os = "linux")]
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

use crate::error::{During, Result};

/// Reads a file of at most `bytes_max` bytes. Of a longer one nothing is returned, since its end
/// may matter.
///
/// # Errors
/// The operating system's; [`ErrorKind::FileTooLarge`] for a longer file.
pub fn read_bytes(path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
    read_all(File::open(path)?, bytes_max)
}

/// Reads a text of at most `bytes_max` bytes, as [`read_bytes`].
///
/// # Errors
/// As [`read_bytes`]; [`ErrorKind::InvalidData`] for bytes that are not UTF-8.
pub fn read_text(path: &Path, bytes_max: u64) -> io::Result<String> {
    let bytes = read_bytes(path, bytes_max)?;
    String::from_utf8(bytes)
        .map_err(|error| io::Error::new(ErrorKind::InvalidData, error.utf8_error()))
}

/// Reads a pipe or an open file to its end, as [`read_bytes`].
///
/// # Errors
/// As [`read_bytes`].
pub fn read_all(source: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();

    // A device or a pipe has no length, so it is read until one byte too many has come.
    source
        .take(bytes_max.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > bytes_max {
        return Err(io::Error::new(
            ErrorKind::FileTooLarge,
            format!("longer than {}", in_units(bytes_max)),
        ));
    }

    Ok(bytes)
}

/// `64 MiB`, `4 KiB`, `5 bytes`.
fn in_units(bytes: u64) -> String {
    match bytes {
        0 => "0 bytes".to_owned(),
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

/// True if other hosts, or a program in user space, may hold the files: their memory mappings are
/// not shared.
///
/// # Errors
/// The operating system's, opening or examining it.
pub fn is_remote(path: &Path) -> Result<bool> {
    let magic = File::open(path)
        .and_then(magic)
        .during("statfs", path.display())?;
    Ok(REMOTE.contains(&magic))
}

#[cfg(not(target_os = "linux"))]
use crate::other_system::magic;

/// The magic number of the file system a file is on.
#[cfg(target_os = "linux")]
pub(crate) fn magic(file: impl AsFd) -> io::Result<i64> {
    let mut facts = std::mem::MaybeUninit::<libc::statfs>::zeroed();
    // SAFETY: the kernel writes one `statfs` to where the pointer leads.
    crate::syscall::syscall(unsafe {
        libc::fstatfs(file.as_fd().as_raw_fd(), facts.as_mut_ptr())
    })?;

    // SAFETY: zeroes are a valid value, and the call has succeeded.
    let facts = unsafe { facts.assume_init() };
    #[allow(
        clippy::cast_possible_wrap,
        clippy::unnecessary_cast,
        reason = "the field's type depends on the C library"
    )]
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
    fn file_beyond_the_bound_is_an_error_that_names_it() {
        let kernel = Path::new("/proc/sys/kernel/ostype");
        assert_eq!(read_text(kernel, 6).expect("short enough"), "Linux\n");

        for (bytes_max, bound) in [
            (0, "0 bytes"),
            (5, "5 bytes"),
            (4096, "4 KiB"),
            (1 << 20, "1 MiB"),
        ] {
            let error = read_text(Path::new("/dev/zero"), bytes_max).expect_err("too long");
            assert_eq!(
                (error.kind(), error.to_string()),
                (ErrorKind::FileTooLarge, format!("longer than {bound}"))
            );
        }

        assert!(read_bytes(kernel, 5).is_err() && read_all(&b"Linux"[..], 5).is_ok());
    }

    #[test]
    fn proc_is_local_and_a_missing_path_is_an_error() {
        assert!(!is_remote(Path::new("/proc")).expect("proc is mounted"));
        assert!(is_remote(Path::new("/proc/no/such")).is_err());
    }
}
