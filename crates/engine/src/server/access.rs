//! Access by client address.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use linerate_model::network::{Network, NotANetwork};
use linerate_model::policy::{AccessRules, AccessSource};

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
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: {source}", .path.display())]
    Parse { path: PathBuf, source: NotANetwork },
}

/// Longest list that is read from a file.
const NETWORKS_MAX: usize = 100_000;

impl AccessList {
    /// Reads the rules; `read` returns the text of a file.
    ///
    /// # Errors
    /// The first file that cannot be read or line that names no range.
    pub(crate) fn load(
        rules: &AccessRules,
        read: impl Fn(&Path) -> std::io::Result<String> + Copy,
    ) -> Result<Self, AccessError> {
        let allow = (!rules.allow.is_empty()).then(|| networks(&rules.allow, read));
        Ok(Self { allow: allow.transpose()?, deny: networks(&rules.deny, read)? })
    }

    pub(crate) fn admits(&self, address: IpAddr) -> bool {
        let within = |list: &[Network]| list.iter().any(|n| n.contains(address));
        self.allow.as_deref().is_none_or(within) && !within(&self.deny)
    }
}

fn networks(
    sources: &[AccessSource],
    read: impl Fn(&Path) -> std::io::Result<String>,
) -> Result<Vec<Network>, AccessError> {
    let mut networks = Vec::new();
    for source in sources {
        match source {
            AccessSource::Network(network) => networks.push(*network),
            AccessSource::File(path) => {
                let path = path.clone();
                let text = match read(&path) {
                    Ok(text) => text,
                    Err(source) => return Err(AccessError::Read { path, source }),
                };
                networks.extend(parse(&text).map_err(|source| AccessError::Parse { path, source })?);
            }
        }
    }
    networks.truncate(NETWORKS_MAX);
    Ok(networks)
}

fn parse(text: &str) -> Result<Vec<Network>, NotANetwork> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(str::parse).collect()
}

/// Reads a file of users or address ranges.
pub(crate) fn read_text(path: &Path) -> std::io::Result<String> {
    use std::io::Read as _;
    let mut text = String::new();
    std::fs::File::open(path)?.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// Largest file of users or address ranges that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;

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
        assert!(admits(&list, "192.0.2.8") && admits(&list, "::ffff:192.0.2.8") && admits(&list, "::1"));
        assert!(!admits(&list, "192.0.2.7") && !admits(&list, "203.0.113.9") && !admits(&list, "::2"));
    }

    #[test]
    fn files_hold_one_range_per_line_and_comments() {
        let rules = AccessRules::new(vec![AccessSource::File("list".into())], Vec::new());
        let loaded = |text: &'static str| AccessList::load(&rules, move |_| Ok(text.to_owned()));
        let list = loaded("# our lab\n192.0.2.0/24 # wired\n\n2001:db8::/32\n").expect("valid lines");
        assert!(admits(&list, "192.0.2.1") && admits(&list, "2001:db8::1") && !admits(&list, "198.51.100.1"));
        let none = loaded("# everybody was removed\n").expect("an empty list");
        assert!(!admits(&none, "192.0.2.1"), "an empty list of allowed addresses admits no address");
        assert!(loaded("192.0.2.0/24\nlab\n").expect_err("a word").to_string().starts_with("list: \"lab\""));
        let missing = AccessList::load(&rules, |_| Err(std::io::ErrorKind::NotFound.into()));
        assert!(missing.is_err());
    }
}
