//! How a server is spoken to, as far as its URL does not say it.

use linerate_model::http::HttpVersion;

use super::Plan;
use crate::http::units::shown;

/// How the server is spoken to; whether TLS is decides the scheme of its URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protocol {
    /// Version of HTTP.
    pub version: HttpVersion,
    /// Requests at a time on each connection; 1 in HTTP/1.1.
    pub streams: u32,
    /// Which certificates are believed; plays no part in plain text.
    pub trust: Trust,
}

/// Which certificates are believed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Trust {
    /// Those that lead to an authority of the client's host.
    #[default]
    System,
    /// Those that lead to a certificate of this PEM file, and those in it.
    File(String),
    /// The one with this SHA-256.
    Pinned([u8; 32]),
    /// All.
    Anything,
}

impl Default for Protocol {
    fn default() -> Self {
        Self {
            version: HttpVersion::Http1,
            streams: 1,
            trust: Trust::System,
        }
    }
}

impl Protocol {
    /// Several requests at a time on a connection are HTTP/2's.
    #[must_use]
    pub fn has_streams_it_cannot_have(&self) -> bool {
        self.streams > 1 && self.version == HttpVersion::Http1
    }
}

impl Plan {
    /// Whether HTTP/1.1 in plain text is spoken, whose bytes on the wire are known and whose connections cost little.
    #[must_use]
    pub fn is_plain_http1(&self) -> bool {
        self.protocol.version == HttpVersion::Http1 && !self.target.as_deref().is_some_and(is_https)
    }
}

fn is_https(url: &str) -> bool {
    const SCHEME: &str = "https://";
    url.get(..SCHEME.len())
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case(SCHEME))
}

/// SHA-256 of a certificate from 64 hexadecimal digits, with or without colons between pairs.
///
/// # Errors
/// What it should be.
pub fn fingerprint(text: &str) -> Result<[u8; 32], String> {
    let wrong = || {
        format!(
            "`{}` is no SHA-256: 64 hexadecimal digits, with or without colons",
            shown(text)
        )
    };
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    if digits.len() != 64 {
        return Err(wrong());
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair = std::str::from_utf8(pair).map_err(|_| wrong())?;
        if !pair.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        *byte = u8::from_str_radix(pair, 16).map_err(|_| wrong())?;
    }
    Ok(bytes)
}

/// The name of a file as a plan can hold it.
///
/// # Errors
/// What is wrong with it.
pub fn file_name(name: &str) -> Result<String, String> {
    const CHARS_MAX: usize = 1024;
    let is_name = !name.is_empty() && name.chars().count() <= CHARS_MAX && !name.chars().any(char::is_control);
    is_name.then(|| name.to_owned()).ok_or_else(|| {
        format!(
            "`{}` is no name of a file: 1 to {CHARS_MAX} characters, none of them a control character",
            shown(name)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::plan::Format;

    #[test]
    fn a_fingerprint_is_read_as_openssl_and_browsers_write_it() {
        let colons = vec!["aB"; 32].join(":");
        assert_eq!(fingerprint(&colons), Ok([0xab; 32]));
        assert_eq!(fingerprint(&"AB".repeat(32)), Ok([0xab; 32]));
        for wrong in ["", "ab", &"ab".repeat(33), &"+b".repeat(32), &"ä".repeat(32)] {
            assert!(fingerprint(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_http_1_without_tls_is_plain() {
        let is_plain = |text: &str| Plan::parse(text, Format::Toml).expect(text).is_plain_http1();
        assert!(is_plain("") && is_plain("target = \"http://https://\""));
        assert!(!is_plain("target = \"https://h/\"") && !is_plain("target = \"HTTPS://h/\""));
        assert!(!is_plain("target = \"http://h/\"\n[protocol]\nversion = \"2\""));
    }
}
