//! Why a store cannot do something.

use std::io;
use std::path::{Path, PathBuf};

use linerate_model::outcome::{Error as RunError, Outcome};
use linerate_sys::file_access::Exposure;
use thiserror::Error;

/// Why an operation on a store failed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// What the user named is wrong: a place, a run, or a label.
    #[error("{0}")]
    Usage(String),
    /// There is no database.
    #[error("{0}: no runs are recorded here")]
    Missing(String),
    /// The file is something else; it was not touched.
    #[error("{}: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Kind of the file that was found.
        what: &'static str,
    },
    /// A newer version of the program made it.
    #[error("{place}: written by a newer version (schema {found}; this version writes {known})")]
    Newer {
        /// The database.
        place: String,
        /// Its schema version.
        found: i64,
        /// The latest version known here.
        known: i64,
    },
    /// It can be read only.
    #[error("{}: read-only", .0.display())]
    ReadOnly(PathBuf),
    /// A stored value cannot be read.
    #[error("{what}: {why}")]
    Damaged {
        /// Which value.
        what: String,
        /// Why.
        why: String,
    },
    /// Other users may replace the files of the state directory.
    #[error("state directory {0}")]
    Exposed(Exposure),
    /// A file operation failed.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite reports an error.
    #[error("{0}")]
    Sqlite(#[from] rusqlite::Error),
    /// It could not be opened a moment ago, and is not tried again yet.
    #[error("{0}")]
    Closed(String),
    /// A database server refuses, is not reached, or reports an error.
    #[error("{place}: {why}")]
    Server {
        /// The database, without secrets.
        place: String,
        /// Why.
        why: String,
        /// Another writer kept the lock for too long.
        is_locked: bool,
    },
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        // A name or an option of the user is wrong, as opposed to the store.
        let outcome = match error {
            StoreError::Usage(_) => Outcome::Usage,
            _ => Outcome::NotCompleted,
        };
        Self::new(outcome, error)
    }
}

impl StoreError {
    /// Another process wrote for longer than this one waits.
    pub(crate) fn is_locked(&self) -> bool {
        match self {
            Self::Sqlite(error) => {
                error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
            }
            Self::Server { is_locked, .. } => *is_locked,
            _ => false,
        }
    }

    /// A label or a name outside the limits.
    pub(crate) fn label(text: &str, why: &str) -> Self {
        let start: String = text.chars().take(80).collect();
        Self::Usage(format!("label {start:?}: {why}"))
    }

    pub(crate) fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::File {
            path: path.to_owned(),
            source,
        }
    }

    #[expect(
        clippy::needless_pass_by_value,
        reason = "map_err hands errors over by value"
    )]
    pub(crate) fn damaged(what: impl ToString, why: impl ToString) -> Self {
        Self::Damaged {
            what: what.to_string(),
            why: why.to_string(),
        }
    }
}
