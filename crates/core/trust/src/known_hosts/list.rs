//! Lines of `known_hosts`, without I/O.

use std::fmt;
use std::net::Ipv6Addr;

use crate::fingerprint::{BadFingerprint, Fingerprint};

/// Bytes of a host name: 253 of DNS (RFC 1035, 2.3.4), or an IPv6 address with a zone.
const HOST_LENGTH_MAX: usize = 255;

/// All lines, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct HostList {
    lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Line {
    /// As in the file, without the line feed.
    text: Vec<u8>,
    content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Content {
    /// Blank, or a comment.
    Remark,
    /// A host name that cannot be parsed.
    Unreadable,
    Host(HostName, Result<Fingerprint, BadFingerprint>),
}

/// Defect of a line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Damage {
    #[error("no `HOST:PORT FINGERPRINT`")]
    Unreadable,
    #[error(transparent)]
    Fingerprint(#[from] BadFingerprint),
    /// Number of an earlier line of the same host with another fingerprint.
    #[error("contradicts line {0}")]
    Contradiction(usize),
}

impl HostList {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        // The last line counts also without a line feed, as some editors leave it.
        let complete = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        // `split` of no bytes gives one line.
        if bytes.is_empty() {
            return Self::default();
        }

        Self {
            lines: complete
                .split(|byte| *byte == b'\n')
                .map(Line::parse)
                .collect(),
        }
    }

    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        self.lines
            .iter()
            .flat_map(|line| line.text.iter().copied().chain([b'\n']))
            .collect()
    }

    /// The fingerprint that all lines of a host agree on.
    pub(crate) fn get(&self, host: &HostName) -> Option<Fingerprint> {
        // One damaged line makes the host unknown, also beside valid ones.
        let mut found = self.of(host).map(|fingerprint| fingerprint.ok());
        let first = found.next()??;
        found.all(|other| other == Some(first)).then_some(first)
    }

    /// Replaces all lines of a host.
    pub(crate) fn set(&mut self, host: &HostName, fingerprint: Fingerprint) {
        self.remove(host);
        self.lines
            .push(Line::parse(format!("{host} {fingerprint}").as_bytes()));
    }

    /// Removes all lines of a host; returns whether there were any.
    pub(crate) fn remove(&mut self, host: &HostName) -> bool {
        let before = self.lines.len();
        self.lines
            .retain(|line| !matches!(&line.content, Content::Host(other, _) if other == host));
        self.lines.len() < before
    }

    /// Numbers of damaged lines, from 1, and what is wrong with them.
    pub(crate) fn damages(&self) -> Vec<(usize, Damage)> {
        let mut first_lines = std::collections::HashMap::new();
        let mut damages = Vec::new();

        for (number, line) in (1..).zip(&self.lines) {
            match &line.content {
                Content::Remark => {}
                Content::Unreadable => damages.push((number, Damage::Unreadable)),
                Content::Host(_, Err(error)) => damages.push((number, (*error).into())),
                Content::Host(host, Ok(fingerprint)) => {
                    let (earlier, first) =
                        *first_lines.entry(host).or_insert((number, fingerprint));
                    if first != fingerprint {
                        damages.push((number, Damage::Contradiction(earlier)));
                    }
                }
            }
        }

        damages
    }

    fn of<'a>(
        &'a self,
        host: &HostName,
    ) -> impl Iterator<Item = Result<Fingerprint, BadFingerprint>> + 'a {
        let host = host.clone();
        self.lines
            .iter()
            .filter_map(move |line| match &line.content {
                Content::Host(other, fingerprint) if *other == host => Some(*fingerprint),
                _ => None,
            })
    }
}

impl Line {
    fn parse(text: &[u8]) -> Self {
        let content = match std::str::from_utf8(text).map(str::trim_ascii) {
            Ok(words) if words.is_empty() || words.starts_with('#') => Content::Remark,
            Ok(words) => Content::of_words(words).unwrap_or(Content::Unreadable),
            Err(_) => Content::Unreadable,
        };
        Self {
            text: text.to_vec(),
            content,
        }
    }
}

impl Content {
    fn of_words(words: &str) -> Option<Self> {
        let (host, fingerprint) = words
            .split_once(|c: char| c.is_ascii_whitespace())
            .unwrap_or((words, ""));
        // The last colon: those before it are of an IPv6 address.
        let (host, port) = host.rsplit_once(':')?;

        // An address of IPv6 without brackets could end in a port or not.
        let is_ambiguous = host.contains(':') && !host.starts_with('[');
        let host = HostName::new(host, port.parse().ok()?).filter(|_| !is_ambiguous)?;
        Some(Self::Host(host, fingerprint.trim_ascii().parse()))
    }
}

/// Host and port in the form in which they are compared and written.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct HostName {
    host: String,
    port: u16,
}

impl HostName {
    /// `None` for what is no host, or cannot be part of a line.
    pub(crate) fn new(host: &str, port: u16) -> Option<Self> {
        // These characters would change the meaning of a line.
        let is_character = |c: char| !c.is_whitespace() && !c.is_control() && !"[]#".contains(c);
        let inside = host
            .strip_prefix('[')
            .map_or(Some(host), |rest| rest.strip_suffix(']'))?;
        if port == 0
            || !(1..=HOST_LENGTH_MAX).contains(&inside.len())
            || !inside.chars().all(is_character)
        {
            return None;
        }

        // Of hosts and addresses, only IPv6 addresses have brackets (RFC 3986, section 3.2.2).
        let host = if inside.contains(':') {
            ipv6(inside)?
        } else if inside.len() < host.len() {
            return None;
        } else {
            // Case has no meaning in names (RFC 4343); the final dot is that of the root.
            inside.trim_end_matches('.').to_ascii_lowercase()
        };
        (!host.is_empty()).then_some(Self { host, port })
    }
}

/// The canonical form of an IPv6 address (RFC 5952). A zone (RFC 4007, 11) is kept.
fn ipv6(text: &str) -> Option<String> {
    let (address, zone) = text
        .split_once('%')
        .map_or((text, None), |(address, zone)| (address, Some(zone)));
    let address: Ipv6Addr = address.parse().ok()?;

    match zone {
        None => Some(address.to_string()),
        Some("") => None,
        Some(zone) => Some(format!("{address}%{zone}")),
    }
}

impl fmt::Display for HostName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port } = self;
        if host.contains(':') {
            write!(f, "[{host}]:{port}")
        } else {
            write!(f, "{host}:{port}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OF_ONES: &str = "sha256:AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE";

    fn name(host: &str, port: u16) -> HostName {
        HostName::new(host, port).expect("a host")
    }

    #[test]
    fn names_are_written_in_one_form() {
        let rows = [
            ("Lab.Example.", "lab.example:7"),
            ("192.0.2.1", "192.0.2.1:7"),
            ("2001:DB8:0:0::1", "[2001:db8::1]:7"),
            ("[::1]", "[::1]:7"),
            ("fe80::1%eth0", "[fe80::1%eth0]:7"),
            ("b\u{fc}cher.example", "b\u{fc}cher.example:7"),
        ];
        for (host, expected) in rows {
            assert_eq!(name(host, 7).to_string(), expected);
        }

        for bad in [
            "",
            ".",
            "[::1",
            "::1]",
            "[lab]",
            "[[::1]]",
            "fe80::1%a b",
            "fe80::1%",
        ] {
            assert!(HostName::new(bad, 7).is_none(), "{bad}");
        }
    }

    #[test]
    fn lines_are_read_strictly() {
        let good = Fingerprint::new([1; 32]);
        let rows = [
            (format!("lab:7 {OF_ONES}"), Some(good)),
            (format!("  LAB:7\t{OF_ONES} \r"), Some(good)),
            (format!("lab:8 {OF_ONES}"), None),
            (format!("lab:7 {OF_ONES} more"), None),
            (format!("lab:70000 {OF_ONES}"), None),
            (format!("lab {OF_ONES}"), None),
            (format!("# lab:7 {OF_ONES}"), None),
            (format!("lab:7 {OF_ONES}\nlab:7 {OF_ONES}"), Some(good)),
            (format!("lab:7 {OF_ONES}\nlab:7"), None),
            ("lab:7".to_owned(), None),
        ];
        for (text, expected) in rows {
            assert_eq!(
                HostList::parse(text.as_bytes()).get(&name("lab", 7)),
                expected,
                "{text}"
            );
        }

        let ambiguous = HostList::parse(format!("2001:db8::1:7 {OF_ONES}").as_bytes());
        assert_eq!(ambiguous.damages(), [(1, Damage::Unreadable)]);
        assert_eq!(ambiguous.get(&name("2001:db8::1", 7)), None);
    }

    #[test]
    fn text_without_a_change_stays_as_it_is() {
        for (text, written) in [
            ("", ""),
            ("\n", "\n"),
            ("\n\n", "\n\n"),
            ("a", "a\n"),
            ("a\r\n#\n", "a\r\n#\n"),
        ] {
            assert_eq!(
                HostList::parse(text.as_bytes()).to_bytes(),
                written.as_bytes(),
                "{text:?}"
            );
        }
    }
}
