//! The protocol negotiated by client and server.

use std::fmt;
use std::path::PathBuf;

use linerate_macros::stored;

/// The protocol of a run.
#[stored(Eq, Default)]
pub struct NegotiatedProtocol {
    /// Version of HTTP.
    pub http: HttpVersion,
    /// Encryption; absent in plain text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<NegotiatedTls>,
}

/// Trusted certificates.
#[stored(Eq, Default)]
pub enum Trust {
    /// Those of an authority in the store of the client's host.
    #[default]
    System,
    /// Those of a certificate in this PEM file, and those in it.
    File(PathBuf),
    /// The one with this SHA-256.
    Pinned([u8; 32]),
    /// All.
    Anything,
}

/// A version of HTTP.
#[stored(Copy, Eq, Default)]
pub enum HttpVersion {
    /// HTTP/1.1 (RFC 9112).
    #[default]
    #[serde(rename = "1.1")]
    Http1,
    /// HTTP/2 (RFC 9113).
    #[serde(rename = "2")]
    Http2,
}

impl HttpVersion {
    /// Name with the protocol: `HTTP/1.1`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Http1 => "HTTP/1.1",
            Self::Http2 => "HTTP/2",
        }
    }
}

/// TLS as it was negotiated.
#[stored(Eq, Default)]
pub struct NegotiatedTls {
    /// Its version, such as `1.3`.
    pub version: String,
    /// The cipher suite by the name it has in its standard.
    pub cipher: String,
}

impl NegotiatedProtocol {
    /// True if it is HTTP/1.1 in plain text, whose bytes on the wire are those of heads and bodies.
    pub fn is_plain_http1(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for NegotiatedProtocol {
    /// `HTTP/2 over TLS 1.3 (TLS13_AES_128_GCM_SHA256)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.http.name())?;
        match &self.tls {
            Some(tls) => write!(f, " over TLS {} ({})", tls.version, tls.cipher),
            None => f.write_str(" in plain text"),
        }
    }
}
