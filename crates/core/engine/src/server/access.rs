//! Access by client address.

use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linerate_model::network::{Network, NotANetwork};
use linerate_model::policy::{AccessRules, AccessSource, LIST_BYTES_MAX, RANGES_MAX};
use linerate_sys::file_system;

/// The rules with their files read.
#[derive(Debug, Default)]
pub(crate) struct AccessList {
    /// `None` when there is no such list; an empty one admits no address.
    allow: Option<Vec<Network>>,
    deny: Vec<Network>,
}

/// A list of addresses that cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AccessError {
    #[error("{}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: {source}", .path.display())]
    Parse { path: PathBuf, source: NotANetwork },
    /// A list that ended at the bound would admit whom its end denies.
    #[error("{}: longer than {} MiB; {WIDER_RANGES}", .path.display(), LIST_BYTES_MAX >> 20)]
    TooLong { path: PathBuf },
    #[error("{}: with it the lists have more than {RANGES_MAX} ranges; {WIDER_RANGES}", .path.display())]
    TooMany { path: PathBuf },
}

const WIDER_RANGES: &str =
    "join neighbouring ranges to wider ones, or filter in the host's firewall";

impl AccessList {
    /// Reads the rules; `read` returns the text of a file.
    ///
    /// # Errors
    /// The first file that cannot be read or is beyond a bound, or line that names no range.
    pub(crate) fn load(
        rules: &AccessRules,
        read: impl Fn(&Path) -> io::Result<String> + Copy,
    ) -> Result<Self, AccessError> {
        let allow = (!rules.allow.is_empty()).then(|| networks(&rules.allow, read));
        Ok(Self {
            allow: allow.transpose()?,
            deny: networks(&rules.deny, read)?,
        })
    }

    /// Only listed addresses are admitted.
    pub(crate) fn has_allow_list(&self) -> bool {
        self.allow.is_some()
    }

    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        let within = |list: &[Network]| list.iter().any(|n| n.contains(address));
        // A denied range wins over an allowed one, so that `--deny` can cut a hole into `--allow`.
        self.allow.as_deref().is_none_or(within) && !within(&self.deny)
    }
}

fn networks(
    sources: &[AccessSource],
    read: impl Fn(&Path) -> io::Result<String>,
) -> Result<Vec<Network>, AccessError> {
    let mut networks = Vec::new();

    for source in sources {
        match source {
            AccessSource::Network(network) => networks.push(*network),
            AccessSource::File(path) => add_file(path, &read, &mut networks)?,
        }
    }

    Ok(networks)
}

/// Adds the ranges of a file.
fn add_file(
    path: &Path,
    read: impl Fn(&Path) -> io::Result<String>,
    networks: &mut Vec<Network>,
) -> Result<(), AccessError> {
    let text = read(path).map_err(|source| match source.kind() {
        io::ErrorKind::FileTooLarge => AccessError::TooLong {
            path: path.to_owned(),
        },
        _ => AccessError::Read {
            path: path.to_owned(),
            source,
        },
    })?;

    for line in text.lines() {
        let range = line.split('#').next().unwrap_or_default().trim();
        if range.is_empty() {
            continue;
        }
        // Each connection walks the list.
        if networks.len() >= RANGES_MAX {
            return Err(AccessError::TooMany {
                path: path.to_owned(),
            });
        }

        let network = range.parse().map_err(|source| AccessError::Parse {
            path: path.to_owned(),
            source,
        })?;
        networks.push(network);
    }

    Ok(())
}

/// Reads a file of users or address ranges.
pub(crate) fn read_text(path: &Path) -> io::Result<String> {
    file_system::read_text(path, LIST_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(allow: &[&str], deny: &[&str]) -> AccessList {
        let sources = |texts: &[&str]| {
            let network = |text: &&str| AccessSource::Network(text.parse().expect("a range"));
            texts.iter().map(network).collect()
        };
        let rules = AccessRules::new(sources(allow), sources(deny));
        AccessList::load(&rules, |_| unreachable!("no file is named")).expect("ranges alone")
    }

    fn admits(list: &AccessList, address: &str) -> bool {
        list.admits(address.parse().expect("an address"))
    }

    #[test]
    fn without_rules_everybody_may_come() {
        assert!(admits(&list(&[], &[]), "203.0.113.9"));
    }

    #[test]
    fn a_denial_outweighs_a_permission() {
        let list = list(&["192.0.2.0/24", "::1"], &["192.0.2.7"]);
        assert!(
            admits(&list, "192.0.2.8") && admits(&list, "::ffff:192.0.2.8") && admits(&list, "::1")
        );
        assert!(
            !admits(&list, "192.0.2.7") && !admits(&list, "203.0.113.9") && !admits(&list, "::2")
        );
    }

    #[test]
    fn files_hold_one_range_per_line_and_comments() {
        let rules = AccessRules::new(vec![AccessSource::File("list".into())], Vec::new());
        let loaded = |text: &'static str| AccessList::load(&rules, move |_| Ok(text.to_owned()));
        let list =
            loaded("# our lab\n192.0.2.0/24 # wired\n\n2001:db8::/32\n").expect("valid lines");
        assert!(
            admits(&list, "192.0.2.1")
                && admits(&list, "2001:db8::1")
                && !admits(&list, "198.51.100.1")
        );

        let none = loaded("# everybody was removed\n").expect("an empty list");
        assert!(
            !admits(&none, "192.0.2.1"),
            "an empty list of allowed addresses admits no address"
        );
        assert!(
            loaded("192.0.2.0/24\nlab\n")
                .expect_err("a word")
                .to_string()
                .starts_with("list: \"lab\"")
        );

        let missing = AccessList::load(&rules, |_| Err(io::ErrorKind::NotFound.into()));
        assert!(missing.is_err());
    }

    /// Text behind a bound would be admitted unread.
    #[test]
    fn a_list_beyond_its_bounds_is_an_error_that_names_file_and_bound() {
        let file = || AccessSource::File("list".into());
        let lines = |count: usize| "# comment\n".repeat(5) + &"192.0.2.1\n".repeat(count);

        let loaded = |sources: Vec<AccessSource>, text: &str| {
            AccessList::load(&AccessRules::new(Vec::new(), sources), |_| {
                Ok(text.to_owned())
            })
            .map_err(|e| e.to_string())
        };
        assert!(loaded(vec![file()], &lines(RANGES_MAX)).is_ok());
        let error = loaded(vec![file()], &lines(RANGES_MAX + 1)).expect_err("one range too many");
        assert!(
            error.starts_with("list: ") && error.contains("100000 ranges; join"),
            "{error}"
        );

        let half = lines(RANGES_MAX / 2 + 1);
        assert!(
            loaded(vec![file(), file()], &half).is_err(),
            "the bound is that of all lists together"
        );

        let rules = AccessRules::new(Vec::new(), vec![AccessSource::File("/dev/zero".into())]);
        let error = AccessList::load(&rules, read_text)
            .expect_err("longer than 16 MiB")
            .to_string();
        assert!(
            error.contains("/dev/zero: longer than 16 MiB; join"),
            "{error}"
        );
    }
}
