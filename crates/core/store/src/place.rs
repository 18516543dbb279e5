//! Where the database is.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{env, fmt};

use linerate_sys::file_access::{Protected, exposure};

use crate::StoreError;
use crate::keys::sha256;

/// Where the database is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    path: PathBuf,
    server: Option<Server>,
}

/// A database of a server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Server {
    /// Its URL, with secrets.
    url: String,
}

impl Place {
    /// The file of `--store`, of `LINERATE_STORE`, or `history.db` in the state directory of the
    /// service or of the user. `None` where it is `off`.
    ///
    /// # Errors
    /// A URL, or no state directory.
    pub fn find(option: Option<&str>) -> Result<Option<Self>, StoreError> {
        Self::choose(option, |name| {
            env::var_os(name).filter(|value| !value.is_empty())
        })
    }

    /// This file.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            server: None,
        }
    }

    /// The database file. Where a server has the database, this names the spool alone.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory of records that could not be written into the database.
    pub fn spool(&self) -> PathBuf {
        self.path.with_extension("spool")
    }

    pub(crate) const fn server(&self) -> Option<&Server> {
        self.server.as_ref()
    }

    pub(crate) fn create_directory(&self) -> Result<(), StoreError> {
        let Some(directory) = self
            .path
            .parent()
            .filter(|directory| !directory.as_os_str().is_empty())
        else {
            return Ok(());
        };
        private_directory()
            .create(directory)
            .map_err(StoreError::file(directory))
    }

    fn choose(
        option: Option<&str>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Option<Self>, StoreError> {
        if let Some(named) = option
            .map(OsString::from)
            .or_else(|| variable("LINERATE_STORE"))
        {
            let text = named.to_string_lossy();
            if text.starts_with("postgresql://") || text.starts_with("postgres://") {
                return Self::url(&text, &state_directory_of(variable)?).map(Some);
            }
            return Ok((named != "off").then(|| Self::file(named)));
        }

        Ok(Some(Self::file(
            state_directory_of(variable)?.join("history.db"),
        )))
    }

    /// A database of a PostgreSQL server. Records that wait for it are in the directory `state`.
    ///
    /// # Errors
    /// A build without the feature `postgres`.
    pub fn url(url: &str, state: &Path) -> Result<Self, StoreError> {
        let server = Server {
            url: url.to_owned(),
        };
        if !cfg!(feature = "postgres") {
            return Err(StoreError::Usage(format!(
                "{server}: this build lacks the feature postgres; name a file"
            )));
        }

        // Passwords change; the directory of waiting records stays.
        let hash = sha256(server.to_string().as_bytes());
        let name = &hash[..16];
        Ok(Self {
            path: state.join(format!("postgresql-{name}")),
            server: Some(server),
        })
    }
}

/// The directory for the state of the service or of the user: `$STATE_DIRECTORY`,
/// `$XDG_STATE_HOME/linerate` or `~/.local/state/linerate`. It is made where it does not exist, for
/// its owner alone.
///
/// # Errors
/// Where none is named, it cannot be made, or others may replace files in it.
pub fn state_directory() -> Result<PathBuf, StoreError> {
    let directory = state_directory_of(|name| env::var_os(name).filter(|value| !value.is_empty()))?;
    private_directory()
        .create(&directory)
        .map_err(StoreError::file(&directory))?;
    refuse_exposed(&directory)?;
    Ok(directory)
}

fn refuse_exposed(directory: &Path) -> Result<(), StoreError> {
    let metadata = directory.metadata().map_err(StoreError::file(directory))?;
    let exposure = exposure(directory, &metadata, Protected::Directory);
    exposure.map_or(Ok(()), |exposure| Err(StoreError::Exposed(exposure)))
}

fn state_directory_of(variable: impl Fn(&str) -> Option<OsString>) -> Result<PathBuf, StoreError> {
    // systemd sets STATE_DIRECTORY, separated by colons where a unit has several (systemd.exec(5)).
    let of_service = variable("STATE_DIRECTORY").map(|list| {
        PathBuf::from(
            list.to_string_lossy()
                .split(':')
                .next()
                .unwrap_or_default()
                .to_owned(),
        )
    });
    // A relative path is invalid and ignored (XDG Base Directory Specification).
    let absolute = |path: &PathBuf| path.is_absolute();
    let of_user = || {
        variable("XDG_STATE_HOME")
            .map(PathBuf::from)
            .filter(absolute)
    };

    let of_home = || {
        variable("HOME")
            .map(|home| PathBuf::from(home).join(".local/state"))
            .filter(absolute)
    };
    let directory = of_service
        .filter(absolute)
        .or_else(|| Some(of_user().or_else(of_home)?.join("linerate")));
    directory.ok_or_else(|| {
        StoreError::Usage("no directory for the history: set HOME, or --store FILE".to_owned())
    })
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(server) => server.fmt(f),
            None => self.path.display().fmt(f),
        }
    }
}

impl Server {
    /// The URL as typed, with its secrets.
    #[cfg(feature = "postgres")]
    pub(crate) fn url(&self) -> &str {
        &self.url
    }
}

/// Scheme, host and database, without the user, the password and parameters.
impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, rest) = self.url.split_once("://").unwrap_or_default();
        let (place, parameters) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
        let shown = match place.rsplit_once('@') {
            Some((_, host)) => host,
            // The end of a password that contains '?' itself.
            None if parameters.contains('@') => "***",
            None => place,
        };

        write!(f, "postgresql://{shown}")
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
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
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

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
            Place::choose(option, |name| {
                Some(
                    all[from..]
                        .iter()
                        .find(|(known, _)| *known == name)?
                        .1
                        .into(),
                )
            })
        };
        let path = |option, from| {
            place(option, from)
                .expect("a place")
                .map(|place| place.path)
        };
        assert_eq!(path(Some("o.db"), 0), Some("o.db".into()));
        assert_eq!(path(None, 0), Some("/e/my.db".into()));
        assert_eq!(path(None, 1), Some("/var/lib/linerate/history.db".into()));
        assert_eq!(path(None, 2), Some("/x/linerate/history.db".into()));
        assert_eq!(
            path(None, 3),
            Some("/h/.local/state/linerate/history.db".into())
        );
        assert_eq!(path(Some("off"), 0), None);
        assert!(place(None, 4).is_err());
    }

    #[test]
    fn state_directory_in_which_others_replace_files_is_refused_with_the_remedy() {
        let folder = tempfile::tempdir().expect("a folder");
        let set = |mode| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode))
                .expect("our folder");
        };

        for (mode, is_safe) in [
            (0o700, true),
            (0o755, true),
            (0o775, false),
            (0o777, false),
            (0o1777, true),
        ] {
            set(mode);
            assert_eq!(refuse_exposed(folder.path()).is_ok(), is_safe, "{mode:o}");
        }

        set(0o777);
        let error = refuse_exposed(folder.path())
            .expect_err("exposed")
            .to_string();
        assert!(
            error.starts_with("state directory /") && error.contains("chmod 700 /"),
            "{error}"
        );
    }

    #[test]
    fn a_url_is_shown_without_user_password_and_parameters() {
        for (url, shown) in [
            ("postgresql://db/x", "postgresql://db/x"),
            (
                "postgres://me:pw@db:5433/x?sslmode=disable",
                "postgresql://db:5433/x",
            ),
            ("postgresql://me:p@w@db/x", "postgresql://db/x"),
            ("postgresql://me:p/w@db/x", "postgresql://db/x"),
            ("postgresql://me:p?w@db/x", "postgresql://***"),
            ("postgresql:///x?host=/run&password=pw", "postgresql:///x"),
        ] {
            let chosen = Place::choose(Some(url), |name| (name == "HOME").then(|| "/h".into()));
            if cfg!(feature = "postgres") {
                let place = chosen.expect("a place").expect("not off");
                assert_eq!(place.to_string(), shown);
                assert!(!format!("{place:?}").contains("pw"), "{place:?}");
                assert!(
                    place.spool().starts_with("/h/.local/state/linerate"),
                    "{place:?}"
                );
            } else {
                let refused = chosen.expect_err("a build without the feature").to_string();
                assert!(
                    refused.starts_with(shown) && refused.contains("feature postgres"),
                    "{refused}"
                );
            }
        }
    }
}
