//! Giving up the privileges of root for those of a user (credentials(7), capabilities(7)).

use std::ffi::{CString, c_char};
use std::io;

use crate::error::{During, Result};
use crate::syscall::syscall;

/// A user of the system and its group (passwd(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    /// Login name.
    pub name: String,
    uid: libc::uid_t,
    gid: libc::gid_t,
}

/// Most bytes that one entry of the user database takes.
const ENTRY_BYTES_MAX: usize = 1 << 20;
const ENTRY_BYTES: usize = 1024;

impl User {
    /// Looks a user up (getpwnam_r(3)); `None` when there is none of this name.
    ///
    /// # Errors
    /// The operating system's, when the database cannot be read.
    pub fn by_name(name: &str) -> Result<Option<Self>> {
        // A name with a NUL in it is no user's.
        let Ok(text) = CString::new(name) else {
            return Ok(None);
        };
        let mut buffer: Vec<c_char> = vec![0; ENTRY_BYTES];

        loop {
            // SAFETY: all-zero bytes are a valid passwd: null pointers and numbers.
            let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
            let mut found = std::ptr::null_mut();

            // SAFETY: the name ends with NUL; entry, buffer and result are writable during the
            // call, and the buffer has the length that is passed.
            let errno = unsafe {
                libc::getpwnam_r(
                    text.as_ptr(),
                    &raw mut entry,
                    buffer.as_mut_ptr(),
                    buffer.len(),
                    &raw mut found,
                )
            };
            match errno {
                _ if !found.is_null() => {
                    return Ok(Some(Self {
                        name: name.to_owned(),
                        uid: entry.pw_uid,
                        gid: entry.pw_gid,
                    }));
                }
                libc::ERANGE if buffer.len() < ENTRY_BYTES_MAX => {
                    buffer.resize(buffer.len() * 2, 0);
                }
                // The manual page names these for a user that does not exist.
                0 | libc::ENOENT | libc::ESRCH | libc::EBADF | libc::EPERM => return Ok(None),
                errno => {
                    return Err(io::Error::from_raw_os_error(errno)).during("getpwnam_r", name);
                }
            }
        }
    }

    /// True if the user is root, so that [`assume`](Self::assume) would keep every privilege.
    pub fn is_root(&self) -> bool {
        self.uid == 0
    }

    /// Makes all threads of the process run as this user, without supplementary groups and without
    /// capabilities, for good (setgroups(2), setgid(2), setuid(2)).
    ///
    /// The C library changes every thread; a raw system call would change the calling one alone.
    ///
    /// # Errors
    /// The operating system's, first of all `EPERM` when the process is not root. The process may
    /// have given up a part of its privileges then and should end.
    pub fn assume(&self) -> Result<()> {
        // SAFETY: with no groups the list is not read.
        syscall(unsafe { libc::setgroups(0, std::ptr::null()) }).during("setgroups", "")?;
        // SAFETY: no pointers are passed.
        syscall(unsafe { libc::setgid(self.gid) }).during("setgid", self.gid)?;

        // SAFETY: no pointers are passed.
        syscall(unsafe { libc::setuid(self.uid) }).during("setuid", self.uid)?;
        self.verify()
    }

    /// There is no way back: a process that kept a capability could become root again.
    fn verify(&self) -> Result<()> {
        // SAFETY: no pointers are passed.
        let is_root_again = !self.is_root() && syscall(unsafe { libc::setuid(0) }).is_ok();
        if is_root_again {
            return Err(io::Error::other("the process keeps a privilege"))
                .during("setuid", self.uid);
        }

        Ok(())
    }
}

/// Keeps this thread, those that it starts afterwards, and the programs they execute from ever
/// gaining a privilege: an execve(2) no longer heeds set-user-ID bits and capabilities of files
/// (`PR_SET_NO_NEW_PRIVS`, Linux 3.5), and the capability bounding set is empty. What the thread
/// may do now it may still do.
///
/// Both belong to a thread, so the call comes before there is a second one. Where `CAP_SETPCAP` is
/// missing, as in a container, the bounding set stays: without it an execve(2) gains nothing
/// either.
///
/// # Errors
/// The operating system's.
pub fn forbid_new() -> Result<()> {
    drop_bounding_set()?;
    let (yes, unused): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: no pointers are passed; the unused arguments are 0, as the call demands.
    syscall(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, yes, unused, unused, unused) })
        .during("prctl PR_SET_NO_NEW_PRIVS", "")?;
    Ok(())
}

/// Takes every capability that the kernel knows out of the bounding set.
fn drop_bounding_set() -> Result<()> {
    for capability in 0..CAPABILITIES_MAX {
        // SAFETY: no pointers are passed.
        let dropped = syscall(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability) });
        match dropped.map_err(|error| (error.raw_os_error(), error)) {
            // Behind the last one.
            Err((Some(libc::EINVAL), _)) => break,
            Err((Some(libc::EPERM), _)) => return Ok(()),
            Err((_, error)) => return Err(error).during("prctl PR_CAPBSET_DROP", capability),
            Ok(_) => {}
        }
    }

    Ok(())
}

/// Sets of capabilities have 64 bits (capget(2)).
const CAPABILITIES_MAX: libc::c_ulong = 64;

/// The first port that every user may bind (`net.ipv4.ip_unprivileged_port_start`, ip(7), Linux
/// 4.11): 1024 where the kernel does not report it.
pub fn first_port_for_all() -> u16 {
    const PATH: &str = "/proc/sys/net/ipv4/ip_unprivileged_port_start";
    let text = std::fs::read_to_string(PATH).ok();
    text.and_then(|text| text.trim().parse().ok())
        .unwrap_or(1024)
}

/// True if the process runs as root.
pub fn is_root() -> bool {
    effective_user() == 0
}

/// The user as whom the process has access to files (geteuid(2)).
pub(crate) fn effective_user() -> u32 {
    // SAFETY: no pointers are passed, and the call cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_found_by_name_and_others_are_none() {
        let root = User::by_name("root").expect("a database").expect("a user");
        assert_eq!((root.uid, root.gid, root.is_root()), (0, 0, true));
        for name in ["", "no such user", "root\0"] {
            assert_eq!(User::by_name(name).expect("a database"), None, "{name:?}");
        }
    }
}
