//! Files of the kernel's tracepoints: the file system tracefs.

use std::fs;
use std::io;
use std::path::Path;
use std::ptr;
use std::thread;

use crate::error::{During, OsError, Result};
use crate::syscall::syscall;

/// Where systems mount it, and where the kernel has a directory to mount it on.
const MOUNT_POINTS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Reads a file of tracefs, such as `events/skb/kfree_skb/format`. Where it is not mounted, a
/// thread of its own mounts it in a private mount namespace (mount_namespaces(7)): no other program
/// sees that, and it ends with the thread.
///
/// # Errors
/// The operating system's: of the file where tracefs is mounted, otherwise of the mount, which
/// takes `CAP_SYS_ADMIN`.
pub fn read(file: &str) -> Result<String> {
    let mounted = MOUNT_POINTS.iter().map(Path::new);
    let mut mounted = mounted.filter(|point| point.join("events").exists());
    match mounted.next() {
        Some(point) => text(point, file),
        None => thread::scope(|scope| {
            let reader = thread::Builder::new().spawn_scoped(scope, || read_privately(file));
            let text = reader.during("create thread", file)?.join();
            text.unwrap_or_else(|_| Err(OsError::new("read", file, io::Error::other("panic"))))
        }),
    }
}

fn text(point: &Path, file: &str) -> Result<String> {
    fs::read_to_string(point.join(file)).during("read", file)
}

/// Leaves the mount namespace of the other threads, so that it is of use to a thread that ends.
fn read_privately(file: &str) -> Result<String> {
    // SAFETY: no pointers are passed; the call concerns this thread alone.
    syscall(unsafe { libc::unshare(libc::CLONE_NEWNS) }).during("unshare", "mount namespace")?;

    // Otherwise a mount would appear in the namespace that this one was copied from.
    mount(c"none", c"/", libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tracefs", c"/sys/kernel/tracing", 0)?;
    text(Path::new(MOUNT_POINTS[0]), file)
}

fn mount(kind: &std::ffi::CStr, target: &std::ffi::CStr, flags: libc::c_ulong) -> Result<()> {
    // SAFETY: the three texts end with NUL and outlive the call; data may be null.
    syscall(unsafe {
        libc::mount(
            kind.as_ptr(),
            target.as_ptr(),
            kind.as_ptr(),
            flags,
            ptr::null(),
        )
    })
    .during("mount", target.to_string_lossy())?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_without_a_mount_that_others_see() {
        let mounts = || fs::read_to_string("/proc/self/mounts").expect("a list of mounts");
        let before = mounts();

        match read("events/skb/kfree_skb/format") {
            Ok(format) => assert!(format.contains("skbaddr"), "{format}"),
            Err(error) => assert!(
                matches!(error.errno(), Some(libc::EPERM | libc::EACCES)),
                "{error}"
            ),
        }

        assert_eq!(mounts(), before);
        assert!(read("events/no/such/event").is_err());
    }
}
