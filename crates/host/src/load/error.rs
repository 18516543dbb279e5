//! Why a value is absent from a sample.

use std::borrow::Cow;
use std::io;
use std::path::Path;

use linerate_sys::error::{OsError, io_text};
use thiserror::Error;

/// Why a value cannot be read. The texts are those of [`Sample::missing`](super::Sample).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ReadError {
    /// The kernel refused: the operation or file with its reason.
    #[error("{0}")]
    System(String),
    /// There is nothing to read from: no such process, device, group or listener.
    #[error("{0}")]
    NotFound(Cow<'static, str>),
    /// A file or response lacks the value.
    #[error("{0}")]
    Lacking(Cow<'static, str>),
}

impl ReadError {
    pub(crate) fn file(path: impl AsRef<Path>, error: &io::Error) -> Self {
        Self::System(format!("{}: {}", path.as_ref().display(), io_text(error)))
    }

    pub(crate) fn not_found(text: impl Into<Cow<'static, str>>) -> Self {
        Self::NotFound(text.into())
    }

    pub(crate) fn lacking(text: impl Into<Cow<'static, str>>) -> Self {
        Self::Lacking(text.into())
    }
}

impl From<OsError> for ReadError {
    fn from(error: OsError) -> Self {
        Self::System(error.to_string())
    }
}
