//! Texts of error numbers, as in glibc.
//!
//! A table rather than `strerror(3)`: reports must read the same from a binary linked with musl,
//! whose wording differs ("Address in use", "Operation timed out"), and a table needs no locale, no
//! buffer and no lock.

use libc::c_int;

/// Text of an error number; `None` for numbers Linux does not use.
pub(crate) fn errno_text(errno: c_int) -> Option<&'static str> {
    let text = *ERRNO.get(usize::try_from(errno).ok()?)?;
    (!text.is_empty()).then_some(text)
}

/// Text of a `getaddrinfo(3)` error code.
pub(crate) fn resolver_text(code: c_int) -> &'static str {
    // -1 has the first place.
    let known = usize::try_from(!code)
        .ok()
        .and_then(|place| RESOLVER.get(place));
    known.copied().unwrap_or("Unknown error")
}

/// Texts of the `EAI_*` codes -1, -2 and so on, as Linux C libraries number them.
const RESOLVER: [&str; 11] = [
    "Bad value for ai_flags",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Non-recoverable failure in name resolution",
    "No address associated with hostname",
    "ai_family not supported",
    "ai_socktype not supported",
    "Servname not supported for ai_socktype",
    "Address family for hostname not supported",
    "Memory allocation failure",
    "System error",
];

/// Texts by number; empty for numbers that are not used. The numbers are those of
/// `asm-generic/errno.h`, which x86, ARM, RISC-V and s390 share.
const ERRNO: [&str; 133] = [
    "",
    "Operation not permitted",
    "No such file or directory",
    "No such process",
    "Interrupted system call",
    "Input/output error",
    "No such device or address",
    "Argument list too long",
    "Exec format error",
    "Bad file descriptor",
    "No child processes",
    "Resource temporarily unavailable",
    "Cannot allocate memory",
    "Permission denied",
    "Bad address",
    "Block device required",
    "Device or resource busy",
    "File exists",
    "Invalid cross-device link",
    "No such device",
    "Not a directory",
    "Is a directory",
    "Invalid argument",
    "Too many open files in system",
    "Too many open files",
    "Inappropriate ioctl for device",
    "Text file busy",
    "File too large",
    "No space left on device",
    "Illegal seek",
    "Read-only file system",
    "Too many links",
    "Broken pipe",
    "Numerical argument out of domain",
    "Numerical result out of range",
    "Resource deadlock avoided",
    "File name too long",
    "No locks available",
    "Function not implemented",
    "Directory not empty",
    "Too many levels of symbolic links",
    "",
    "No message of desired type",
    "Identifier removed",
    "Channel number out of range",
    "Level 2 not synchronized",
    "Level 3 halted",
    "Level 3 reset",
    "Link number out of range",
    "Protocol driver not attached",
    "No CSI structure available",
    "Level 2 halted",
    "Invalid exchange",
    "Invalid request descriptor",
    "Exchange full",
    "No anode",
    "Invalid request code",
    "Invalid slot",
    "",
    "Bad font file format",
    "Device not a stream",
    "No data available",
    "Timer expired",
    "Out of streams resources",
    "Machine is not on the network",
    "Package not installed",
    "Object is remote",
    "Link has been severed",
    "Advertise error",
    "Srmount error",
    "Communication error on send",
    "Protocol error",
    "Multihop attempted",
    "RFS specific error",
    "Bad message",
    "Value too large for defined data type",
    "Name not unique on network",
    "File descriptor in bad state",
    "Remote address changed",
    "Can not access a needed shared library",
    "Accessing a corrupted shared library",
    ".lib section in a.out corrupted",
    "Attempting to link in too many shared libraries",
    "Cannot exec a shared library directly",
    "Invalid or incomplete multibyte or wide character",
    "Interrupted system call should be restarted",
    "Streams pipe error",
    "Too many users",
    "Socket operation on non-socket",
    "Destination address required",
    "Message too long",
    "Protocol wrong type for socket",
    "Protocol not available",
    "Protocol not supported",
    "Socket type not supported",
    "Operation not supported",
    "Protocol family not supported",
    "Address family not supported by protocol",
    "Address already in use",
    "Cannot assign requested address",
    "Network is down",
    "Network is unreachable",
    "Network dropped connection on reset",
    "Software caused connection abort",
    "Connection reset by peer",
    "No buffer space available",
    "Transport endpoint is already connected",
    "Transport endpoint is not connected",
    "Cannot send after transport endpoint shutdown",
    "Too many references: cannot splice",
    "Connection timed out",
    "Connection refused",
    "Host is down",
    "No route to host",
    "Operation already in progress",
    "Operation now in progress",
    "Stale file handle",
    "Structure needs cleaning",
    "Not a XENIX named type file",
    "No XENIX semaphores available",
    "Is a named type file",
    "Remote I/O error",
    "Disk quota exceeded",
    "No medium found",
    "Wrong medium type",
    "Operation canceled",
    "Required key not available",
    "Key has expired",
    "Key has been revoked",
    "Key was rejected by service",
    "Owner died",
    "State not recoverable",
    "Operation not possible due to RF-kill",
];

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn every_errno_text_is_the_c_librarys() {
        for (errno, text) in (0..).zip(ERRNO).filter(|(_, text)| !text.is_empty()) {
            // SAFETY: strerror returns a NUL-terminated string that stays valid until the next call
            // in this thread.
            let expected = unsafe { CStr::from_ptr(libc::strerror(errno)) };
            assert_eq!(expected.to_str(), Ok(text), "errno {errno}");
        }
    }

    #[test]
    fn every_resolver_text_is_the_c_librarys() {
        for code in -11..0 {
            // SAFETY: gai_strerror returns a static NUL-terminated string for every code.
            let expected = unsafe { CStr::from_ptr(libc::gai_strerror(code)) };
            assert_eq!(expected.to_str(), Ok(resolver_text(code)), "code {code}");
        }
    }
}
