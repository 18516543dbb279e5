//! Texts of error numbers, as in glibc.
//!
//! A table rather than `strerror(3)`: reports must read the same from a binary linked with musl,
//! whose wording differs ("Address in use", "Operation timed out"), and a table needs no locale, no
//! buffer and no lock.

use libc::c_int;

/// Text of an error number; `None` for numbers Linux does not use.
pub(crate) fn errno_text(errno: c_int) -> Option<&'static str> {
    lookup(ERRNO, errno)
}

/// Text of a `getaddrinfo(3)` error code.
pub(crate) fn resolver_text(code: c_int) -> &'static str {
    lookup(RESOLVER, code).unwrap_or("Unknown error")
}

fn lookup(table: &[(c_int, &'static str)], number: c_int) -> Option<&'static str> {
    table
        .iter()
        .find(|(key, _)| *key == number)
        .map(|(_, text)| *text)
}

/// `EAI_*` codes. The numbers are those of Linux C libraries; musl leaves out names for some of
/// them.
const RESOLVER: &[(c_int, &str)] = &[
    (-1, "Bad value for ai_flags"),
    (-2, "Name or service not known"),
    (-3, "Temporary failure in name resolution"),
    (-4, "Non-recoverable failure in name resolution"),
    (-5, "No address associated with hostname"),
    (-6, "ai_family not supported"),
    (-7, "ai_socktype not supported"),
    (-8, "Servname not supported for ai_socktype"),
    (-9, "Address family for hostname not supported"),
    (-10, "Memory allocation failure"),
    (-11, "System error"),
];

const ERRNO: &[(c_int, &str)] = &[
    (libc::EPERM, "Operation not permitted"),
    (libc::ENOENT, "No such file or directory"),
    (libc::ESRCH, "No such process"),
    (libc::EINTR, "Interrupted system call"),
    (libc::EIO, "Input/output error"),
    (libc::ENXIO, "No such device or address"),
    (libc::E2BIG, "Argument list too long"),
    (libc::ENOEXEC, "Exec format error"),
    (libc::EBADF, "Bad file descriptor"),
    (libc::ECHILD, "No child processes"),
    (libc::EAGAIN, "Resource temporarily unavailable"),
    (libc::ENOMEM, "Cannot allocate memory"),
    (libc::EACCES, "Permission denied"),
    (libc::EFAULT, "Bad address"),
    (libc::ENOTBLK, "Block device required"),
    (libc::EBUSY, "Device or resource busy"),
    (libc::EEXIST, "File exists"),
    (libc::EXDEV, "Invalid cross-device link"),
    (libc::ENODEV, "No such device"),
    (libc::ENOTDIR, "Not a directory"),
    (libc::EISDIR, "Is a directory"),
    (libc::EINVAL, "Invalid argument"),
    (libc::ENFILE, "Too many open files in system"),
    (libc::EMFILE, "Too many open files"),
    (libc::ENOTTY, "Inappropriate ioctl for device"),
    (libc::ETXTBSY, "Text file busy"),
    (libc::EFBIG, "File too large"),
    (libc::ENOSPC, "No space left on device"),
    (libc::ESPIPE, "Illegal seek"),
    (libc::EROFS, "Read-only file system"),
    (libc::EMLINK, "Too many links"),
    (libc::EPIPE, "Broken pipe"),
    (libc::EDOM, "Numerical argument out of domain"),
    (libc::ERANGE, "Numerical result out of range"),
    (libc::EDEADLK, "Resource deadlock avoided"),
    (libc::ENAMETOOLONG, "File name too long"),
    (libc::ENOLCK, "No locks available"),
    (libc::ENOSYS, "Function not implemented"),
    (libc::ENOTEMPTY, "Directory not empty"),
    (libc::ELOOP, "Too many levels of symbolic links"),
    (libc::ENOMSG, "No message of desired type"),
    (libc::EIDRM, "Identifier removed"),
    (libc::ECHRNG, "Channel number out of range"),
    (libc::EL2NSYNC, "Level 2 not synchronized"),
    (libc::EL3HLT, "Level 3 halted"),
    (libc::EL3RST, "Level 3 reset"),
    (libc::ELNRNG, "Link number out of range"),
    (libc::EUNATCH, "Protocol driver not attached"),
    (libc::ENOCSI, "No CSI structure available"),
    (libc::EL2HLT, "Level 2 halted"),
    (libc::EBADE, "Invalid exchange"),
    (libc::EBADR, "Invalid request descriptor"),
    (libc::EXFULL, "Exchange full"),
    (libc::ENOANO, "No anode"),
    (libc::EBADRQC, "Invalid request code"),
    (libc::EBADSLT, "Invalid slot"),
    (libc::EBFONT, "Bad font file format"),
    (libc::ENOSTR, "Device not a stream"),
    (libc::ENODATA, "No data available"),
    (libc::ETIME, "Timer expired"),
    (libc::ENOSR, "Out of streams resources"),
    (libc::ENONET, "Machine is not on the network"),
    (libc::ENOPKG, "Package not installed"),
    (libc::EREMOTE, "Object is remote"),
    (libc::ENOLINK, "Link has been severed"),
    (libc::EADV, "Advertise error"),
    (libc::ESRMNT, "Srmount error"),
    (libc::ECOMM, "Communication error on send"),
    (libc::EPROTO, "Protocol error"),
    (libc::EMULTIHOP, "Multihop attempted"),
    (libc::EDOTDOT, "RFS specific error"),
    (libc::EBADMSG, "Bad message"),
    (libc::EOVERFLOW, "Value too large for defined data type"),
    (libc::ENOTUNIQ, "Name not unique on network"),
    (libc::EBADFD, "File descriptor in bad state"),
    (libc::EREMCHG, "Remote address changed"),
    (libc::ELIBACC, "Can not access a needed shared library"),
    (libc::ELIBBAD, "Accessing a corrupted shared library"),
    (libc::ELIBSCN, ".lib section in a.out corrupted"),
    (
        libc::ELIBMAX,
        "Attempting to link in too many shared libraries",
    ),
    (libc::ELIBEXEC, "Cannot exec a shared library directly"),
    (
        libc::EILSEQ,
        "Invalid or incomplete multibyte or wide character",
    ),
    (
        libc::ERESTART,
        "Interrupted system call should be restarted",
    ),
    (libc::ESTRPIPE, "Streams pipe error"),
    (libc::EUSERS, "Too many users"),
    (libc::ENOTSOCK, "Socket operation on non-socket"),
    (libc::EDESTADDRREQ, "Destination address required"),
    (libc::EMSGSIZE, "Message too long"),
    (libc::EPROTOTYPE, "Protocol wrong type for socket"),
    (libc::ENOPROTOOPT, "Protocol not available"),
    (libc::EPROTONOSUPPORT, "Protocol not supported"),
    (libc::ESOCKTNOSUPPORT, "Socket type not supported"),
    (libc::EOPNOTSUPP, "Operation not supported"),
    (libc::EPFNOSUPPORT, "Protocol family not supported"),
    (
        libc::EAFNOSUPPORT,
        "Address family not supported by protocol",
    ),
    (libc::EADDRINUSE, "Address already in use"),
    (libc::EADDRNOTAVAIL, "Cannot assign requested address"),
    (libc::ENETDOWN, "Network is down"),
    (libc::ENETUNREACH, "Network is unreachable"),
    (libc::ENETRESET, "Network dropped connection on reset"),
    (libc::ECONNABORTED, "Software caused connection abort"),
    (libc::ECONNRESET, "Connection reset by peer"),
    (libc::ENOBUFS, "No buffer space available"),
    (libc::EISCONN, "Transport endpoint is already connected"),
    (libc::ENOTCONN, "Transport endpoint is not connected"),
    (
        libc::ESHUTDOWN,
        "Cannot send after transport endpoint shutdown",
    ),
    (libc::ETOOMANYREFS, "Too many references: cannot splice"),
    (libc::ETIMEDOUT, "Connection timed out"),
    (libc::ECONNREFUSED, "Connection refused"),
    (libc::EHOSTDOWN, "Host is down"),
    (libc::EHOSTUNREACH, "No route to host"),
    (libc::EALREADY, "Operation already in progress"),
    (libc::EINPROGRESS, "Operation now in progress"),
    (libc::ESTALE, "Stale file handle"),
    (libc::EUCLEAN, "Structure needs cleaning"),
    (libc::ENOTNAM, "Not a XENIX named type file"),
    (libc::ENAVAIL, "No XENIX semaphores available"),
    (libc::EISNAM, "Is a named type file"),
    (libc::EREMOTEIO, "Remote I/O error"),
    (libc::EDQUOT, "Disk quota exceeded"),
    (libc::ENOMEDIUM, "No medium found"),
    (libc::EMEDIUMTYPE, "Wrong medium type"),
    (libc::ECANCELED, "Operation canceled"),
    (libc::ENOKEY, "Required key not available"),
    (libc::EKEYEXPIRED, "Key has expired"),
    (libc::EKEYREVOKED, "Key has been revoked"),
    (libc::EKEYREJECTED, "Key was rejected by service"),
    (libc::EOWNERDEAD, "Owner died"),
    (libc::ENOTRECOVERABLE, "State not recoverable"),
    (libc::ERFKILL, "Operation not possible due to RF-kill"),
];

#[cfg(all(test, target_env = "gnu"))]
mod tests {
    use std::ffi::CStr;

    use super::*;

    #[test]
    fn every_errno_text_is_the_c_librarys() {
        for (errno, text) in ERRNO {
            // SAFETY: strerror returns a NUL-terminated string that stays valid until the next call
            // in this thread.
            let expected = unsafe { CStr::from_ptr(libc::strerror(*errno)) };
            assert_eq!(expected.to_str(), Ok(*text), "errno {errno}");
        }
    }

    #[test]
    fn every_resolver_text_is_the_c_librarys() {
        for (code, text) in RESOLVER {
            // SAFETY: gai_strerror returns a static NUL-terminated string for every code.
            let expected = unsafe { CStr::from_ptr(libc::gai_strerror(*code)) };
            assert_eq!(expected.to_str(), Ok(*text), "code {code}");
        }
    }
}
