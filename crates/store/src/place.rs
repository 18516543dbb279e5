//! Where the database is.

use std::env;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::StoreError;

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
}

impl Place {
    /// The file of `--store`, of `LINERATE_STORE`, or `history.db` in the state directory of the service or of the user.
    /// `None` where it is `off`.
    ///
    /// # Errors
    /// A URL, or no state directory.
    pub fn find(option: Option<&str>) -> Result<Option<Self>, StoreError> {
        Self::choose(option, |name| env::var_os(name).filter(|value| !value.is_empty()))
    }

    /// This file.
    #[must_use]
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of records that could not be written into the database.
    #[must_use]
    pub fn spool(&self) -> PathBuf {
        self.path.with_extension("spool")
    }

    pub(crate) fn create_directory(&self) -> Result<(), StoreError> {
        let Some(directory) = self.path.parent().filter(|directory| !directory.as_os_str().is_empty()) else {
            return Ok(());
        };
        private_directory().create(directory).map_err(StoreError::file(directory))
    }

    fn choose(option: Option<&str>, variable: impl Fn(&str) -> Option<OsString>) -> Result<Option<Self>, StoreError> {
        if let Some(named) = option.map(OsString::from).or_else(|| variable("LINERATE_STORE")) {
            let text = named.to_string_lossy();
            if text.starts_with("postgresql://") || text.starts_with("postgres://") {
                return Err(StoreError::Place(format!("{text}: this build has no PostgreSQL support; name a file")));
            }
            return Ok((named != "off").then(|| Self::file(named)));
        }
        // systemd sets STATE_DIRECTORY, separated by colons where a unit has several (systemd.exec(5)).
        let of_service = variable("STATE_DIRECTORY")
            .map(|list| PathBuf::from(list.to_string_lossy().split(':').next().unwrap_or_default().to_owned()));
        let absolute = |path: &PathBuf| path.is_absolute();
        let of_user = || variable("XDG_STATE_HOME").map(PathBuf::from).filter(absolute);
        let of_home = || variable("HOME").map(|home| PathBuf::from(home).join(".local/state")).filter(absolute);
        let directory = of_service.filter(absolute).or_else(|| Some(of_user().or_else(of_home)?.join("linerate")));
        let no_home = || StoreError::Place("no directory for the history: set HOME, or --store FILE".to_owned());
        Ok(Some(Self::file(directory.ok_or_else(no_home)?.join("history.db"))))
    }
}

/// Results name hosts and addresses, so only their user may read them.
pub(crate) fn private_directory() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn option_precedes_environment_and_service_precedes_user() {
        let all = [
            ("LINERATE_STORE", "/e/my.db"),
            ("STATE_DIRECTORY", "/var/lib/linerate:/var/lib/other"),
            ("XDG_STATE_HOME", "/x"),
            ("HOME", "/h"),
        ];
        let place = |option, from: usize| {
            Place::choose(option, |name| Some(all[from..].iter().find(|(known, _)| *known == name)?.1.into()))
        };
        let path = |option, from| place(option, from).expect("a place").map(|place| place.path);
        assert_eq!(path(Some("o.db"), 0), Some("o.db".into()));
        assert_eq!(path(None, 0), Some("/e/my.db".into()));
        assert_eq!(path(None, 1), Some("/var/lib/linerate/history.db".into()));
        assert_eq!(path(None, 2), Some("/x/linerate/history.db".into()));
        assert_eq!(path(None, 3), Some("/h/.local/state/linerate/history.db".into()));
        assert_eq!(path(Some("off"), 0), None);
        assert!(place(None, 4).is_err());
        let refused = place(Some("postgresql://db/x"), 0).expect_err("a URL").to_string();
        assert!(refused.contains("PostgreSQL"), "{refused}");
    }
}
