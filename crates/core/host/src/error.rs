//! Why a value is absent.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use linerate_model::snapshot::{Absence, Snapshot, Value};
use linerate_sys::error::{OsError, io_text, strerror};
use thiserror::Error;

/// Why a value cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The kernel refused an operation, or a file cannot be read.
    #[error("{text}")]
    System {
        /// Operation or file with the reason.
        text: String,
        /// The kernel's error number.
        errno: Option<i32>,
    },
    /// There is nothing to read from (no such process, device, group or listener), or a file or
    /// response lacks the value.
    #[error("{0}")]
    Missing(Cow<'static, str>),
}

impl ReadError {
    pub(crate) fn file(path: impl AsRef<Path>, error: &io::Error) -> Self {
        Self::System {
            text: format!("{}: {}", path.as_ref().display(), io_text(error)),
            errno: error.raw_os_error(),
        }
    }

    pub(crate) fn refused(operation: &str, errno: i32) -> Self {
        Self::System {
            text: format!("{operation}: {}", strerror(errno)),
            errno: Some(errno),
        }
    }

    pub(crate) fn missing(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Missing(text.into())
    }

    pub(crate) const fn errno(&self) -> Option<i32> {
        match self {
            Self::System { errno, .. } => *errno,
            _ => None,
        }
    }

    /// The reason as a snapshot stores it.
    pub(crate) fn absence(&self) -> Absence {
        self.errno().map_or(Absence::NotReported, absence)
    }
}

impl From<OsError> for ReadError {
    fn from(error: OsError) -> Self {
        Self::System {
            text: error.to_string(),
            errno: error.errno(),
        }
    }
}

/// Absence of a fact that an error number of the kernel means.
pub(crate) fn absence(errno: i32) -> Absence {
    use linerate_sys::errno::{EACCES, ENODEV, ENOENT, EOPNOTSUPP, EPERM, ESRCH};

    match errno {
        EOPNOTSUPP => Absence::UnsupportedByDriver,
        EPERM | EACCES => Absence::Permission,
        ENODEV | ESRCH => Absence::NoSuchDevice,
        ENOENT => Absence::KernelTooOld,
        _ => Absence::NotReported,
    }
}

/// Records a value, or why it is absent.
pub(crate) fn record<T: Into<Value>>(
    snapshot: &mut Snapshot,
    key: &str,
    found: Result<T, ReadError>,
    src: &str,
) {
    match found {
        Ok(value) => snapshot.set(key, value, src),
        Err(why) => record_absent(snapshot, key, &why, src),
    }
}

/// Records why a value is absent.
pub(crate) fn record_absent(snapshot: &mut Snapshot, key: &str, why: &ReadError, src: &str) {
    snapshot.set_absent(key, why.absence(), why.errno(), src);
}
