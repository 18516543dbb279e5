//! Version of HTTP, streams and trusted certificates.

use linerate_model::http::units::shown;
use linerate_model::http::{HttpVersion, Trust};
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Version of HTTP, streams and trusted certificates. TLS follows from the scheme of the URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Keys", into = "Keys")]
pub struct Protocol {
    /// Version of HTTP.
    pub version: HttpVersion,
    /// Concurrent requests on each connection; 1 in HTTP/1.1.
    pub streams: u32,
    /// Trusted certificates; without meaning in plain text.
    pub trust: Trust,
}

/// Trusted certificates that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustError {
    /// More than one key of a plan names them.
    #[error("protocol.insecure, protocol.cacert and protocol.pin_sha256 exclude each other")]
    Conflict,
    /// No SHA-256.
    #[error("`{0}` is no SHA-256: 64 hexadecimal digits, with or without colons")]
    Fingerprint(String),
    /// No name of a file.
    #[error(
        "`{0}` is no name of a file: 1 to {FILE_NAME_CHARS_MAX} characters, none of them a control \
         character"
    )]
    FileName(String),
}

const FILE_NAME_CHARS_MAX: usize = 1024;

/// The keys of the table `[protocol]`.
#[derive(Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Keys {
    version: HttpVersion,
    streams: u32,
    insecure: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    cacert: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin_sha256: Option<String>,
}

impl Default for Keys {
    fn default() -> Self {
        Protocol::default().into()
    }
}

impl TryFrom<Keys> for Protocol {
    type Error = TrustError;

    fn try_from(keys: Keys) -> Result<Self, TrustError> {
        let trust = match (keys.insecure, keys.cacert, keys.pin_sha256) {
            (false, None, None) => Trust::System,
            (true, None, None) => Trust::Anything,
            (false, Some(file), None) => Trust::File(file_name(&file)?.into()),
            (false, None, Some(pin)) => Trust::Pinned(fingerprint(&pin)?),
            _ => return Err(TrustError::Conflict),
        };
        Ok(Self {
            version: keys.version,
            streams: keys.streams,
            trust,
        })
    }
}

impl From<Protocol> for Keys {
    fn from(protocol: Protocol) -> Self {
        let (cacert, pin_sha256) = match &protocol.trust {
            Trust::File(file) => (Some(file.to_string_lossy().into_owned()), None),
            Trust::Pinned(pin) => (
                None,
                Some(pin.iter().map(|byte| format!("{byte:02x}")).collect()),
            ),
            _ => (None, None),
        };
        Self {
            version: protocol.version,
            streams: protocol.streams,
            insecure: protocol.trust == Trust::Anything,
            cacert,
            pin_sha256,
        }
    }
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
    /// Concurrent requests on a connection need HTTP/2.
    pub fn has_streams_without_http2(&self) -> bool {
        self.streams > 1 && self.version == HttpVersion::Http1
    }
}

/// SHA-256 of a certificate from 64 hexadecimal digits, with or without colons between pairs.
///
/// # Errors
/// [`TrustError::Fingerprint`].
pub fn fingerprint(text: &str) -> Result<[u8; 32], TrustError> {
    let wrong = || TrustError::Fingerprint(shown(text));
    let digits = text.replace(':', "");
    // The standard parser also takes a sign.
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }

    let mut bytes = [0; 32];
    for (place, byte) in bytes.iter_mut().enumerate() {
        // 64 ASCII digits are 32 pairs, so every slice is inside the text.
        *byte = u8::from_str_radix(&digits[2 * place..][..2], 16).map_err(|_| wrong())?;
    }

    Ok(bytes)
}

/// The name of a file as a plan can hold it.
///
/// # Errors
/// [`TrustError::FileName`].
pub fn file_name(name: &str) -> Result<String, TrustError> {
    let is_name = !name.is_empty()
        && name.chars().count() <= FILE_NAME_CHARS_MAX
        && !name.chars().any(char::is_control);
    is_name
        .then(|| name.to_owned())
        .ok_or_else(|| TrustError::FileName(shown(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;

    #[test]
    fn a_fingerprint_is_read_as_openssl_and_browsers_write_it() {
        let colons = vec!["aB"; 32].join(":");
        assert_eq!(fingerprint(&colons), Ok([0xab; 32]));
        assert_eq!(fingerprint(&"AB".repeat(32)), Ok([0xab; 32]));

        for wrong in [
            "",
            "ab",
            &"ab".repeat(33),
            &"+b".repeat(32),
            &"ä".repeat(32),
        ] {
            assert!(fingerprint(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn only_http_1_without_tls_is_plain() {
        let is_plain = |text: &str| Plan::parse(text).expect(text).is_plain_http1();
        assert!(is_plain("") && is_plain("target = \"http://https://\""));
        assert!(!is_plain("target = \"https://h/\"") && !is_plain("target = \"HTTPS://h/\""));
        assert!(!is_plain(
            "target = \"http://h/\"\n[protocol]\nversion = \"2\""
        ));
    }
}
