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
    /// There is nothing to read from: no such process, device, group or listener.
    #[error("{0}")]
    NotFound(Cow<'static, str>),
    /// A file or response lacks the value.
    #[error("{0}")]
    Lacking(Cow<'static, str>),
}

impl ReadError {
    pub(crate) fn file(path: impl AsRef<Path>, error: &io::Error) -> Self {
        Self::System { text: format!("{}: {}", path.as_ref().display(), io_text(error)), errno: error.raw_os_error() }
    }

    pub(crate) fn refused(operation: &str, errno: i32) -> Self {
        Self::System { text: format!("{operation}: {}", strerror(errno)), errno: Some(errno) }
    }

    pub(crate) fn not_found(text: impl Into<Cow<'static, str>>) -> Self {
        Self::NotFound(text.into())
    }

    pub(crate) fn lacking(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Lacking(text.into())
    }

    pub(crate) const fn errno(&self) -> Option<i32> {
        match self {
            Self::System { errno, .. } => *errno,
            _ => None,
        }
    }

    /// The reason as a snapshot stores it.
    pub(crate) fn absence(&self) -> Absence {
        match self {
            Self::System { errno, .. } => errno.map_or(Absence::NotReported, absence),
            Self::NotFound(_) | Self::Lacking(_) => Absence::NotReported,
        }
    }
}

impl From<OsError> for ReadError {
    fn from(error: OsError) -> Self {
        Self::System { text: error.to_string(), errno: error.errno() }
    }
}

/// What an error number of the kernel means for a fact.
pub(crate) fn absence(errno: i32) -> Absence {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    const ESRCH: i32 = 3;
    const EACCES: i32 = 13;
    const ENODEV: i32 = 19;
    const EOPNOTSUPP: i32 = 95;
    match errno {
        EOPNOTSUPP => Absence::UnsupportedByDriver,
        EPERM | EACCES => Absence::Permission,
        ENODEV | ESRCH => Absence::NoSuchDevice,
        ENOENT => Absence::KernelTooOld,
        _ => Absence::NotReported,
    }
}

/// Records a value, or why it is absent.
pub(crate) fn record<T: Into<Value>>(snapshot: &mut Snapshot, key: &str, found: Result<T, ReadError>, src: &str) {
    match found {
        Ok(value) => snapshot.set(key, value, src),
        Err(why) => record_absent(snapshot, key, &why, src),
    }
}

/// Records why a value is absent.
pub(crate) fn record_absent(snapshot: &mut Snapshot, key: &str, why: &ReadError, src: &str) {
    snapshot.set_absent(key, why.absence(), why.errno(), src);
}
