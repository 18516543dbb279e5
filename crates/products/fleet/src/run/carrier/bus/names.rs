//! Names on a bus: subjects, buckets, inboxes.

use std::collections::BTreeSet;

use linerate_model::outcome::Error;

/// Longest name of a site in bytes.
const SITE_MAX_BYTES: usize = 32;
/// Place of the host in the subjects of its lines.
const HOST_PLACE: usize = 3;
/// Token of the subject of commands to all hosts.
const ALL: &str = "all";

/// Names of a site.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub site: String,
}

impl Names {
    pub(super) fn new(site: &str) -> Result<Self, Error> {
        let is_allowed =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if (1..=SITE_MAX_BYTES).contains(&site.len()) && site.bytes().all(is_allowed) {
            return Ok(Self {
                site: site.to_owned(),
            });
        }

        Err(Error::usage(format!(
            "{site:?} is no name of a site: 1 to {SITE_MAX_BYTES} of a-z, 0-9 and -"
        )))
    }

    pub(super) fn commands_to_all(&self) -> String {
        self.commands_to(ALL)
    }

    pub(super) fn commands_to(&self, token: &str) -> String {
        format!("lr.{}.cmd.{token}", self.site)
    }

    /// Answers that those who listen now receive.
    pub(super) fn live(&self, token: &str) -> String {
        format!("lr.{}.out.{token}.live", self.site)
    }

    /// Lines that are kept.
    pub(super) fn results(&self, token: &str, run: &str) -> String {
        format!("lr.{}.out.{token}.result.{run}", self.site)
    }

    pub(super) fn stream(&self) -> String {
        format!("LR_{}_RESULT", self.site)
    }

    pub(super) fn run_bucket(&self) -> String {
        format!("LR_{}", self.site)
    }

    pub(super) fn lease_bucket(&self) -> String {
        format!("LR_{}_LEASE", self.site)
    }
}

/// Any one token of a subject.
pub(super) const ANY: &str = "*";

/// Token of a host in subjects, where a dot separates tokens.
pub(super) fn token(host: &str) -> String {
    host.replace('.', "_")
}

/// Tokens of all hosts, in their order.
pub(super) fn tokens(hosts: &[String]) -> Result<Vec<String>, Error> {
    let mut tokens: Vec<String> = Vec::new();
    let mut seen = BTreeSet::new();
    for host in hosts {
        let token = token(host);
        // A host of this name would receive the commands to all hosts as its own.
        if token == ALL {
            let text = format!("no host of a bus can have this name: {token}");
            return Err(Error::usage(text));
        }
        if !seen.insert(token.clone()) {
            let text = format!("two hosts have one name on a bus, where . is _: {token}");
            return Err(Error::usage(text));
        }
        tokens.push(token);
    }

    Ok(tokens)
}

/// Prefix of the inboxes of an agent: its replies are for no other.
pub(super) fn inbox(token: &str) -> String {
    format!("_INBOX_{token}")
}

/// Token of the host whose line has this subject.
pub(super) fn host_of(subject: &str) -> Option<&str> {
    subject.split('.').nth(HOST_PLACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subjects_name_site_and_host() {
        let names = Names::new("lab-1").expect("a name");
        assert_eq!(names.commands_to_all(), "lr.lab-1.cmd.all");
        assert_eq!(
            names.results(&token("h1.rack"), "r"),
            "lr.lab-1.out.h1_rack.result.r"
        );
        assert_eq!(host_of(&names.live("h1")), Some("h1"));
        assert_eq!(host_of("lr"), None);
    }

    #[test]
    fn names_that_break_subjects_or_collide_are_refused() {
        for site in ["", "Lab", "a.b", "*", ">", &"x".repeat(33)] {
            assert!(Names::new(site).is_err(), "{site}");
        }

        let tokens_of = |hosts: &[&str]| {
            tokens(
                &hosts
                    .iter()
                    .map(|host| (*host).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        assert_eq!(
            tokens_of(&["a.b", "a"]).map(|tokens| tokens.concat()),
            Ok("a_ba".to_owned())
        );
        assert!(tokens_of(&["a.b", "c", "a_b"]).is_err());
        assert!(tokens_of(&["all"]).is_err());
    }
}
