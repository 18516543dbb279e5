//! Version of HTTP, streams and trusted certificates.

use linerate_model::http::units::shown;
use linerate_model::http::{HttpVersion, Trust};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::values;

/// Version of HTTP, streams and trusted certificates: the table `[protocol]` of a plan. TLS follows
/// from the scheme of the URL.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Protocol {
    /// Version of HTTP.
    pub version: HttpVersion,
    /// Concurrent requests on each connection; 1 in HTTP/1.1.
    pub streams: u32,
    /// All certificates are trusted.
    pub insecure: bool,
    /// Those in this file are trusted, and what they signed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cacert: Option<String>,
    /// The one with this SHA-256 is trusted.
    #[serde(with = "values::pin", skip_serializing_if = "Option::is_none")]
    pub pin_sha256: Option<[u8; 32]>,
}

/// Trusted certificates that cannot be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TrustError {
    /// More than one key of a plan names them.
    #[error("protocol.insecure, protocol.cacert and protocol.pin_sha256 exclude each other")]
    Conflict,
    /// No name of a file.
    #[error(
        "`{0}` is no name of a file: 1 to {FILE_NAME_CHARS_MAX} characters, none of them a control \
         character"
    )]
    FileName(String),
}

const FILE_NAME_CHARS_MAX: usize = 1024;

impl Default for Protocol {
    fn default() -> Self {
        Self {
            version: HttpVersion::Http1,
            streams: 1,
            insecure: false,
            cacert: None,
            pin_sha256: None,
        }
    }
}

impl Protocol {
    /// The trusted certificates.
    ///
    /// # Errors
    /// [`TrustError`], of more than one key or of a name that is none.
    pub fn trust(&self) -> Result<Trust, TrustError> {
        Ok(match (self.insecure, &self.cacert, self.pin_sha256) {
            (false, None, None) => Trust::System,
            (true, None, None) => Trust::Anything,
            (false, Some(file), None) => Trust::File(file_name(file)?.into()),
            (false, None, Some(pin)) => Trust::Pinned(pin),
            _ => return Err(TrustError::Conflict),
        })
    }

    /// Concurrent requests on a connection need HTTP/2.
    pub fn has_streams_without_http2(&self) -> bool {
        self.streams > 1 && self.version == HttpVersion::Http1
    }
}

fn file_name(name: &str) -> Result<&str, TrustError> {
    let is_name = !name.is_empty()
        && name.chars().count() <= FILE_NAME_CHARS_MAX
        && !name.chars().any(char::is_control);
    is_name
        .then_some(name)
        .ok_or_else(|| TrustError::FileName(shown(name)))
}

#[cfg(test)]
mod tests {
    use crate::plan::Plan;

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
