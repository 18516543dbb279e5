//! Errors with the operation that failed and its object.

use std::{fmt, io};

/// Result of a set-up function.
pub type Result<T, E = OsError> = std::result::Result<T, E>;

/// A system call that failed: what was tried, on what, and why not.
///
/// Displays as `connect 10.0.0.2:5201: Connection refused`.
#[derive(Debug)]
pub struct OsError {
    /// The failed operation: the system call, with the option's name where it is one
    /// (`setsockopt TCP_CONGESTION`).
    pub operation: &'static str,
    /// The object of the operation: an address, a value, a file. Empty when the operation alone is
    /// enough.
    pub object: String,
    /// Why it failed.
    pub source: io::Error,
}

impl OsError {
    /// An error of `operation` on `object`.
    pub fn new(operation: &'static str, object: impl fmt::Display, source: io::Error) -> Self {
        Self {
            operation,
            object: object.to_string(),
            source,
        }
    }

    /// The error number (`errno(3)`), when the cause came from the kernel.
    pub fn errno(&self) -> Option<i32> {
        self.source.raw_os_error()
    }

    /// The cause alone, as `strerror(3)` formats it: `Connection refused`.
    pub fn text(&self) -> String {
        io_text(&self.source)
    }

    /// True if this kernel or this kind of socket lacks the feature, as opposed to refusing the
    /// value or the user.
    pub fn is_unsupported(&self) -> bool {
        self.errno().is_some_and(is_unsupported_errno)
            || self.source.kind() == io::ErrorKind::Unsupported
    }
}

impl fmt::Display for OsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.operation)?;
        if !self.object.is_empty() {
            write!(f, " {}", self.object)?;
        }
        write!(f, ": {}", self.text())
    }
}

impl std::error::Error for OsError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Keeps operation and object in the text.
impl From<OsError> for io::Error {
    fn from(error: OsError) -> Self {
        Self::other(error)
    }
}

/// Text of an error number as glibc words it, without a number behind it: `Connection refused`.
///
/// The wording does not depend on the C library the program is linked with.
#[cfg(target_os = "linux")]
pub fn strerror(errno: i32) -> String {
    let text = crate::errno_text::errno_text(errno);
    text.map_or_else(|| format!("Unknown error {errno}"), str::to_owned)
}

/// Text of an error number of this system.
#[cfg(not(target_os = "linux"))]
pub fn strerror(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    let suffix = format!(" (os error {errno})");
    text.strip_suffix(&suffix).unwrap_or(&text).to_owned()
}

/// Text of an I/O error as `strerror(3)` gives it; errors that are not the kernel's keep their own
/// text.
pub fn io_text(error: &io::Error) -> String {
    error
        .raw_os_error()
        .map_or_else(|| error.to_string(), strerror)
}

/// Adds operation and object to a plain I/O error.
pub(crate) trait During<T> {
    /// `object` is formatted only on failure.
    fn during(self, operation: &'static str, object: impl fmt::Display) -> Result<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, operation: &'static str, object: impl fmt::Display) -> Result<T> {
        self.map_err(|source| OsError::new(operation, object, source))
    }
}

fn is_unsupported_errno(errno: i32) -> bool {
    matches!(
        errno,
        libc::ENOSYS
            | libc::ENOPROTOOPT
            | libc::EOPNOTSUPP
            | libc::EPROTONOSUPPORT
            | libc::ESOCKTNOSUPPORT
            | libc::EPFNOSUPPORT
            | libc::EAFNOSUPPORT
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_names_operation_object_and_cause_without_a_number() {
        let error = OsError::new(
            "connect",
            "10.0.0.2:5201",
            io::Error::from_raw_os_error(libc::ECONNREFUSED),
        );
        assert_eq!(
            error.to_string(),
            "connect 10.0.0.2:5201: Connection refused"
        );
        assert_eq!(error.text(), "Connection refused");
        assert_eq!(error.errno(), Some(libc::ECONNREFUSED));
        assert!(!error.is_unsupported());
    }

    #[test]
    fn display_without_object_has_no_gap_and_own_error_keeps_its_text() {
        let error = OsError::new(
            "getsockopt TCP_INFO",
            "",
            io::Error::new(io::ErrorKind::InvalidData, "too short"),
        );
        assert_eq!(error.to_string(), "getsockopt TCP_INFO: too short");
        assert_eq!(error.errno(), None);
    }

    #[test]
    fn unsupported_features_differ_from_refusals() {
        let of =
            |errno| OsError::new("x", "", io::Error::from_raw_os_error(errno)).is_unsupported();
        for errno in [
            libc::ENOPROTOOPT,
            libc::EPROTONOSUPPORT,
            libc::ENOSYS,
            libc::EAFNOSUPPORT,
        ] {
            assert!(of(errno), "{errno}");
        }

        for errno in [libc::EPERM, libc::EINVAL, libc::ENOENT] {
            assert!(!of(errno), "{errno}");
        }
    }

    #[test]
    fn unknown_numbers_are_worded_as_glibc_does() {
        assert_eq!(strerror(4095), "Unknown error 4095");
    }
}
